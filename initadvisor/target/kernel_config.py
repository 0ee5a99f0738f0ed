"""Finding the configuration a kernel was built with."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.host.files import open_regular
from initadvisor.image.kernel import KernelConfig

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host


_TEXT_LIMIT_BYTES = 4 << 20
"""Configurations have about 300 kB."""


def find_kernel_config(host: Host, release: str) -> KernelConfig | None:
    """Return the configuration of an installed kernel, None where there is none to be read.

    The running kernel's own account comes first; then what distributions install: Debian and Fedora
    in ``/boot``, Fedora beside the modules. A release that is no plain name is found nowhere.
    """
    if not release or "/" in release or release in {".", ".."}:
        return None
    places = [f"/boot/config-{release}"]
    places += [f"{base}/modules/{release}/config" for base in ("/usr/lib", "/lib")]
    if release == host.kernel_release():
        places.insert(0, "/proc/config.gz")
    for place in places:
        try:
            return read_kernel_config(host.path(place), name=place)
        except InitadvisorError:
            continue
    return None


def read_kernel_config(path: Path, *, name: str | None = None) -> KernelConfig:
    """Read a configuration from a file, plain or compressed with gzip.

    ``name`` is what the file is called in what the user reads. Raises ``NeedsRootError`` where only
    root may read it and ``InitadvisorError`` for what is no configuration.
    """
    with open_regular(path) as file:
        data = file.read(_TEXT_LIMIT_BYTES + 1)
    if data.startswith(b"\x1f\x8b"):
        data = _gunzip(data, path)
    if len(data) > _TEXT_LIMIT_BYTES:
        msg = f"cannot read {path}: too large for a kernel configuration"
        raise InitadvisorError(msg)
    config = KernelConfig.parse(data.decode(errors="replace"), source=name or str(path))
    if not config.options:
        msg = f"cannot read {path}: not a kernel configuration"
        raise InitadvisorError(msg, hint="a file with lines like CONFIG_RD_ZSTD=y")
    return config


def _gunzip(data: bytes, path: Path) -> bytes:
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = inflater.decompress(data, _TEXT_LIMIT_BYTES + 1)
    except zlib.error as err:
        msg = f"cannot read {path}: damaged gzip data"
        raise InitadvisorError(msg) from err
    if not inflater.eof and len(text) <= _TEXT_LIMIT_BYTES:
        msg = f"cannot read {path}: truncated gzip data"
        raise InitadvisorError(msg)
    return text
