"""Decompressors with the kernel's rules, in bounded memory."""
