"""What this machine's boot adds to the picture: how its kernel unpacks, how long a boot takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import ProgramError
from initadvisor.image.kernel import kernel_version

if TYPE_CHECKING:
    from initadvisor.host import Host


_ASYNC_SINCE = (5, 13)
_FALSE = {"0", "n", "N", "no", "No", "NO", "off", "Off", "OFF", "f", "F", "false", "False"}
_MB = 1_000_000
_USUAL_KERNEL_MB = 12.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BootContext:
    """How the kernel of an image boots on this machine.

    ``asynchronous``: unpacking runs beside other work, so that part of it can be hidden; None where
    the kernel is unknown. ``whole_boot_ms``: this machine's latest boot, firmware and loader
    included, None where systemd does not tell. ``kernel_mb``: the kernel file, in 10^6 bytes.
    """

    asynchronous: bool | None
    whole_boot_ms: float | None
    kernel_mb: float
    kernel_mb_source: str


def boot_context(host: Host, kernel_release: str | None) -> BootContext:
    """Gather what this machine tells about booting the kernel ``kernel_release``."""
    kernel_mb, source = _kernel_size(host, kernel_release)
    return BootContext(
        asynchronous=_asynchronous(host, kernel_release),
        whole_boot_ms=_whole_boot_ms(host),
        kernel_mb=kernel_mb,
        kernel_mb_source=source,
    )


def _asynchronous(host: Host, release: str | None) -> bool | None:
    """Tell whether unpacking is asynchronous: since Linux 5.13, unless ``initramfs_async=0``.

    The command line is that of the running kernel and counts for that kernel only.
    """
    version = kernel_version(release or "")
    if version is None:
        return None
    if version < _ASYNC_SINCE:
        return False
    if release != host.kernel_release():
        return True
    words = (host.read_text("/proc/cmdline") or "").split()
    asked = [word.partition("=")[2] for word in words if word.startswith("initramfs_async=")]
    return not (asked and asked[-1] in _FALSE)


def _whole_boot_ms(host: Host) -> float | None:
    """Return firmware, loader, kernel and user space together, as systemd's manager knows them.

    FirmwareTimestampMonotonic is the time spent before the kernel's clock started, and
    FinishTimestampMonotonic when the boot was complete (org.freedesktop.systemd1(5)).
    """
    names = ("FirmwareTimestampMonotonic", "LoaderTimestampMonotonic", "FinishTimestampMonotonic")
    if not host.path("/run/systemd/system").is_dir():
        return None
    try:
        said = host.runner.run(
            ["systemctl", "show", f"--property={','.join(names)}"], timeout_s=5
        ).stdout.decode(errors="replace")
    except ProgramError:
        return None
    values = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    firmware, loader, finish = (int(values.get(name, "0") or 0) for name in names)
    return (max(firmware, loader) + finish) / 1000 if finish else None


def _kernel_size(host: Host, release: str | None) -> tuple[float, str]:
    if release:
        for place in (f"/usr/lib/modules/{release}/vmlinuz", f"/boot/vmlinuz-{release}"):
            try:
                return host.path(place).stat().st_size / _MB, place
            except OSError:
                continue
    return _USUAL_KERNEL_MB, f"a usual kernel of {_USUAL_KERNEL_MB:g} MB is assumed"
