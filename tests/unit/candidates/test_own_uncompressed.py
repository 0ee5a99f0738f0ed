"""Where the generator lays out an uncompressed image in its own way, it is asked for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.build import build_candidates, cached_candidates, kept_candidates
from initadvisor.candidates.plan import build_commands
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, NeedsRootError, ProgramError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import InstalledImage, unknown
from initadvisor.host import Host
from initadvisor.target.source import open_source
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fixtures.small_images import archive, early_archive, write_image

if TYPE_CHECKING:
    from initadvisor.records.built_image import BuiltImage

CAT = Setting(Codec.CAT)


@dataclass
class OwnLayout:
    """A generator that moves things about when it does not compress."""

    content: bytes = b""
    error: InitadvisorError | None = None
    release: str = "41"
    asked: list[Path] = field(default_factory=list)
    NAME: str = "mkinitcpio"

    detect = staticmethod(unknown.detect)
    configured = staticmethod(unknown.configured)
    rewritten = staticmethod(unknown.rewritten)
    images = staticmethod(unknown.images)
    affected = staticmethod(unknown.affected)
    build = staticmethod(unknown.build)
    noted_inside = staticmethod(unknown.noted_inside)
    content_variants = staticmethod(unknown.content_variants)
    compressor = staticmethod(unknown.compressor)
    default_level = staticmethod(unknown.default_level)
    unusable = staticmethod(unknown.unusable)
    context = staticmethod(unknown.context)

    def version(self, host: Host) -> str:
        """Return what the test says."""
        del host
        return self.release

    def needs_own_uncompressed(self, host: Host) -> bool:
        """Tell that it does."""
        del host
        return True

    def build_uncompressed(self, host: Host, image: InstalledImage, target: Path) -> None:
        """Write what the test gave, or fail half-way."""
        del host
        self.asked.append(image.path)
        target.write_bytes(self.content)
        if self.error:
            raise self.error


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with working compressors."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path, runner=fake_compressors())


@pytest.fixture
def installed(tmp_path: Path) -> InstalledImage:
    """An image of this machine."""
    path = write_image(tmp_path / "image", archive(), early=early_archive())
    return InstalledImage(path=path, kernel_release="6.12.1-arch1-1")


def build(host: Host, generator: OwnLayout, path: Path, image: InstalledImage | None) -> BuiltImage:
    with open_source(path, installed=image) as source:
        result = build_candidates(host, generator, source, [CAT])
    assert result.skipped == ()
    return result.candidates[0]


def test_the_generators_own_image_is_the_candidate(host: Host, installed: InstalledImage) -> None:
    content = early_archive() + archive()
    generator = OwnLayout(content)
    candidate = build(host, generator, installed.path, installed)
    assert generator.asked == [installed.path]
    assert Path(candidate.path).read_bytes() == content
    assert not candidate.derived
    assert (candidate.build_cpu_s, candidate.build_peak_bytes, candidate.notes) == (0.0, 0, ())


def test_it_is_asked_once_per_image_and_version(host: Host, installed: InstalledImage) -> None:
    generator = OwnLayout(archive())
    build(host, generator, installed.path, installed)
    build(host, generator, installed.path, installed)
    assert len(generator.asked) == 1
    generator.release = "42"
    build(host, generator, installed.path, installed)
    assert len(generator.asked) == 2


@pytest.mark.parametrize(
    "error",
    [
        NeedsRootError("only root may build images"),
        UnsafeError("this is a container"),
        ProgramError("mkinitcpio exited with status 1"),
    ],
)
def test_where_it_cannot_the_image_is_derived_and_a_note_says_so(
    host: Host, installed: InstalledImage, error: InitadvisorError
) -> None:
    generator = OwnLayout(b"half an image", error)
    candidate = build(host, generator, installed.path, installed)
    assert candidate.derived
    assert candidate.notes == (f"not laid out as mkinitcpio would: {error.message}",)
    assert not list(Path(candidate.path).parent.glob(".partial-*"))


def test_what_was_derived_once_is_not_derived_again(host: Host, installed: InstalledImage) -> None:
    generator = OwnLayout(b"", UnsafeError("this is a container"))
    first = build(host, generator, installed.path, installed)
    with open_source(installed.path, installed=installed) as source:
        second = build_candidates(host, generator, source, [CAT])
    assert (second.built, second.candidates) == (0, (first,))


def test_what_was_derived_is_there_for_whoever_asks_no_generator(
    host: Host, installed: InstalledImage
) -> None:
    generator = OwnLayout(b"", UnsafeError("this is a container"))
    derived = build(host, generator, installed.path, installed)
    with open_source(installed.path, installed=installed) as source:
        wanted, _ = build_commands(host, generator, [CAT], image_sha256=source.sha256)
        assert kept_candidates(host, generator, source, wanted) == {CAT: derived}
    generator.error = None
    generator.content = early_archive() + archive()
    laid_out = build(host, generator, installed.path, installed)
    with open_source(installed.path, installed=installed) as source:
        assert kept_candidates(host, generator, source, wanted) == {CAT: laid_out}


def test_an_image_of_another_machine_is_derived(host: Host, installed: InstalledImage) -> None:
    generator = OwnLayout(archive())
    candidate = build(host, generator, installed.path, None)
    assert generator.asked == []
    assert candidate.derived
    assert "not one that it makes on this machine" in candidate.notes[0]


@pytest.mark.parametrize(
    "content",
    [b"", b"garbage", COMPRESSORS[Codec.ZSTD](archive())],
    ids=["empty", "garbage", "compressed all the same"],
)
def test_a_generator_that_lies_is_found_out(
    host: Host, installed: InstalledImage, content: bytes
) -> None:
    candidate = build(host, OwnLayout(content), installed.path, installed)
    assert candidate.derived
    assert len(cached_candidates(host)) == 1


def test_the_kernel_is_remembered(host: Host, installed: InstalledImage) -> None:
    build(host, OwnLayout(archive()), installed.path, installed)
    assert cached_candidates(host)[0].kernel == "6.12.1-arch1-1"
