"""What brings a machine back whose trial fails before it has found its root, and after how long.

    python -m benchmarks.failed_trials [--only dracut] [--guest-minutes 30]

Images of each generator (mkinitcpio twice: with busybox for its init, and with systemd; its
checkout is named by INITADVISOR_MKINITCPIO) fail in each way with each set of words on the command
line, in a QEMU whose clock counts instructions and does not wait while the guest does nothing. The
times are the machine's own, from power on by its real-time clock. A machine that is still there
after ``--guest-minutes`` is taken for one that waits for a person.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.bootloaders.extra_cmdline import extra_cmdline, with_parameters
from initadvisor.image.cpio import CpioWriter
from tests.fixtures.mkinitcpio import mkinitcpio_system
from tests.fixtures.namespace import FailedInside
from tests.vm.guest import Generator, Loader, Recipe, guest
from tests.vm.machine import Machine, qemu
from tests.vm.qmp import Qmp, QmpError, controlled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.vm.guest import Guest

_POLL_S = 0.2
_HOST_GUARD_S = 3600
_WATCHDOG_S = 600
_CONSOLE = "console=ttyS0 no_timer_check lsm=capability cryptomgr.notests"
_NO_ROOT = "root=UUID=00000000-dead-4bad-8bad-000000000000 ro"
_NOTHING, _GONE, _EXIT, _UNIT = "nothing fails", "root gone", "/init exits", "a unit hangs"
_STANDS = b"---[ end Kernel panic"
_EXITS = "#!/bin/sh\nexit 1\n"
_SLEEPS = "#!/bin/sh\nwhile :; do sleep 1000; done\n"
_HANGING_UNIT = """\
[Unit]
DefaultDependencies=no
Before=initrd.target sysinit.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/sh -c "while :; do sleep 1000; done"
"""
_WANTS = "etc/systemd/system/sysinit.target.requires"


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An image: what made it, whose name the advisor gives to that, and a guest that boots it."""

    name: str
    generator: str
    guest: Guest
    image: bytes
    is_systemd: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a boot ended: ``after_s`` of the guest's time, None where it did not."""

    after_s: float | None
    said: str


def main() -> int:
    """Boot each, and print the table in Markdown as it grows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failed_trials")
    parser.add_argument("--only", default="", help="images whose names hold this")
    parser.add_argument("--words", default="", help="sets of words whose names hold this")
    parser.add_argument("--failure", default="", help="failures whose names hold this")
    parser.add_argument("--guest-minutes", type=int, default=30)
    parser.add_argument("--logs", type=Path, help="keep what the machines said, here")
    arguments = parser.parse_args()
    print("| image | failure | words | comes back after |\n|---|---|---|---|")
    for make in (_initramfs_tools, _dracut, _mkinitcpio_busybox, _mkinitcpio_systemd):
        if arguments.only not in _NAMES[make]:
            continue
        made = make()
        for failure in FAILURES:
            if failure == _UNIT and not made.is_systemd:
                continue
            for words, line in _words(made.generator):
                if arguments.failure not in failure or arguments.words not in words:
                    continue
                end = _ended(
                    made, failure, words, line, arguments.guest_minutes * 60, arguments.logs
                )
                stays = "is up and stays so" if failure == _NOTHING else "waits for a person"
                after = stays if end.after_s is None else f"{end.after_s:.0f} s"
                print(
                    f"| {made.name} | {failure} | {words} | {after} | <!-- {end.said} -->",
                    flush=True,
                )
    return 0


def _words(generator: str) -> Iterator[tuple[str, str]]:
    """Return sets of words by name: the kernel's default first, then what a trial has."""
    yield "none", ""
    yield "panic=30", "panic=30"
    watched = extra_cmdline("t1", generator=generator, watchdog_s=_WATCHDOG_S)
    yield "with a watchdog", with_parameters("", watched)
    guarded = extra_cmdline("t1", generator=generator, guarded=True)
    yield "a trial's", with_parameters("", guarded)


def _ended(
    made: Made, failure: str, words: str, line: str, limit_s: float, logs: Path | None
) -> End:
    """Boot until the machine resets itself or that much of its time is over."""
    machine = replace(
        _MACHINE,
        deterministic=failure != _EXIT,  # a panicked kernel counts its seconds in a busy loop
        also=(*_MACHINE.also, *_ALSO.get(words, ())),
    )
    root = f"{made.guest.recipe.root_argument} ro" if failure == _NOTHING else _NO_ROOT
    with tempfile.TemporaryDirectory() as directory, controlled(machine) as watched:
        scratch = Path(directory)
        copy = replace(made.guest, directory=scratch)
        (scratch / "initrd").write_bytes(made.image + FAILURES[failure](made))
        argv = _argv(made.guest, copy, watched, f"{_CONSOLE} {root} {line}".strip(), scratch)
        log = scratch / "console"
        with log.open("wb") as console:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console)
        try:
            with Qmp(watched) as orders:
                after_s = _watch(orders, limit_s, log)
                with contextlib.suppress(QmpError, OSError):
                    orders.execute("quit")
        finally:
            process.kill()
            process.wait()
        said = log.read_text(errors="replace")
        if logs:
            name = f"{made.name}-{failure}-{words}".replace(" ", "_").replace("/", "_")
            (logs / name).write_text(said)
    return End(after_s=after_s, said=_last(said))


def _watch(orders: Qmp, limit_s: float, log: Path) -> float | None:
    """Return after how long the machine reset itself, None where it did not within the limit, or
    its kernel has panicked and says of no reboot.
    """
    began = _guest_clock(orders)
    orders.execute("cont")
    deadline = time.monotonic() + _HOST_GUARD_S
    while time.monotonic() < deadline:
        status = orders.execute("query-status")["status"]
        passed_s = (_guest_clock(orders) - began).total_seconds()
        if status in {"shutdown", "paused", "watchdog"}:
            return passed_s
        if passed_s > limit_s or _STANDS in log.read_bytes():
            return None
        time.sleep(_POLL_S)
    msg = f"less than {limit_s} s of the guest's time passed in {_HOST_GUARD_S} s"
    raise QmpError(msg)


def _guest_clock(orders: Qmp) -> datetime:
    """Return what the machine's real-time clock says, which goes with the guest."""
    said = orders.execute("qom-get", path="/machine", property="rtc-time")
    return datetime(  # noqa: DTZ001 - a clock of its own
        *(said["tm_year"] + 1900, said["tm_mon"] + 1, said["tm_mday"]),
        *(said["tm_hour"], said["tm_min"], said["tm_sec"]),
    )


def _argv(
    original: Guest, copy: Guest, machine: Machine, line: str, scratch: Path
) -> tuple[str, ...]:
    argv = list(qemu(copy, machine, {}, direct=True, scratch=scratch))
    argv[argv.index("-kernel") + 1] = str(original.kernel)
    argv[argv.index("-append") + 1] = line
    argv = [f"{word},snapshot=on" if word.startswith("if=none,id=d0,") else word for word in argv]
    return tuple(
        word.replace(f"file={copy.disk.path}", f"file={original.disk.path}") for word in argv
    )


def _last(said: str) -> str:
    lines = [line.strip() for line in said.replace("\x1b", "").splitlines() if line.strip()]
    return lines[-1][:100] if lines else ""


def _with(*files: tuple[str, str]) -> bytes:
    """Return an archive that comes behind an image, so that its files replace the image's."""
    more = io.BytesIO()
    with CpioWriter(more) as archive:
        for name, text in files:
            archive.file(name, text.encode(), mode=0o755)
    return bytes(4) + more.getvalue()


def _hang_in_unit(_made: Made) -> bytes:
    """Return what has systemd wait for a service for ever."""
    return _with(
        (f"{_WANTS}/hang.service", _HANGING_UNIT),
        ("etc/systemd/system/hang.service", _HANGING_UNIT),
    )


FAILURES: dict[str, Callable[[Made], bytes]] = {
    _NOTHING: lambda _made: b"",
    _GONE: lambda _made: b"",
    _EXIT: lambda _made: _with(("init", _EXITS)),
    "/init hangs": lambda _made: _with(("init", _SLEEPS)),
    _UNIT: _hang_in_unit,
}

_MACHINE = Machine(
    deterministic=True,
    also=("-action", "shutdown=pause", "-action", "watchdog=reset", "-rtc", "clock=vm", "-S"),
)
_ALSO = {"with a watchdog": ("-device", "i6300esb")}


def _of_guest(name: str, recipe: Recipe, *, is_systemd: bool) -> Made:
    made = guest(recipe)
    image = made.initrd.read_bytes()
    image += bytes(-len(image) % 4)
    return Made(
        name=name, generator=recipe.generator, guest=made, image=image, is_systemd=is_systemd
    )


def _initramfs_tools() -> Made:
    return _of_guest("initramfs-tools", Recipe(), is_systemd=False)


def _dracut() -> Made:
    recipe = Recipe(generator=Generator.DRACUT, loader=Loader.GRUB)
    return _of_guest("dracut", recipe, is_systemd=True)


def _mkinitcpio_busybox() -> Made:
    return _mkinitcpio("mkinitcpio, busybox", "base udev", is_systemd=False)


def _mkinitcpio_systemd() -> Made:
    return _mkinitcpio("mkinitcpio, systemd", "base systemd", is_systemd=True)


_NAMES = {
    _initramfs_tools: "initramfs-tools",
    _dracut: "dracut",
    _mkinitcpio_busybox: "mkinitcpio, busybox",
    _mkinitcpio_systemd: "mkinitcpio, systemd",
}


@cache
def _mkinitcpio(name: str, hooks: str, *, is_systemd: bool) -> Made:
    """Have mkinitcpio make an image in a Debian, which has not all that its hooks ask for.

    It says so and makes one all the same; what is missing (hwdb.bin, systemd-validatefs) has no
    part in this.
    """
    tree = mkinitcpio_system()
    config = (
        "MODULES=(virtio_pci virtio_blk ext4)\nBINARIES=(/usr/sbin/sulogin)\n"
        f"FILES=()\nHOOKS=({hooks})\n"
    )
    argv = (
        *("mkinitcpio", "-c", "/mnt/mkinitcpio.conf", "-k", tree.release),
        *("-z", "zstd", "-g", "/mnt/image", "--nopost"),
    )
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        (work / "mkinitcpio.conf").write_text(config)
        with contextlib.suppress(FailedInside):
            tree.run(argv, work=work)
        image = (work / "image").read_bytes()
    machine = guest(Recipe())
    assert machine.release == tree.release, "another kernel than the modules are for"
    return Made(
        name=name,
        generator="mkinitcpio",
        guest=machine,
        image=image + bytes(-len(image) % 4),
        is_systemd=is_systemd,
    )


if __name__ == "__main__":
    raise SystemExit(main())
