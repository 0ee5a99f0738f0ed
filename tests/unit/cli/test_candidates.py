"""The command ``candidates``: its tables, its JSON, its errors."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.advise.sweep import kept_sweeps
from initadvisor.candidates.run_times import keep_run
from initadvisor.cli.candidates import candidates
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UsageError
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host
from tests.fakes.compressors import fake_compressors
from tests.fakes.scripts import SHELLS, ShellRunner
from tests.fixtures.hosts import RELEASE
from tests.fixtures.small_images import archive, write_image

if TYPE_CHECKING:
    from click.testing import Result


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image on a machine of its own, which the command takes for the real one."""
    fake = fake_compressors()
    runner = ShellRunner(programs=[*fake.programs, *SHELLS], answers=fake.answers)
    machine = Host(root=tmp_path, runner=runner)
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(host_package, "Host", lambda: machine)
    return write_image(tmp_path / "image", archive())


def make_mkinitcpio(root: Path) -> Path:
    """Lay out a preset with a default and a fallback image; return where they are."""
    boot = root / "boot"
    files = {
        "usr/bin/mkinitcpio": "#!/bin/bash\ndeclare -r version='41'\n",
        "etc/mkinitcpio.conf": "HOOKS=(base)\n",
        "proc/sys/kernel/osrelease": f"{RELEASE}\n",
        f"usr/lib/modules/{RELEASE}/vmlinuz": "",
        "etc/mkinitcpio.d/linux.preset": f"PRESETS=(default fallback)\nALL_kver={RELEASE}\n"
        "default_image=/boot/linux.img\nfallback_image=/boot/linux-fallback.img\n",
    }
    boot.mkdir()
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "usr/bin/mkinitcpio").chmod(0o755)
    return boot


def call(*arguments: str | Path) -> Result:
    """Call the command; errors are raised."""
    return CliRunner().invoke(candidates, [str(a) for a in arguments], catch_exceptions=False)


def document(*arguments: str | Path) -> dict[str, Any]:
    """Call the command and read its JSON."""
    loaded: dict[str, Any] = json.loads(call(*arguments, "--json").stdout)
    assert loaded["schema"] == 3
    return loaded


def test_build_tells_what_was_built_and_what_was_not(image: Path) -> None:
    built = document("build", "--image", image, "--only", "zstd", "--only", "lzop")
    (candidate,) = built["candidates"]
    assert (candidate["setting"], candidate["codec"]) == ("zstd", "zstd")
    assert candidate["size_bytes"] == Path(candidate["path"]).stat().st_size
    assert built["skipped"] == [{"setting": "lzop", "reason": "lzop is not installed"}]
    assert built["built"] == 1


def test_list_has_the_promised_fields(image: Path) -> None:
    document("build", "--image", image, "--only", "zstd")
    (listed,) = document("list")["candidates"]
    assert {"setting", "path", "size_bytes", "sha256", "build_s", "build_peak_bytes"} <= set(listed)
    assert listed["image"] == str(image)


def test_all_adds_the_slow_codecs(image: Path) -> None:
    some = {c["setting"] for c in document("build", "--image", image)["candidates"]}
    everything = {c["setting"] for c in document("build", "--image", image, "--all")["candidates"]}
    assert everything - some == {"bzip2", "lzma"}


def test_what_the_generator_cannot_be_configured_for_is_built_with_all_only(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reason = "there are no uncompressed images"
    cat = Setting(Codec.CAT)
    monkeypatch.setattr(unknown, "unusable", lambda _, one: reason if one == cat else None)
    built = document("build", "--image", image)
    assert {"setting": "cat", "reason": reason} in built["skipped"]
    assert "cat" not in {one["setting"] for one in built["candidates"]}
    (listed,) = document("list", "--image", image)["images"]
    assert {row["setting"] for row in listed["settings"] if row["state"] == "unusable"} == {"cat"}
    everything = document("build", "--image", image, "--all")["candidates"]
    assert "cat" in {one["setting"] for one in everything}


def test_list_shows_every_setting_built_or_not(image: Path) -> None:
    document("build", "--image", image, "--only", "zstd")
    (listed,) = document("list", "--image", image)["images"]
    rows = {row["setting"]: row for row in listed["settings"]}
    assert {row["codec"] for row in rows.values()} == set(Codec) - {"lzop"}
    assert {gap["setting"] for gap in listed["skipped"]} == {"lzop"}
    states = {name: rows[name]["state"] for name in ("zstd -19", "bzip2", "cat")}
    assert states == {"zstd -19": "estimated", "bzip2": "slow", "cat": "estimated"}
    assert (rows["cat"]["part_of_uncompressed"], rows["cat"]["size_source"]) == (1.0, "sampled")
    assert rows["zstd -19"]["size_bytes"] < listed["uncompressed_bytes"]
    call("build", "--image", image, "--all")
    (listed,) = document("list", "--image", image)["images"]
    assert {row["state"] for row in listed["settings"]} == {"built", "in use"}


def test_list_has_a_fallback_image_beside_the_default_one(image: Path, tmp_path: Path) -> None:
    boot = make_mkinitcpio(tmp_path)
    default, fallback = boot / "linux.img", boot / "linux-fallback.img"
    image.rename(default)
    write_image(fallback, archive() + archive(seed=b"all modules"))
    output = call("list").stdout
    title = next(line.split() for line in output.splitlines() if line.startswith(" setting"))
    assert title == ["setting", *["MB", "%", "build", "s"] * 2]
    assert "slow: initadvisor candidates build --all builds it, too" in output
    assert f"candidates build --image {fallback}" in output
    assert all(len(line) <= 80 for line in output.splitlines() if str(tmp_path) not in line)
    first, second = document("list")["images"]
    assert [(one["image"], one["fallback"]) for one in (first, second)] == [
        (str(default), False),
        (str(fallback), True),
    ]
    assert second["uncompressed_bytes"] > first["uncompressed_bytes"]
    assert "no whole run of a generator was timed yet" in output
    keep_run(Host(), fallback, Setting.parse("zstd -19"), since_ns=0)
    rows = [row for one in document("list")["images"] for row in one["settings"]]
    assert [row["setting"] for row in rows if row["run_s"] is not None] == ["zstd -19"]
    output = call("list").stdout
    assert "run s: what the last whole run of mkinitcpio took" in output
    assert any(line.startswith(" zstd -19 ") for line in output.splitlines())
    assert all(len(line) <= 80 for line in output.splitlines() if str(tmp_path) not in line)
    fallback.write_bytes(b"no image")
    found = document("list")
    assert [one["image"] for one in found["images"]] == [str(default)]
    assert str(fallback) in found["gaps"][0]


def test_the_tables_fit_80_columns(image: Path) -> None:
    output = call("build", "--image", image, "--all").stdout + call("list").stdout
    assert "lzop: not built: lzop is not installed" in output
    assert all(len(line) <= 80 for line in output.splitlines() if str(image) not in line)


def test_nothing_but_results_is_printed_where_there_is_no_terminal(image: Path) -> None:
    result = call("build", "--image", image, "--only", "zstd")
    assert result.stderr == ""
    assert "\x1b" not in result.stdout


def test_prune_removes_what_is_stale_or_everything(image: Path) -> None:
    document("build", "--image", image, "--only", "zstd")
    assert call("prune").stdout == "0 candidates removed, 0.0 MB freed\n"
    assert call("prune", "--all").stdout.startswith("1 candidates removed")
    assert document("list")["candidates"] == []


def test_an_empty_list_is_no_error(image: Path) -> None:
    assert image.exists()
    assert call("list").stdout.endswith("0 candidates kept, 0.0 MB\n")


def test_without_an_image_the_option_is_named(image: Path) -> None:
    image.unlink()
    with pytest.raises(InitadvisorError) as caught:
        call("build")
    assert caught.value.hint is not None
    assert "--image" in caught.value.hint


def test_only_and_all_exclude_each_other(image: Path) -> None:
    result = call("build", "--image", image, "--all", "--only", "zstd")
    assert result.exit_code == 2
    assert "exclude" in result.stderr


def test_when_nothing_can_be_built_the_command_fails(image: Path) -> None:
    with pytest.raises(InitadvisorError, match="no candidate") as caught:
        call("build", "--image", image, "--only", "lzop")
    assert caught.value.hint == "lzop is not installed"


def test_an_unknown_setting_is_a_usage_error(image: Path) -> None:
    with pytest.raises(UsageError, match="lzip"):
        call("build", "--image", image, "--only", "lzip")


def test_jobs_is_at_least_one(image: Path) -> None:
    assert call("build", "--image", image, "--jobs", "0").exit_code == 2


def test_a_sweep_marks_todays_and_the_advised_setting_and_what_nothing_beats(image: Path) -> None:
    swept = document("sweep", "--image", image, "--levels", "1..2,19", "--threads", "1,2")
    rows = swept["settings"]
    assert [(row["level"], row["threads"]) for row in rows if not row["today"]] == [
        (level, threads) for level in (1, 2, 19) for threads in (1, 2)
    ]
    (today,) = [row for row in rows if row["today"]]
    assert today["setting"] == swept["baseline"]
    assert today["size_bytes"]["value"] == image.stat().st_size
    assert [row["setting"] for row in rows if row["advised"]] == [swept["advised"]]
    assert any(row["pareto"] for row in rows)
    for row in rows:
        if row["build_cpu_s"]:
            assert row["build_cpu_s"]["value"] == 1.5
            assert row["size_bytes"]["source"] == "built"
    assert document("list")["candidates"] == []
    document("sweep", "--image", image, "--levels", "3")
    kept = kept_sweeps(Host(), hashlib.sha256(image.read_bytes()).hexdigest())
    assert [str(one.setting) for one in kept if one.setting.level in {1, 3}] == [
        *("zstd -1 -T1", "zstd -1 -T2", "zstd -3")
    ]
    assert {(one.build_cpu_s.mean, one.busy_part) for one in kept} == {(1.5, 0.0)}
    assert all("as large as today's" in str(one.unfit) for one in kept if one.setting.level)
    assert kept_sweeps(Host(), "0" * 64) == ()


def test_a_sweep_builds_when_asked(image: Path) -> None:
    document("sweep", "--image", image, "--levels", "1,9", "--build")
    assert {c["setting"] for c in document("list")["candidates"]} == {"zstd -1", "zstd -9"}


def test_a_sweep_fits_80_columns_and_says_the_answer_first(image: Path) -> None:
    output = call(
        "sweep", "--image", image, "--levels", "19..22", "--threads", "1,2,4,8"
    ).stdout.splitlines()
    assert output[0] == "Keep zstd: nothing swept may be chosen here."
    reason = " ".join(output).partition("No choice here: ")[2]
    assert reason.startswith("zstd -19 -T1 and 15 more: it is as large as today's image, which may")
    assert any("boots per kernel upgrade" in line for line in output[:4])
    assert any("zstd --ultra -22 -T8" in line for line in output)
    assert [line for line in output if len(line) > 80] == []


def test_a_sweep_of_what_a_codec_cannot_do_is_refused(image: Path) -> None:
    with pytest.raises(UsageError, match="one thread"):
        call("sweep", "--image", image, "--codec", "gzip", "--threads", "2")
    with pytest.raises(UsageError, match="no level 23"):
        call("sweep", "--image", image, "--levels", "1..23")
    for numbers in ("9..1", "1,,2", "fast", ""):
        result = call("sweep", "--image", image, "--levels", numbers)
        assert result.exit_code == 2
        assert "neither a number nor a range" in result.stderr
