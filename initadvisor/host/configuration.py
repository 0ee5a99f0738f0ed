"""Finds and reads the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.config import Config
from initadvisor.core.errors import InitadvisorError, UsageError
from initadvisor.core.plain_values import from_toml
from initadvisor.host.files import open_regular

if TYPE_CHECKING:
    from initadvisor.host import Host


CONFIG_PATH = "/etc/initadvisor.toml"
_LIMIT_BYTES = 1 << 20


def load_config(host: Host) -> Config:
    """Return what ``/etc/initadvisor.toml`` says, the defaults where there is no such file.

    Raises ``UsageError`` for a file that is not TOML, an unknown key or a bad value.
    """
    path = host.path(CONFIG_PATH)
    try:
        if not path.exists():
            return Config()
        with open_regular(path) as file:
            text = file.read(_LIMIT_BYTES).decode()
    except UnicodeDecodeError as err:
        msg = f"{path}: not UTF-8 at byte {err.start}"
        raise UsageError(msg) from err
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    try:
        tables = from_toml(text)
    except ValueError as err:
        msg = f"{path}: {err}"
        raise UsageError(msg) from err
    return Config.from_tables(tables, source=str(path))
