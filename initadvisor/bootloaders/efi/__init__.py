"""The firmware's own boot manager, used as a boot loader."""
