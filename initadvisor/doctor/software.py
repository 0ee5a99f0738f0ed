"""``doctor`` looks at Python, the generator, the compressors and the kernel."""

from __future__ import annotations

import platform
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.doctor.findings import Topic, fine, note, obstacle
from initadvisor.generators import unknown
from initadvisor.generators.detect import detect_generator
from initadvisor.generators.safety import elsewhere
from initadvisor.host.configuration import CONFIG_PATH, load_config
from initadvisor.image.decompressors.decompress import LIBRARIES, missing_library
from initadvisor.image.kernel import kernel_version
from initadvisor.records.boot_class import command_line_words
from initadvisor.target.kernel_config import find_kernel_config
from initadvisor.target.packages import PROGRAMS, how_to_install, python_package

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.doctor.findings import CheckedMachine, Finding
    from initadvisor.host import Host


MODULES: Final = {
    "click": ("click", "the command line"),
    "lz4": ("lz4", "reading lz4 images"),
    "lzo": ("python-lzo", "reading lzop images"),
    "numpy": ("numpy", "every estimate"),
    "psutil": ("psutil", "seeing which programs are at work"),
    "pyudev": ("pyudev", "looking at disks"),
    "rich": ("rich", "tables and progress"),
    "systemd": ("systemd-python", "reading the journal"),
    "typing_extensions": ("typing-extensions", "the program itself"),
    "zstandard": ("zstandard", "reading zstd images"),
}
"""The Python modules that are used: what they are published as, and what they are for."""

_BUILD: Final = {
    "dracut": "sudo dracut --regenerate-all",
    "initramfs-tools": "sudo update-initramfs -c -k all",
    "mkinitcpio": "sudo mkinitcpio -P",
}
"""What has a generator build the images of all kernels."""

_BY_CODEC = frozenset(LIBRARIES.values())


def system(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell whether images may be built here."""
    if place := elsewhere(subject.host):
        text = f"this is {place}: no image of it is built, and nothing is applied or booted"
        yield obstacle(Topic.SYSTEM, text, "run it on the installed system")
    else:
        release, machine = subject.host.kernel_release(), subject.host.machine()
        yield fine(Topic.SYSTEM, f"an installed system, Linux {release} on {machine}")


def python(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell which modules are there; one that only a codec needs is in nobody else's way.

    Each is loaded: one that is there may still lack a library of its own.
    """
    usable = []
    for name, (published_as, purpose) in MODULES.items():
        make = note if name in _BY_CODEC else obstacle
        try:
            import_module(name)
        except ModuleNotFoundError as err:
            text = f"the Python module {err.name} is missing, which is needed for {purpose}"
            advice = how_to_install(subject.host, python_package(err.name or name))
            yield make(Topic.PYTHON, text, advice or f"pip install {published_as}")
        except ImportError as err:
            reason = _first_cause(err)
            text = f"the Python module {name} cannot be loaded, needed for {purpose}: {reason}"
            advice = how_to_install(subject.host, python_package(name))
            yield make(Topic.PYTHON, text, f"install it again: {advice}" if advice else None)
        else:
            usable.append(_with_version(name))
    found = ", ".join(usable)
    yield fine(Topic.PYTHON, f"Python {platform.python_version()} with {found}")


def _first_cause(err: BaseException) -> str:
    """Return the first line of what it began with: some modules put pages of advice around it."""
    while err.__cause__ or err.__context__:
        err = err.__cause__ or err.__context__ or err
    return next(iter(str(err).strip().splitlines()), type(err).__name__)


def _with_version(module: str) -> str:
    try:
        return f"{module} {version(MODULES[module][0])}"
    except PackageNotFoundError:  # not every distribution ships the metadata
        return module


def configuration(subject: CheckedMachine) -> Iterator[Finding]:
    """Read the configuration file."""
    config = load_config(subject.host)
    there = subject.host.path(CONFIG_PATH).exists()
    source = CONFIG_PATH if there else f"the defaults, as there is no {CONFIG_PATH}"
    yield fine(Topic.CONFIGURATION, f"{source}: policy {config.policy}")


def generator(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what makes the images, and with which setting."""
    host, found = subject.host, detect_generator(subject.host)
    if found is None:
        text = "no generator of initramfs images is installed"
        advice = "an image of another machine can be weighed: initadvisor recommend --image FILE"
        yield obstacle(Topic.GENERATOR, text, advice)
        return
    name = f"{found.NAME} {found.version(host) or '(of unknown version)'}"
    images = found.images(host)
    if not images:
        yield obstacle(Topic.GENERATOR, f"{name}, but no image of it", _BUILD[found.NAME])
        return
    yield fine(Topic.GENERATOR, f"{name} makes {images[0].path} for {images[0].kernel_release}")
    configured = found.configured(host, images[0].kernel_release)
    text = f"{configured.setting} is configured ({configured.source})"
    yield fine(Topic.GENERATOR, text)
    yield from (note(Topic.GENERATOR, warning) for warning in configured.warnings)


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
            yield note(Topic.COMPRESSORS, f"{codec} can be measured, not applied: {reason}")
    yield fine(Topic.COMPRESSORS, f"candidates can be built with {', '.join(built)}")


def _without(host: Host, codec: Codec, program: str) -> Finding:
    """Say that a codec cannot be built; of one that lost wherever it was measured, as no loss."""
    text = f"{program} is not installed: no {codec} candidate can be built"
    if not codec.spec.is_candidate:
        return fine(Topic.COMPRESSORS, f"{text}, which has lost on every machine so far")
    package = PROGRAMS.get(program)
    return note(Topic.COMPRESSORS, text, how_to_install(host, package) if package else None)


def kernel(subject: CheckedMachine) -> Iterator[Finding]:
    """Tell what the kernel that the image is for can unpack, and what it says while it boots."""
    host, release = subject.host, subject.release
    yield from _decompressors(subject)
    pair = kernel_version(release)
    options = command_line_words(host.read_text("/proc/cmdline") or "")
    for word in ("retain_initrd", "keepinitrd"):
        if word in options:
            text = f"{word} is among the kernel's options: it does not tell when it has unpacked"
            yield note(Topic.KERNEL, text, f"remove {word} from the kernel's options")
    if "initcall_debug" in options:
        yield fine(Topic.KERNEL, "initcall_debug is set: boots tell exactly what waits")
    elif pair and pair >= (5, 13) and "initramfs_async=0" not in options:
        text = "it unpacks while it does other work; what that hides is estimated from each boot"
        yield fine(Topic.KERNEL, text)


def _decompressors(subject: CheckedMachine) -> Iterator[Finding]:
    host, release = subject.host, subject.release
    config = find_kernel_config(host, release)
    if config is None:
        text = f"the configuration of Linux {release} is not to be found: what it can unpack is"
        yield note(Topic.KERNEL, f"{text} known from trying only", "initadvisor lab --verify IMAGE")
        return
    lacking = [
        codec
        for codec in Codec
        if codec.spec.kernel_option and not config.enabled(codec.spec.kernel_option)
    ]
    configured = _configured_codec(subject)
    if configured in lacking:
        text = f"Linux {release} cannot unpack {configured}, which is configured"
        advice = f"configure another, {configured.spec.kernel_option} is off in {config.source}"
        yield obstacle(Topic.KERNEL, text, advice)
    able = ", ".join(codec for codec in Codec if codec not in lacking)
    yield fine(Topic.KERNEL, f"Linux {release} unpacks {able} ({config.source})")
    if lacking:
        names = ", ".join(f"{codec} ({codec.spec.kernel_option})" for codec in lacking)
        yield note(Topic.KERNEL, f"Linux {release} cannot unpack {names}")


def _configured_codec(subject: CheckedMachine) -> Codec | None:
    if subject.generator is None or subject.image is None:
        return None
    found = subject.generator.configured(subject.host, subject.image.kernel_release)
    return found.setting.codec
