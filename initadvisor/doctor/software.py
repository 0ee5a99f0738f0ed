"""``doctor`` looks at programs, Python, the kernel, systemd's units, hooks and files."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import LOADING_FAILURES, LibraryError
from initadvisor.core.settings import Setting
from initadvisor.doctor.findings import fine, note, obstacle
from initadvisor.generators import unknown
from initadvisor.generators.detect import detect_generator
from initadvisor.generators.running import elsewhere
from initadvisor.host.configuration import CONFIG_PATH, load_config
from initadvisor.host.package_managers import busy_package_managers
from initadvisor.image.decompressors.decompress import LIBRARIES, missing_library
from initadvisor.image.kernel import kernel_version
from initadvisor.records.boot_class import command_line_words
from initadvisor.target.kernel_config import find_kernel_config
from initadvisor.target.packages import (
    PROGRAMS,
    PackageManager,
    how_to_install,
    package_manager,
    published_as,
    what_to_do,
)
from initadvisor.trial.reboot import UNIT as REBOOT_UNIT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from initadvisor.doctor.findings import CheckedMachine, Finding
    from initadvisor.host import Host


MODULES: Final = {
    "click": "read a command line",
    "jinja2": "write reports as pages",
    "lz4": "read lz4 images",
    "lzo": "read lzop images",
    "numpy": "estimate anything",
    "psutil": "see which programs are at work",
    "pyudev": "look at disks",
    "rich": "print tables",
    "systemd": "read the journal",
    "zstandard": "read zstd images",
}
"""The Python modules that are used, and for what."""

_BUILD: Final = {
    "dracut": "sudo dracut --regenerate-all",
    "initramfs-tools": "sudo update-initramfs -c -k all",
    "mkinitcpio": "sudo mkinitcpio -P",
}
"""What has a generator build the images of all kernels."""

_MB = 1e6
INSTALL: Final = "install the distribution's package, or: sudo make install"
_OPTIONAL = frozenset({"jinja2", *LIBRARIES.values()})


def system(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether images may be built here."""
    if place := elsewhere(subject.host):
        yield obstacle(
            f"this is {place}: no image of it is built, and nothing is applied or booted",
            "run it on the installed system",
        )
    else:
        release, machine = subject.host.kernel_release(), subject.host.machine()
        yield fine(f"an installed system, Linux {release} on {machine}")


def python(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which modules are there; one that only a codec needs is in nobody else's way.

    Each is loaded: one that is there may still lack a library of its own.
    """
    usable = []
    for name, purpose in MODULES.items():
        make = note if name in _OPTIONAL else obstacle
        try:
            import_module(name)
        except LOADING_FAILURES as err:
            lack = LibraryError(err, purpose)
            yield make(lack.message, what_to_do(subject.host, lack))
        else:
            usable.append(_with_version(name))
    found = ", ".join(usable)
    yield fine(f"Python {platform.python_version()} with {found}")


def _with_version(module: str) -> str:
    try:
        return f"{module} {version(published_as(module))}"
    except PackageNotFoundError:  # not every distribution ships the metadata
        return module


def configuration(subject: CheckedMachine) -> Iterator[Finding]:
    """Read the configuration file."""
    config = load_config(subject.host)
    there = subject.host.path(CONFIG_PATH).exists()
    source = CONFIG_PATH if there else f"the defaults, as there is no {CONFIG_PATH}"
    yield fine(f"{source}: policy {config.policy}")


def generator(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what makes the images, and with which setting."""
    host, found = subject.host, detect_generator(subject.host)
    if found is None:
        yield obstacle(
            "no generator of initramfs images is installed",
            "an image of another machine can be weighed: initadvisor recommend --image FILE",
        )
        return
    name = f"{found.NAME} {found.version(host) or '(of unknown version)'}"
    images = found.images(host)
    if not images:
        yield obstacle(f"{name}, but no image of it", _BUILD[found.NAME])
        return
    yield fine(f"{name} makes {images[0].path} for {images[0].kernel_release}")
    configured = found.configured(host, images[0].kernel_release)
    yield fine(f"{configured.setting} is configured ({configured.source})")
    yield from (note(warning) for warning in configured.warnings)


def compressors(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which codecs cannot be built or configured, and what they lack."""
    host, commands = subject.host, subject.generator or unknown
    built = []
    for codec in Codec:
        program = commands.compressor(host, Setting(codec))[0]
        if host.runner.which(program) is None:
            yield _without(host, codec, program)
            continue
        if missing_library(codec):  # which was told of with Python's modules
            continue
        built.append(codec)
        if reason := commands.unusable(host, Setting(codec)):
            yield note(f"{codec} can be measured, not applied: {reason}")
    yield fine(f"candidates can be built with {', '.join(built)}")


def _without(host: Host, codec: Codec, program: str) -> Finding:
    """Say that a codec cannot be built; of one that lost wherever it was measured, as no loss."""
    text = f"{program} is not installed: no {codec} candidate can be built"
    if not codec.spec.is_candidate:
        return fine(f"{text}, which has lost on every machine so far")
    package = PROGRAMS.get(program)
    return note(text, how_to_install(host, package) if package else None)


def kernel(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what the kernel that the image is for can unpack, and what it says while it boots."""
    host, release = subject.host, subject.release
    yield from _decompressors(subject)
    pair = kernel_version(release)
    options = command_line_words(host.read_text("/proc/cmdline") or "")
    for word in ("retain_initrd", "keepinitrd"):
        if word in options:
            yield note(
                f"{word} is among the kernel's options: it does not tell when it has unpacked",
                f"remove {word} from the kernel's options",
            )
    if "initcall_debug" in options:
        yield fine("initcall_debug is set: boots tell exactly what waits")
    elif pair and pair >= (5, 13) and "initramfs_async=0" not in options:
        yield fine(
            "it unpacks while it does other work; what that hides is estimated from each boot"
        )


def _decompressors(subject: CheckedMachine) -> Iterator[Finding]:
    host, release = subject.host, subject.release
    config = find_kernel_config(host, release)
    if config is None:
        yield note(
            f"the configuration of Linux {release} is not to be found: what it can unpack is known "
            "from trying only",
            "initadvisor lab --verify IMAGE",
        )
        return
    lacking = [
        codec
        for codec in Codec
        if codec.spec.kernel_option and not config.enabled(codec.spec.kernel_option)
    ]
    configured = _configured_codec(subject)
    if configured in lacking:
        yield obstacle(
            f"Linux {release} cannot unpack {configured}, which is configured",
            f"configure another, {configured.spec.kernel_option} is off in {config.source}",
        )
    able = ", ".join(codec for codec in Codec if codec not in lacking)
    yield fine(f"Linux {release} unpacks {able} ({config.source})")
    if lacking:
        names = ", ".join(f"{codec} ({codec.spec.kernel_option})" for codec in lacking)
        yield note(f"Linux {release} cannot unpack {names}")


def _configured_codec(subject: CheckedMachine) -> Codec | None:
    if subject.generator is None or subject.image is None:
        return None
    found = subject.generator.configured(subject.host, subject.image.kernel_release)
    return found.setting.codec


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
    REBOOT_UNIT,
    "initadvisord.service",
    "initadvisord-retry.timer",
)

_PROPERTIES = "Id,LoadState,UnitFileState,ActiveState,SubState,WantedBy"
_WANTED: Final = {
    "initadvisor-settle.timer": ("timers.target", "no boot of a new image is judged"),
    "initadvisor-sleep.service": ("sleep.target", "an armed boot is not taken back before sleep"),
}
"""The units that the package itself has others want, and what it means where they do not."""
_CALLED = re.compile(rb"/\S*/lib/initadvisor/(?:queue|disarm)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hooks:
    """The hooks for one package manager; each may be in any of its places, the first one counts.

    ``run``: they are programs.
    """

    names: tuple[str, ...]
    places: tuple[str, ...]
    run: bool = True


_PACMAN = _Hooks(
    names=(
        "05-initadvisor-disarm.hook",
        "95-initadvisor-added.hook",
        "95-initadvisor-removed.hook",
    ),
    places=("/etc/pacman.d/hooks", "/usr/share/libalpm/hooks"),
    run=False,
)
_DEBIAN = (
    _Hooks(names=("initadvisor",), places=("/etc/dpkg/dpkg.cfg.d",), run=False),
    _Hooks(names=("initadvisor",), places=("/etc/kernel/preinst.d",)),
    _Hooks(names=("initadvisor",), places=("/etc/kernel/prerm.d",)),
    _Hooks(names=("zz-initadvisor",), places=("/etc/kernel/postinst.d",)),
    _Hooks(names=("zz-initadvisor",), places=("/etc/kernel/postrm.d",)),
    _Hooks(names=("initadvisor",), places=("/etc/initramfs/post-update.d",)),
)
_KERNEL_INSTALL = _Hooks(
    names=("05-initadvisor.install", "95-initadvisor.install"),
    places=("/etc/kernel/install.d", "/usr/lib/kernel/install.d"),
)
_HOOKS: Final[Mapping[PackageManager, tuple[_Hooks, ...]]] = {
    PackageManager.APT: _DEBIAN,
    PackageManager.PACMAN: (_PACMAN,),
    PackageManager.DNF: (_KERNEL_INSTALL,),
    PackageManager.ZYPPER: (_KERNEL_INSTALL,),
}


def runs_systemd(host: Host) -> bool:
    """Tell whether systemd runs and can be asked for its units (sd_booted(3))."""
    return host.runner.which("systemctl") is not None and host.path("/run/systemd/system").is_dir()


def units(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which units are installed, enabled and failed."""
    host = subject.host
    if not runs_systemd(host):
        yield note(
            "systemd does not run here: no boot is recorded, and nothing is finished, by itself",
            "after each boot: sudo initadvisor measure",
        )
        return
    states = unit_states(host)
    missing = [unit for unit in UNITS if states[unit]["LoadState"] == "not-found"]
    if missing:
        yield note(
            f"these units are not installed: {', '.join(missing)}",
            INSTALL,
        )
    for unit, state in states.items():
        if state["LoadState"] == "masked":
            yield note(f"{unit} is masked", f"sudo systemctl unmask {unit}")
        elif state.get("ActiveState") == "failed" or (
            state.get("SubState") == "auto-restart" and unit != REBOOT_UNIT  # which only waits
        ):
            yield obstacle(f"{unit} has failed", f"journalctl -b -u {unit}")
        elif unit in ENABLED_BY_USER and state.get("UnitFileState") == "disabled":
            yield note(
                f"{unit} is not enabled: {ENABLED_BY_USER[unit]}",
                "sudo initadvisor enable",
            )
        elif unit in ENABLED_BY_USER and state.get("ActiveState") == "inactive":
            yield note(
                f"{unit} is enabled, but was stopped: {ENABLED_BY_USER[unit]}",
                f"sudo systemctl start {unit}",
            )
    yield from _not_wanted(states)
    if len(missing) < len(UNITS):
        yield fine(f"{len(UNITS) - len(missing)} of {len(UNITS)} units are installed")


def _not_wanted(states: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    for unit, (target, meaning) in _WANTED.items():
        wanted_by = states[unit].get("WantedBy", "").split()
        if states[unit]["LoadState"] == "loaded" and target not in wanted_by:
            yield note(
                f"{target} does not start {unit}: {meaning}",
                f"sudo systemctl add-wants {target} {unit}",
            )


def unit_states(host: Host) -> dict[str, dict[str, str]]:
    """Return what systemd says of each unit; one that it says nothing of is not found."""
    shown = host.runner.run(
        ["systemctl", "show", f"--property={_PROPERTIES}", *UNITS], timeout_s=60.0
    )
    blocks = shown.stdout.decode(errors="replace").strip().split("\n\n")
    found = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in blocks]
    said = {block.get("Id", ""): block for block in found}
    return {unit: {"LoadState": "not-found", **said.get(unit, {})} for unit in UNITS}


def hooks(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether this distribution's package manager would tell of new kernels."""
    host = subject.host
    manager = package_manager(host)
    if manager is None:
        yield note("it is not known how kernels are installed here")
        return
    wrong = [
        problem
        for kind in _HOOKS[manager]
        for name in kind.names
        if (problem := _problem(host, kind, name))
    ]
    for problem in wrong:
        yield note(f"new kernels are not noticed in time: {problem}", INSTALL)
    if not wrong:
        yield fine("new kernels are noticed by themselves")


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
        yield note(str(manager), "wait for it to end")
    if not busy:
        yield fine("no package manager is at work")


def files(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what is kept, and how large it is."""
    host = subject.host
    for directory, what in (
        (host.state_dir(), "measurements"),
        (host.cache_dir(), "candidates and samples"),
    ):
        if not directory.is_dir():
            yield fine(f"{directory} ({what}) is not there yet")
            continue
        count, size_bytes = _extent(directory)
        text = f"{directory} ({what}): {count} files, {size_bytes / _MB:.1f} MB"
        if os.access(directory, os.W_OK):
            yield fine(text)
        else:
            yield note(f"{text}; it cannot be written to")


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
