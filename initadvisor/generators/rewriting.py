"""Puts a setting into configuration files: reads them, and checks what came out. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.core.errors import UnsafeError
from initadvisor.generators import ContentVariant
from initadvisor.generators.shell import config_text, version_sorted
from initadvisor.rewrite.files import ConfigFile, DropIn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from initadvisor.core.settings import Setting
    from initadvisor.generators import ConfiguredSetting, Leaving, VariantName
    from initadvisor.host import Host
    from initadvisor.rewrite.files import FileEdit


_BEGINNINGS = ("90", "zz", "zzz", "zzzzzz")


def config_files(
    host: Host, paths: Sequence[Path], texts: Mapping[Path, str] | None = None
) -> tuple[ConfigFile, ...]:
    """Return the files with their texts, or with those of ``texts`` for some.

    The administrator's are the ordinary files below ``/etc``: a link leads to what belongs to
    somebody else, be it a package or a collection of dot files. Raises ``InitadvisorError`` for
    what cannot be read, ``NeedsRootError`` where only root may.
    """
    etc = host.path("/etc")
    return tuple(
        ConfigFile(
            path=str(path),
            text=texts[path] if texts and path in texts else config_text(path),
            editable=path.is_relative_to(etc) and not path.is_symlink(),
        )
        for path in paths
    )


def drop_in_read_last(
    directory: Path,
    names: Iterable[str],
    order: Callable[[list[str]], Sequence[str]],
    *,
    position: int,
    suffix: str = "",
    about: str = "initadvisor",
) -> DropIn | None:
    """Return a drop-in that could be added, which is read after ``position`` files.

    Its name has ``about`` in it and is not taken, and ``order`` puts it after all ``names``. None
    if there is no such name.
    """
    taken = set(names)
    for name in (f"{beginning}-{about}{suffix}" for beginning in _BEGINNINGS):
        if name not in taken and order([*taken, name])[-1] == name:
            return DropIn(path=str(directory / name), position=position)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPaths:
    """The files in the order in which bash reads them.

    ``names`` are those of the drop-ins, which are in ``directory``, or beside it and hidden by what
    has the same name there; None where drop-ins are switched off.
    """

    files: tuple[Path, ...]
    directory: str
    names: tuple[str, ...] | None

    def drop_in(self, host: Host, about: str = "initadvisor") -> DropIn | None:
        """Return a file that could be added and is read last, if there is one."""
        if self.names is None:
            return None
        return drop_in_read_last(
            host.path(self.directory),
            self.names,
            partial(version_sorted, host, unique=True),
            position=len(self.files),
            suffix=".conf",
            about=about,
        )


def texts_of(edits: Sequence[FileEdit]) -> Mapping[Path, str]:
    """Return what the files are to hold, for reading them as if they did already."""
    return {Path(edit.path): edit.after for edit in edits}


def refuse_unusable(generator: str, setting: Setting, reason: str | None) -> None:
    """Raise ``UnsafeError`` if there is a reason why a generator cannot be told a setting."""
    if reason:
        msg = f"{generator} cannot be configured for {setting}: {reason}"
        raise UnsafeError(msg)


def confirm(
    generator: str, found: ConfiguredSetting, setting: Setting, commands: tuple[object, object]
) -> None:
    """Make sure that what the generator reads is what was wanted.

    ``commands`` are the command lines for ``found`` and for ``setting``: what is written in
    different ways may be the same. Raises ``UnsafeError``.
    """
    if commands[0] == commands[1]:
        return
    msg = (
        f"not configuring {generator} for {setting}: it would use {found.setting} all the same "
        f"({found.source})"
    )
    raise UnsafeError(msg, hint="; ".join(found.warnings) or f"look into {found.source}")


ABOUT_CONTENT = "content"
"""What drop-ins are named after that say what is in an image."""


def content_variant(
    host: Host,
    files: Sequence[Path],
    drop_in: DropIn | None,
    *,
    name: VariantName,
    line: str,
    loses: str,
    in_fallback: bool = False,
    leaving: Leaving | None = None,
) -> ContentVariant:
    """Return a variant by a line in ``drop_in``, or at the end of the last of ``files``.

    Raises ``UnsafeError`` where that file is not the administrator's.
    """
    if drop_in:
        path, before = Path(drop_in.path), ""
    else:
        last = config_files(host, files)[-1]
        path, before = Path(last.path), last.text.removesuffix("\n") + "\n"
        if not last.editable:
            msg = f"cannot say where to write {line!r}: {path}, which is read last, is a package's"
            raise UnsafeError(msg)
    return ContentVariant(
        name=name,
        path=path,
        text=f"{before}{line}\n",
        line=line,
        loses=loses,
        in_fallback=in_fallback,
        leaving=leaving,
    )


NO_SPLASH_LOSES = "no splash screen, and no passphrase asked for on it"

ONLY_THIS_MACHINE = (
    "with another disk controller, or in another machine, it may not find its root file system"
)
