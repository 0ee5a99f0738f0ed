"""The command ``apply``: what it prints, what it ends with, and that it changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.apply import plan
from initadvisor.apply.plan_values import ApplyStep, Blocker
from initadvisor.cli.apply import apply
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import UnsafeError, UsageError
from initadvisor.core.settings import Setting
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.transaction import TransactionState
from tests.fakes.generators import FakeGenerators
from tests.fixtures.dracut_machine import (
    CONFIG,
    IMAGE,
    advice,
    image,
    make_appliable,
    no_engine,
    ordered_codec,
    snapshot,
    unlike,
)
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.generators import Ordered
    from tests.fixtures.hosts import Machine

_ZSTD = Setting(Codec.ZSTD)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that the command takes for the real one."""
    found, _ = make_appliable(tmp_path, monkeypatch)
    monkeypatch.setattr(host_package, "Host", lambda: found)
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


def test_what_a_slower_setting_costs_is_no_negative_saving(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    slower = advice(machine, _ZSTD, "switch", saving_ms=-16)
    monkeypatch.setattr(plan, "recommend", lambda *_args, **_named: slower)
    output, _ = call(machine, "zstd")
    assert "Expected to cost 16 (12..20) ms per boot." in told(output)


def test_what_is_in_the_way_is_listed_by_what_it_hinders(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstacle = Blocker(
        step=ApplyStep.PROVING_BOOT, reason="rEFInd started it", remedy="use another"
    )
    monkeypatch.setattr(plan, "_of_the_boot_loader", lambda _host, _images: (obstacle, obstacle))
    output, error = call(machine, "zstd")
    assert isinstance(error, UnsafeError)
    assert error.hint == "--confirm does it, once nothing is in the way or with --immediate"
    assert output.count("rEFInd started it") == 1
    assert "In the way of booting it once before it becomes the default:" in output
    assert "  - rEFInd started it (use another)" in output
    assert "In the way of applying it:" not in output


def test_what_no_option_passes_has_to_be_out_of_the_way(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstacles = tuple(
        Blocker(step=step, reason="no") for step in (ApplyStep.BUILD, ApplyStep.UNLOCKING)
    )
    monkeypatch.setattr(plan, "_of_the_boot_loader", lambda _host, _images: obstacles)
    _, error = call(machine, "zstd")
    assert isinstance(error, UnsafeError)
    assert error.hint == "--confirm does it, once nothing is in the way"


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
    assert (document["schema"], document["generator"]) == (3, "dracut")
    assert document["today"]["setting"] == "gzip"
    (edit,) = document["edits"]
    assert (edit["path"], edit["new"]) == (str(machine.path(CONFIG)), False)
    assert [found["rebuilt"] for found in document["images"]] == [True] * 3
    assert document["images"][0]["expected_bytes"] > 0
    assert document["saving_ms"] == {"mean": 5, "median": 5, "low": 1, "high": 9}
    assert document["space"][0]["enough"]
    assert document["blockers"] == []


def test_confirm_has_it_boot_once_first(machine: Machine) -> None:
    result = CliRunner().invoke(apply, ["zstd", "--confirm"])
    assert result.exit_code == 0
    assert f"{machine.path(IMAGE)}: built as zstd" in told(result.stdout)
    assert "lint: ok, same content" in told(result.stdout)
    assert "Nothing was replaced yet. The next boot is a rehearsal" in told(result.stdout)
    assert "\\" not in result.stdout
    assert isinstance(machine.runner, FakeGenerators)
    assert len(machine.runner.orders) == 2
    assert [t.state for t in read_transactions(machine)] == [TransactionState.PROVING]


def test_immediate_replaces_at_once(machine: Machine) -> None:
    result = CliRunner().invoke(apply, ["zstd", "--confirm", "--immediate"])
    assert result.exit_code == 0
    assert "zstd is configured and installed. initadvisor rollback" in told(result.stdout)
    assert [t.state for t in read_transactions(machine)] == [TransactionState.COMMITTED]


def test_what_was_not_verified_is_said(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    no_engine(monkeypatch)
    _, error = call(machine, "zstd", "--confirm", "--immediate")
    assert isinstance(error, UnsafeError)
    result = CliRunner().invoke(apply, ["zstd", "--confirm", "--immediate", "--unverified"])
    assert result.exit_code == 0
    assert "No kernel was asked whether it unpacks them: no virtual" in told(result.stdout)


@pytest.mark.parametrize(
    ("step", "option"),
    [
        (ApplyStep.PROVING_BOOT, "--immediate"),
        (ApplyStep.PREVIOUS_ENTRY, "--without-entry"),
        (ApplyStep.PREVIOUS_ENTRY, "--without-backup"),
        (ApplyStep.UNLOCKING, "--ignore-unlocking"),
    ],
)
def test_each_obstacle_names_the_option_that_passes_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, step: ApplyStep, option: str
) -> None:
    obstacle = Blocker(step=step, reason="it is so")
    monkeypatch.setattr(plan, "_of_the_boot_loader", lambda _host, _images: (obstacle,))
    _, error = call(machine, "zstd", "--confirm")
    assert isinstance(error, UnsafeError)
    assert error.hint is not None
    named = option if option != "--without-backup" else "--without-entry"
    assert named in error.hint
    assert CliRunner().invoke(apply, ["zstd", "--confirm", option]).exit_code == 0


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
    assert isinstance(call(machine, "")[1], UsageError)
    assert CliRunner().invoke(apply, ["--confirm", "--json"]).exit_code == 2
