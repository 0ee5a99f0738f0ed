"""What holds for every boot loader: one boot, and not a byte left or changed."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import (
    BootEntry,
    OneShot,
    OneShotOutcome,
    OneShotState,
    TrialRequest,
    one_shot_outcome,
)
from initadvisor.bootloaders.extra_cmdline import extra_cmdline
from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.places import read_bytes
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.core.errors import InitadvisorError, ProgramError, UnsafeError
from initadvisor.core.refusals import RefusalKind
from initadvisor.records.boot_class import comparable_command_line
from initadvisor.records.boot_start import TRIAL_TAG
from tests.fixtures.bls_machine import bls_machine
from tests.fixtures.loader_machines import (
    LOADERS,
    WORDS,
    Case,
    Machine,
    armed_machine,
    grub_machine,
    systemd_boot_machine,
)
from tests.fixtures.owners import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from initadvisor.bootloaders import BootLoader


MACHINES = {**LOADERS, "grub2 with blscfg": (grub, bls_machine)}


@pytest.fixture(params=MACHINES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    """Return a loader with a machine that it boots."""
    loader, make = MACHINES[request.param]
    return loader, make(tmp_path)


def test_the_loader_is_found_and_nothing_speaks_against_it(case: Case) -> None:
    loader, machine = case
    assert detect_boot_loader(machine.host) is loader
    assert loader.refusals(machine.host) == ()


def test_a_trial_differs_in_its_image_its_title_and_our_words(case: Case) -> None:
    loader, machine = case
    default = loader.default_entry(machine.host)
    plan = loader.trial(machine.host, machine.request)
    assert plan.default == default
    assert plan.extra_cmdline == WORDS
    assert "initadvisor trial" in plan.title
    assert "t1" in plan.title
    kept = comparable_command_line(plan.options, extra_cmdline=plan.extra_cmdline)
    assert kept == comparable_command_line(default.options)
    assert default.options != plan.options
    assert machine.installed in {initrd.path for initrd in default.initrds}
    for initrd in default.initrds:
        tried = initrd.path == machine.installed
        assert (initrd.named in plan.text) is not tried


def test_the_words_for_init_come_last_and_stay_one_word(case: Case) -> None:
    loader, machine = case
    words = extra_cmdline("t1", generator="dracut", guarded=True)
    guarded = dataclasses.replace(machine.request, parameters=words)
    plan = loader.trial(machine.host, guarded)
    assert plan.extra_cmdline == words
    assert plan.options.endswith(" ".join(words))
    kept = comparable_command_line(plan.options, extra_cmdline=words)
    assert kept == comparable_command_line(loader.default_entry(machine.host).options)
    loader.write(machine.host, plan)
    loader.arm(machine.host, plan)
    assert loader.armed(machine.host).state is OneShotState.OURS


def test_a_file_of_the_loader_s_that_never_ends_is_not_read_whole(tmp_path: Path) -> None:
    large, pipe = tmp_path / "large", tmp_path / "pipe"
    with large.open("wb") as file:
        file.truncate(4 << 20)
    content = read_bytes(large)
    assert content is not None
    assert len(content) == 4 << 20
    with large.open("wb") as file:
        file.truncate(1 << 27)
    with pytest.raises(InitadvisorError, match="larger than"):
        read_bytes(large)
    os.mkfifo(pipe)
    with pytest.raises(InitadvisorError, match="not an ordinary file"):
        read_bytes(pipe)
    assert read_bytes(tmp_path / "none") is None


def test_planning_changes_nothing(case: Case) -> None:
    loader, machine = case
    before = machine.tree()
    loader.refusals(machine.host)
    loader.trial(machine.host, machine.request)
    loader.armed(machine.host)
    assert machine.tree() == before


def test_one_boot_is_the_trials_and_the_next_one_the_defaults(case: Case) -> None:
    loader, machine = case
    default = loader.default_entry(machine.host)
    armed_machine(loader, machine)
    pending = loader.armed(machine.host)
    assert pending.state is OneShotState.OURS
    assert one_shot_outcome(pending, armed_in_boot="a", boot="a") is OneShotOutcome.PENDING
    assert machine.reboots() is not None
    assert (
        one_shot_outcome(loader.armed(machine.host), armed_in_boot="a", boot="b")
        is OneShotOutcome.CONSUMED
    )
    assert machine.reboots() is None
    assert loader.default_entry(machine.host) == default
    assert loader.refusals(machine.host) == ()


def test_what_was_written_goes_without_a_trace(case: Case) -> None:
    loader, machine = case
    before = machine.tree()
    armed_machine(loader, machine)
    assert machine.tree() != before
    assert loader.remove(machine.host)
    assert machine.tree() == before
    assert not loader.remove(machine.host)


@pytest.mark.parametrize("doing", ["writing", "removing"])
@pytest.mark.parametrize("case", ["systemd-boot", "grub", "grub2"], indirect=True)
def test_what_a_power_cut_left_beside_its_file_goes_too(case: Case, doing: str) -> None:
    loader, machine = case
    before = machine.tree()
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    left = machine.host.path(plan.target).with_name(f".partial-initadvisor-{OWNER}-abcdefgh")
    left.write_bytes(b"half an entry")
    if doing == "writing":
        loader.write(machine.host, plan)
        assert not left.exists()
    assert loader.remove(machine.host)
    assert machine.tree() == before


def test_a_second_trial_takes_the_place_of_the_first(case: Case) -> None:
    loader, machine = case
    before = machine.tree()
    armed_machine(loader, machine)
    machine.reboots()
    second = TrialRequest(
        trial="t2",
        replaces=machine.installed,
        image=machine.candidate,
        parameters=(f"{TRIAL_TAG}=t2", "panic=30"),
    )
    plan = loader.trial(machine.host, second)
    loader.write(machine.host, plan)
    loader.arm(machine.host, plan)
    texts = b"".join(machine.tree().values()).replace(b"\0", b"").decode(errors="replace")
    assert f"{TRIAL_TAG}=t2" in texts
    assert f"{TRIAL_TAG}=t1" not in texts
    loader.remove(machine.host)
    changed = {name for name, content in machine.tree().items() if content != before.get(name)}
    assert changed <= {"boot/grub/grubenv", "boot/grub2/grubenv"}  # an empty next_entry= is left


def test_disarming_leaves_the_entry_and_takes_the_selection_back(case: Case) -> None:
    loader, machine = case
    armed_machine(loader, machine)
    assert loader.disarm(machine.host)
    assert loader.armed(machine.host) == OneShot(state=OneShotState.NONE)
    assert not loader.disarm(machine.host)
    assert machine.reboots() is None


def test_a_default_entry_that_changed_since_is_not_armed(case: Case) -> None:
    loader, machine = case
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    (machine.root / plan.default.kernel.path.lstrip("/")).unlink()
    with pytest.raises(UnsafeError):
        loader.arm(machine.host, plan)
    assert loader.armed(machine.host).state is OneShotState.NONE


def test_an_image_that_is_gone_is_not_armed(case: Case) -> None:
    loader, machine = case
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    (machine.root / machine.candidate.lstrip("/")).unlink()
    with pytest.raises(UnsafeError, match="is gone"):
        loader.arm(machine.host, plan)
    assert loader.armed(machine.host).state is OneShotState.NONE


def test_an_entry_that_is_not_there_is_not_armed(case: Case) -> None:
    loader, machine = case
    plan = loader.trial(machine.host, machine.request)
    with pytest.raises(UnsafeError, match="not in"):
        loader.arm(machine.host, plan)
    assert loader.armed(machine.host).state is OneShotState.NONE


@pytest.mark.parametrize(
    ("image", "replaces", "match"),
    [
        ("/efi/nothing.img", None, "no such file"),
        ("/boot/nothing.img", None, "no such file"),
        ("/root.img", None, "looks for images in"),
        (None, "/other.img", "does not load /other.img"),
    ],
)
def test_a_trial_that_cannot_be_is_refused(
    case: Case, image: str | None, replaces: str | None, match: str
) -> None:
    loader, machine = case
    (machine.root / "root.img").write_bytes(b"")
    request = TrialRequest(
        trial="t1",
        replaces=replaces or machine.installed,
        image=image or machine.candidate,
        parameters=WORDS,
    )
    with pytest.raises(UnsafeError, match=match):
        loader.trial(machine.host, request)


@pytest.mark.parametrize("name", ["systemd-boot", "grub", "efibootmgr 18"])
def test_a_boot_partition_that_is_read_only_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    loader, make = LOADERS[name]
    machine = make(tmp_path)
    real = os.statvfs(tmp_path)
    read_only = os.statvfs_result((*real[:8], real.f_flag | os.ST_RDONLY, real.f_namemax))
    monkeypatch.setattr(os, "statvfs", lambda _path: read_only)
    (refusal,) = loader.refusals(machine.host)
    assert refusal.kind is RefusalKind.READ_ONLY
    assert refusal.remedy == "mount it read-write"


def test_firmware_that_keeps_nothing_is_an_error(case: Case) -> None:
    loader, machine = case
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    machine.programs.forgetful = True
    with pytest.raises(InitadvisorError, match="the next boot is not the trial's"):
        loader.arm(machine.host, plan)
    assert loader.armed(machine.host).state is OneShotState.NONE


def test_programs_that_fail_leave_nothing_selected(case: Case) -> None:
    loader, machine = case
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    before = machine.tree()
    error = ProgramError("did not end in time")
    for command in ("bootctl set-oneshot", "grub-reboot", "grub2-reboot", "efibootmgr --bootnext"):
        machine.programs.answer(command, error=error)
    with pytest.raises(ProgramError):
        loader.arm(machine.host, plan)
    assert machine.tree() == before


# Every operation on files that is made for writing and removing, made to fail one by one.
OPERATIONS: tuple[tuple[object, str], ...] = (
    (tempfile, "mkstemp"),
    (os, "fchmod"),
    (os, "fsync"),
    (os, "fchown"),
    (os, "setxattr"),
    (Path, "rename"),
    (Path, "unlink"),
)


def failing(
    monkeypatch: pytest.MonkeyPatch, owner: object, name: str, call: int, error: int
) -> list[int]:
    """Have the given call of an operation fail; return a list that grows with every call."""
    real = getattr(owner, name)
    calls: list[int] = []

    def operation(*args: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == call + 1:
            raise OSError(error, os.strerror(error))
        return real(*args, **options)

    monkeypatch.setattr(owner, name, operation)
    return calls


@pytest.mark.parametrize(
    "error", [28, *(pytest.param(one, marks=pytest.mark.exhaustive) for one in (5, 13, 30))]
)
@pytest.mark.parametrize("step", ["write", "remove"])
@pytest.mark.parametrize(("owner", "name"), OPERATIONS, ids=[name for _, name in OPERATIONS])
def test_whatever_fails_the_default_entry_is_as_before(
    tmp_path: Path, owner: object, name: str, step: str, error: int
) -> None:
    failures = 0
    for index, (loader, make) in enumerate((systemd_boot_and_nothing(), grub_and_custom())):
        for call in range(5):
            root = tmp_path / f"{index}-{call}"
            machine = make(root)
            default, before = loader.default_entry(machine.host), machine.tree()
            plan = loader.trial(machine.host, machine.request)
            if step == "remove":
                loader.write(machine.host, plan)
            with pytest.MonkeyPatch.context() as patch:
                calls = failing(patch, owner, name, call, error)
                failed = attempt(loader, machine, plan_step=step)
            if failed:
                failures += 1
            elif len(calls) <= call:
                continue
            check_untouched(loader, machine, default, before)
            loader.remove(machine.host)
            assert machine.tree() == before
    assert bool(failures) is ((step, name) != ("write", "unlink"))


def attempt(loader: BootLoader, machine: Machine, *, plan_step: str) -> bool:
    """Write or remove; return whether that failed, as it may: with an error in words."""
    try:
        if plan_step == "write":
            loader.write(machine.host, loader.trial(machine.host, machine.request))
        else:
            loader.remove(machine.host)
    except InitadvisorError:
        return True
    return False


def check_untouched(
    loader: BootLoader, machine: Machine, default: BootEntry, before: dict[str, bytes]
) -> None:
    """Check that the default entry is the one it was and that every foreign file is whole."""
    assert loader.default_entry(machine.host) == default
    assert loader.armed(machine.host).state is OneShotState.NONE
    now = machine.tree()
    for name, content in before.items():
        assert now[name].startswith(content)
    new = set(now) - set(before)
    assert all("initadvisor" in name or "custom.cfg" in name for name in new), new


def systemd_boot_and_nothing() -> tuple[BootLoader, Callable[[Path], Machine]]:
    """Return systemd-boot, for which a new file is written."""
    return systemd_boot, systemd_boot_machine


def grub_and_custom() -> tuple[BootLoader, Callable[[Path], Machine]]:
    """Return GRUB with a custom.cfg of somebody's, which is replaced."""

    def make(root: Path) -> Machine:
        machine = grub_machine(root)
        custom = root / "boot/grub/custom.cfg"
        custom.write_text("menuentry 'Mine' {\n\tlinux /mine\n}\n")
        os.setxattr(custom, "user.kept", b"1")
        return machine

    return grub, make
