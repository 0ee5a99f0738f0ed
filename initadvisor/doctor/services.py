"""``doctor`` looks at systemd's units, hooks, package managers, and the files that are kept."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from initadvisor.doctor.findings import Topic, fine, note, obstacle
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.target.packages import PackageManager, package_manager

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from initadvisor.doctor.findings import CheckedMachine, Finding
    from initadvisor.host import Host


_TIMEOUT_S = 10.0
_MB = 1e6

ENABLED_BY_USER: Final = {
    "initadvisor-measure.timer": "no boot is recorded by itself",
    "initadvisord.path": "nothing is done by itself about new kernels",
    "initadvisord.timer": "nothing goes on by itself after a boot",
}
"""The units that a user enables, and what it means where they are not."""

UNITS: Final = (
    *ENABLED_BY_USER,
    "initadvisor-measure.service",
    "initadvisor-settle.timer",
    "initadvisor-settle.service",
    "initadvisor-sleep.service",
    "initadvisord.service",
    "initadvisord-retry.timer",
)

_PROPERTIES = "Id,LoadState,UnitFileState,ActiveState,SubState,WantedBy"
_WANTED: Final = {
    "initadvisor-settle.timer": ("timers.target", "no boot of a new image is judged"),
    "initadvisor-sleep.service": ("sleep.target", "an armed boot is not taken back before sleep"),
}
"""The units that the package itself has others want, and what it means where they do not."""
_CALLED = re.compile(rb"/\S*/lib/initadvisor/queue\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hooks:
    """The hooks for one package manager; each may be in any of its places, the first one counts.

    ``run``: they are programs.
    """

    names: tuple[str, ...]
    places: tuple[str, ...]
    run: bool = True


_PACMAN = _Hooks(
    names=("95-initadvisor-added.hook", "95-initadvisor-removed.hook"),
    places=("/etc/pacman.d/hooks", "/usr/share/libalpm/hooks"),
    run=False,
)
_DEBIAN = (
    _Hooks(names=("zz-initadvisor",), places=("/etc/kernel/postinst.d",)),
    _Hooks(names=("zz-initadvisor",), places=("/etc/kernel/postrm.d",)),
    _Hooks(names=("initadvisor",), places=("/etc/initramfs/post-update.d",)),
)
_KERNEL_INSTALL = _Hooks(
    names=("95-initadvisor.install",),
    places=("/etc/kernel/install.d", "/usr/lib/kernel/install.d"),
)
_HOOKS: Final[Mapping[PackageManager, tuple[_Hooks, ...]]] = {
    PackageManager.APT: _DEBIAN,
    PackageManager.PACMAN: (_PACMAN,),
    PackageManager.DNF: (_KERNEL_INSTALL,),
    PackageManager.ZYPPER: (_KERNEL_INSTALL,),
}


def units(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which units are installed, enabled and failed."""
    host = subject.host
    if host.runner.which("systemctl") is None or not host.path("/run/systemd/system").is_dir():
        text = "systemd does not run here: no boot is recorded, and nothing is finished, by itself"
        yield note(Topic.UNITS, text, "after each boot: sudo initadvisor measure")
        return
    states = _states(host)
    missing = [unit for unit in UNITS if _load_state(states, unit) == "not-found"]
    if missing:
        text = f"these units are not installed: {', '.join(missing)}"
        yield note(Topic.UNITS, text, "install the distribution's package, or: sudo make install")
    for unit in UNITS:
        state = states.get(unit, {})
        if _load_state(states, unit) == "masked":
            yield note(Topic.UNITS, f"{unit} is masked", f"sudo systemctl unmask {unit}")
        elif state.get("ActiveState") == "failed" or state.get("SubState") == "auto-restart":
            yield obstacle(Topic.UNITS, f"{unit} has failed", f"journalctl -b -u {unit}")
        elif unit in ENABLED_BY_USER and state.get("UnitFileState") == "disabled":
            text = f"{unit} is not enabled: {ENABLED_BY_USER[unit]}"
            yield note(Topic.UNITS, text, f"sudo systemctl enable --now {unit}")
        elif unit in ENABLED_BY_USER and state.get("ActiveState") == "inactive":
            text = f"{unit} is enabled, but was stopped: {ENABLED_BY_USER[unit]}"
            yield note(Topic.UNITS, text, f"sudo systemctl start {unit}")
    yield from _not_wanted(states)
    loaded = len(UNITS) - len(missing)
    if loaded:
        yield fine(Topic.UNITS, f"{loaded} of {len(UNITS)} units are installed")


def _not_wanted(states: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    for unit, (target, meaning) in _WANTED.items():
        wanted_by = states.get(unit, {}).get("WantedBy", "").split()
        if _load_state(states, unit) == "loaded" and target not in wanted_by:
            text = f"{target} does not start {unit}: {meaning}"
            yield note(Topic.UNITS, text, f"sudo systemctl add-wants {target} {unit}")


def _states(host: Host) -> dict[str, dict[str, str]]:
    """Return what systemd says of each unit; blocks are in the order of the names."""
    shown = host.runner.run(
        ["systemctl", "show", f"--property={_PROPERTIES}", *UNITS], timeout_s=_TIMEOUT_S
    )
    blocks = shown.stdout.decode(errors="replace").strip().split("\n\n")
    found = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in blocks]
    return {block.get("Id", ""): block for block in found}


def _load_state(states: Mapping[str, Mapping[str, str]], unit: str) -> str:
    return states.get(unit, {}).get("LoadState", "not-found")


def hooks(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether this distribution's package manager would tell of new kernels."""
    host = subject.host
    manager = package_manager(host)
    if manager is None:
        yield note(Topic.HOOKS, "it is not known how kernels are installed here")
        return
    wrong = [
        problem
        for kind in _HOOKS[manager]
        for name in kind.names
        if (problem := _problem(host, kind, name))
    ]
    advice = "install the distribution's package, or: sudo make install"
    for problem in wrong:
        yield note(Topic.HOOKS, f"new kernels are not noticed: {problem}", advice)
    if not wrong:
        yield fine(Topic.HOOKS, "new kernels are noticed by themselves")


def _problem(host: Host, kind: _Hooks, name: str) -> str | None:
    paths = [host.path(f"{place}/{name}") for place in kind.places]
    found = next((path for path in paths if os.path.lexists(path)), None)
    if found is None:
        return f"{kind.places[-1]}/{name} is not installed"
    if not found.is_file() or found.stat().st_size == 0:
        return f"{name} is masked by {found}"
    if kind.run and not os.access(found, os.X_OK):
        return f"{found} is not executable"
    for called in sorted(set(_CALLED.findall(found.read_bytes()))):
        program = host.path(os.fsdecode(called))
        if not os.access(program, os.X_OK):
            return f"{found} calls {program}, which is not there or not executable"
    return None


def package_managers(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which package managers are at work; applying waits for them."""
    busy = busy_package_managers(subject.host)
    for manager in busy:
        yield note(Topic.PACKAGES, str(manager), "wait for it to end")
    if not busy:
        yield fine(Topic.PACKAGES, "no package manager is at work")


def files(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what is kept, and how large it is."""
    host = subject.host
    for directory, what in (
        (host.state_dir(), "measurements"),
        (host.cache_dir(), "candidates and samples"),
    ):
        if not directory.is_dir():
            yield fine(Topic.FILES, f"{directory} ({what}) is not there yet")
            continue
        count, size_bytes = _extent(directory)
        text = f"{directory} ({what}): {count} files, {size_bytes / _MB:.1f} MB"
        if os.access(directory, os.W_OK):
            yield fine(Topic.FILES, text)
        else:
            yield note(Topic.FILES, f"{text}; it cannot be written to")


def _extent(directory: Path) -> tuple[int, int]:
    """Return the number of files and the bytes they have; what may not be looked at counts as none.

    Of a file with holes only what is on the disk counts.
    """
    count = size_bytes = 0
    for place, _, names in os.walk(directory):
        for name in names:
            try:
                blocks = os.lstat(os.path.join(place, name)).st_blocks  # noqa: PTH118  of many files
            except OSError:
                continue
            count += 1
            size_bytes += blocks * 512
    return count, size_bytes
