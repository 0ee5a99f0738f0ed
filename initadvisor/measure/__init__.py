"""What one boot left behind: kernel messages, EFI variables, ACPI tables, the journal."""
