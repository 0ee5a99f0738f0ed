"""The configuration file: every key, its default, and what is refused."""

from __future__ import annotations

import tomllib

import pytest

from initadvisor.core import config as module
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Config, Objective, Policy, Restart
from initadvisor.core.errors import UsageError
from initadvisor.core.settings import Setting

SOURCE = "/etc/initadvisor.toml"


def read(text: str) -> Config:
    return Config.from_tables(tomllib.loads(text), source=SOURCE)


def test_an_empty_file_gives_the_defaults() -> None:
    assert read("") == Config()
    assert Config().slow_codecs == {Codec.BZIP2, Codec.LZMA}
    assert (Config().boots_per_upgrade, Config().tolerance_ms) == (None, 5.0)
    assert (Config().tolerance_fraction, Config().certainty) == (0.02, 0.95)
    assert Config().max_excess_s == 3.0
    assert (Config().policy, Config().trial_boots_per_kernel) == (Policy.ADVISE, 6)
    assert not Config().person_resets


def test_every_key_is_read() -> None:
    config = read(
        """
        [machine]
        read_speed_mb_s = 500
        overlap_ms = 0
        [candidates]
        settings = ["zstd", "lz4 -9", "zstd"]
        slow_codecs = ["gzip"]
        jobs = 3
        cache_limit_mb = 1.5
        [recommend]
        objective = "size"
        boots_per_upgrade = 30
        tolerance_ms = 0
        tolerance_fraction = 0.1
        certainty = 0.9
        max_excess_s = 1.5
        [daemon]
        policy = "try"
        trial_boots_per_kernel = 0
        person_resets = true
        motd = true
        """
    )
    assert config == Config(
        read_speed_mb_s=500.0,
        overlap_ms=0.0,
        settings=(Setting(Codec.ZSTD), Setting(Codec.LZ4, ("-9",))),
        slow_codecs=frozenset({Codec.GZIP}),
        jobs=3,
        cache_limit_bytes=1_500_000,
        objective=Objective.SIZE,
        boots_per_upgrade=30,
        tolerance_ms=0.0,
        tolerance_fraction=0.1,
        certainty=0.9,
        max_excess_s=1.5,
        policy=Policy.TRY,
        trial_boots_per_kernel=0,
        person_resets=frozenset(Restart),
        motd=True,
    )


def test_the_example_in_the_documentation_is_read() -> None:
    documentation = module.__doc__ or ""
    example = "\n".join(
        line.strip() for line in documentation.splitlines() if line.startswith("    ")
    )
    assert "[candidates]" in example
    assert read(example) != Config()


def test_every_key_is_documented() -> None:
    documentation = (module.__doc__ or "") + (Config.__doc__ or "")
    keys = [key for table in module._KEYS.values() for key in table]
    assert len(keys) >= 9
    assert all(key in documentation for key in keys)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[candidate]\n", ["candidate", "candidates"]),
        ("jobs = 2\n", ["jobs"]),
        ("candidates = 2\n", ["candidates", "table"]),
        ("[candidates]\njob = 2\n", ["job", "candidates", "jobs"]),
        ("[candidates]\nsettings = 'zstd'\n", ["settings", "list of strings"]),
        ("[candidates]\nsettings = [1]\n", ["settings", "list of strings"]),
        ("[candidates]\nsettings = ['zstd -99']\n", ["settings", "level 99"]),
        ("[candidates]\nslow_codecs = ['lzip']\n", ["slow_codecs", "lzip"]),
        ("[candidates]\njobs = 0\n", ["jobs", "at least 1"]),
        ("[candidates]\njobs = true\n", ["jobs"]),
        ("[candidates]\njobs = 1.5\n", ["jobs"]),
        ("[candidates]\ncache_limit_mb = -1\n", ["cache_limit_mb"]),
        ("[candidates]\ncache_limit_mb = nan\n", ["cache_limit_mb"]),
        ("[candidates]\ncache_limit_mb = inf\n", ["cache_limit_mb"]),
        ("[recommend]\nobjective = 'speed'\n", ["objective", "balanced"]),
        ("[recommend]\nobjective = 3\n", ["objective"]),
        ("[recommend]\nboots_per_upgrade = '14'\n", ["boots_per_upgrade"]),
        ("[recommend]\nmax_excess_s = -1\n", ["max_excess_s", "at least 0"]),
        ("[recommend]\nmax_excess_s = inf\n", ["max_excess_s"]),
        ("[recommend]\ntolerance_ms = 'x'\n", ["tolerance_ms", "number"]),
        ("[recommend]\ntolerance_fraction = 1\n", ["tolerance_fraction", "below 1"]),
        ("[recommend]\ncertainty = 0.3\n", ["certainty", "at least 0.5"]),
        ("[recommend]\ncertainty = true\n", ["certainty", "number"]),
        ("[daemon]\npolicy = 'do'\n", ["policy", "advise", "try", "apply"]),
        ("[daemon]\npolicy = true\n", ["policy"]),
        ("[daemon]\ntrial_boots_per_kernel = -1\n", ["trial_boots_per_kernel", "at least 0"]),
        ("[daemon]\nperson_resets = 1\n", ["person_resets", "true"]),
        ('[daemon]\nperson_resets = ["dog"]\n', ["person_resets", "guard, watchdog"]),
        ('[daemon]\nmotd = "on"\n', ["motd", "true"]),
        ("policy = 'apply'\n", ["policy", "daemon"]),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(text: str, names: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    told = f"{caught.value.message} {caught.value.hint or ''}"
    assert told.startswith(SOURCE)
    assert "\n" not in told
    assert all(name in told for name in names)


def test_every_field_has_a_key_and_every_key_a_field() -> None:
    fields = [field for table in module._KEYS.values() for field, _ in table.values()]
    assert sorted(fields) == sorted(Config.__dataclass_fields__)
