"""The story on a machine that boots: a kernel is upgraded, what may be better is built and tried,
and a setting is applied, proven by a boot, and taken back.

Everything that ``make guests`` has of it, and more, is in tests/guests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.vm.boot import End
from tests.vm.entries import default_entry
from tests.vm.story_boots import APPLIED, GOOD, PANICS, PLAN, Story, lived
from tests.vm.witness import freed_kib, kib_in_pages, witnessed

if TYPE_CHECKING:
    from typing import Any

    from tests.vm.loop_boots import Told, Tried

pytestmark = [pytest.mark.vm, pytest.mark.xdist_group("story")]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """Live it once for all tests."""
    return lived(tmp_path_factory.mktemp("story"))


@pytest.fixture
def rehearsal(story: Story) -> Tried:
    return story.campaigned.tried[0]


@pytest.fixture
def good(story: Story) -> Tried:
    return story.campaigned.tried[1]


@pytest.fixture
def panicked(story: Story) -> Tried:
    return story.campaigned.tried[2]


def test_a_new_kernel_has_the_daemon_build_what_may_be_better(story: Story) -> None:
    look, release = story.before.look, story.campaigned.guest.release
    said = look["said"]["initadvisord"]
    assert {f"noted: {what}@{release}" for what in ("kernel-added", "image-rebuilt")} <= {*said}
    assert {*PLAN.settings} <= look["candidates"].keys()
    assert look["failed"] == []
    assert said[-1] == "nothing is left to do"


def test_the_campaign_begins_with_a_boot_of_today_s_image(story: Story, rehearsal: Tried) -> None:
    assert story.before.armed
    assert (rehearsal.arming["armed_boot"]["stage"], rehearsal.arming["sha256"]) == (
        "rehearsal",
        story.before.look["image"],
    )
    assert _trial(rehearsal.after) == rehearsal.arming["armed_boot"]["trial"]
    assert _fates(rehearsal.after)[0] == (rehearsal.arming["setting"], "passed")


def test_a_candidate_is_booted_once_and_judged(good: Tried) -> None:
    assert good.arming["setting"] == GOOD
    assert _trial(good.after) == good.arming["armed_boot"]["trial"]
    assert freed_kib(good.after.boot) == kib_in_pages(good.after.look["candidates"][GOOD])
    assert (GOOD, "passed") in _fates(good.after)


def test_a_candidate_that_panics_costs_one_boot(story: Story, panicked: Tried) -> None:
    assert panicked.arming["setting"] == PANICS
    assert panicked.boot.end is End.PANIC
    assert panicked.boot.find("Rebooting in 30 seconds")
    assert panicked.boot.find(rf"initadvisor\.trial={panicked.arming['armed_boot']['trial']}\b")
    assert panicked.after.boot.entry == default_entry(story.campaigned.guest)
    assert _trial(panicked.after) is None
    assert (PANICS, "unexplained") in _fates(panicked.after)


def test_every_boot_that_came_up_is_recorded_with_the_image_it_used(story: Story) -> None:
    records = {record["boot_id"]: record for record in story.campaigned.history["boots"]}
    for tried in story.campaigned.tried:
        record = records.pop(str(witnessed(tried.after.boot)[-1].boot_id))
        (image,) = record["attribution"]["images"]
        failed = tried.boot is not tried.after.boot
        expected = story.before.look["image"] if failed else tried.arming["sha256"]
        assert image["sha256"] == expected
        assert record["figures"]["certainty"] == "certain"
    assert not records


def test_the_campaign_ends_and_what_nobody_has_tried_waits_for_a_boot(story: Story) -> None:
    assert story.applied.campaign["state"] == "done"
    before, then = story.before.look, story.applied.look
    transaction = _transaction(then)
    assert (transaction["state"], transaction["armed_boot"]["stage"]) == ("proving", "proof")
    assert transaction["setting"]["after"] == APPLIED
    for what in "image", "configuration":
        assert then[what] == before[what]


def test_its_boot_installs_it(story: Story) -> None:
    proof = _transaction(story.applied.look)["armed_boot"]
    look = story.proven.look
    assert _trial(story.proven) == proof["trial"]
    transaction = _transaction(look)
    assert transaction["state"] == "committed"
    assert look["image"] == proof["sha256"]
    assert "COMPRESS=gzip\nCOMPRESSLEVEL=1\n" in look["configuration"]
    assert any(
        " is done; the proving boot: " in said for said in look["said"]["initadvisor-settle"]
    )
    assert look["failed"] == []


def test_going_back_leaves_all_as_it_was(story: Story) -> None:
    before, back = story.before.look, story.back.look
    for what in "image", "image_bytes", "configuration":
        assert back[what] == before[what] != story.proven.look[what]
    assert story.esp[0] == story.esp[1]
    assert "/loader/loader.conf" in story.esp[0]
    assert back["slot"] == []
    assert not {"campaign-active", "trial-entry", "previous-entry"} & {*back["notes"]}
    assert back["failed"] == []


def _transaction(look: dict[str, Any]) -> dict[str, Any]:
    """Return the first transaction, which applied the setting."""
    found: dict[str, Any] = look["transactions"][0]
    return found


def _fates(told: Told) -> list[tuple[str, str]]:
    return [(arming["setting"], arming["outcome"]) for arming in told.campaign["trial_boots"]]


def _trial(told: Told) -> str | None:
    """Return the trial that a boot was of, by its command line."""
    words = told.look["command_line"]
    prefix = "initadvisor.trial="
    return next((word.removeprefix(prefix) for word in words if word.startswith(prefix)), None)
