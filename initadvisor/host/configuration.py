"""Finds and reads the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.core.config import Config
from initadvisor.core.errors import UsageError
from initadvisor.core.plain_values import from_toml
from initadvisor.host.files import failing_as, open_regular

if TYPE_CHECKING:
    from initadvisor.host import Host


CONFIG_PATH = "/etc/initadvisor.toml"
_LIMIT_BYTES = 1 << 20


def load_config(host: Host) -> Config:
    """Return what ``/etc/initadvisor.toml`` says, the defaults where there is no such file.

    Raises ``UsageError`` for a file that is not TOML, an unknown key or a bad value.
    """
    path = host.path(CONFIG_PATH)
    with failing_as(f"cannot read {path}"):
        if not path.exists():
            return Config()
        with open_regular(path) as file:
            content = file.read(_LIMIT_BYTES)
    try:
        tables = from_toml(content.decode())
    except UnicodeDecodeError as err:
        msg = f"{path}: not UTF-8 at byte {err.start}"
        raise UsageError(msg) from err
    except ValueError as err:
        msg = f"{path}: {err}"
        raise UsageError(msg) from err
    return Config.from_tables(tables, source=str(path))
