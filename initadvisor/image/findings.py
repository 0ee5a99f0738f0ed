"""Collecting findings, so that a million alike take no more room than one."""

from __future__ import annotations

from initadvisor.model.image import Finding, FindingKind
from initadvisor.model.text import shown


class Findings:
    """Counts findings by kind and keeps the first of each."""

    def __init__(self) -> None:
        self._found: dict[FindingKind, Finding] = {}

    def add(self, kind: FindingKind, offset: int, name: bytes = b"") -> None:
        """Note one case; ``offset`` and ``name`` are kept from the first."""
        first = self._found.get(kind)
        self._found[kind] = Finding(
            kind=kind,
            count=first.count + 1 if first else 1,
            offset=first.offset if first else offset,
            example=first.example if first else printable(name),
        )

    def all(self) -> tuple[Finding, ...]:
        """Return what was found, in the order of first sight."""
        return tuple(self._found.values())


def printable(name: bytes) -> str:
    """Return a stored name as ``shown`` shows it; what is not UTF-8 is written as an escape."""
    return shown(name.decode(errors="backslashreplace"))
