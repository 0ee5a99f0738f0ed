"""Collecting what speaks against an image, weighed against what is known of the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.image.contents import Lint, Verdict
from initadvisor.image.kernel import kernel_version

if TYPE_CHECKING:
    from initadvisor.image.kernel import KernelConfig


class LintReport:
    """Reasons and notes about one image; ``subject`` is the part of it they are about."""

    def __init__(self, *, config: KernelConfig | None, release: str | None) -> None:
        self.subject = ""
        self._config = config
        self._version = kernel_version(release) if release else None
        # Dictionaries keep the order and drop what several segments have in common.
        self._refused: dict[str, None] = {}
        self._unknown: dict[str, None] = {}
        self._unknown_options: dict[str, None] = {}
        self._notes: dict[str, None] = {}

    def refuse(self, reason: str) -> None:
        """Note why every such kernel gives up."""
        self._refused[self._about(reason)] = None

    def doubt(self, reason: str) -> None:
        """Note what is not known and decides."""
        self._unknown[self._about(reason)] = None

    def note(self, text: str) -> None:
        """Note what does not decide."""
        self._notes[self._about(text)] = None

    def needs(self, option: str, what: str, *, or_else: str | None = None) -> None:
        """Say that ``what`` takes a configuration option (``or_else``: or another one)."""
        if self._config is None:
            self._unknown_options[option] = None
        elif not self._config.enabled(option) and not (or_else and self._config.enabled(or_else)):
            self._refused[f"{option}, needed for {what}, is not set in {self._config.source}"] = (
                None
            )

    def needs_since(self, version: tuple[int, int], what: str) -> None:
        """Say that kernels know ``what`` since a version; it is assumed of one that is unknown."""
        if self.is_before(version):
            self.refuse(f"{what} is known to kernels since {version[0]}.{version[1]}")

    def is_before(self, version: tuple[int, int]) -> bool | None:
        """Tell whether the kernel is older than ``version``, None if its version is not known."""
        return self._version < version if self._version else None

    def lint(self) -> Lint:
        """Return the verdict."""
        notes = tuple(self._notes)
        if self._refused:
            return Lint(verdict=Verdict.REFUSED, reasons=tuple(self._refused), notes=notes)
        unknown = tuple(self._unknown)
        if self._unknown_options:
            options = ", ".join(self._unknown_options)
            unknown = (f"the kernel's configuration is not known: it needs {options}", *unknown)
        verdict = Verdict.UNKNOWN if unknown else Verdict.OK
        return Lint(verdict=verdict, reasons=unknown, notes=notes)

    def _about(self, text: str) -> str:
        return f"{self.subject}: {text}" if self.subject else text
