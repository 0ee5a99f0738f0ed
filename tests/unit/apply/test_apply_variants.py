"""Content is taken out of an image as it was built before, file by file, and boots once first."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.content_variants import BuiltVariant
from initadvisor.advise.loading import LoadingTime
from initadvisor.apply import apply as applying
from initadvisor.apply import plan as planning
from initadvisor.apply import variants
from initadvisor.apply.apply import ApplyChoices, apply
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.apply.plan_values import ApplyStep
from initadvisor.apply.proving import settle
from initadvisor.apply.rollback import plan_rollback, rollback
from initadvisor.bootloaders.entry import EntryKind
from initadvisor.campaign.record import failed_settings
from initadvisor.core import estimates
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnfitImageError, UnsafeError
from initadvisor.core.estimates import Estimate
from initadvisor.core.serialisation import from_plain, to_plain
from initadvisor.generators import VariantName
from initadvisor.image import difference
from initadvisor.image.difference import Aspect, ChangedEntry, ImageDifference
from initadvisor.lab.observing import Unseen
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.transaction.transaction import ProofStage, TransactionState
from initadvisor.trial.markers import note_rehearsed
from tests.fakes.observers import Watching
from tests.fixtures import provable_machine
from tests.fixtures.dracut_machine import (
    IMAGE,
    IMMEDIATE,
    generator,
    image,
    make_appliable,
    snapshot,
)
from tests.fixtures.provable_machine import OLD, OLD_TEXT, make_provable

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.apply.plan_values import ApplyPlan
    from tests.fakes.boot_loader import FakeLoader
    from tests.fakes.generators import Ordered
    from tests.fixtures.booted import Booted
    from tests.fixtures.hosts import Machine
    from tests.fixtures.provable_machine import Provable

DROP_IN = "/etc/dracut.conf.d/zz-content.conf"
LINE = 'hostonly="yes"'
WITHOUT_FIRMWARE = ImageDifference(removed=("firmware",))


def made(order: Ordered) -> None:
    """Build what was ordered: hostonly leaves the firmware out."""
    small = LINE in "".join(order.config.values())
    extra = "" if small else "firmware"
    order.image.write_bytes(image(Codec.GZIP, parameters="--kver", extra=extra))


@dataclasses.dataclass(slots=True)
class Known:
    """A machine of which a variant was built before, and its boot loader."""

    machine: Machine
    loader: FakeLoader
    built: BuiltVariant

    def plan(self) -> ApplyPlan:
        """Plan to apply the variant."""
        request = ApplyRequest(variant=VariantName.THIS_MACHINE)
        return plan_apply(self.machine, request, observer=Unseen())

    def apply(self, choices: ApplyChoices = IMMEDIATE) -> applying.Applied:
        """Apply it."""
        return apply(self.machine, self.plan(), choices, observer=Watching())

    def refused(self, words: str, choices: ApplyChoices = IMMEDIATE) -> InitadvisorError:
        """Apply it, which is refused, and nothing has changed."""
        before = snapshot(self.machine)
        with pytest.raises(InitadvisorError, match=words) as caught:
            self.apply(choices)
        assert snapshot(self.machine) == before
        return caught.value


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Known:
    """It, with an image that has firmware."""
    machine, loader = make_appliable(tmp_path, monkeypatch)
    machine.path(IMAGE).write_bytes(image(Codec.GZIP, parameters="--kver", extra="firmware"))
    generator(machine).make = made
    built = BuiltVariant(
        version="",
        path=str(machine.path(DROP_IN)),
        line=LINE,
        unused=(),
        size_bytes=1000,
        saving_ms=Estimate(mean=7, low=5, high=9, source="a test"),
        differs=WITHOUT_FIRMWARE,
    )
    found = Known(machine, loader, built)
    monkeypatch.setattr(variants, "built_variant", lambda *_args: found.built)
    return found


def test_the_plan_is_for_the_default_image_alone_and_says_what_goes(known: Known) -> None:
    plan = known.plan()
    assert plan.blockers == ()
    assert [one.image.path for one in plan.rebuilt] == [known.machine.path(IMAGE)]
    assert len(plan.images) == 3
    assert (plan.setting, plan.change) == (plan.today.setting, "this-machine")
    assert plan.rebuilt[0].expected_bytes == 1000
    assert plan.saving_ms == known.built.saving_ms
    assert plan.variant is not None
    assert plan.variant.expected == WITHOUT_FIRMWARE
    [edit] = plan.edits
    header, line = edit.after.splitlines()
    assert header.startswith("# Written by")
    assert (edit.path, edit.before, line) == (str(known.machine.path(DROP_IN)), None, LINE)
    assert not any("loading" in line for line in plan.warnings)
    told = "\n".join(plan.warnings)
    assert "it may not find its root file system: for that the previous image has an entry" in told
    assert "stays as it is until it is built anew" in told


def test_what_is_not_measured_of_loading_modules_is_said(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = LoadingTime(variant=VariantName.MODULES_DECOMPRESSED, missing="no boot counts yet")
    monkeypatch.setattr(planning, "loading_time", lambda _host, _name: found)
    assert found.words in known.plan().warnings
    measured = dataclasses.replace(found, saved_ms=known.built.saving_ms)
    monkeypatch.setattr(planning, "loading_time", lambda _host, _name: measured)
    assert not any("loading" in line for line in known.plan().warnings)


def test_content_and_configuration_change_together_and_come_back(known: Known) -> None:
    before = snapshot(known.machine)
    found = known.apply()
    assert found.transaction.state is TransactionState.COMMITTED
    assert found.transaction.setting
    assert not found.transaction.setting.with_updates
    assert known.machine.path(DROP_IN).read_text().endswith(f"\n{LINE}\n")
    installed = len(known.machine.path(IMAGE).read_bytes())
    assert installed < len(before[str(known.machine.path(IMAGE))])
    entry = known.loader.entries[EntryKind.PREVIOUS]
    assert entry.request.label == "gzip, all content"
    with pytest.raises(UnsafeError, match="it is configured like that already"):
        known.plan()
    back = plan_rollback(known.machine)
    assert back is not None
    rollback(known.machine, back, observer=Watching())
    assert snapshot(known.machine) == before
    assert known.loader.entries == {}


def test_it_boots_once_first_although_the_setting_has_booted_here(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applying, "proven_by", lambda *_args, **_named: object())
    before = snapshot(known.machine)
    found = known.apply(ApplyChoices())
    assert found.transaction.state is TransactionState.PROVING
    assert known.loader.is_armed
    assert {p: t for p, t in snapshot(known.machine).items() if p in before} == before


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (ImageDifference(), "it lacks firmware$"),
        (ImageDifference(removed=("firmware",), added=("etc/x",)), "it has not etc/x$"),
        (
            ImageDifference(
                removed=("firmware",),
                added=("etc/x", "etc/y"),
                changed=(ChangedEntry(path="init", aspects=(Aspect.SIZE,)),),
            ),
            "it has not etc/x, etc/y$",
        ),
    ],
)
def test_what_lacks_another_file_than_expected_is_refused(
    known: Known, expected: ImageDifference, words: str
) -> None:
    known.built = dataclasses.replace(known.built, differs=expected)
    error = known.refused(f"this-machine is not what was built of it before: {words}")
    assert isinstance(error, UnfitImageError)
    assert error.hint is not None
    assert error.hint.startswith("sudo initadvisor contents --variants")


@pytest.mark.parametrize(
    ("small", "words"),
    [
        ("etc", "it also has etc$"),
        ("firmware", "nothing is missing$"),
        ("init", "another is init$"),
    ],
)
def test_what_comes_changes_or_stays_the_same_is_refused(
    known: Known, small: str, words: str
) -> None:
    def otherwise(order: Ordered) -> None:
        is_small = LINE in "".join(order.config.values())
        order.image.write_bytes(image(Codec.GZIP, extra=small if is_small else "firmware"))

    generator(known.machine).make = otherwise
    known.refused(words)


def test_what_stays_after_all_is_no_harm(known: Known) -> None:
    removed = ("bin/sh", "firmware")
    known.built = dataclasses.replace(known.built, differs=ImageDifference(removed=removed))
    found = known.apply()
    assert found.transaction.state is TransactionState.COMMITTED


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("line", 'hostonly="no"'),
        ("path", "/etc/dracut.conf"),
    ],
)
def test_what_was_built_of_another_line_is_nothing_to_apply(
    known: Known, field: str, value: str
) -> None:
    plain = to_plain(known.built) | {field: value}
    known.built = from_plain(BuiltVariant, plain, names=(estimates, difference))
    known.refused(f"was built with {known.built.line}")
    assert generator(known.machine).orders == []


def test_what_was_never_built_is_refused_with_the_command(
    known: Known, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "built_variant", lambda *_args: None)
    error = known.refused("this-machine was not built for it")
    assert error.with_hint.endswith("(sudo initadvisor contents --variants builds what there is)")


@pytest.mark.parametrize("choice", ["without_backup", "without_entry"])
def test_without_an_entry_for_the_previous_image_nothing_goes(known: Known, choice: str) -> None:
    known.refused("would be in no boot menu", dataclasses.replace(IMMEDIATE, **{choice: True}))
    known.loader.may_have_entries = False
    [blocker] = known.plan().blockers
    assert blocker.step is ApplyStep.BUILD
    known.refused("does not load")
    assert generator(known.machine).orders == []


class TestProof:
    """What became of the boot that a variant waits for."""

    @pytest.fixture
    def waiting(self, machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Provable:
        """A machine that has booted with less content once."""
        change = dataclasses.replace(
            provable_machine.CHANGE, after=provable_machine.CHANGE.before, variant="this-machine"
        )
        monkeypatch.setattr(provable_machine, "CHANGE", change)
        provable = make_provable(machine, monkeypatch)
        note_rehearsed(provable.host, provable.loader.NAME)
        provable.arm()
        provable.reboot()
        provable.measure()
        return provable

    def test_it_is_not_installed_where_what_has_all_content_gets_no_entry(
        self, waiting: Provable
    ) -> None:
        waiting.loader.may_have_entries = False
        with pytest.raises(UnsafeError, match="does not load"):
            settle(waiting.host)
        assert waiting.latest().state is TransactionState.UNDONE
        assert waiting.installed() == (OLD, OLD_TEXT)

    def test_its_failure_says_nothing_of_the_setting(self, waiting: Provable) -> None:
        record = waiting.latest()
        assert record.armed_boot is not None
        assert record.armed_boot.stage is ProofStage.PROOF
        failed = dataclasses.replace(
            record, state=TransactionState.UNDONE, outcome=TrialOutcome.FAILED, reason="panicked"
        )
        assert failed_settings([], [failed]) == {}
        assert failed.setting is not None
        as_setting = dataclasses.replace(failed.setting, variant="")
        failed = dataclasses.replace(failed, setting=as_setting)
        assert failed_settings([], [failed]) == {"zstd -19": "panicked"}
