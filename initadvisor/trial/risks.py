"""What brings a failed trial back: the guard in its image, the watchdog, or a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.extra_cmdline import GUARD_S, PANIC_S, may_be_guarded
from initadvisor.core.config import Restart
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host.files import open_regular
from initadvisor.image.difference import ImageListing
from initadvisor.image.inventory import normalised
from initadvisor.image.scan import scan

if TYPE_CHECKING:
    from initadvisor.bootloaders.entry import BootEntry
    from initadvisor.core.config import Config
    from initadvisor.host import Host


_WATCHDOG_S = 600
"""Long enough for somebody to type a passphrase, since some watchdogs run before systemd does."""

_NO_HARDWARE = ("Software Watchdog",)
"""What the kernel's own timer calls itself (drivers/watchdog/softdog.c): it hangs with the rest."""

_PLACES = (b"bin", b"sbin", b"usr/bin", b"usr/sbin")
"""Where shells look by themselves, without a PATH."""


def watchdog_s(host: Host) -> int | None:
    """Return after how long the machine's watchdog is to restart it, None where it has none."""
    for path in sorted(host.path("/sys/class/watchdog").glob("watchdog*/identity")):
        try:
            identity = path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue
        if identity and identity not in _NO_HARDWARE:
            return _WATCHDOG_S
    return None


def unguarded(host: Host, image: str, options: str) -> str | None:
    """Return why a boot of this image with these options cannot be guarded, None where it can.

    The guard (``extra_cmdline``) is what restarts a machine whose image finds no root, opens a
    shell, waits in emergency.target or hangs: see the table in docs/guests.md. The image is read.
    """
    if not may_be_guarded(options):
        return (
            "the default entry says itself what is started first (rdinit=), or with what (--, or a "
            "word that is none of the kernel's, such as splash)"
        )
    found = ImageListing()
    try:
        with open_regular(host.path(image)) as file:
            scan(file, listing=found)
    except (InitadvisorError, OSError) as err:
        return f"{image} cannot be read: {err}"
    if lacking := _lacking(found):
        return f"{image} has no {', '.join(lacking)}"
    return None


def unguarded_default(host: Host) -> str | None:
    """Return why trials of what boots by default cannot be guarded; see ``unguarded``.

    Raises ``InitadvisorError`` where it is not known what boots by default.
    """
    default = detect_boot_loader(host).default_entry(host)
    return unguarded(host, _image_of(default), default.options)


def require_return(host: Host) -> None:
    """Raise ``UnsafeError`` where a trial that fails may wait for a person."""
    if reason := unguarded_default(host):
        raise no_return(reason)


def missing(host: Host) -> dict[Restart, str]:
    """Return what would not restart the machine where a trial of what boots by default hangs.

    Each with the reason; none where nobody may be needed. Raises ``InitadvisorError`` where it is
    not known what boots by default.
    """
    return _missing(host, unguarded_default(host))


def missing_of(host: Host, image: str, options: str) -> dict[Restart, str]:
    """Return the same of a boot of this image with these options; the image is read."""
    return _missing(host, unguarded(host, image, options))


def _missing(host: Host, reason: str | None) -> dict[Restart, str]:
    guard = {Restart.GUARD: reason} if reason else {}
    return guard if watchdog_s(host) else {**guard, Restart.WATCHDOG: _NO_WATCHDOG}


def without_consent(host: Host, config: Config) -> str | None:
    """Return why no policy arms a boot here as long as ``person_resets`` does not consent to that.

    None where nobody may be needed; raises like ``missing``.
    """
    for what, reason in missing(host).items():
        if what not in config.person_resets:
            words = f"a trial that hangs may need a person to reset the machine, since {reason}"
            return f"{words} ({_CONSENT})"
    return None


_NO_WATCHDOG = "this machine has no hardware watchdog"
_CONSENT: Final = "sudo initadvisor enable says what may happen, and asks for consent to that"


def no_return(reason: str) -> UnsafeError:
    """Return the refusal of a boot that nobody attends; ``reason`` as from ``missing``."""
    msg = f"no trial boots unattended: one that fails may wait for a person, since {reason}"
    hint = (
        "stay at the machine: initadvisor apply --confirm and trial start or next (without "
        "--reboot) arm one boot at a time"
    )
    if reason is not _NO_WATCHDOG:
        hint += "; mkinitcpio's hook base has what is needed"
    return UnsafeError(msg, hint=hint)


def risks(host: Host) -> tuple[str, ...]:
    """Return what may happen in a trial's boot, in sentences, the harmless first.

    Raises ``InitadvisorError`` where it is not known what boots by default.
    """
    always = (
        f"A trial whose kernel panics restarts by itself after {PANIC_S} s. The boot after a trial "
        "that fails, however it does, is the default entry's again."
    )
    if reason := unguarded_default(host):
        before = (
            f"A trial that does not find its root file system or hangs before that may wait for "
            f"somebody to reset the machine or switch it off, since {reason}. It then boots as "
            "always."
        )
    else:
        before = (
            f"A trial that does not find its root file system, or hangs before that, restarts by "
            f"itself {GUARD_S // 60} min after it has been unpacked, at the latest."
        )
    return always, before, _elsewhere(watchdog_s(host))


def _elsewhere(limit_s: int | None) -> str:
    """Say what no guard sees: a kernel that has not come so far, and what follows it."""
    person = "somebody has to reset the machine or switch it off. It then boots as always."
    silent = "What hangs without a word in the firmware or the kernel stays so"
    if limit_s is None:
        return (
            f"{silent}, and so does what hangs or waits for a person later, in the root file "
            f"system: this machine has no hardware watchdog, and {person}"
        )
    return (
        f"{silent} until systemd has the hardware's watchdog run: {person} From then on that "
        f"restarts the machine {limit_s // 60} min after systemd or the kernel hangs, but not "
        "where systemd itself waits for a person (emergency mode)."
    )


def _image_of(default: BootEntry) -> str:
    """Return the file with the initramfs: of several it is the last, microcode comes first."""
    return (
        default.kernel.path if default.is_uki or not default.initrds else default.initrds[-1].path
    )


def _lacking(image: ImageListing) -> tuple[str, ...]:
    """Return the names of what the guard needs and the image has not."""
    paths = image.paths()
    linked = normalised(paths[b"bin"].target) if b"bin" in paths else b""
    wanted = {
        "/init": (b"init",),
        "/bin/sh": (b"bin/sh", (linked or b"bin") + b"/sh"),
        "sleep": tuple(place + b"/sleep" for place in _PLACES),
        "mount": tuple(place + b"/mount" for place in _PLACES),
    }
    return tuple(name for name, places in wanted.items() if paths.keys().isdisjoint(places))
