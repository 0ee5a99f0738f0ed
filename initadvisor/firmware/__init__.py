"""EFI variables and boot options, the FPDT, the TPM's log: what firmware shows of a boot."""
