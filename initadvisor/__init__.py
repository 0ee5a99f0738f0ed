"""Finds on each machine, by evidence, the initramfs compression that boots fastest."""

__version__ = "0.1.0"
