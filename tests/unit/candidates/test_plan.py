"""Which settings are tried, and in which order."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

import pytest

from initadvisor.candidates.plan import build_commands, plan_settings
from initadvisor.candidates.schedule import expected_cpu_s
from initadvisor.core.codecs import CODECS, Codec
from initadvisor.core.config import Config
from initadvisor.core.errors import ProgramError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.generators.detect import GENERATORS
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.generators import Generator

PROGRAMS = [*(codec.value for codec in Codec), "pigz"]
DIGEST = "0" * 64


def a_host(root: Path, programs: list[str] = PROGRAMS) -> Host:
    runner = FakeRunner(programs=programs)
    for program in programs:
        runner.answer(f"{program} --version", f"{program} 1.0\n")
    return Host(root=root, runner=runner)


def settings(*texts: str) -> tuple[Setting, ...]:
    return tuple(Setting.parse(text) for text in texts)


@pytest.mark.parametrize("generator", [*GENERATORS, unknown], ids=lambda g: g.NAME)
def test_the_default_set_has_each_contender_and_the_levels_worth_trying(
    tmp_path: Path, generator: Generator
) -> None:
    host = a_host(tmp_path)
    planned = plan_settings(host, generator, Config())
    plain = {setting.codec for setting in planned if not setting.options}
    assert plain == {codec for codec, spec in CODECS.items() if spec.is_candidate}
    for codec, spec in CODECS.items():
        levels = {generator.default_level(host, s) for s in planned if s.codec is codec}
        assert not spec.is_candidate or set(spec.worth_trying) <= levels


@pytest.mark.parametrize("generator", [*GENERATORS, unknown], ids=lambda g: g.NAME)
def test_no_two_settings_are_built_with_the_same_command(
    tmp_path: Path, generator: Generator
) -> None:
    host = a_host(tmp_path)
    planned = plan_settings(host, generator, Config(), everything=True)
    commands = [generator.compressor(host, setting) for setting in planned]
    assert len(set(commands)) == len(commands)


def test_everything_adds_the_slow_ones_last(tmp_path: Path) -> None:
    host = a_host(tmp_path)
    some = plan_settings(host, unknown, Config())
    everything = plan_settings(host, unknown, Config(), everything=True)
    assert everything[: len(some)] == some
    assert set(everything[len(some) :]) == set(settings("bzip2", "lzma"))


def test_cheap_ones_come_before_costly_ones(tmp_path: Path) -> None:
    host = a_host(tmp_path)
    planned = plan_settings(host, unknown, Config())
    costs = [expected_cpu_s(s.codec, unknown.default_level(host, s), 1) for s in planned]
    assert all(one <= other for one, other in itertools.pairwise(costs))


def test_only_is_built_as_it_stands(tmp_path: Path) -> None:
    only = settings("lzma", "zstd -19", "lz4 --favor-decSpeed")
    planned = plan_settings(a_host(tmp_path), unknown, Config(), only=only)
    assert set(planned) == set(only)


def test_the_configuration_replaces_the_default_set(tmp_path: Path) -> None:
    config = Config(settings=settings("zstd -5", "bzip2"))
    planned = plan_settings(a_host(tmp_path), unknown, config)
    assert planned == settings("zstd -5", "bzip2")


def test_what_is_slow_is_configuration(tmp_path: Path) -> None:
    config = Config(slow_codecs=frozenset({Codec.CAT}))
    codecs = {s.codec for s in plan_settings(a_host(tmp_path), unknown, config)}
    assert Codec.CAT not in codecs
    assert {Codec.LZMA, Codec.BZIP2} <= codecs


def test_todays_setting_is_added_even_if_slow_and_keeps_its_name(tmp_path: Path) -> None:
    also = settings("bzip2 -9", "zstd -3")
    planned = plan_settings(a_host(tmp_path), unknown, Config(), also=also)
    assert set(also) <= set(planned)
    assert planned[-1] == also[0]


def test_a_key_changes_with_image_command_and_version(tmp_path: Path) -> None:
    host = a_host(tmp_path)
    zstd, zstd9 = settings("zstd", "zstd -9")
    keys = [
        recipe.key
        for recipe in build_commands(host, unknown, [zstd, zstd9], image_sha256=DIGEST)[0]
    ]
    keys += [build_commands(host, unknown, [zstd], image_sha256="1" * 64)[0][0].key]
    assert isinstance(host.runner, FakeRunner)
    host.runner.answer("zstd --version", "zstd 1.1\n")
    keys += [build_commands(host, unknown, [zstd], image_sha256=DIGEST)[0][0].key]
    assert len(set(keys)) == 4
    host.runner.answer("zstd --version", "zstd 1.0\n")
    assert build_commands(host, unknown, [zstd], image_sha256=DIGEST)[0][0].key == keys[0]


def test_each_program_is_asked_for_its_version_once(tmp_path: Path) -> None:
    host = a_host(tmp_path)
    build_commands(
        host, unknown, settings("zstd", "zstd -1", "zstd -9", "gzip"), image_sha256=DIGEST
    )
    assert isinstance(host.runner, FakeRunner)
    assert sorted(host.runner.argvs) == [("gzip", "--version"), ("zstd", "--version")]


def test_a_missing_or_broken_program_is_a_gap(tmp_path: Path) -> None:
    host = a_host(tmp_path, ["gzip", "xz"])
    assert isinstance(host.runner, FakeRunner)
    host.runner.answer("xz", error=ProgramError("xz did not end within 10 s and was killed"))
    found, gaps = build_commands(host, unknown, settings("zstd", "gzip", "xz"), image_sha256=DIGEST)
    assert [recipe.setting.codec for recipe in found] == [Codec.GZIP]
    assert [(gap.setting.codec, gap.reason) for gap in gaps] == [
        (Codec.ZSTD, "zstd is not installed"),
        (Codec.XZ, "xz did not end within 10 s and was killed"),
    ]


def test_what_could_not_be_verified_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "lzo", None)
    found, gaps = build_commands(
        a_host(tmp_path), unknown, settings("lzop", "lz4"), image_sha256=DIGEST
    )
    assert [recipe.setting.codec for recipe in found] == [Codec.LZ4]
    assert [(gap.setting.codec, gap.reason) for gap in gaps] == [
        (Codec.LZOP, "cannot verify lzop data: the Python module lzo is not installed")
    ]
