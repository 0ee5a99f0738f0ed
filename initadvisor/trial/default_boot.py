"""What trials rest on: the default entry, with its kernel and its image, as they are now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from initadvisor.bootloaders.places import is_file
from initadvisor.campaign.campaign import DefaultBoot
from initadvisor.core.errors import UnsafeError
from initadvisor.generators.detect import detect_generator
from initadvisor.host.storage.mounts import machine_path
from initadvisor.trial.binding import digest_of

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import BootEntry
    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host


_SPACE = re.compile(r"\s+")


class NoDefaultBootError(UnsafeError):
    """Nothing that boots by default could be tried: its image is gone, or nobody's."""


def default_boot(host: Host, loader: BootLoader) -> DefaultBoot:
    """Return what there is now.

    Raises ``NoDefaultBootError`` where the default entry loads no image that this machine's
    generator makes, ``UnsafeError`` (``RefusedError``) where it is a unified kernel image or
    nothing says which entry it is, and ``InitadvisorError`` where it cannot be read.
    """
    default = loader.default_entry(host)
    installed = image_of(host, default)
    return DefaultBoot(
        image=str(machine_path(host, installed.path)),
        image_sha256=_sha256(host, str(machine_path(host, installed.path))),
        release=installed.kernel_release,
        entry=default.identifier,
        kernel_sha256=_sha256(host, default.kernel.path),
        options=_SPACE.sub(" ", default.command_line).strip(),
    )


def image_of(host: Host, default: BootEntry) -> InstalledImage:
    """Return the image of the default entry, which is not read; raises like ``default_boot``."""
    if default.is_uki:
        msg = f"no trials of unified kernel images: {default.identifier} boots one"
        hint = "apply builds one with the generator, and has it boot once"
        raise UnsafeError(msg, hint=hint)
    generator = detect_generator(host)
    loaded = {file.path for file in default.initrds}
    for image in generator.images(host) if generator else ():
        if str(machine_path(host, image.path)) in loaded and image.path.is_file():
            return image
    msg = f"the default entry {default.identifier} loads no image that this machine makes"
    raise NoDefaultBootError(msg, hint="have it boot the image that the generator makes")


def _sha256(host: Host, path: str) -> str:
    if not is_file(host, path):
        msg = f"{path}, which boots by default, is gone"
        raise NoDefaultBootError(msg)
    return digest_of(host, path)
