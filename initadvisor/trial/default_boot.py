"""What trials rest on: the default entry, with its kernel and its image, as they are now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from initadvisor.bootloaders.places import is_file
from initadvisor.campaign.campaign import DefaultBoot
from initadvisor.core.errors import UnsafeError
from initadvisor.generators.detect import detect_generator
from initadvisor.generators.ukify import require_made_of
from initadvisor.host.storage.mounts import machine_path
from initadvisor.trial.binding import digest_of

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import BootEntry
    from initadvisor.generators import InstalledImage
    from initadvisor.host import Host


_SPACE = re.compile(r"\s+")

ONE_IMAGE: Final = (
    "have kernel-install(8) install one, by a link to /dev/null in /etc/kernel/install.d that is "
    "named as the plugin that brings the other"
)
"""What to do where an entry loads two images: of files that both have, the later one's count, so
that a boot with another one tells little. 50-dracut.install and Debian's 55-initrd.install bring
one each.
"""


class NoDefaultBootError(UnsafeError):
    """Nothing that boots by default could be tried: its image is gone, or nobody's."""


def default_boot(host: Host, loader: BootLoader) -> DefaultBoot:
    """Return what there is now.

    Raises ``NoDefaultBootError`` where the default entry loads no image that this machine's
    generator makes, ``UnsafeError`` (``RefusedError``) where it is a copy that is older than its
    image, or nothing says which entry it is, and ``InitadvisorError`` where it cannot be read.
    """
    default = loader.default_entry(host)
    image, installed = image_of(host, default)
    sha256 = _sha256(host, image)
    written = str(machine_path(host, installed.path))
    if image != written and sha256 != _sha256(host, written):
        msg = f"{default.identifier} boots {image}, which is not what {written} is"
        release = installed.kernel_release
        hint = f"kernel-install add {release} /boot/vmlinuz-{release} {written} copies it anew"
        raise UnsafeError(msg, hint=hint)
    require_made_of(host, installed)
    return DefaultBoot(
        image=image,
        image_sha256=sha256,
        release=installed.kernel_release,
        entry=default.identifier,
        kernel_sha256=_sha256(host, default.kernel.path),
        options=_SPACE.sub(" ", default.command_line).strip(),
        is_uki=default.is_uki,
    )


def image_of(host: Host, default: BootEntry) -> tuple[str, InstalledImage]:
    """Return what the default entry loads, and the image that this is, or is named as a copy of.

    Nothing is read; raises like ``default_boot``.
    """
    generator = detect_generator(host)
    loaded = {*default.images}
    found = [
        (str(machine_path(host, path)), image)
        for image in (generator.images(host) if generator else ())
        for path in image.paths
        if str(machine_path(host, path)) in loaded and path.is_file()
    ]
    if not found:
        msg = f"the default entry {default.identifier} loads no image that this machine makes"
        raise NoDefaultBootError(msg, hint="have it boot the image that the generator makes")
    if len(found) > 1:
        names = ", ".join(path for path, _ in found)
        msg = f"the default entry {default.identifier} loads more than one image: {names}"
        raise UnsafeError(msg, hint=ONE_IMAGE)
    return found[0]


def _sha256(host: Host, path: str) -> str:
    if not is_file(host, path):
        msg = f"{path}, which boots by default, is gone"
        raise NoDefaultBootError(msg)
    return digest_of(host, path)
