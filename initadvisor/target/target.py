"""Which image is asked about, and which generator's commands make its candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initadvisor.core.errors import InitadvisorError, ProgramError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.generators.detect import detect_generator, generator_of_image
from initadvisor.target.sample_image import make_sample

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host
    from initadvisor.image.contents import ImageContents


_SAMPLE_COMPRESSORS = (Setting.parse("zstd"), Setting.parse("gzip"))
"""What a sample is compressed with: the usual default, or what every system has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An image file, and the generator that makes it, None if only its content can tell.

    ``installed``: it is one that this machine's generator makes. ``sample``: nothing can boot it.
    """

    path: Path
    generator: Generator | None = None
    installed: InstalledImage | None = None
    sample: bool = False

    def made_by(self, contents: ImageContents) -> Generator:
        """Return whose commands make its candidates."""
        return self.generator or generator_of_image(contents.generator)


def find_target(host: Host, image: Path | None) -> Target:
    """Return the image at ``image``, or without that the one this machine boots by default.

    Raises ``InitadvisorError`` where this machine has no image, ``NeedsRootError`` where only root
    may look, ``UnsafeError`` on systems that are not supported.
    """
    if image is not None:
        return Target(path=image)
    generator = detect_generator(host)
    images = generator.images(host) if generator else ()
    if generator is None or not images:
        lack = f"no image of {generator.NAME}" if generator else "no generator of initramfs images"
        msg = f"cannot find this machine's initramfs: {lack} was found below {host.root}"
        raise InitadvisorError(
            msg, hint="name one with --image FILE, or see a sample with recommend --sample"
        )
    return Target(path=images[0].path, generator=generator, installed=images[0])


def sample_target(host: Host) -> Target:
    """Make a sample image, with the commands of this machine's generator where it has one."""
    generator = detect_generator(host) or unknown
    for setting in _SAMPLE_COMPRESSORS:
        command = generator.compressor(host, setting)
        if host.runner.which(command[0]):
            return Target(path=make_sample(host, command), generator=generator, sample=True)
    msg = "cannot make a sample: neither zstd nor gzip is installed"
    raise ProgramError(msg, hint="install zstd")
