"""Who is weighed: today's image as it is, what was built, and what would be."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.build import build_candidates
from initadvisor.candidates.estimates import SampledCandidate
from initadvisor.candidates.search_space import all_candidates
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import SizeSource
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Quantity
from initadvisor.generators import ConfiguredSetting, unknown
from initadvisor.host import Host
from initadvisor.target.baseline import Baseline, todays_setting
from initadvisor.target.source import open_source
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fixtures.small_images import archive, early_archive, write_image

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from initadvisor.candidates.search_space import Candidate
    from initadvisor.records.built_image import BuiltImage
    from initadvisor.target.source import Source

ZSTD, GZIP, CAT = (Setting(codec) for codec in (Codec.ZSTD, Codec.GZIP, Codec.CAT))
XZ = Setting(Codec.XZ)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with working compressors."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path, runner=fake_compressors())


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    """An image with an early archive and a main one."""
    path = write_image(tmp_path / "image", archive(), early=early_archive())
    with open_source(path) as opened:
        yield opened


def sampled(
    setting: Setting, *, main_bytes: float = 1000.0, log_sd: float = 0.01
) -> SampledCandidate:
    return SampledCandidate(
        setting=setting,
        key=f"the key of {setting}",
        main_bytes=Quantity(median=main_bytes, log_sd=log_sd),
        build_s=2.0,
        build_cpu_s=4.0,
        build_peak_bytes=5_000_000,
        decompress_ms=(1.0,),
        command=("zstd",),
        sample_bytes=100,
        whole_bytes=1000,
    )


def field(
    host: Host,
    source: Source,
    *found: SampledCandidate,
    built: tuple[BuiltImage, ...] = (),
    baseline: Setting = ZSTD,
    certain: bool = True,
) -> tuple[Candidate, ...]:
    known = Baseline(setting=baseline, source="a test", certain=certain)
    return all_candidates(host, unknown, source, known, built, found)


def test_todays_image_is_as_it_is_and_costs_what_its_estimate_says(
    host: Host, source: Source
) -> None:
    [today, other] = field(host, source, sampled(ZSTD), sampled(GZIP))
    assert today.today
    assert today.setting == ZSTD
    assert today.size.median == source.path.stat().st_size
    assert today.size.log_sd == 0
    assert today.digest == source.initrd_sha256
    assert today.size_source is SizeSource.BUILT
    assert today.sampled is None
    assert today.stream
    assert today.cost
    assert (today.cost.build_s, today.cost.build_cpu_s) == (2.0, 4.0)
    assert (other.setting, other.today) == (GZIP, False)


def test_a_file_beats_an_estimate_of_what_todays_setting_costs(host: Host, source: Source) -> None:
    built = build_candidates(host, unknown, source, [ZSTD]).candidates
    [today] = field(host, source, built=built)
    assert today.cost
    assert today.cost.build_cpu_s == built[0].build_cpu_s


def test_what_failed_in_a_trial_is_of_no_use(
    host: Host, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = build_candidates(host, unknown, source, [GZIP, CAT, XZ]).candidates
    failed = {built[0].sha256: "it hung", "xz": "another image of it hung"}
    (host.state_dir() / "campaigns").mkdir(parents=True)
    monkeypatch.setattr("initadvisor.campaign.record.failed_in_trials", lambda _: failed)
    _, *others = field(host, source, built=built)
    assert {other.setting: other.unusable for other in others} == {
        GZIP: "it failed in a trial: it hung",
        CAT: None,
        XZ: "it failed in a trial: another image of it hung",
    }


def test_where_only_the_codec_is_known_the_estimate_is_named_by_its_level(
    host: Host, source: Source
) -> None:
    [today, other] = field(host, source, sampled(ZSTD), certain=False)
    assert (today.setting, today.cost) == (ZSTD, None)
    assert str(other.setting) == "zstd -3"
    assert other.sampled
    assert other.sampled.setting == ZSTD


def test_an_estimate_of_what_may_be_todays_image_is_like_it(host: Host, source: Source) -> None:
    """Of its codec, where only that is known, and as large; a file is compared as it is."""
    prefix, whole = source.prefix_bytes, source.path.stat().st_size

    def like_today(setting: Setting, by: float = 1.0, *, certain: bool = False) -> bool:
        one = sampled(setting, main_bytes=by * whole - prefix)
        return field(host, source, one, certain=certain)[1].like_today

    assert [like_today(ZSTD, by) for by in (0.98, 0.995, 1.0, 1.005, 1.02)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert like_today(Setting.parse("zstd -19"))
    assert not like_today(Setting.parse("zstd -19"), certain=True)
    assert not like_today(GZIP)
    built = build_candidates(host, unknown, source, [ZSTD]).candidates
    assert not any(one.like_today for one in field(host, source, built=built, certain=False))


def test_an_estimate_is_of_the_whole_image_and_has_no_digest_of_one(
    host: Host, source: Source
) -> None:
    [_, other] = field(host, source, sampled(GZIP, main_bytes=1000.0, log_sd=0.1))
    prefix = source.prefix_bytes
    assert prefix > 0
    assert other.size.median == prefix + 1000
    # What stands in front is known: the doubt is about the rest only.
    assert other.size.log_sd == pytest.approx(0.1 * 1000 / (prefix + 1000))
    assert other.largest_bytes == pytest.approx(other.size.median * exp(1.96 * other.size.log_sd))
    assert other.size_source is SizeSource.SAMPLED
    assert other.stream is None
    assert other.digest == "the key of gzip"
    assert other.codec is Codec.GZIP


def test_the_estimate_of_an_uncompressed_image_is_its_very_size(host: Host, tmp_path: Path) -> None:
    payload = archive()
    front = COMPRESSORS[Codec.GZIP](archive(seed=b"front"))
    for number in range(4):
        path = write_image(tmp_path / f"{number}", payload, early=front + bytes(number))
        with open_source(path) as opened:
            [_, other] = field(
                host, opened, sampled(CAT, main_bytes=float(len(payload)), log_sd=0.0)
            )
            [built] = build_candidates(host, unknown, opened, [CAT]).candidates
            assert other.size == Quantity(median=float(built.size_bytes), source="")
            assert other.largest_bytes == built.size_bytes


def test_an_uncompressed_image_is_not_held_against_itself(host: Host, tmp_path: Path) -> None:
    """Whatever is configured by now, and however the generator lays it out."""
    changed = ConfiguredSetting(setting=ZSTD, source="a test")
    with open_source(write_image(tmp_path / "plain", archive(), codec=Codec.CAT)) as opened:
        baseline = todays_setting(opened, changed)
        found = [sampled(CAT, main_bytes=4000.0, log_sd=0.0), sampled(ZSTD)]
        [today, other] = all_candidates(host, unknown, opened, baseline, [], found)
    assert (today.setting, today.today) == (CAT, True)
    assert today.cost
    assert (other.setting, other.today) == (ZSTD, False)


def test_what_the_generator_cannot_be_configured_for_is_said(
    host: Host, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unknown, "unusable", lambda _host, setting: f"not {setting}")
    [today, other] = field(host, source, sampled(ZSTD), sampled(GZIP))
    assert today.unusable is None
    assert other.unusable == "not gzip"
