"""The plan says what would change, what it takes and what is in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.recommend import Request
from initadvisor.apply import commit
from initadvisor.apply import loaded as apply_loaded
from initadvisor.apply import plan as apply_plan
from initadvisor.apply import room as apply_room
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.apply.plan_values import ApplyPlan, ApplyStep, Blocker
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import (
    InitadvisorError,
    NeedsRootError,
    RefusedRewriteError,
    UnsafeError,
)
from initadvisor.core.refusals import Refusal, RefusalKind, refused
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Outcome
from initadvisor.generators.running import require_installed_system
from initadvisor.host import replace
from initadvisor.lab.observing import Unseen
from initadvisor.trial.evidence import require_boot_time_unit
from tests.fakes.boot_loader import FakeLoader
from tests.fixtures.dracut_machine import CONFIG, OTHER, advice, make_machine, no_engine, snapshot
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.hosts import Machine

_GZIP, _ZSTD, _LZ4 = Setting(Codec.GZIP), Setting.parse("zstd -19"), Setting(Codec.LZ4)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine of which nothing is known that could be weighed."""
    found = make_machine(tmp_path, monkeypatch)

    def unknown(*_args: object, **_named: object) -> object:
        msg = "nothing can be compared"
        raise InitadvisorError(msg)

    monkeypatch.setattr(apply_plan, "recommend", unknown)
    monkeypatch.setattr(apply_plan, "_of_the_boot_loader", lambda _host, _images: ())
    return found


def planned(
    machine: Machine, setting: Setting | None = _ZSTD, *, everything: bool = False
) -> ApplyPlan:
    """Return the plan; nothing has changed."""
    before = snapshot(machine)
    plan = plan_apply(
        machine, ApplyRequest(setting=setting, everything=everything), observer=Unseen()
    )
    assert snapshot(machine) == before
    return plan


def recommending(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    setting: Setting,
    outcome: Outcome = Outcome.SWITCH,
) -> None:
    """Have a recommendation for a setting."""
    found = advice(machine, setting, outcome)
    monkeypatch.setattr(apply_plan, "recommend", lambda *_args, **_named: found)


def test_the_change_is_a_diff_and_only_the_default_image_is_rebuilt(machine: Machine) -> None:
    plan = planned(machine)
    (edit,) = plan.edits
    assert edit.path == str(machine.path(CONFIG))
    assert '-compress=gzip\n+compress="zstd' in edit.diff
    assert plan.today.setting == _GZIP
    assert [(p.image.path.name, p.rebuilt) for p in plan.images] == [
        (f"initramfs-{RELEASE}.img", True),
        (f"initramfs-{OTHER}.img", False),
        ("initramfs-0-rescue-1.img", False),
    ]
    assert {p.after.setting for p in plan.images} == {_ZSTD}
    assert plan.blockers == ()


def test_all_images_are_rebuilt_if_that_is_asked_for(machine: Machine) -> None:
    assert len(planned(machine, everything=True).rebuilt) == 3


def test_what_is_configured_already_needs_nothing(machine: Machine) -> None:
    machine.path(CONFIG).write_text('compress="gzip"\n')
    plan = planned(machine, _GZIP)
    assert (plan.edits, plan.images, plan.space, plan.blockers) == ((), (), (), ())


def test_sizes_and_saving_are_those_of_the_recommendation(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommending(machine, monkeypatch, _ZSTD)
    plan = planned(machine)
    for one in plan.images:
        assert one.expected_bytes == pytest.approx(one.size_bytes / 2, abs=1)
    assert plan.saving_ms is not None
    assert plan.saving_ms.mean == 5
    assert plan.warnings == ()


def test_a_setting_that_cannot_be_weighed_is_planned_all_the_same(machine: Machine) -> None:
    plan = planned(machine)
    assert plan.saving_ms is None
    assert {one.expected_bytes for one in plan.images} == {None}
    assert plan.warnings == ("what zstd -19 would gain is not known: nothing can be compared",)


def test_without_a_setting_the_advice_is_taken(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommending(machine, monkeypatch, _LZ4)
    plan = planned(machine, None)
    assert plan.setting == _LZ4
    assert plan.edits
    assert plan.why == (
        "recommended now for the objective boot, evidence: predicted, given: overlap 3 ms"
    )


def test_what_the_user_knows_of_the_machine_is_passed_on(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Request] = []

    def recommended(_host: object, request: Request, **_named: object) -> object:
        asked.append(request)
        return advice(machine, _LZ4, Outcome.SWITCH)

    monkeypatch.setattr(apply_plan, "recommend", recommended)
    known = Request(read_speed_mb_s=20, overlap_ms=0)
    for setting, requests in (
        (None, [known]),
        (_LZ4, [known]),
        (_ZSTD, [known, Request(read_speed_mb_s=20, overlap_ms=0, only=(_ZSTD,))]),  # not weighed
    ):
        asked.clear()
        request = ApplyRequest(setting=setting, read_speed_mb_s=20, overlap_ms=0)
        plan_apply(machine, request, observer=Unseen())
        assert asked == requests


@pytest.mark.parametrize("outcome", [Outcome.KEEP, Outcome.UNDECIDED])
def test_advice_to_keep_changes_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, outcome: Outcome
) -> None:
    recommending(machine, monkeypatch, _LZ4, outcome)
    plan = planned(machine, None)
    assert plan.edits == ()
    assert plan.why.startswith(f"recommended now is to keep it: {outcome}, for the objective boot")


def test_advice_that_cannot_be_had_is_an_error(machine: Machine) -> None:
    with pytest.raises(InitadvisorError, match="nothing can be compared"):
        planned(machine, None)


def test_room_is_reckoned_on_each_file_system_for_what_it_is_needed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    recommending(machine, monkeypatch, _ZSTD)
    (room,) = planned(machine).space  # here the cache and /boot are on one file system
    size = machine.path(f"/boot/initramfs-{RELEASE}.img").stat().st_size
    building = size + size // 2 + 2 * 42_000
    assert room.needed_bytes == building + size // 2
    assert room.purpose == "building and the new images beside the old"
    assert room.enough
    monkeypatch.setattr(apply_room, "free_bytes", lambda _path: room.needed_bytes - 1)
    plan = planned(machine)
    assert not plan.space[0].enough
    (obstacle,) = plan.blockers
    assert obstacle.step is ApplyStep.BUILD
    assert "MB are needed for building" in obstacle.reason


@pytest.mark.parametrize(("keep", "copies"), [(True, 1), (False, 0)])
def test_where_there_are_no_hard_links_a_copy_is_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, *, keep: bool, copies: int
) -> None:
    recommending(machine, monkeypatch, _ZSTD)
    machine.path("/proc/self/mountinfo").write_text("22 1 0:22 / / rw - vfat /dev/sda1 rw\n")
    request = ApplyRequest(setting=_ZSTD, keep=keep)
    (room,) = plan_apply(machine, request, observer=Unseen()).space
    size = machine.path(f"/boot/initramfs-{RELEASE}.img").stat().st_size
    building = size + size // 2 + 2 * 42_000
    assert room.needed_bytes == building + size // 2 + copies * size


def test_unknown_sizes_are_taken_to_be_larger_rather_than_smaller(machine: Machine) -> None:
    (room,) = planned(machine).space
    size = machine.path(f"/boot/initramfs-{RELEASE}.img").stat().st_size
    assert room.needed_bytes == 3 * size + 2 * 5 * size


def test_an_old_kernel_that_falls_back_is_in_the_way_where_it_is_rebuilt(
    machine: Machine,
) -> None:
    machine.path(f"/lib/modules/{OTHER}/config").write_text("CONFIG_RD_GZIP=y\n")
    plan = planned(machine)
    assert plan.blockers == ()
    assert any(OTHER in warning and "zstd" in warning for warning in plan.warnings)
    (obstacle,) = planned(machine, everything=True).blockers
    assert obstacle.step is ApplyStep.BUILD
    assert f"initramfs-{OTHER}.img would be made with gzip, not with zstd -19" in obstacle.reason


def test_a_compressor_that_is_missing_is_found_out_before_anything_is_planned(
    machine: Machine,
) -> None:
    machine.path("/usr/bin/zstd").unlink()
    with pytest.raises(UnsafeError, match="zstd"):
        planned(machine)


def test_where_the_generator_may_not_run_the_plan_says_so(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply_plan, "require_installed_system", require_installed_system)
    machine.path("/run").mkdir()
    machine.path("/run/.containerenv").touch()
    monkeypatch.setattr(type(machine), "is_root", True)
    (obstacle,) = planned(machine).blockers
    assert obstacle.step is ApplyStep.BUILD
    assert "a container" in obstacle.reason


@pytest.mark.parametrize("path", [CONFIG, f"/boot/initramfs-{RELEASE}.img"])
def test_what_has_two_names_is_in_the_way_from_the_start(machine: Machine, path: str) -> None:
    machine.path(f"{path}.other").hardlink_to(machine.path(path))
    (obstacle,) = planned(machine).blockers
    assert obstacle.step is ApplyStep.BUILD
    assert "2 names" in obstacle.reason
    assert obstacle.remedy


@pytest.mark.parametrize("path", [CONFIG, f"/boot/initramfs-{RELEASE}.img", "/boot"])
def test_what_is_immutable_is_in_the_way_from_the_start(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    place = machine.path(path)
    monkeypatch.setattr(replace, "forbidding_attribute", lambda p: "i" if p == place else "")
    (obstacle,) = planned(machine).blockers
    assert obstacle.step is ApplyStep.BUILD
    assert f"{place} is immutable" in obstacle.reason
    assert obstacle.remedy == f"chattr -i {place} ends that"


def test_a_line_that_cannot_be_rewritten_is_refused_by_name(machine: Machine) -> None:
    machine.path(CONFIG).write_text('[ -e /x ] && compress="gzip" || compress="xz"\n')
    with pytest.raises(RefusedRewriteError) as caught:
        planned(machine)
    assert caught.value.line_number == 1


def test_that_no_kernel_can_be_asked_is_in_the_way_from_the_start(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_engine(monkeypatch)
    (obstacle,) = planned(machine).blockers
    assert obstacle.step is ApplyStep.VERIFYING
    assert f"no virtual machine for {RELEASE}" in obstacle.reason
    assert obstacle.remedy == "install QEMU; --unverified goes without"


def test_a_machine_without_images_has_nothing_to_plan(machine: Machine) -> None:
    for path in machine.path("/boot").glob("initramfs*"):
        path.unlink()
    with pytest.raises(InitadvisorError, match="no image of dracut"):
        planned(machine)


class TestBootLoader:
    """What the boot loader has against an entry, and against booting one once."""

    @pytest.fixture
    def machine(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
        """A machine whose boot loader is asked."""
        found = make_machine(tmp_path, monkeypatch)
        recommending(found, monkeypatch, _ZSTD)
        monkeypatch.setattr(apply_plan, "require_boot_time_unit", lambda _host: None)
        return found

    @pytest.mark.parametrize(
        "error",
        [
            refused(RefusalKind.UNSUPPORTED_LOADER, "rEFInd started this", "use another"),
            NeedsRootError("rEFInd started this", hint="use another"),
        ],
    )
    def test_one_that_cannot_is_in_the_way_of_both(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch, error: InitadvisorError
    ) -> None:
        def fail(_host: object) -> object:
            raise error

        for module in (apply_loaded, apply_plan, commit):
            monkeypatch.setattr(module, "detect_boot_loader", fail)
        assert planned(machine).blockers == tuple(
            Blocker(step=step, reason="rEFInd started this", remedy="use another")
            for step in (ApplyStep.PROVING_BOOT, ApplyStep.PREVIOUS_ENTRY)
        )

    def test_each_refusal_is_one(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        kinds = (RefusalKind.NO_DEFAULT, RefusalKind.READ_ONLY)
        against = tuple(Refusal(kind=kind, reason=kind, remedy="") for kind in kinds)
        FakeLoader(image=f"/boot/initramfs-{RELEASE}.img", against=against).use(monkeypatch)
        found = planned(machine).blockers
        assert {one.step for one in found} == {ApplyStep.PROVING_BOOT}
        assert [one.reason for one in found] == ["no-default", "read-only"]

    def test_without_the_boot_time_unit_no_boot_can_prove_anything(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(apply_plan, "require_boot_time_unit", require_boot_time_unit)
        FakeLoader(image=f"/boot/initramfs-{RELEASE}.img").use(monkeypatch)
        (found,) = planned(machine).blockers
        assert found.step is ApplyStep.PROVING_BOOT
        assert "does not run systemd" in found.reason

    def test_an_image_that_is_not_loaded_by_default_is_not_replaced_in_vain(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As with Debian's systemd-boot, whose entries load copies of /boot/initrd.img-*."""
        copy = f"/efi/0123/{RELEASE}/initramfs-{RELEASE}.copy"
        machine.path(copy).parent.mkdir(parents=True)
        image = machine.path(f"/boot/initramfs-{RELEASE}.img")
        machine.path(copy).write_bytes(image.read_bytes())
        FakeLoader(image=copy).use(monkeypatch)
        (found,) = planned(machine).blockers
        assert found.step is ApplyStep.BUILD
        assert found.reason == (
            f"the next boot would not use {image}: the default entry loads {copy}"
        )
        assert "kernel-install(8)" in found.remedy

    def test_another_kernels_image_that_boots_by_default_takes_all_of_them(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        FakeLoader(image=f"/boot/initramfs-{OTHER}.img").use(monkeypatch)
        (found,) = planned(machine).blockers
        assert (found.step, found.remedy) == (ApplyStep.BUILD, "--all has that rebuilt, too")
        assert planned(machine, everything=True).blockers == ()

    def test_the_default_entry_may_name_a_link_to_the_image(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        link = machine.path("/boot/initramfs")
        link.symlink_to(f"initramfs-{RELEASE}.img")
        loader = FakeLoader(image="/boot/initramfs")
        loader.use(monkeypatch)
        (found,) = planned(machine).blockers  # for the entry's sake, which cannot be made
        assert found.step is ApplyStep.PREVIOUS_ENTRY
        link.unlink()
        link.symlink_to("gone")
        assert [one.step for one in planned(machine).blockers] == [ApplyStep.BUILD]

    def test_where_nothing_tells_what_boots_by_default_that_is_said_once(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_self: object, _host: object) -> object:
            raise refused(RefusalKind.NO_DEFAULT, "no default", "name one")

        monkeypatch.setattr(FakeLoader, "default_entry", fail)
        FakeLoader(image=f"/boot/initramfs-{RELEASE}.img").use(monkeypatch)
        (found,) = planned(machine).blockers
        assert (found.step, found.reason) == (ApplyStep.PREVIOUS_ENTRY, "no default")

    def test_a_key_that_is_bound_to_the_image_is_a_matter_of_its_own(
        self, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bound = refused(RefusalKind.BOUND_TO_TPM, "bound to PCR 9", "bind it to PCR 7")

        def fail(_host: object, _default: object) -> None:
            raise bound

        monkeypatch.setattr(apply_plan, "require_no_binding", fail)
        loader = FakeLoader(image=f"/boot/initramfs-{RELEASE}.img", against=(bound.refusal,))
        loader.use(monkeypatch)
        (found,) = planned(machine).blockers
        assert (found.step, found.reason) == (ApplyStep.UNLOCKING, "bound to PCR 9")
