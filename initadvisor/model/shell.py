"""The shells that generators' configuration files are written for."""

from __future__ import annotations

from enum import StrEnum


class Shell(StrEnum):
    """The shell that a generator's configuration is written for."""

    BASH = "bash"
    SH = "sh"
