"""A host whose virtual machines are made up, and images for them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from initadvisor.model.lab import LabSubject
from initadvisor.model.setting import Setting
from initadvisor.workflow.timing import LabImage
from tests.fakes.machines import UNPACKED, UNTIL_INIT, Machines

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.model.lab import LabSample, LostBoot


@dataclass(slots=True)
class Notes:
    """An observer that writes down what it is told."""

    samples: list[LabSample] = field(default_factory=list)
    losses: list[LostBoot] = field(default_factory=list)

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Write it down."""
        assert subject.sha256 == sample.image_sha256
        self.samples.append(sample)

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Write it down."""
        assert subject.sha256 == lost.image_sha256
        self.losses.append(lost)


def lab_image(directory: Path, setting: str, *, today: bool = False) -> LabImage:
    """Return an image whose bytes are the setting's name."""
    path = directory / setting.replace(" ", "")
    path.write_bytes(setting.encode())
    return LabImage(
        subject=LabSubject(
            setting=Setting.parse(setting),
            path=str(path),
            sha256=hashlib.sha256(setting.encode()).hexdigest(),
            size_bytes=len(setting),
            today=today,
        ),
        file=path,
    )


def taking(**times_us: int) -> Machines:
    """Return machines that take these times, by the last word of the image's bytes."""

    def says(image: bytes, command: str) -> str:
        for name, time_us in times_us.items():
            if image.endswith(name.encode()):
                if "initadvisor-end" in command:
                    return UNTIL_INIT
                return UNPACKED.format(us=time_us)
        raise AssertionError(image)

    return Machines(says=says)
