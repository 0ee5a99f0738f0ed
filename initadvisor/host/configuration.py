"""Finds, reads and changes the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from initadvisor.core.config import Config, find_key
from initadvisor.core.config_text import with_value
from initadvisor.core.errors import UsageError
from initadvisor.core.plain_values import from_toml
from initadvisor.host.files import failing_as, open_regular, remove_durably
from initadvisor.host.replace import replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from initadvisor.host import Host


CONFIG_PATH = "/etc/initadvisor.toml"
_LIMIT_BYTES = 1 << 20


def load_config(host: Host) -> Config:
    """Return what ``/etc/initadvisor.toml`` says, the defaults where there is no such file.

    Raises ``UsageError`` for a file that is not TOML, an unknown key or a bad value.
    """
    return Config.from_tables(load_tables(host), source=str(host.path(CONFIG_PATH)))


def load_tables(host: Host) -> dict[str, Any]:
    """Return what the file holds, empty where there is none; raises ``UsageError`` for no TOML."""
    path = host.path(CONFIG_PATH)
    try:
        return from_toml(config_text(host) or "")
    except ValueError as err:
        msg = f"{path}: {err}"
        raise UsageError(msg) from err


def change_config(host: Host, name: str, value: object | None) -> None:
    """Set a key of the file to a plain value, or remove it for None; all else in it stays.

    Raises ``UsageError`` for an unknown key, a bad value or a file that cannot be edited line by
    line, and what ``replace_file`` does.
    """
    before = config_text(host)
    after = edited_text(host, before or "", {name: value})
    if after != (before or ""):
        write_config(host, after)


def edited_text(host: Host, text: str, values: Mapping[str, object | None]) -> str:
    """Return the file's text with keys set, or removed for None; nothing is written.

    Raises ``UsageError`` like ``change_config``.
    """
    path = host.path(CONFIG_PATH)
    for name, value in values.items():
        table, key = find_key(name)
        if value is not None:
            Config.from_tables({table: {key: value}}, source="nothing changed")
        try:
            text = with_value(text, table, key, value)
        except UsageError as err:
            msg = f"{path}: {err.message}"
            raise UsageError(msg, hint=err.hint) from err
        except ValueError as err:
            msg = f"{path}: {err}"
            raise UsageError(msg) from err
    Config.from_tables(from_toml(text), source=str(path))
    return text


def write_config(host: Host, text: str | None) -> None:
    """Have the file hold a text, or be gone for None; raises what ``replace_file`` does."""
    path = host.path(CONFIG_PATH)
    if text is not None:
        replace_file(path, text.encode())
        return
    with failing_as(f"cannot remove {path}"):
        remove_durably(path)


def config_text(host: Host) -> str | None:
    """Return the file's text, None where there is none; raises ``UsageError`` for no text."""
    path = host.path(CONFIG_PATH)
    with failing_as(f"cannot read {path}"):
        if not path.exists():
            return None
        with open_regular(path) as file:
            content = file.read(_LIMIT_BYTES + 1)
    if len(content) > _LIMIT_BYTES:
        msg = f"{path}: larger than {_LIMIT_BYTES} bytes"
        raise UsageError(msg)
    try:
        return content.decode()
    except UnicodeDecodeError as err:
        msg = f"{path}: not UTF-8 at byte {err.start}"
        raise UsageError(msg) from err
