"""The command ``candidates``: its tables, its JSON, its errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli.candidates import candidates
from initadvisor.core.errors import InitadvisorError, UsageError
from initadvisor.host import Host
from tests.fakes.compressors import fake_compressors
from tests.fixtures.small_images import archive, write_image

if TYPE_CHECKING:
    from click.testing import Result


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image on a machine of its own, which the command takes for the real one."""
    machine = Host(root=tmp_path, runner=fake_compressors())
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(host_package, "Host", lambda: machine)
    return write_image(tmp_path / "image", archive())


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
    assert call("list").stdout == "0 candidates, 0.0 MB\n"


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
