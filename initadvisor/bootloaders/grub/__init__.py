"""GRUB, on EFI and on BIOS."""
