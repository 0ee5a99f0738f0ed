"""Images that kernel-install places on the boot partition: Type #1 directories and UKIs.

Layout and names are those of the Boot Loader Specification and kernel-install(8):
``$BOOT/<entry token>/<release>/initrd`` and ``$BOOT/EFI/Linux/<entry token>-<release>.efi``;
dracut itself writes ``linux-<release>-<machine id>.efi``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.generators import InstalledImage
from initadvisor.generators.files import exists, version_key
from initadvisor.host.files import listing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from initadvisor.host import Host


BOOT_PARTITIONS = ("/efi", "/boot", "/boot/efi")
"""Where the ESP or XBOOTLDR is mounted."""

_INITRD_NAMES = re.compile(r"^(initrd|initrd\.img-.*|initramfs-.*\.img)$")
_DRACUT_UKI = re.compile(r"^linux-(?P<release>\d.*?)-[0-9a-f]{32}(-[^-]+)?\.efi$")
_TRIES = re.compile(r"\+\d+(-\d+)?(?=\.efi$)")


def entry_images(host: Host) -> tuple[InstalledImage, ...]:
    """Return the initrds and UKIs of this installation that the boot partitions hold.

    Each once, where it is: ``/efi`` may be a link to ``/boot/efi``, or the other way round.
    Raises ``NeedsRootError`` where only root may look.
    """
    found: list[InstalledImage] = []
    for partition in BOOT_PARTITIONS:
        if not exists(host, partition):
            continue
        tokens = entry_tokens(host)
        found += _directories(host, partition, tokens)
        found += _ukis(host, partition, tokens)
    places = ((image.path.resolve(), image) for image in found)
    return in_order(host, {path: replace(image, path=path) for path, image in places}.values())


def in_order(host: Host, images: Iterable[InstalledImage]) -> tuple[InstalledImage, ...]:
    """Return images with the running kernel's default image first, then newest first.

    Fallback and rescue images come last.
    """
    running = host.kernel_release()
    newest = sorted(images, key=lambda image: version_key(image.kernel_release), reverse=True)
    return tuple(
        sorted(newest, key=lambda image: (image.fallback, image.kernel_release != running))
    )


def entry_tokens(host: Host) -> tuple[str, ...]:
    """Return by what names this installation may go on the boot partition (kernel-install(8))."""
    written = (host.read_text("/etc/kernel/entry-token") or "").strip()
    machine_id = (host.read_text("/etc/machine-id") or "").strip()
    os_release = host.read_text("/etc/os-release") or host.read_text("/usr/lib/os-release") or ""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    named = [fields.get(name, "").strip("\"'") for name in ("IMAGE_ID", "ID")]
    return tuple(dict.fromkeys(token for token in (written, machine_id, *named) if token))


def _directories(host: Host, partition: str, tokens: tuple[str, ...]) -> Iterator[InstalledImage]:
    for token in (*tokens, "Default"):
        for directory in listing(host, f"{partition}/{token}"):
            for file in listing(host, f"{partition}/{token}/{directory.name}"):
                if _INITRD_NAMES.match(file.name):
                    yield InstalledImage(
                        path=file,
                        kernel_release=directory.name,
                        fallback="rescue" in directory.name,
                    )


def _ukis(host: Host, partition: str, tokens: tuple[str, ...]) -> Iterator[InstalledImage]:
    for file in listing(host, f"{partition}/EFI/Linux"):
        if release := _uki_release(file.name, tokens):
            yield InstalledImage(
                path=file, kernel_release=release, uki=True, fallback="rescue" in release
            )


def _uki_release(name: str, tokens: tuple[str, ...]) -> str | None:
    plain = _TRIES.sub("", name)
    if match := _DRACUT_UKI.match(plain):
        return match["release"]
    for token in tokens:
        if plain.startswith(f"{token}-") and plain.endswith(".efi"):
            return plain.removeprefix(f"{token}-").removesuffix(".efi")
    return None
