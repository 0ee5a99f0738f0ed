"""What kernels said of images, and the files it is kept in.

The images are kept as well: what compresses them is another version elsewhere and makes other
bytes, and no answer holds for other bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.image.kernel import KernelConfig
from tests.fixtures.collection import read_collection, write_collection
from tests.fixtures.variants import exhibits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.fixtures.variants import Exhibit
    from tests.judges.judge import Judge

_DIRECTORY = Path(__file__).parent.parent / "fixtures" / "kernel_verdicts"
_IMAGES = _DIRECTORY / "images.tar.xz"
_HANDED = " (as handed to the kernel)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of booting with one image.

    ``sha256``: of the bytes that the kernel was handed. ``words``: its own, for why it gave up,
    empty where it did not complain. ``last``: the last file of the archive was there. They tell
    nothing about the content of files: no kernel knows what was meant to be in them.
    """

    sha256: str
    words: str
    last: bool

    @property
    def accepted(self) -> bool:
        """Whether the kernel got to the end of the image without a complaint."""
        return self.last and not self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """All answers of one kernel by the image's name; ``options`` is what lint asks of its
    configuration.
    """

    release: str
    options: Mapping[str, str]
    answers: Mapping[str, Answer]

    @property
    def config(self) -> KernelConfig:
        """The configuration as lint takes it."""
        return KernelConfig(source="the judge's configuration", options=self.options)


def digest(data: bytes) -> str:
    """Return what tells one image from another."""
    return hashlib.sha256(data).hexdigest()


@cache
def kept_exhibits() -> dict[str, Exhibit]:
    """Return the images that were judged, by name."""
    kept = read_collection(_IMAGES)
    return {
        exhibit.name: dataclasses.replace(
            exhibit,
            image=kept[exhibit.name],
            handed=kept.get(exhibit.name + _HANDED, kept[exhibit.name]),
        )
        for exhibit in exhibits()
        if exhibit.name in kept
    }


def keep_exhibits(made: Iterable[Exhibit]) -> None:
    """Keep the images that are about to be judged, and those that still are."""
    kept = {**kept_exhibits(), **{exhibit.name: exhibit for exhibit in made}}
    images = {exhibit.name: exhibit.image for exhibit in kept.values()}
    images |= {
        exhibit.name + _HANDED: exhibit.handed
        for exhibit in kept.values()
        if exhibit.handed != exhibit.image
    }
    write_collection(_IMAGES, images)
    kept_exhibits.cache_clear()


def path_of(judge: Judge) -> Path:
    """Return where a judge's answers are kept."""
    return _DIRECTORY / f"{judge}.json"


def read(judge: Judge) -> Recording:
    """Return what was recorded, nothing of a judge that was never asked."""
    path = path_of(judge)
    kept = json.loads(path.read_text()) if path.exists() else {}
    return Recording(
        release=kept.get("release", ""),
        options=kept.get("options", {}),
        answers={name: Answer(**answer) for name, answer in kept.get("answers", {}).items()},
    )


def write(judge: Judge, recording: Recording) -> None:
    """Keep a recording, one line for each answer; half a file is never seen."""
    lines = ",\n".join(
        f"  {json.dumps(name)}: "
        + json.dumps({"sha256": answer.sha256, "words": answer.words, "last": answer.last})
        for name, answer in sorted(recording.answers.items())
    )
    options = json.dumps(dict(sorted(recording.options.items())), indent=2)
    text = (
        f'{{"release": "{recording.release}",\n"options": {options},\n"answers": {{\n{lines}\n}}}}'
    )
    path = path_of(judge)
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(text + "\n")
    new.rename(path)
