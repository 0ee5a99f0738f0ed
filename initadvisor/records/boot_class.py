"""What a boot's times depend on besides the image: only boots of one class are compared."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.records.boot_start import TRIAL_TAG

if TYPE_CHECKING:
    from collections.abc import Collection


_WORD = re.compile(r'(?:"[^"]*"?|[^\s"])+')
"""A word of the kernel's command line: double quotes keep white space together and nothing escapes
them (lib/cmdline.c, next_arg)."""

_OF_ONE_BOOT = ("initrd", "BOOT_IMAGE", TRIAL_TAG)
"""What names the files and the trial, so that it differs between boots that are to be compared."""


FIRMWARE_BEGINS = ", BIOS "
"""What the kernel puts between the names of vendor, product and board and the firmware's version
and date (drivers/firmware/dmi_scan.c, dmi_format_ids)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The machine: its name and firmware, processor and microcode, and the disk it boots from."""

    product: str | None = None
    firmware_version: str | None = None
    cpu_model: str | None = None
    microcode: str | None = None
    boot_disk: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BootClass:
    """What sets boots apart without making them wrong; None where it is not known.

    ``virtualisation``: the hypervisor in systemd-detect-virt(1)'s words, ``none`` on bare hardware.
    ``kernel``: release and build, as ``uname -rv`` prints them. ``command_line_sha256``: of
    ``comparable_command_line``.
    """

    virtualisation: str | None = None
    on_battery: bool | None = None
    kernel: str | None = None
    command_line_sha256: str | None = None
    hardware: Hardware = Hardware()


def command_line_words(command_line: str) -> tuple[str, ...]:
    """Split the kernel's command line as the kernel does."""
    return tuple(match[0] for match in _WORD.finditer(command_line))


def parameters(command_line: str, name: str) -> tuple[str, ...]:
    """Return the values that the command line gives to ``name``, in their order."""
    found = (word.partition("=") for word in command_line_words(command_line))
    return tuple(value for key, equals, value in found if key == name and equals)


def asked_to_wait(command_line: str) -> bool:
    """Tell whether a kernel is told to unpack before it goes on (``initramfs_async=0``)."""
    asked = parameters(for_kernel(command_line), "initramfs_async")
    return bool(asked) and _is_no(asked[-1])


def for_kernel(command_line: str) -> str:
    """Leave out what comes after a lone ``--``: for /init (kernel/params.c, parse_args)."""
    return command_line.partition(" -- ")[0]


def _is_no(value: str) -> bool:
    """Tell whether the kernel reads a value as false (lib/kstrtox.c, kstrtobool)."""
    return value[:1] in {"0", "n", "N", "f", "F"} or value[:2].lower() == "of"


def comparable_command_line(command_line: str, *, extra_cmdline: Collection[str] = ()) -> str:
    """Return the command line without what differs from boot to boot of the same configuration.

    Left out are ``initrd=``, ``BOOT_IMAGE=`` and the tag of a trial; with the tag also
    ``extra_cmdline``, which trial entries add (``panic=30``): without it the user's own stay.
    """
    words = command_line_words(command_line)
    is_trial = bool(parameters(command_line, TRIAL_TAG))
    dropped = set(extra_cmdline) if is_trial else set()
    return " ".join(
        word for word in words if word.partition("=")[0] not in _OF_ONE_BOOT and word not in dropped
    )


def command_line_sha256(
    command_line: str, *, key: bytes, extra_cmdline: Collection[str] = ()
) -> str:
    """Return the digest by which command lines of one machine are compared (HMAC with SHA-256).

    ``key``: the machine's own. Without a secret, whoever is given a record could confirm a guess of
    what stands on the command line: a disk's UUID, a name of a host.
    """
    comparable = comparable_command_line(command_line, extra_cmdline=extra_cmdline)
    text = comparable.encode(errors="surrogateescape")
    return hmac.digest(key, text, hashlib.sha256).hex()
