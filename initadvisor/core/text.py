"""Text of unknown origin: made fit to be shown, and kept byte for byte."""

from __future__ import annotations

_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""How Python writes bytes that are no UTF-8, in file names above all (PEP 383)."""


def shown(text: str) -> str:
    """Return ``text`` in a form that cannot fool or command a terminal.

    What is not printable (control characters, escape sequences, marks that turn the direction of
    writing) or was not UTF-8 is written as an escape.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def encoded(text: str) -> bytes:
    """Return text as the bytes it was read from; what is no UTF-8 survives."""
    return text.encode(errors="surrogateescape")


def decoded(content: bytes) -> str:
    """Return bytes as text from which ``encoded`` makes the same bytes."""
    return content.decode(errors="surrogateescape")


def _escape(character: str) -> str:
    if ord(character) in _ESCAPED_BYTES:
        return f"\\x{ord(character) - 0xDC00:02x}"
    return character.encode("unicode_escape").decode()
