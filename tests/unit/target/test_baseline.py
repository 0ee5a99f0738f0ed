"""Today's setting is what made the image, not what somebody has written since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.generators import ConfiguredSetting
from initadvisor.records.built_image import BuiltImage
from initadvisor.target.baseline import identified, todays_setting

if TYPE_CHECKING:
    from initadvisor.target.source import Source


@dataclass(frozen=True)
class _Main:
    codec: Codec


@dataclass(frozen=True)
class _Contents:
    main: _Main


@dataclass(frozen=True)
class _Source:
    contents: _Contents
    path: str = "/boot/initrd.img"
    initrd_sha256: str = "the image"


def source(codec: Codec) -> Source:
    return cast("Source", _Source(_Contents(_Main(codec))))


def configured(setting: str) -> ConfiguredSetting:
    return ConfiguredSetting(setting=Setting.parse(setting), source="/etc/mkinitcpio.conf")


def candidate(setting: str, sha256: str) -> BuiltImage:
    return BuiltImage(
        setting=Setting.parse(setting),
        path="/cache/c.img",
        size_bytes=1,
        sha256=sha256,
        main_offset=0,
        build_s=1,
        build_cpu_s=1,
        build_peak_bytes=1,
        command=("zstd",),
    )


def test_the_configured_setting_is_today_s_if_the_image_has_its_codec() -> None:
    baseline = todays_setting(source(Codec.ZSTD), configured("zstd -19"))
    assert (str(baseline.setting), baseline.source) == ("zstd -19", "/etc/mkinitcpio.conf")
    assert baseline.certain
    assert baseline.warnings == ()


def test_an_image_of_another_codec_is_believed_before_the_configuration() -> None:
    baseline = todays_setting(source(Codec.CAT), configured("zstd -19"))
    assert str(baseline.setting) == "cat"
    [warning] = baseline.warnings
    assert "zstd -19" in warning
    assert "/etc/mkinitcpio.conf" in warning


@pytest.mark.parametrize(("codec", "certain"), [(Codec.CAT, True), (Codec.GZIP, False)])
def test_what_has_no_level_is_known_whatever_is_configured(codec: Codec, certain: bool) -> None:
    assert todays_setting(source(codec), configured("zstd -19")).certain is certain
    assert todays_setting(source(codec), None).certain is certain


def test_of_a_foreign_image_only_the_codec_is_known() -> None:
    baseline = todays_setting(source(Codec.LZ4), None)
    assert str(baseline.setting) == "lz4"
    assert not baseline.certain


def test_the_candidate_with_the_same_bytes_tells_the_level() -> None:
    unsure = todays_setting(source(Codec.ZSTD), None)
    built = [candidate("zstd -1", "other"), candidate("zstd -19", "the image")]
    baseline = identified(unsure, source(Codec.ZSTD), built)
    assert (str(baseline.setting), baseline.certain) == ("zstd -19", True)
    assert identified(unsure, source(Codec.ZSTD), built[:1]) == unsure
