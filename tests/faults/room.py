"""A partition that is too small, or that may not be written: real ones, by what they really say."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.plan import Replacement
from initadvisor.transaction.transaction import FileRole
from initadvisor.transaction.transactions import pending, transactions
from tests.faults.machine import NEW, replacements
from tests.faults.runs import Run, prepare, wrong_after_recovery, wrong_now

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.machine import Machine

_HANGS_S = 1800  # this runs in guests, too, where nothing else of the tests is
_MIB = 1 << 20
_CHANCE = random.Random(1)
_IMAGE_BYTES = 900 << 10


def little_room(machine: Machine) -> str:
    """With 1 MiB left for two images of 900 KiB, nothing is written at all."""
    with _filled_up_to(machine, _MIB):
        before = _seen(machine)
        try:
            with transactions(machine.host) as engine:
                engine.begin(_large(), purpose="test")
        except UnsafeError as err:
            refused = "bytes are needed on the file system of" in str(err)
        else:
            refused = False
        if not refused or _seen(machine) != before or read_transactions(machine.host):
            return "it was not refused, or something was written"
    return ""


def filled_meanwhile(machine: Machine) -> str:
    """Somebody else fills the partition after it was found large enough, before anything is there.

    Every time at another of the images, so that it is really full in the middle of the other one.
    """
    for left in (0, _IMAGE_BYTES // 2, _IMAGE_BYTES + _IMAGE_BYTES // 2):
        if wrong := _filled_meanwhile(machine, left):
            return f"with {left} bytes left: {wrong}"
    return ""


def _filled_meanwhile(machine: Machine, left: int) -> str:
    prepare(machine, Run.APPLY)
    with contextlib.ExitStack() as stack:

        def fill_and_write(path: Path) -> None:
            stack.enter_context(_filled_up_to(machine, left))
            path.write_bytes(_content())

        first, *others = _large()
        first = Replacement(
            path=first.path, role=first.role, new=fill_and_write, size_bytes=_IMAGE_BYTES
        )
        try:
            with transactions(machine.host) as engine:
                engine.begin([first, *others], purpose="test")
        except InitadvisorError as err:
            said = str(err)
        else:
            return "it all fitted"
        if os.strerror(28) not in said:
            return f"not for want of room: {said}"
        with transactions(machine.host) as engine:
            engine.recover()
        if pending(machine.host):
            return "on a full partition it could not be undone"
    return wrong_now(machine) or wrong_after_recovery(machine, Run.APPLY)


def read_only(machine: Machine) -> str:
    """On a partition that is mounted read-only, nothing is written at all."""
    before = _seen(machine)
    _remount(machine, "ro")
    try:
        with transactions(machine.host) as engine:
            engine.begin(replacements(), purpose="test")
    except UnsafeError as err:
        if "is read-only" not in str(err):
            return f"refused otherwise: {err}"
    else:
        return "it was not refused"
    finally:
        _remount(machine, "rw")
    wrote = _seen(machine) != before or read_transactions(machine.host)
    return "something was written" if wrote else ""


def _remount(machine: Machine, how: str) -> None:
    command = ["/bin/mount", "-o", f"remount,{how}", str(machine.root / "boot")]
    subprocess.run(command, check=True, timeout=_HANGS_S)


def _large() -> list[Replacement]:
    images = [path for path in NEW if path.endswith(".img")]
    return [Replacement(path=path, role=FileRole.IMAGE, new=_content()) for path in images]


def _content() -> bytes:
    return _CHANCE.randbytes(_IMAGE_BYTES)


def _seen(machine: Machine) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in machine.files() if path.parent.name != "locks"}


@contextlib.contextmanager
def _filled_up_to(machine: Machine, left_bytes: int) -> Iterator[None]:
    """Leave this much room on the partition of the images, to within a few blocks."""
    filler = machine.root / "boot" / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            room = os.statvfs(filler.parent)
            spare = room.f_bavail * room.f_frsize - left_bytes
            if spare < room.f_frsize or not file.write(bytes(min(spare, _MIB))):
                break
    try:
        yield
    finally:
        filler.unlink()
