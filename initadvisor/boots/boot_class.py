"""The class of a boot: what of the machine, besides the image, its times depend on.

That of the running boot is read from the machine, that of an earlier one from its messages, and
both are put in the same words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.boots.machine_name import command_line_key
from initadvisor.core.errors import ProgramError
from initadvisor.host.hardware import cpu_model
from initadvisor.host.power import on_battery
from initadvisor.records.boot_class import FIRMWARE_BEGINS, BootClass, Hardware, command_line_sha256

if TYPE_CHECKING:
    from collections.abc import Collection

    from initadvisor.boots.journal import JournalBoot
    from initadvisor.host import Host
    from initadvisor.records.marks import MachineWords


_TIMEOUT_S = 5


def boot_class(
    host: Host, *, boot_disk: str | None, extra_cmdline: Collection[str] = ()
) -> BootClass:
    """Return the class of the running boot.

    ``boot_disk`` says which disk it was booted from; ``extra_cmdline`` is what a trial's entry adds
    to the command line. Whether the machine runs on its battery is known for now only, not for
    the moment it was started.
    """
    command_line = host.read_text("/proc/cmdline")
    key = command_line_key((host.read_text("/etc/machine-id") or "").strip())
    return BootClass(
        virtualisation=_virtualisation(host),
        on_battery=on_battery(host),
        kernel=_kernel(host),
        command_line_sha256=(
            command_line_sha256(command_line, key=key, extra_cmdline=extra_cmdline)
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


_HYPERVISORS = {
    "KVM": "kvm",
    "VMware": "vmware",
    "Microsoft Hyper-V": "microsoft",
    "Xen HVM": "xen",
    "Xen PV": "xen",
    "ACRN": "acrn",
    "Jailhouse": "jailhouse",
}
"""The kernel's names (arch/x86/kernel/cpu/hypervisor.c and its drivers) in systemd-detect-virt(1)'s
words."""


def class_with_words(known: BootClass, words: MachineWords) -> BootClass:
    """Return a class with what the kernel said of the hardware in place of what /sys shows.

    So that it is the class of earlier boots, of which there is nothing but those words.
    """
    said, shown = _hardware(words), known.hardware
    hardware = replace(
        shown,
        product=said.product or shown.product,
        firmware_version=said.firmware_version or shown.firmware_version,
        cpu_model=said.cpu_model or shown.cpu_model,
        microcode=said.microcode or shown.microcode,
    )
    return replace(known, hardware=hardware)


def past_class(
    boot: JournalBoot, *, today: BootClass | None, extra_cmdline: Collection[str] = ()
) -> BootClass:
    """Return the class of a boot in a journal.

    ``extra_cmdline``: what a trial's entry added to the command line. ``today`` is that of the same
    machine now: what a kernel does not say of a hypervisor (all of them on other processors than
    x86, some on x86) is taken from there for the same product.
    """
    timestamps = boot.kernel.timestamps
    hardware = _hardware(timestamps.machine)
    whole = timestamps.command_line is not None and timestamps.command_line_whole
    kernel = (
        f"{timestamps.release} {timestamps.version}"
        if timestamps.release and timestamps.version
        else None
    )
    same = today is not None and hardware.product in {None, today.hardware.product}
    said = timestamps.machine.hypervisor
    return BootClass(
        virtualisation=today.virtualisation
        if today is not None and same
        else said and _HYPERVISORS.get(said, said.lower()),
        on_battery=boot.on_battery,
        kernel=kernel,
        command_line_sha256=(
            command_line_sha256(
                timestamps.command_line or "",
                key=command_line_key(boot.span.machine_id),
                extra_cmdline=extra_cmdline,
            )
            if whole
            else None
        ),
        hardware=hardware,
    )


def _hardware(words: MachineWords) -> Hardware:
    """Split "Vendor Product/Board, BIOS Version Date"."""
    product, _, firmware = (words.product or "").partition(FIRMWARE_BEGINS)
    return Hardware(
        product=product or None,
        firmware_version=firmware or None,
        cpu_model=words.processor,
        microcode=words.microcode,
    )
