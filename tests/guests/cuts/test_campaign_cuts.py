"""Power cuts while a Debian guest goes through a campaign of trials."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.vm.campaign_cuts import cuts
from tests.vm.campaign_moments import Stage
from tests.vm.campaign_standing import TRIAL, nothing_is_left, standing
from tests.vm.campaign_states import replayed
from tests.vm.campaigning import recorded_campaign
from tests.vm.crash import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.vm.campaign_cuts import Cut
    from tests.vm.campaigning import Campaign

pytestmark = pytest.mark.vm
log = logging.getLogger(__name__)

_CUTS = 22
_EVERY = 3
SEED = 1


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Return a directory that pytest does not keep: recorded disks are large."""
    with tempfile.TemporaryDirectory(prefix="campaign-cuts-") as directory:
        yield Path(directory)


def test_a_guest_boots_the_default_or_a_verified_image_whenever_its_power_was_cut(
    scratch: Path,
) -> None:
    """The campaign is recorded once; what each cut leaves is looked at, one in three booted."""
    campaign = recorded_campaign(scratch / "campaign")
    _assert_the_campaign_took_its_course(campaign)
    _assert_no_state_is_torn(campaign)

    made = list(cuts(campaign, _CUTS, seed=SEED, every=_EVERY, scratch=scratch))

    for cut in made:
        log.info("%s", cut)
    assert len(made) == _CUTS
    trouble = [f"{cut.stage} in boot {cut.boot}: {said}" for cut in made for said in cut.trouble]
    assert not trouble, "\n".join(trouble)
    _assert_all_of_it_was_cut(campaign, made)


def _assert_the_campaign_took_its_course(campaign: Campaign) -> None:
    trial = campaign.legs[-1]
    assert [leg.entry == TRIAL for leg in campaign.legs] == [False, True, True]
    assert len(campaign.verified) == 3
    assert [leg.record["state"] for leg in campaign.legs] == ["armed", "armed", "stopped"]
    armed = [(found["setting"], found["outcome"]) for found in trial.record["trial_boots"]]
    assert armed == [
        ("zstd -1", "passed"),
        ("lz4 -1", "passed"),
        ("gzip -1", "not-tried"),
        ("gzip -1", "not-tried"),
    ]
    assert not list(nothing_is_left(standing(trial.guest), campaign.before))


def _assert_no_state_is_torn(campaign: Campaign) -> None:
    outcomes = [replayed(campaign, leg) for leg in campaign.legs]
    for outcome in outcomes:
        log.info("%s", outcome)
        assert not outcome.torn
    # How many reorderings there are depends on what the guest writes back when by itself.
    for kind, least in ((Kind.PREFIX, 100), (Kind.REORDERING, 40)):
        assert sum(outcome.states[kind] for outcome in outcomes) > least


def _assert_all_of_it_was_cut(campaign: Campaign, made: list[Cut]) -> None:
    booted = [cut for cut in made if cut.recovery]
    assert len(booted) == 8
    assert {cut.stage for cut in booted} == set(Stage)
    default = campaign.legs[0].entry
    assert {cut.recovery.entry for cut in booted if cut.recovery} == {default, TRIAL}
    assert any(cut.lost for cut in made)
    states = {cut.recovery.state for cut in booted if cut.recovery}
    assert "armed" in states, "no campaign has gone on"
