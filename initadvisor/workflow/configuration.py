"""Where the configuration file is."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from initadvisor.model.config import Config
from initadvisor.model.errors import InitadvisorError, UsageError

if TYPE_CHECKING:
    from initadvisor.host import Host

CONFIG_PATH = "/etc/initadvisor.toml"


def load_config(host: Host) -> Config:
    """Return what ``/etc/initadvisor.toml`` says, the defaults where there is no such file.

    Raises ``UsageError`` for a file that is not TOML, an unknown key or a bad value.
    """
    path = host.path(CONFIG_PATH)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except UnicodeDecodeError as err:
        msg = f"{path}: not UTF-8 at byte {err.start}"
        raise UsageError(msg) from err
    except OSError as err:
        msg = f"cannot read {path}: {err.strerror}"
        raise InitadvisorError(msg) from err
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        msg = f"{path}: {err}"
        raise UsageError(msg) from err
    return Config.from_tables(tables, source=str(path))
