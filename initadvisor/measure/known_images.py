"""The images that a boot of this machine may have used.

A trial's boot used what its entry loads. Otherwise it is first of all those that its generator has
installed; only where none of them fits, images that were replaced and kept, candidates that were
built and images that the lab has timed, which may have been installed when the machine booted.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.boots.attribute import attribute
from initadvisor.boots.loaded_files import beside, loaded_part
from initadvisor.candidates.cache import Cache
from initadvisor.core.errors import InitadvisorError
from initadvisor.generators.detect import detect_generator
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.image.main_codec import main_codec
from initadvisor.records.attribution import Attribution, KnownImage
from initadvisor.trial.images import TrialImages, replaced_images

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from initadvisor.candidates.cache import CachedCandidate
    from initadvisor.core.codecs import Codec
    from initadvisor.core.settings import Setting
    from initadvisor.generators import Generator, InstalledImage
    from initadvisor.host import Host
    from initadvisor.records.attribution import ImageEvidence


_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """An installed image's file, where in it the initramfs is, and what may be loaded with it."""

    installed: InstalledImage
    offset: int
    size_bytes: int
    since: datetime
    beside_bytes: tuple[tuple[int, ...], ...]

    def images(self, sha256: str, setting: Setting | None = None) -> Iterator[KnownImage]:
        """Yield it once for each way of loading it."""
        for sizes in self.beside_bytes:
            yield KnownImage(
                path=str(self.installed.path),
                size_bytes=self.size_bytes,
                sha256=sha256,
                setting=setting,
                is_uki=self.installed.uki,
                beside_bytes=sizes,
            )


class KnownImages:
    """Finds the image that a boot used.

    ``others``: images that were there at some time, each since when. Reading images takes time, so
    only those are read that fit what a boot left behind.
    """

    def __init__(self, host: Host, *, others: Iterable[tuple[KnownImage, datetime]] = ()) -> None:
        self._host = host
        self._timed = tuple(others)
        self._trials = TrialImages(host)
        self._candidates: tuple[tuple[KnownImage, datetime], ...] | None = None
        self._read: dict[Path, tuple[KnownImage, ...]] = {}
        self._generator: Generator | None = None
        self._files: tuple[_File, ...] = ()
        try:
            self._generator = detect_generator(host)
            installed = self._generator.images(host) if self._generator else ()
            self._files = tuple(_files(host, installed))
        except InitadvisorError as err:
            _log.warning("this machine's images are not known: %s", err.message)

    @property
    def default_path(self) -> Path | None:
        """The running kernel's image, None where there is none."""
        return self._files[0].installed.path if self._files else None

    def extra_cmdline(self, trial: str | None) -> tuple[str, ...]:
        """Return the words that a trial's entry added to the command line."""
        return self._trials.extra_cmdline(trial)

    def attribute(self, evidence: ImageEvidence, *, booted_at: datetime) -> Attribution:
        """Return which of the images that were there at a time left the traces of a boot."""
        if evidence.trial and (images := self._of_trial(evidence.trial)):
            return attribute(evidence, images)
        found = self._among_installed(evidence, booted_at)
        if found.images:
            return found
        if self._candidates is None:
            built = map(_candidate, Cache(self._host).all())
            self._candidates = (*replaced_images(self._host), *built)
        others = (*self._timed, *self._candidates)
        there = tuple(image for image, since in others if since <= booted_at)
        among_others = attribute(evidence, there)
        return among_others if among_others.images else found

    def _of_trial(self, trial: str) -> tuple[KnownImage, ...]:
        """Return a trial's image; that of a rehearsal is installed, and more is known of it."""
        images = self._trials.images(trial)
        paths = {image.path for image in images if image.setting is None}
        files = [f for f in self._files if not paths.isdisjoint(map(str, f.installed.paths))]
        made_by = {image.sha256: image.setting for file in files for image in self._images(file)}
        return tuple(replace(i, setting=i.setting or made_by.get(i.sha256)) for i in images)

    def _among_installed(self, evidence: ImageEvidence, booted_at: datetime) -> Attribution:
        there = [file for file in self._files if file.since <= booted_at]
        there = _of_these_names(there, evidence.initrd)
        names = [image for file in there for image in file.images(str(file.installed.path))]
        by_size = replace(evidence, loaded_sha256=None, section_sha256=None)
        fitting = {image.path for image in attribute(by_size, tuple(names)).images}
        if evidence.loaded_sha256 or evidence.section_sha256:
            fitting = fitting or {image.path for image in names}
        found = [file for file in there if str(file.installed.path) in fitting]
        return attribute(evidence, tuple(image for file in found for image in self._images(file)))

    def _images(self, file: _File) -> tuple[KnownImage, ...]:
        path = file.installed.path
        if path not in self._read:
            try:
                self._read[path] = self._read_images(file)
            except (InitadvisorError, OSError) as err:
                _log.warning("%s is not known: %s", path, err)
                self._read[path] = ()
        return self._read[path]

    def _read_images(self, file: _File) -> tuple[KnownImage, ...]:
        with open_regular(file.installed.path) as opened:
            sha256 = sha256_of(opened, offset=file.offset, size_bytes=file.size_bytes, once=True)
            codec = main_codec(opened, offset=file.offset, size_bytes=file.size_bytes)
        return tuple(file.images(sha256, self._setting(file, sha256, codec)))

    def _setting(self, file: _File, sha256: str, codec: Codec | None) -> Setting | None:
        """Return what made an image: of the same bytes, else as configured if that may be."""
        candidates = map(_candidate, Cache(self._host).of_size(file.size_bytes))
        for image, _ in (*self._timed, *candidates):
            if image.sha256 == sha256 and image.setting is not None:
                return image.setting
        if self._generator is None:
            return None
        try:
            installed = file.installed
            configured = self._generator.configured(
                self._host, installed.kernel_release, image=installed
            )
        except InitadvisorError as err:
            _log.info("what made %s is not known: %s", file.installed.path, err.message)
            return None
        return configured.setting if configured.setting.codec is codec else None


def _of_these_names(files: list[_File], initrd: str | None) -> list[_File]:
    """Leave out files that the command line does not name, where it names one of them.

    Loaders have other words for paths; so only the last part counts.
    """
    names = {word.replace("\\", "/").rpartition("/")[2] for word in (initrd or "").split()}
    named = [file for file in files if file.installed.path.name in names]
    return named or files


def _candidate(cached: CachedCandidate) -> tuple[KnownImage, datetime]:
    candidate = cached.candidate
    image = KnownImage(
        path=candidate.path,
        size_bytes=candidate.size_bytes,
        sha256=candidate.sha256,
        setting=candidate.setting,
        candidate=True,
    )
    return image, datetime.fromtimestamp(cached.built_at_ns / 1e9, tz=UTC)


def _files(host: Host, installed: Sequence[InstalledImage]) -> Iterator[_File]:
    for image in installed:
        try:
            with open_regular(image.path) as file:
                part = loaded_part(file, is_uki=image.uki)
            ways = (part.with_bytes,) if image.uki else beside(host, *image.paths)
            changed_s = image.path.stat().st_mtime
        except (InitadvisorError, OSError) as err:
            _log.info("%s is left out: %s", image.path, err)
            continue
        yield _File(
            installed=image,
            offset=part.offset,
            size_bytes=part.size_bytes,
            since=datetime.fromtimestamp(changed_s, tz=UTC),
            beside_bytes=ways,
        )
