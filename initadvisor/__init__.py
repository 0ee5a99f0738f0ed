"""Finds on each machine, by evidence, the initramfs compression that boots fastest."""

from __future__ import annotations

__version__ = "0.1.0"
