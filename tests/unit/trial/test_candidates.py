"""The candidates of a campaign, really built and weighed; only the virtual machine is made up."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.recommend import recommend
from initadvisor.campaign.campaign import Campaign, CampaignEventKind, CampaignState, TrialCandidate
from initadvisor.candidates.cache import Cache
from initadvisor.core.errors import LostVMError
from initadvisor.lab.observing import Unseen
from initadvisor.records.trial_outcome import TrialOutcome
from initadvisor.trial import candidates
from initadvisor.trial.candidates import next_trial, prepared
from initadvisor.vm.engines import NoEngineError
from tests.fixtures.booted import RELEASE, Booted
from tests.fixtures.campaigns import GROUND, arming
from tests.fixtures.weighable_machine import boot, with_image

if TYPE_CHECKING:
    from initadvisor.campaign.campaign import CampaignEvent
    from initadvisor.host import Host

NAMED = ("lz4 -9", "gzip -9")


@pytest.fixture
def weighable(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Booted:
    """A machine whose image can be recompressed and weighed; today's setting is zstd -3."""
    return with_image(machine, monkeypatch)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, str]]:
    """Which images kernels were asked about, and which kernels; they unpack all."""
    found: list[tuple[Path, str]] = []

    def verify(_host: Host, path: Path, *, release: str) -> object:
        found.append((path, release))
        return SimpleNamespace(problems=())

    monkeypatch.setattr(candidates, "verify", verify)
    return found


def begun(*only: str) -> Campaign:
    return Campaign(
        number=1, state=CampaignState.PREPARING, only=only, most_boots=9, default_boot=GROUND
    )


def events(machine: Booted, campaign: Campaign) -> list[CampaignEvent]:
    return list(prepared(machine.host(), campaign, observer=Unseen()))


def ready(machine: Booted, *only: str) -> tuple[TrialCandidate, ...]:
    [found] = events(machine, begun(*only))
    assert found.kind is CampaignEventKind.PREPARED
    return found.ready


@pytest.fixture(autouse=True)
def _engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtual machine can be had."""
    monkeypatch.setattr(candidates, "require_verifying", lambda _host, _wanted: None)


def test_what_is_named_is_built_and_unpacked_by_the_kernel(
    weighable: Booted, asked: list[tuple[Path, str]]
) -> None:
    today, *others = ready(weighable, *NAMED)
    image = weighable.root / f"boot/initrd.img-{RELEASE}"
    assert (today.today, today.path) == (True, f"/boot/initrd.img-{RELEASE}")
    assert (today.setting, today.size_bytes) == ("zstd -3", image.stat().st_size)
    assert today.sha256 == hashlib.sha256(image.read_bytes()).hexdigest()
    assert {found.setting for found in others} == set(NAMED)
    for found in others:
        content = Path(found.path).read_bytes()
        assert (found.size_bytes, found.sha256) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
        assert found.verified == f"Linux {RELEASE}"
    assert {str(path) for path, _ in asked} == {found.path for found in others}
    assert {release for _, release in asked} == {RELEASE}


def test_without_names_it_is_what_may_be_the_best(
    weighable: Booted, asked: list[tuple[Path, str]]
) -> None:
    today, *others = ready(weighable)
    assert today.today
    assert others
    assert len(asked) == len(others)
    assert "bzip2" not in {found.setting for found in others}


def test_what_a_kernel_does_not_unpack_is_refused(
    weighable: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verify(_host: Host, path: Path, *, release: str) -> object:
        is_gzip = path.read_bytes().startswith(b"\x1f\x8b")
        return SimpleNamespace(problems=(f"Linux {release} does not",) if is_gzip else ())

    monkeypatch.setattr(candidates, "verify", verify)
    refused, rest = events(weighable, begun(*NAMED))
    assert refused.refused is not None
    assert refused.refused.setting == "gzip -9"
    assert refused.refused.reason == f"Linux {RELEASE} does not"
    assert [found.setting for found in rest.ready] == ["zstd -3", "lz4 -9"]


def test_what_has_no_room_is_refused_before_a_kernel_is_asked(
    weighable: Booted, asked: list[tuple[Path, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_room(*arguments: object, **named: object) -> object:
        answer = recommend(*arguments, **named)  # type: ignore[arg-type]
        return replace(answer, rows=tuple(replace(row, fits=False) for row in answer.rows))

    monkeypatch.setattr(candidates, "recommend", without_room)
    *refused, rest = events(weighable, begun(*NAMED))
    assert {found.refused.reason for found in refused if found.refused} == {
        "the boot partition has no room for it"
    }
    assert ([found.today for found in rest.ready], asked) == ([True], [])


def test_a_lost_virtual_machine_proves_nothing(
    weighable: Booted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_arguments: object, **_named: object) -> object:
        msg = "the virtual machine hung"
        raise LostVMError(msg)

    monkeypatch.setattr(candidates, "verify", lose)
    *refused, rest = events(weighable, begun(*NAMED))
    assert {found.refused.setting for found in refused if found.refused} == set(NAMED)
    assert [found.today for found in rest.ready] == [True]


@pytest.mark.parametrize("when", ["verify", "require_verifying"])
def test_without_a_virtual_machine_nothing_may_boot(
    weighable: Booted, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It is looked for before anything is built."""

    def fail(*_arguments: object, **_named: object) -> object:
        msg = "no virtual machine"
        raise NoEngineError(msg)

    monkeypatch.setattr(candidates, when, fail)
    [blocked] = events(weighable, begun(*NAMED))
    assert blocked.kind is CampaignEventKind.BLOCKED
    assert "no virtual machine" in blocked.reason
    built = Cache(weighable.host()).all()
    assert bool(tuple(built)) is (when == "verify")


def test_what_is_named_boots_once_then_what_teaches_most(
    weighable: Booted, asked: list[tuple[Path, str]]
) -> None:
    del asked
    candidates = ready(weighable, *NAMED)
    campaign = replace(begun(*NAMED), state=CampaignState.CHOOSING, ready=candidates)
    host = weighable.host()
    for setting in NAMED:
        found = next_trial(host, campaign, observer=Unseen())
        assert found.candidate is not None
        assert (found.candidate.setting, found.reason) == (
            setting,
            "it was named, and has not booted yet",
        )
        done = replace(arming(found.candidate), outcome=TrialOutcome.PASSED)
        campaign = replace(campaign, trial_boots=(*campaign.trial_boots, done))
    found = next_trial(host, campaign, observer=Unseen())
    assert found.candidate is not None
    assert found.candidate.today
    assert found.reason == "no boot of today's image is recorded yet"


def test_when_it_is_settled_one_boot_alone_does_not_prove_it(
    weighable: Booted, asked: list[tuple[Path, str]]
) -> None:
    del asked
    campaign = replace(begun(), state=CampaignState.CHOOSING, ready=ready(weighable, *NAMED))
    boot(weighable, 1, unpack_ms=50)
    found = next_trial(weighable.host(), campaign, observer=Unseen())
    assert found.candidate is not None
    assert found.candidate.today
    assert found.reason == "it is what is advised; one boot alone may have been disturbed"
    boot(weighable, 2, unpack_ms=50.5, read_ms=905)
    found = next_trial(weighable.host(), campaign, observer=Unseen())
    assert (found.candidate, found.reason) == (None, "it is settled: zstd -3")
