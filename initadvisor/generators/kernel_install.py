"""What kernel-install(8) places on the boot partition: Type #1 directories and UKIs.

Layout and names are those of the Boot Loader Specification and kernel-install(8):
``$BOOT/<entry token>/<release>/initrd`` and ``$BOOT/EFI/Linux/<entry token>-<release>.efi``;
dracut itself writes ``linux-<release>-<machine id>.efi``. Read were systemd 252 and 257 of Debian
12 and 13, and 50-dracut.install of 106.

What is in a directory was made there or copied. A plugin of the generator's (50-dracut.install) has
it make ``initrd`` in the staging area, from where 90-loaderentry.install copies it. An image that
was written elsewhere keeps its name: what Debian's /etc/initramfs/post-update.d/systemd-boot passes
(``kernel-install add RELEASE KERNEL /boot/initrd.img-RELEASE``), what 55-initrd.install links into
the staging area, and ``initrd`` beside the kernel, which 50-dracut.install takes.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from initadvisor.core.text import encoded
from initadvisor.generators import InstalledImage
from initadvisor.generators.files import exists, in_order
from initadvisor.host.files import listing
from initadvisor.host.storage.mounts import resolved_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from initadvisor.host import Host


BOOT_PARTITIONS = ("/efi", "/boot", "/boot/efi")
"""Where the ESP or XBOOTLDR is mounted."""

_LONGEST_NAME_BYTES = 255
_SHIPPED = "/usr/lib/kernel"
_CONFIGURATION = ("/etc/kernel", "/run/kernel", "/usr/local/lib/kernel", _SHIPPED)
_INITRD_NAMES = re.compile(r"^(initrd|initrd\.img-.*|initramfs-.*\.img)$")
_DRACUT_UKI = re.compile(r"^linux-(?P<release>\d.*?)-[0-9a-f]{32}(-[^-]+)?\.efi$")
_TRIES = re.compile(r"\+\d+(-\d+)?(?=\.efi$)")


def install_conf(host: Host) -> dict[str, str]:
    """Return what install.conf says: the first one found, then all drop-ins, /etc before others."""
    texts: list[str] = []
    for directory in _CONFIGURATION:
        if (text := host.read_text(f"{directory}/install.conf")) is not None:
            texts.append(text)
            break
    drop_ins: dict[str, str] = {}
    for directory in _CONFIGURATION:
        for path in listing(host, f"{directory}/install.conf.d"):
            if path.suffix == ".conf":
                drop_ins.setdefault(path.name, f"{directory}/install.conf.d/{path.name}")
    texts += [host.read_text(drop_ins[name]) or "" for name in sorted(drop_ins)]
    parts = (line.partition("=") for text in texts for line in text.splitlines())
    return {name: value.strip().strip("\"'") for name, found, value in parts if found}


def plugin(host: Host, name: str) -> Path | None:
    """Return the plugin of that name, None where there is none or it is masked."""
    own, shipped = (host.path(f"{base}/install.d/{name}") for base in ("/etc/kernel", _SHIPPED))
    path = own if own.exists() else shipped
    return path if os.access(path, os.X_OK) else None


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
    places = ((resolved_path(image.path), image) for image in found)
    return in_order(host, {path: replace(image, path=path) for path, image in places}.values())


def with_copies(image: InstalledImage, placed: Sequence[InstalledImage]) -> InstalledImage:
    """Return an image with those of ``entry_images`` that are named as copies of it."""
    copies = (
        other.path
        for other in placed
        if not (other.uki or image.uki)
        and (other.path.name, other.kernel_release) == (image.path.name, image.kernel_release)
        and other.path != image.path
    )
    return replace(image, copies=tuple(copies))


def with_placed(
    written: Sequence[InstalledImage], placed: Sequence[InstalledImage]
) -> tuple[InstalledImage, ...]:
    """Return images with their copies, and then those of ``placed`` that are none of these."""
    found = tuple(with_copies(image, placed) for image in written)
    paths = {path for image in found for path in image.paths}
    return (*found, *(image for image in placed if image.path not in paths))


def entry_tokens(host: Host) -> tuple[str, ...]:
    """Return by what names this installation may go on the boot partition (kernel-install(8))."""
    written = (host.read_text("/etc/kernel/entry-token") or "").strip()
    machine_id = (host.read_text("/etc/machine-id") or "").strip()
    os_release = host.read_text("/etc/os-release") or host.read_text("/usr/lib/os-release") or ""
    fields = dict(line.split("=", 1) for line in os_release.splitlines() if "=" in line)
    named = [fields.get(name, "").strip("\"'") for name in ("IMAGE_ID", "ID")]
    return tuple(dict.fromkeys(filter(_is_token, (written, machine_id, *named))))


def _is_token(text: str) -> bool:
    """Tell whether it may be the name of a directory."""
    is_name = bool(text) and len(encoded(text)) <= _LONGEST_NAME_BYTES and "/" not in text
    return is_name and text.isprintable() and text not in {".", ".."}


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
