"""Collecting findings, so that a million alike take no more room than one."""

from __future__ import annotations

from initadvisor.model.image import Finding, FindingKind


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
    """Return a stored name in a form that cannot fool or command a terminal.

    What is not printable (control characters, escape sequences, marks that turn the direction of
    writing) or not UTF-8 is written as an escape.
    """
    text = name.decode(errors="backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
