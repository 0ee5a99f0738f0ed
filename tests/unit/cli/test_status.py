"""What ``status`` and ``rollback`` print, and what they end with."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.apply.apply import ApplyChoices
from initadvisor.apply.policy_log import note_refusal
from initadvisor.cli.rollback import rollback
from initadvisor.cli.status import status
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Policy
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import RefusalKind, refused
from initadvisor.core.settings import Setting
from initadvisor.doctor.doctor import diagnose
from initadvisor.doctor.findings import Grade, Topic
from initadvisor.generators import shell
from initadvisor.host.sandbox import NoSandboxError
from initadvisor.target import kernel_room
from initadvisor.transaction.log import read_transactions, write_transaction
from tests.fakes.boot_loader import FakeLoader
from tests.fixtures.dracut_machine import (
    CONFIG,
    IMAGE,
    applied_setting,
    image,
    make_appliable,
    snapshot,
)
from tests.fixtures.owners import OWNER

if TYPE_CHECKING:
    from pathlib import Path

    import click

    from tests.fixtures.hosts import Machine

_ZSTD = Setting(Codec.ZSTD)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine that the commands take for the real one."""
    found, _ = make_appliable(tmp_path, monkeypatch)
    monkeypatch.setattr(host_package, "Host", lambda: found)
    return found


def told(command: click.Command, *arguments: str, refused: str = "") -> str:
    """Call a command; return what it printed, without the breaks between words."""
    result = CliRunner().invoke(command, arguments)
    if refused:
        assert isinstance(result.exception, UnsafeError)
        assert refused in result.exception.message
    else:
        assert result.exception is None
    return " ".join(result.stdout.split())


def test_status_of_a_machine_to_which_nothing_was_done(machine: Machine) -> None:
    del machine
    said = told(status)
    assert said.startswith("Configured: gzip (")
    assert "This boot used: not known (this boot was not measured" in said
    assert f"Boot loader: fake - boots by default: Linux ({IMAGE})" in said
    assert "Kept" not in said
    assert "By itself" not in said


def test_status_has_room_in_80_columns(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    del machine
    reason = "the kernel's command line names an image that is not among those of this machine"

    def problem(*_: object) -> None:
        raise UnsafeError(reason)

    monkeypatch.setattr(FakeLoader, "default_entry", problem)
    lines = CliRunner().invoke(status).stdout.splitlines()
    assert "  " in {line[:2] for line in lines}
    assert max(map(len, lines)) <= 80


def test_status_shows_how_far_the_daemon_has_come(machine: Machine) -> None:
    note_refusal(machine, Policy.APPLY, "it was undone", at_s=200)
    applied_setting(machine, _ZSTD)
    (machine.state_dir() / "seen").write_text("{}")
    os.utime(machine.state_dir() / "seen", (86_400, 86_400))
    said = told(status)
    assert "By itself: - noted, 1970-01-0" in said
    assert "- applied, 20" in said
    assert "transaction 1 (dracut to zstd, was gzip)" in said


def test_status_says_what_became_of_loading_modules(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    assert "loading" not in told(status)
    [done] = read_transactions(machine)
    assert done.setting
    about = replace(done.setting, variant="modules-decompressed")
    write_transaction(machine, replace(done, setting=about))
    found = "modules decompressed: what loading takes then is not measured: no boot with"
    assert found in told(status)


def test_status_says_why_it_is_not_known_what_boots(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del machine
    unclear = refused(RefusalKind.UNCLEAR_DEFAULT, "two say so", "have one say so")

    def default_entry(*_: object) -> None:
        raise unclear

    monkeypatch.setattr(FakeLoader, "default_entry", default_entry)
    assert "what it boots by default is not known: two say so" in told(status)
    loader = json.loads(CliRunner().invoke(status, ["--json"]).stdout)["loader"]
    assert (loader["default"], loader["unclear"]) == (None, "two say so")


def test_status_names_entries_that_the_loader_does_not_read_as_they_are_meant(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = replace(FakeLoader(IMAGE).default_entry(machine), damaged=("/a.conf names no kernel",))
    monkeypatch.setattr(FakeLoader, "default_entry", lambda *_: entry)
    assert f"boots by default: Linux ({IMAGE}) - /a.conf names no kernel" in told(status)
    loader = json.loads(CliRunner().invoke(status, ["--json"]).stdout)["loader"]
    assert loader["default"]["damaged"] == ["/a.conf names no kernel"]


def test_status_says_when_the_configuration_was_only_read(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del machine

    def none_to_be_had(*_: object, **__: object) -> None:
        msg = "no sandbox can be made here: no namespaces"
        raise NoSandboxError(msg)

    monkeypatch.setattr(shell, "run_inside", none_to_be_had)
    reason = "was only read, not evaluated: no sandbox can be made here: no namespaces"
    said = told(status)
    assert said.startswith("Configured: gzip (")
    assert reason in said
    document = json.loads(CliRunner().invoke(status, ["--json"]).stdout)
    assert document["configured"]["setting"] == "gzip"
    assert [each for each in document["configured"]["warnings"] if each.endswith(reason)]


def test_status_of_what_was_done(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    machine.path(IMAGE).write_bytes(image(Codec.ZSTD, extra="etc"))
    applied_setting(machine, Setting(Codec.LZ4), ApplyChoices(accept_content_changes=True))
    said = told(status)
    assert "Not over: - 2," in said
    assert "dracut to lz4, was zstd: waits for a boot with today's image" in said
    assert "The latest changes: - 1," in said
    assert "dracut to zstd, was gzip: committed" in said
    assert "the next boot is the trial's" in said
    assert "Kept for going back, 0.0 MB:" in said
    assert f"before transaction 1 in {IMAGE}, which others have changed since" in said


def test_status_for_programs(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    applied_setting(machine, Setting(Codec.LZ4), ApplyChoices())
    document = json.loads(CliRunner().invoke(status, ["--json"]).stdout)
    assert (document["schema"], document["generator"]) == (3, "dracut")
    assert document["configured"]["setting"] == "zstd"
    assert document["pending"] == [2]
    assert [one["state"] for one in document["transactions"]] == ["committed", "proving"]
    assert document["transactions"][1]["waits_for"] == "rehearsal"
    assert document["loader"]["next_boot"]["state"] == "ours"
    assert document["loader"]["default"]["images"] == [IMAGE]
    assert {one["of"] for one in document["backups"]} == {IMAGE, CONFIG}
    assert document["running"]["certainty"] is None


def test_status_and_doctor_say_that_the_next_kernel_does_not_fit(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied_setting(machine, _ZSTD)
    assert json.loads(CliRunner().invoke(status, ["--json"]).stdout)["kernel_room"] is None
    mounts = machine.path("/proc/self/mountinfo")
    mounts.write_text(f"{mounts.read_text()}23 22 8:1 / /boot rw - ext4 /dev/sda1 rw\n")
    monkeypatch.setattr(kernel_room, "free_bytes", lambda _path: 10)
    said = told(status)
    assert "Room on /boot: 0 MB are free, another kernel like Linux 6.1.0" in said
    assert "none fits" in said
    assert "the next kernel does not fit on /boot: make room; initadvisor rollback --drop" in said
    room = json.loads(CliRunner().invoke(status, ["--json"]).stdout)["kernel_room"]
    assert (room["mount_point"], room["free_bytes"], room["more_kernels"]) == ("/boot", 10, 0)
    [found] = [each for each in diagnose(machine)[Topic.ROOM] if "another kernel" in each.text]
    assert found.grade is Grade.NOTE
    assert "rollback --drop" in (found.advice or "")
    monkeypatch.setattr(kernel_room, "free_bytes", lambda _path: room["kernel_bytes"] * 2)
    assert "2 more fit" in told(status)
    [found] = [each for each in diagnose(machine)[Topic.ROOM] if "another kernel" in each.text]
    assert found.grade is Grade.OK


def test_rollback_shows_first_and_then_does_it(machine: Machine) -> None:
    assert told(rollback) == "There is nothing to go back to."
    old = snapshot(machine)
    applied_setting(machine, _ZSTD)
    new = snapshot(machine)
    said = told(rollback, refused="nothing was changed")
    assert f"{IMAGE}: the content from before comes back" in said
    assert snapshot(machine) == new
    assert "Transaction 1 is undone; gzip is configured." in told(rollback, "--confirm")
    assert snapshot(machine) == old


def test_rollback_says_what_is_rebuilt_and_what_is_gone(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    machine.path(IMAGE).write_bytes(image(Codec.ZSTD, extra="etc"))
    said = told(rollback, refused="nothing was changed")
    assert f"{IMAGE}: rebuilt with the configuration from before" in said
    machine.path(IMAGE).unlink()
    said = told(rollback, refused="nothing was changed")
    assert f"{IMAGE}: is not there any more" in said


def test_rollback_takes_back_what_waits(machine: Machine) -> None:
    applied_setting(machine, _ZSTD, ApplyChoices())
    assert "waits for a boot" in told(rollback, refused="nothing was changed")
    assert "Transaction 1 is taken back" in told(rollback, "--confirm")


def test_status_of_what_is_damaged(machine: Machine) -> None:
    done = applied_setting(machine, _ZSTD)
    assert "NOT AS IT WAS KEPT" not in told(status, "--check")
    backup = machine.path(str(done.transaction.files[0].backup))
    backup.write_bytes(b"x" * backup.stat().st_size)
    assert "NOT AS IT WAS KEPT: it has another content" in told(status, "--check")
    document = json.loads(CliRunner().invoke(status, ["--json", "--check"]).stdout)
    told_of = {one["of"]: (one["compared"], one["problem"]) for one in document["backups"]}
    assert told_of == {IMAGE: (True, "it has another content"), CONFIG: (True, None)}


def test_older_changes_can_be_dropped_alone(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    assert "--keep 1" not in told(status)
    applied_setting(machine, Setting(Codec.LZ4))
    now = snapshot(machine)
    assert "of changes before the latest: initadvisor rollback --drop --keep 1" in told(status)
    said = told(rollback, "--drop", "--keep", "1", refused="nothing was removed")
    assert f"/.initadvisor-{OWNER}-1-0.old" in said
    assert f"/.initadvisor-{OWNER}-2-" not in said
    assert snapshot(machine) == now
    said = told(rollback, "--drop", "--keep", "1", "--confirm")
    assert "Removed 2 files" in said
    assert "only the latest 1 can be undone now" in said
    gone = {path for path in now if f"/.initadvisor-{OWNER}-1-" in path}
    assert snapshot(machine) == {path: text for path, text in now.items() if path not in gone}
    assert told(rollback, "--drop", "--keep", "1") == (
        "Nothing is kept for going back but for the latest 1."
    )
    assert "Transaction 2 is undone; zstd is configured." in told(rollback, "--confirm")
    assert told(rollback) == "There is nothing to go back to."


def test_what_is_to_be_kept_is_said_of_dropping_only(machine: Machine) -> None:
    applied_setting(machine, _ZSTD)
    now = snapshot(machine)
    for arguments in (["--keep", "1"], ["--drop", "--keep", "0"]):
        assert CliRunner().invoke(rollback, [*arguments, "--confirm"]).exit_code == 2
    assert snapshot(machine) == now


def test_rollback_drops_what_is_kept(machine: Machine) -> None:
    assert told(rollback, "--drop") == "Nothing is kept for going back."
    applied_setting(machine, _ZSTD)
    assert "what /boot" in told(rollback, "--drop", refused="nothing was removed")
    assert "Removed 2 files" in told(rollback, "--drop", "--confirm")
    assert not list(machine.path("/boot").glob(".initadvisor*"))
