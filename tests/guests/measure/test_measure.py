"""Reboots of a guest in which initadvisor measures every boot, beside its serial console."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.boots.announce import MESSAGE_ID
from tests.vm.guest import Recipe, guest
from tests.vm.journal import journal
from tests.vm.measured_boots import Outcome, measured

if TYPE_CHECKING:
    from tests.vm.journal import JournalBoot

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("measure")]

REBOOTS = int(os.environ.get("INITADVISOR_REBOOTS", "4"))
MOST_EXPOSURE = 2.0


@pytest.fixture(scope="module")
def guest_and_outcome(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Outcome, list[JournalBoot]]:
    """Reboot once for all tests."""
    copy = guest(Recipe()).copied_to(tmp_path_factory.mktemp("measure") / "guest")
    outcome = measured(copy, REBOOTS)
    return outcome, journal(copy.disk)


@pytest.fixture
def outcome(guest_and_outcome: tuple[Outcome, list[JournalBoot]]) -> Outcome:
    return guest_and_outcome[0]


@pytest.fixture
def journalled(guest_and_outcome: tuple[Outcome, list[JournalBoot]]) -> list[JournalBoot]:
    return guest_and_outcome[1]


@pytest.fixture
def records(outcome: Outcome) -> dict[str, dict[str, Any]]:
    """Return what the store has of the boots that were measured, by boot ID."""
    boots = outcome.history["boots"]
    return {record["boot_id"]: record for record in boots if record["source"] == "unit"}


def test_every_boot_is_recorded_once(outcome: Outcome) -> None:
    recorded = Counter(record["boot_id"] for record in outcome.history["boots"])
    assert recorded == Counter(
        [outcome.before.boot_id, *(reboot.kernel.boot_id for reboot in outcome.reboots)]
    )


def test_a_backfill_adds_the_boot_before_the_installation_and_no_other(outcome: Outcome) -> None:
    sources = {record["boot_id"]: record["source"] for record in outcome.history["boots"]}
    assert sources.pop(outcome.before.boot_id) == "backfill"
    assert set(sources.values()) == {"unit"}
    assert outcome.backfill["new"] == [outcome.before.boot_id]
    assert outcome.backfill_again["new"] == []


@pytest.mark.shows("measuring", "systemd-boot")
def test_what_is_recorded_is_what_the_console_said(
    outcome: Outcome, records: dict[str, dict[str, Any]]
) -> None:
    for kernel in (reboot.kernel for reboot in outcome.reboots):
        figures = records[str(kernel.boot_id)]["figures"]
        assert figures["unpack_us"] == kernel.unpack_us
        assert figures["begin_to_init_us"] == kernel.begin_to_init_us
        assert figures["kernel_counts"]


def test_every_boot_is_attributed_to_the_image_it_used(
    outcome: Outcome, records: dict[str, dict[str, Any]]
) -> None:
    for reboot in outcome.reboots:
        record = records[str(reboot.kernel.boot_id)]
        (image,) = record["attribution"]["images"]
        assert record["figures"]["certainty"] == "certain"
        assert record["figures"]["loaded_bytes"] == reboot.used.size_bytes
        assert image["path"] == reboot.used.path
        assert image["size_bytes"] == reboot.used.size_bytes
        if reboot.used.setting is not None:
            assert record["figures"]["setting"] == reboot.used.setting


def test_the_boots_are_of_one_class(outcome: Outcome) -> None:
    """Nothing differs but the image, and a journal knows it as well as a running system."""
    assert len({record["figures"]["class_key"] for record in outcome.history["boots"]}) == 1


def test_the_loader_s_time_is_recorded(
    outcome: Outcome, records: dict[str, dict[str, Any]]
) -> None:
    for reboot in outcome.reboots:
        record = records[str(reboot.kernel.boot_id)]
        assert record["start"]["method"] == "systemd-boot"
        assert record["figures"]["read_us"] > 0
        assert record["figures"]["loader_counts"]


def test_the_unit_succeeds_in_every_boot(outcome: Outcome) -> None:
    for reboot in outcome.reboots:
        assert reboot.service["Result"] == "success"
        assert reboot.service["ExecMainStatus"] == "0"


def test_no_boot_waits_for_the_unit(outcome: Outcome) -> None:
    for reboot in outcome.reboots:
        reached_us = int(reboot.target["ActiveEnterTimestampMonotonic"])
        started_us = int(reboot.service["ExecMainStartTimestampMonotonic"])
        assert 0 < reached_us < started_us
        assert reboot.chain.startswith("The time when unit became active")
        assert "multi-user.target @" in reboot.chain
        assert "initadvisor" not in reboot.chain


def test_the_journal_is_told_once_of_each_boot(
    outcome: Outcome, journalled: list[JournalBoot]
) -> None:
    told = [
        record for boot in journalled for record in boot.records
        if record.get("MESSAGE_ID") == MESSAGE_ID
    ]  # fmt: skip
    by_unit = {record["INITADVISOR_BOOT_ID"]: record for record in told}
    assert len(by_unit) == len(told)
    assert by_unit.keys() == {record["boot_id"] for record in outcome.history["boots"]}
    for kernel in (reboot.kernel for reboot in outcome.reboots):
        record = by_unit[str(kernel.boot_id)]
        assert record["_BOOT_ID"] == kernel.boot_id
        assert record["INITADVISOR_UNPACK_US"] == str(kernel.unpack_us)
        assert record["_SYSTEMD_UNIT"] == "initadvisor-measure.service"


def test_the_guest_s_systemd_finds_the_unit_hardly_exposed(outcome: Outcome) -> None:
    said = re.search(r"Overall exposure level for \S+: (\d+\.\d)", outcome.security)
    assert said, outcome.security
    assert float(said[1]) <= MOST_EXPOSURE
