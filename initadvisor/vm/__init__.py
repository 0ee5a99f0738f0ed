"""Boots an image once in QEMU or user-mode Linux: a sample, or a lost VM."""
