"""mkinitcpio's configuration: which files bash is given, and what they set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError
from initadvisor.generators.files import exists
from initadvisor.generators.mkinitcpio_presets import Preset, installed_presets
from initadvisor.generators.rewriting import drop_in_named, name_read_last
from initadvisor.generators.shell import Evaluation, evaluate, version_sorted
from initadvisor.host.files import listing
from initadvisor.rewrite.syntax import Shell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.rewrite.files import DropIn


_CONFIG = "/etc/mkinitcpio.conf"
_DROP_INS = f"{_CONFIG}.d"
_DROP_INS_SINCE = 37


@dataclass(frozen=True, slots=True, kw_only=True)
class MkinitcpioConfigPaths:
    """The files in the order in which mkinitcpio makes one text of them.

    ``names`` are the drop-ins'; None where ``-c``, or the preset's ``config``, switches them off.
    """

    files: tuple[Path, ...]
    names: tuple[str, ...] | None

    def drop_in(self, host: Host) -> DropIn | None:
        """Return a file that could be added and is read last, if there is one."""
        if self.names is None:
            return None
        order = partial(version_sorted, host)
        new = name_read_last(self.names, order, ".conf")
        return drop_in_named(host.path(_DROP_INS), new, position=len(self.files))


def preset_of(host: Host, kernel_release: str) -> Preset | None:
    """Return the preset that makes a kernel's default image."""
    presets = [p for p in installed_presets(host) if p.kernel_release == kernel_release]
    return min(presets, key=lambda preset: preset.fallback, default=None)


def config_paths(
    host: Host, preset: Preset | None, major: int, texts: Mapping[Path, str] | None = None
) -> MkinitcpioConfigPaths:
    """Return which files are read; ``texts`` may have drop-ins that do not exist yet.

    Raises ``InitadvisorError`` if there is no main file.
    """
    chosen = preset.config_file if preset else None
    main = host.path(chosen or _CONFIG)
    if not exists(host, chosen or _CONFIG):
        msg = f"mkinitcpio has no configuration: there is no {main}"
        raise InitadvisorError(msg)
    if chosen or major < _DROP_INS_SINCE:
        return MkinitcpioConfigPaths(files=(main,), names=None)
    directory = host.path(_DROP_INS)
    names = {
        path.name for path in listing(host, _DROP_INS) if path.suffix == ".conf" and path.is_file()
    }
    names |= {path.name for path in texts or () if path.parent == directory}
    in_order = version_sorted(host, sorted(names))
    return MkinitcpioConfigPaths(
        files=(main, *(directory / name for name in in_order)), names=in_order
    )


def evaluate_config(
    host: Host,
    paths: MkinitcpioConfigPaths,
    kernel_release: str,
    texts: Mapping[Path, str] | None = None,
) -> Evaluation:
    """Source the files as mkinitcpio does, with ``texts`` in place of what some of them hold.

    Raises ``InitadvisorError`` where mkinitcpio would stop.
    """
    config = evaluate(
        host,
        Shell.BASH,
        paths.files,
        ("COMPRESSION", "COMPRESSION_OPTIONS", "MODULES_DECOMPRESS", "HOOKS"),
        merged=True,
        env={"KERNELVERSION": kernel_release},
        texts=texts,
    )
    if config.status != 0:
        msg = (
            "mkinitcpio would refuse its configuration "
            f"({' + '.join(str(file) for file in paths.files)}): "
            f"sourcing it returns {config.status}"
        )
        hint = "files without a newline at their end run into the next one; see `bash -n`"
        raise InitadvisorError(msg, hint=hint)
    return config
