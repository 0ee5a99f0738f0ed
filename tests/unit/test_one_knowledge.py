"""What ``recommend``, ``apply``, ``whatif`` and ``trial`` say of one machine is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.recommend import Request, recommend
from initadvisor.advise.whatif import Question, what_if
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.campaign.campaign import Campaign, CampaignState, TrialCandidate
from initadvisor.core.config import Objective
from initadvisor.core.settings import Setting
from initadvisor.lab.observing import Unseen
from initadvisor.trial.candidates import next_trial
from tests.fakes import work_clock
from tests.fixtures.campaigns import GROUND
from tests.fixtures.weighable_machine import INSTALLED, boot, with_image

if TYPE_CHECKING:
    from initadvisor.advise.recommendation import Recommendation
    from initadvisor.decide.whatif_values import WhatIf
    from initadvisor.host import Host
    from tests.fixtures.booted import Booted

OTHERS = tuple(map(Setting.parse, ("zstd -1", "gzip -9")))
ONLY = '[candidates]\nsettings = ["zstd -1", "gzip -9"]\n'
MACHINES = {
    "nothing is known": "",
    "read speed": "[machine]\nread_speed_mb_s = 40\n",
    "overlap": "[machine]\noverlap_ms = 2\n",
    "both": "[machine]\nread_speed_mb_s = 3000\noverlap_ms = 300\n",
    "builds count": '[recommend]\nobjective = "balanced"\n',
}
_CLOSE_MS = 1e-6
_SLOWNESS = 2000.0
"""The image is tiny: so slow a processor takes as long to unpack it as others do a large one."""


@pytest.fixture
def machine(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Booted:
    """A machine with systemd-boot and Debian's generator, which has installed an image."""
    work_clock.install(monkeypatch, slowness=_SLOWNESS)
    return with_image(machine, monkeypatch)


def asked(host: Host, request: Request) -> Recommendation:
    """Return the second answer: the first has times that were not rounded to be kept."""
    recommend(host, request, observer=Unseen())
    return recommend(host, request, observer=Unseen())


def savings(answer: Recommendation) -> dict[Setting, float]:
    return {row.setting: row.saving_ms.middle for row in answer.rows if row.unfit is None}


def differences(answer: WhatIf, setting: Setting = INSTALLED) -> dict[Setting, float]:
    """Return what each setting costs less than today's on the machine itself."""
    costs = {rank.setting: rank.cost_ms.mean for rank in answer.columns[0].ranks}
    return {other: costs[setting] - cost for other, cost in costs.items()}


def test_the_middle_of_a_difference_is_not_the_difference_of_middles(machine: Booted) -> None:
    """Else the next tests would pass whatever is said."""
    answer = what_if(machine.host(), Question(), observer=Unseen())
    assert max(abs(choice.off_ms) for choice in answer.choices) > 1


def assert_all_say_the_same(host: Host) -> None:
    answer = asked(host, Request())
    shown = savings(answer)
    assert {INSTALLED, *OTHERS} == set(shown)
    for question in (Question(), Question(cpu_scale=1.0)):
        told = differences(what_if(host, question, observer=Unseen()))
        assert told == pytest.approx(shown, abs=_CLOSE_MS)
    for row in answer.rows:
        if row.setting in OTHERS and row.unfit is None:
            plan = plan_apply(host, ApplyRequest(setting=row.setting), observer=Unseen())
            assert plan.saving_ms == row.saving_ms
    today, *others = (
        TrialCandidate(
            setting=str(row.setting),
            path=f"/cache/{number}.img",
            sha256=f"{number:064}",
            size_bytes=row.size_bytes,
            today=row.setting == INSTALLED,
        )
        for number, row in enumerate(sorted(answer.rows, key=lambda r: r.setting != INSTALLED))
    )
    campaign = Campaign(
        number=1,
        state=CampaignState.CHOOSING,
        most_boots=9,
        default_boot=GROUND,
        ready=(today, *others),
    )
    tried = next_trial(host, campaign, observer=Unseen())
    following = answer.plan.following if answer.plan else None
    assert (tried.candidate and Setting.parse(tried.candidate.setting)) == following


@pytest.mark.parametrize("known", MACHINES)
def test_all_commands_say_the_same_before_any_boot(machine: Booted, known: str) -> None:
    machine.write("/etc/initadvisor.toml", f"{ONLY}{MACHINES[known]}")
    assert_all_say_the_same(machine.host())


@pytest.mark.parametrize("known", ["nothing is known", "builds count"])
def test_all_commands_say_the_same_after_boots(machine: Booted, known: str) -> None:
    machine.write("/etc/initadvisor.toml", f"{ONLY}{MACHINES[known]}")
    machine.runner.answer("bootctl --print-esp-path", returncode=1)
    for number, read_ms in enumerate((900, 940), 1):
        boot(machine, number, unpack_ms=40 + number, read_ms=read_ms)
    assert_all_say_the_same(machine.host())


@pytest.mark.parametrize("objective", list(Objective))
def test_what_is_given_means_the_same_to_whatif_and_recommend(
    machine: Booted, objective: Objective
) -> None:
    machine.write("/etc/initadvisor.toml", ONLY)
    for speed, overlap in ((500.0, None), (None, 7.0), (20.0, 0.0)):
        host = machine.host()
        request = Request(read_speed_mb_s=speed, overlap_ms=overlap, objective=objective)
        question = Question(read_speed_mb_s=speed, overlap_ms=overlap, objective=objective)
        shown = savings(asked(host, request))
        told = differences(what_if(host, question, observer=Unseen()))
        assert told == pytest.approx(shown, abs=_CLOSE_MS)
