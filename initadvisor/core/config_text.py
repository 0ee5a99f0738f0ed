"""One key of the configuration file's text changed; comments and all other lines stay."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from initadvisor.core.errors import UsageError
from initadvisor.core.plain_values import from_toml

_HEADER = re.compile(r"\s*\[\s*([A-Za-z0-9_-]+)\s*\]\s*(?:#.*)?")
_ENTRY = re.compile(r"(\s*([A-Za-z0-9_-]+)\s*=\s*)(.*)", re.DOTALL)


def parse_value(text: str) -> object:
    """Return the value that a user typed: as TOML has it, or a string without its quotes."""
    try:
        tables = from_toml(f"value = {text}\n")
    except ValueError:
        return text
    return tables["value"] if set(tables) == {"value"} else text


def with_value(text: str, table: str, key: str, value: object | None) -> str:
    """Return the text with ``key`` of ``[table]`` set to a plain value, or without it for None.

    Raises ``UsageError`` where the key is not written as ``key = value`` on a line of its own below
    ``[table]``, and ``ValueError`` for a text that is no TOML.
    """
    before = from_toml(text)
    changed = _edited(text.split("\n"), table, key, None if value is None else written(value))
    keys = before.get(table, {})
    keys = {**keys, key: value} if isinstance(keys, dict) else {}
    expected = {**before, table: {name: keys[name] for name in keys if keys[name] is not None}}
    try:
        found: dict[str, Any] | None = from_toml(changed)
    except ValueError:
        found = None
    if found is None or {table: {}} | found != expected:
        msg = f"cannot change {key}: it is not on a line of its own below [{table}]"
        raise UsageError(msg, hint="change it by hand")
    return changed


def written(value: object) -> str:
    """Return a plain value as TOML has it."""
    if isinstance(value, list):
        return f"[{', '.join(written(item) for item in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _edited(lines: list[str], table: str, key: str, value: str | None) -> str:
    section, last, at, start, rest = "", None, None, "", ""
    for number, line in enumerate(lines):
        if header := _HEADER.fullmatch(line):
            section = header[1]
        if section == table and line.strip():
            last = number
            if (entry := _ENTRY.fullmatch(line)) and entry[2] == key:
                at, start, rest = number, entry[1], entry[3]
    if at is not None:
        lines[at : at + 1] = [] if value is None else [start + value + _after_value(rest)]
    elif value is not None and last is not None:
        lines.insert(last + 1, f"{key} = {value}")
    elif value is not None:
        head = "\n".join(lines).rstrip()
        lines = [head, ""] if head else []
        lines += [f"[{table}]", f"{key} = {value}", ""]
    return "\n".join(lines)


def _after_value(rest: str) -> str:
    """Return what follows the value on its line: blanks, and a comment."""
    for found in re.finditer("#", rest):
        value = rest[: found.start()]
        with contextlib.suppress(ValueError):  # that # is part of a string
            from_toml(f"value = {value}")
            return rest[len(value.rstrip()) :]
    return rest[len(rest.rstrip()) :]
