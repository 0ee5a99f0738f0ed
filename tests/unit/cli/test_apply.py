"""The command ``apply``: what it prints, what it ends with, and that it changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.cli.apply import apply
from initadvisor.model.apply import Obstacle, Step
from initadvisor.model.codec import Codec
from initadvisor.model.errors import InitadvisorError, UnsafeError, UsageError
from initadvisor.model.setting import Setting
from initadvisor.workflow import apply_plan
from tests.fakes.generators import FakeGenerators
from tests.unit.generators.conftest import RELEASE
from tests.unit.workflow.applying import (
    CONFIG,
    advice,
    image,
    make_machine,
    ordered_codec,
    snapshot,
    unlike,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.generators import Ordered
    from tests.unit.generators.conftest import Machine

_ZSTD = Setting(Codec.ZSTD)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that the command takes for the real one."""
    found = make_machine(tmp_path, monkeypatch)
    known = advice(found, _ZSTD, "switch")
    monkeypatch.setattr(host_package, "Host", lambda: found)
    monkeypatch.setattr(apply_plan, "recommend", lambda *_args, **_named: known)
    monkeypatch.setattr(apply_plan, "_against_a_proving_boot", lambda _host: ())
    return found


def call(machine: Machine, *arguments: str) -> tuple[str, BaseException | None]:
    """Call the command; return what it printed and what it raised. Nothing was changed."""
    before = snapshot(machine)
    result = CliRunner().invoke(apply, arguments)
    assert snapshot(machine) == before
    assert not (machine.cache_dir() / "apply").exists()
    return result.stdout, result.exception


def told(output: str) -> str:
    """Return the words without the breaks between them."""
    return " ".join(output.split())


def test_the_plan_is_shown_and_the_status_says_that_nothing_was_changed(machine: Machine) -> None:
    output, error = call(machine, "zstd")
    assert isinstance(error, UnsafeError)
    assert error.exit_code == 3
    assert "nothing was changed" in error.message
    for words in (
        "Today: gzip",
        "To apply: zstd (as asked)",
        "Expected to save 5 (1..9) ms per boot.",
        "-compress=gzip",
        "+compress=zstd",
        f"initramfs-{RELEASE}.img",
        "rebuilt with zstd",
        "stays (fallback)",
        "MB free",
    ):
        assert words in told(output)
    assert isinstance(machine.runner, FakeGenerators)
    assert machine.runner.orders == []


def test_what_is_in_the_way_is_listed_by_what_it_hinders(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstacle = Obstacle(step=Step.PROVING_BOOT, reason="rEFInd started it", remedy="use another")
    monkeypatch.setattr(apply_plan, "_against_a_proving_boot", lambda _host: (obstacle,))
    output, _ = call(machine, "zstd")
    assert "In the way of booting it once before it becomes the default:" in output
    assert "  - rEFInd started it (use another)" in output
    assert "In the way of applying it:" not in output


def test_a_configuration_cannot_command_the_terminal(machine: Machine) -> None:
    machine.path(CONFIG).write_text("# \x1b[2J\r\ncompress=gzip\n")
    output, _ = call(machine, "zstd")
    assert "\\x1b[2J\\r" in output
    assert "\x1b" not in output


def test_nothing_to_do_is_success(machine: Machine) -> None:
    machine.path(CONFIG).write_text('compress="zstd"\n')
    output, error = call(machine, "zstd")
    assert error is None
    assert "nothing to change" in output


def test_json_has_what_the_manual_promises(machine: Machine) -> None:
    output, error = call(machine, "zstd", "--json", "--all")
    assert isinstance(error, UnsafeError)
    document = json.loads(output)
    assert (document["schema"], document["generator"]) == (1, "dracut")
    assert document["today"]["setting"] == "gzip"
    (edit,) = document["edits"]
    assert (edit["path"], edit["new"]) == (str(machine.path(CONFIG)), False)
    assert [found["rebuilt"] for found in document["images"]] == [True] * 3
    assert document["images"][0]["expected_bytes"] > 0
    assert document["saving_ms"] == {"mean": 5, "low": 1, "high": 9}
    assert document["room"][0]["enough"]
    assert document["obstacles"] == []


def test_confirm_builds_and_says_that_it_cannot_go_on(machine: Machine) -> None:
    output, error = call(machine, "zstd", "--confirm")
    assert isinstance(error, InitadvisorError)
    assert error.exit_code == 1
    assert "cannot replace the installed ones yet" in error.message
    assert f"{machine.path(f'/boot/initramfs-{RELEASE}.img')}: built as zstd" in told(output)
    assert "lint: ok, same content" in told(output)
    assert "\\" not in output
    assert isinstance(machine.runner, FakeGenerators)
    assert len(machine.runner.orders) == 2


def test_updates_are_listed_and_many_are_cut(machine: Machine) -> None:
    path = machine.path(f"/boot/initramfs-{RELEASE}.img")
    path.write_bytes(
        image(Codec.GZIP) + b"".join(image(Codec.GZIP, extra=f"f{n}") for n in range(15))
    )
    output, _ = call(machine, "zstd", "--confirm")
    assert "Updates since the installed image was built" in output
    assert "  - gone: f0" in output
    assert "  - and 5 more" in output


def test_a_wrong_build_is_refused(machine: Machine) -> None:
    def cat(order: Ordered) -> bytes:
        assert ordered_codec(order) is Codec.ZSTD
        return image(Codec.CAT)

    assert isinstance(machine.runner, FakeGenerators)
    machine.runner.make = unlike(cat)
    _, error = call(machine, "zstd", "--confirm")
    assert isinstance(error, UnsafeError)
    assert "with cat, not with zstd" in error.message


def test_what_cannot_be_meant_is_a_usage_error(machine: Machine) -> None:
    assert isinstance(call(machine, "lzip")[1], UsageError)
    assert CliRunner().invoke(apply, ["--confirm", "--json"]).exit_code == 2
