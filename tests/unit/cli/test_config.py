"""The command ``config``: what it shows, what it writes, what it refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli.config import config
from initadvisor.core.errors import UnsafeError, UsageError
from initadvisor.host import Host
from initadvisor.host.configuration import load_config

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine without a configuration."""
    found = Host(root=tmp_path)
    (tmp_path / "etc").mkdir()
    monkeypatch.setattr(host_package, "Host", lambda: found)
    return found


def call(*arguments: str) -> str:
    """Call the command; errors are raised."""
    return CliRunner().invoke(config, arguments, catch_exceptions=False).stdout


def test_what_is_set_lasts_and_is_shown_with_its_file(machine: Host) -> None:
    file = machine.path("/etc/initadvisor.toml")
    said = [call("set", "machine.read_speed_mb_s", "450"), call("set", "objective", "size")]
    assert said == [
        f"machine.read_speed_mb_s = 450.0 in {file}\n",
        f'recommend.objective = "size" in {file}\n',
    ]
    assert (
        file.read_text() == '[machine]\nread_speed_mb_s = 450\n\n[recommend]\nobjective = "size"\n'
    )
    assert file.stat().st_mode & 0o777 == 0o644
    loaded = load_config(machine)
    assert (loaded.read_speed_mb_s, loaded.objective) == (450, "size")
    shown = {line.split()[0]: line.split(maxsplit=1)[1] for line in call().splitlines()}
    assert shown["machine.read_speed_mb_s"] == "450.0  (/etc/initadvisor.toml)"
    assert shown["recommend.objective"] == '"size"  (/etc/initadvisor.toml)'
    assert shown["machine.overlap_ms"] == "not set  (default)"
    told_of_default = f'recommend.objective is "boot", the default: {file} does not set it\n'
    assert call("unset", "objective") == told_of_default
    told = {one["key"]: one for one in json.loads(call("--json"))["values"]}
    assert told["recommend.objective"] == {
        "key": "recommend.objective",
        "value": "boot",
        "source": "default",
    }
    assert list(told) == list(shown)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("set", "speed", "5"), ["unknown", "'speed'", "one of", "machine.read_speed_mb_s"]),
        (("set", "read_speed", "5"), ["unknown", "did you mean machine.read_speed_mb_s?"]),
        (("unset", "machine.overlap"), ["unknown", "did you mean machine.overlap_ms?"]),
        (("unset", "speed"), ["unknown", "'speed'", "one of", "machine.overlap_ms"]),
        (("set", "objective", "speed"), ["objective", "'speed'", "boot, size, balanced"]),
        (("set", "overlap_ms", "long"), ["overlap_ms", "'long' is not a number"]),
        (("set", "overlap_ms", "nan"), ["overlap_ms", "at least 0"]),
        (("set", "overlap_ms", "-5"), ["overlap_ms", "-5 is not at least 0"]),
        (("set", "settings", '["zip"]'), ["settings", "zip", "zstd"]),
    ],
)
def test_a_bad_key_or_value_is_one_line_that_names_the_good_ones(
    machine: Host, arguments: tuple[str, ...], words: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        call(*arguments)
    assert all(word in caught.value.with_hint for word in words)
    assert "\n" not in caught.value.with_hint
    assert not machine.path("/etc/initadvisor.toml").exists()


def test_the_file_stays_what_it_was_but_for_the_key(machine: Host) -> None:
    file = machine.path("/etc/initadvisor.toml")
    file.write_text("[recommend]\ncertainty = 2  # too much\n")
    file.chmod(0o640)
    call("set", "certainty", "0.9")
    assert file.read_text() == "[recommend]\ncertainty = 0.9  # too much\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert list(file.parent.iterdir()) == [file]
    file.write_text("[recommend]\nthe_end = 1\n")
    with pytest.raises(UsageError, match="unknown key the_end"):
        call("set", "certainty", "0.8")
    file.unlink()
    file.symlink_to("/elsewhere")
    with pytest.raises(UnsafeError, match="symbolic link"):
        call("set", "certainty", "0.8")
