"""What of this machine, as it was booted, its boots' times depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from initadvisor.host.hardware import cpu_model
from initadvisor.measure.machine_name import command_line_key
from initadvisor.measure.power import on_battery
from initadvisor.model.boot_class import BootClass, Hardware, command_line_sha256
from initadvisor.model.errors import ProgramError

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.host import Host

_TIMEOUT_S = 5


def boot_class(host: Host, *, boot_disk: str | None, own_words: Collection[str] = ()) -> BootClass:
    """Return the class of the running boot.

    ``boot_disk`` says which disk it was booted from; ``own_words`` are those that a trial's entry
    adds to the command line. Whether the machine runs on its battery is known for now only, not for
    the moment it was started.
    """
    command_line = host.read_text("/proc/cmdline")
    key = command_line_key((host.read_text("/etc/machine-id") or "").strip())
    return BootClass(
        virtualisation=_virtualisation(host),
        on_battery=on_battery(host),
        kernel=_kernel(host),
        command_line_sha256=(
            command_line_sha256(command_line, key=key, own_words=own_words)
            if command_line
            else None
        ),
        hardware=Hardware(
            product=_line(host, "/sys/class/dmi/id/product_name")
            or _line(host, "/sys/firmware/devicetree/base/model"),
            firmware_version=_line(host, "/sys/class/dmi/id/bios_version"),
            cpu_model=cpu_model(host),
            microcode=_microcode(host),
            boot_disk=boot_disk,
        ),
    )


def _virtualisation(host: Host) -> str | None:
    """Ask systemd-detect-virt(1), which exits with 1 where it finds none."""
    try:
        completed = host.runner.run(
            ["systemd-detect-virt", "--vm"], timeout_s=_TIMEOUT_S, check=False
        )
    except ProgramError:
        return None
    return completed.stdout.decode(errors="replace").strip() or None


def _kernel(host: Host) -> str | None:
    release = _line(host, "/proc/sys/kernel/osrelease")
    version = _line(host, "/proc/sys/kernel/version")
    return f"{release} {version}" if release and version else None


def _microcode(host: Host) -> str | None:
    """Return the revision that runs: of the first processor, they are all given the same."""
    for line in (host.read_text("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "microcode":
            return value.strip()
    return None


def _line(host: Host, path: str) -> str | None:
    return (host.read_text(path) or "").strip("\0 \n") or None
