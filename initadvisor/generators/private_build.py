"""Runs a generator in a place of its own: the installed configuration and images are not touched.

It runs outside of any sandbox, at idle priority, and hooks are told that it is our doing.
"""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.core.text import encoded
from initadvisor.generators.rewriting import config_files
from initadvisor.generators.safety import require_installed_system
from initadvisor.host.files import PARTIAL_PREFIX
from initadvisor.host.sandbox import run_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from initadvisor.host import Host


_TIMEOUT_S = 3600.0
_PLACE = f"{PARTIAL_PREFIX}build"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateBuild:
    """How a generator is called so that it writes ``image`` and reads a configuration of its own.

    ``env`` is added to what every program gets.
    """

    argv: tuple[str | Path, ...]
    image: Path
    env: Mapping[str, str] = field(default_factory=dict)


def build_privately(
    host: Host, generator: str, target: Path, prepare: Callable[[Path], PrivateBuild]
) -> None:
    """Have a generator build an image in a directory of its own and name it ``target``.

    ``prepare`` puts the configuration into that directory, which is beside ``target``, always has
    the same name, and is gone afterwards, whatever happens. So are the generator's own temporary
    files, if it takes ``TMPDIR`` for an answer. Builds that share a directory must not run at the
    same time: what a generator notes of its command line is the same in all of them.

    Raises ``NeedsRootError`` or ``UnsafeError`` where it may not be run, ``ProgramError`` when it
    fails, takes too long or writes nothing, ``InitadvisorError`` where the directory cannot be
    used.
    """
    require_installed_system(host, generator)
    # mkinitramfs takes what lies behind a symbolic link for a link, too.
    place = Path(os.path.realpath(target.parent)) / _PLACE
    try:
        _remove(place)
        place.mkdir(mode=0o700)
        try:
            build = prepare(place)
            env = {"TMPDIR": str(place), **build.env}
            run_generator(host, build.argv, directory=place, timeout_s=_TIMEOUT_S, env=env)
            _require_image(generator, build.image)
            build.image.replace(target)
        finally:
            _remove(place)
    except OSError as err:
        msg = f"cannot have {generator} build {target}: {err.filename}: {err.strerror}"
        raise InitadvisorError(msg) from err


def text_for(host: Host, path: Path, texts: Mapping[Path, str]) -> str:
    """Return what a configuration file is to hold: one of ``texts``, or what it holds now."""
    return config_files(host, [path], texts)[0].text


def write_text(path: Path, text: str) -> None:
    """Write a configuration file as one that everybody may read."""
    path.write_bytes(encoded(text))
    path.chmod(0o644)


def _require_image(generator: str, image: Path) -> None:
    try:
        status = image.lstat()
    except FileNotFoundError as err:
        msg = f"{generator} ended without an error and wrote no image"
        raise ProgramError(msg) from err
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        msg = f"{generator} ended without an error and wrote nothing that is an image"
        raise ProgramError(msg)


def _remove(place: Path) -> None:
    if place.is_symlink() or place.is_file():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)


REBUILDING = "INITADVISOR_REBUILDING"
"""The variable that is ``1`` for every generator that we run, and so for all that it starts.

Hooks of ours look at it and do nothing: what they would be told of is our own doing. A variable,
not a file, because it ends with the run, however that ends, and reaches a transient unit, too.
"""


def run_generator(
    host: Host,
    argv: Sequence[str | Path],
    *,
    directory: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a generator to its end; ``directory`` is where it writes.

    Raises ``UnsafeError`` in a sandbox without a way out, ``ProgramError`` when it fails.
    """
    run_outside(
        host,
        argv,
        directory=directory,
        timeout_s=timeout_s,
        env={REBUILDING: "1", **(env or {})},
    )
