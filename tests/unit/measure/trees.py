"""Trees of files as the kernel shows them, for a host whose root they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOADER = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
GLOBAL = "8be4df61-93ca-11d2-aa0d-00e098032b8c"
VOLATILE = b"\x06\0\0\0"
"""Attributes: boot service and runtime access, as systemd-boot sets them."""


def host_at(root: Path) -> Host:
    """Return a host below ``root`` that runs no programs but those a test answers for."""
    return Host(root=root, runner=FakeRunner())


def write(root: Path, path: str, content: bytes | str) -> None:
    """Write a file of the machine."""
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


def write_variable(root: Path, name: str, value: bytes, vendor: str = LOADER) -> None:
    """Write an EFI variable with this value, as efivarfs shows it."""
    write(root, f"/sys/firmware/efi/efivars/{name}-{vendor}", VOLATILE + value)


def write_texts(root: Path, texts: Mapping[str, str]) -> None:
    """Write variables of the loader that are text."""
    for name, text in texts.items():
        write_variable(root, name, f"{text}\0".encode("utf-16-le"))


def write_fpdt(root: Path, **fields: object) -> None:
    """Write fields of the firmware's boot record, named as the kernel's files."""
    for name, value in fields.items():
        write(root, f"/sys/firmware/acpi/fpdt/boot/{name}_ns", f"{value}\n")
