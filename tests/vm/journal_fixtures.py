"""Record what boots of real guests leave in their journals, for the fast tests:

    python -m tests.vm.journal_fixtures [SUITE...] [reboots]

boots a guest of each Debian release several times, with other images and other parameters each
time, and writes to ``tests/fixtures/guest_journals``, for each release, ``SUITE.export.xz``, which
is the journal's entries of the kernel, journald, the manager and what sets the clock in the journal
export format, and ``SUITE.json``: what was booted, and what the serial console said of it.
``reboots`` are those of a guest whose clock is synchronised, with what its clocks and the host's
showed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import lzma
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.debian import Suite
from tests.vm import clock, tools
from tests.vm.boot import Then, boot
from tests.vm.candidates import recompressed
from tests.vm.entries import add_trial_entry, arm, default_entry
from tests.vm.guest import Guest, Loader, Recipe, guest
from tests.vm.kexec import KEXEC
from tests.vm.machine import Machine
from tests.vm.witness import SHOW_MARKS, witnessed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.boot import Boot

DIRECTORY = Path(__file__).parents[1] / "fixtures/guest_journals"

_COMPRESSORS = {
    "lz4": ("lz4", "-l", "-9", "-c"),
    "gzip": ("gzip", "-n", "-6", "-c"),
    "xz": ("xz", "--check=crc32", "-0", "-c"),
    "zstd": ("zstd", "-q", "-19", "-c"),
}
_SOFT_REBOOT = """
if [ ! -e /run/rebooted ]; then
    touch /run/rebooted
    systemctl soft-reboot
    sleep infinity
fi
"""
_KEPT = (
    *("_MACHINE_ID", "_HOSTNAME", "_TRANSPORT", "_PID", "_SOURCE_MONOTONIC_TIMESTAMP"),
    "_SYSTEMD_UNIT",
    *("SYSLOG_FACILITY", "SYSLOG_IDENTIFIER", "PRIORITY", "MESSAGE", "MESSAGE_ID"),
    *("UNIT", "JOB_TYPE", "JOB_RESULT", "KERNEL_USEC", "INITRD_USEC", "USERSPACE_USEC"),
)
_WRITERS = (
    *("_TRANSPORT=kernel", "+", "_TRANSPORT=driver", "+", "_PID=1"),
    *("+", "_SYSTEMD_UNIT=systemd-timesyncd.service"),
)
_CURSOR = re.compile(rb"(?m)^__(?:CURSOR|SEQNUM|SEQNUM_ID)=.*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A boot: of which image (None: the generator's own), with what added to the command line.

    ``before`` is run when the boot is complete.
    """

    codec: str | None = None
    options: str = ""
    before: str = ""


_EVERYWHERE = {
    "default": Plan(),
    "lz4": Plan(codec="lz4"),
    "gzip": Plan(codec="gzip"),
    "synchronous": Plan(codec="lz4", options="initramfs_async=0"),
    "quiet": Plan(codec="zstd", options="quiet"),
    "initcalls": Plan(codec="xz", options="initcall_debug log_buf_len=4M"),
}
PLANS = {
    Suite.BOOKWORM: {**_EVERYWHERE, "retained": Plan(codec="lz4", options="retain_initrd")},
    Suite.TRIXIE: {
        **_EVERYWHERE,
        "kexec": Plan(before=KEXEC),
    },
    Suite.SID: {**_EVERYWHERE, "soft-reboot": Plan(codec="xz", before=_SOFT_REBOOT)},
}
"""What is booted, by name, in this order."""

REBOOTS = "reboots"
_REBOOTED = {
    "first": Plan(before=clock.SHOW),
    "lz4": Plan(codec="lz4", before=clock.SHOW),
    "again": Plan(before=clock.SHOW),
    "last": Plan(before=clock.SHOW),
}


def record(suite: Suite, directory: Path) -> None:
    """Boot all that is planned for a release, and write what came of it."""
    loader = Loader.SYSTEMD_BOOT if suite is not Suite.BOOKWORM else Loader.SYSTEMD_BOOT_XBOOTLDR
    copy = guest(Recipe(suite=suite, loader=loader)).copied_to(directory / suite)
    plans = PLANS[suite]
    boots = _boot_all(copy, plans)
    _write(suite, copy, [fact for name in plans for fact in _facts(name, plans[name], boots[name])])


def record_reboots(directory: Path) -> None:
    """Reboot a guest whose clock is synchronised, and write what clocks showed in each boot."""
    copy = guest(Recipe(also=clock.PACKAGES)).copied_to(directory / REBOOTS)
    clock.synchronise(copy)
    boots = _boot_all(copy, _REBOOTED)
    facts = [
        {**fact, **dataclasses.asdict(clock.clocks(booted))}
        for name, booted in boots.items()
        for fact in _facts(name, _REBOOTED[name], booted)
    ]
    _write(REBOOTS, copy, facts)


def _write(name: str, copy: Guest, facts: list[dict[str, object]]) -> None:
    DIRECTORY.mkdir(exist_ok=True)
    told = {"release": copy.release, "initrd_bytes": copy.initrd.stat().st_size, "boots": facts}
    (DIRECTORY / f"{name}.json").write_text(json.dumps(told, indent=2) + "\n")
    exported = lzma.compress(_exported(copy), preset=9 | lzma.PRESET_EXTREME)
    (DIRECTORY / f"{name}.export.xz").write_bytes(exported)


def _entry(copy: Guest, name: str, plan: Plan) -> str:
    if plan == Plan(before=plan.before):
        return default_entry(copy)
    image = copy.directory / f"{name}.img"
    recompressed(copy.initrd, image, *_COMPRESSORS[plan.codec or "zstd"])
    return add_trial_entry(copy, name, image, options=plan.options)


def _boot_all(copy: Guest, plans: dict[str, Plan]) -> dict[str, Boot]:
    """Boot each; every boot arms the next one."""
    entries = {name: _entry(copy, name, plan) for name, plan in plans.items()}
    names = [*plans]
    booted = {}
    for name, following in zip(names, [*names[1:], None], strict=True):
        script = f"{plans[name].before}\n{SHOW_MARKS}\n"
        if following:
            script += arm(entries[following])
        booted[name] = boot(
            copy,
            Machine(bare_metal=True),
            script=script,
            then=Then.REBOOT if following else Then.POWER_OFF,
        )
        assert booted[name].entry == entries[name], name
    return booted


def _facts(name: str, plan: Plan, booted: Boot) -> Iterator[dict[str, object]]:
    """Say for each kernel of a boot what it was and what the console has of it."""
    for number, kernel in enumerate(witnessed(booted)):
        facts = {"name": name, "codec": plan.codec, "options": plan.options}
        if number:
            facts["name"] = f"{name}-{number + 1}"
        yield {**facts, **dataclasses.asdict(kernel)}


def _exported(copy: Guest) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        journal = Path(scratch) / "journal"
        copy.disk.root.fetch("/var/log/journal", journal)
        output = tools.run(
            *("journalctl", "-D", journal, "-o", "export", "--all"),
            *(f"--output-fields={','.join(_KEPT)}", *_WRITERS),
        )
    return _CURSOR.sub(b"", output)


def main() -> None:
    """Record what is named, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.vm.journal_fixtures")
    parser.add_argument("names", type=_name, nargs="*", default=[*PLANS, REBOOTS], metavar="NAME")
    with tempfile.TemporaryDirectory() as scratch:
        for name in parser.parse_args().names:
            if isinstance(name, Suite):
                record(name, Path(scratch))
            else:
                record_reboots(Path(scratch))


def _name(word: str) -> Suite | str:
    return REBOOTS if word == REBOOTS else Suite(word)


if __name__ == "__main__":
    main()
