"""What building costs counts where it is asked for; what cannot be built is never advised."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from initadvisor.advise.decision_input import decision_result
from initadvisor.advise.ranking import RankedCandidates
from initadvisor.core.config import Config, Objective
from initadvisor.core.settings import Setting
from initadvisor.decide.cost import Outcome
from initadvisor.decide.decision import savings
from initadvisor.decide.upgrades import PaceSource, UpgradePace
from initadvisor.host.hardware import Memory
from tests.fixtures.decision_cases import case, image, lab_of, weigh

if TYPE_CHECKING:
    from initadvisor.advise.ranking import RankedCandidates
    from initadvisor.candidates.search_space import Candidate

BALANCED = Config(objective=Objective.BALANCED)
SMALL = Memory(total_bytes=460_000_000, available_bytes=200_000_000)


def extra_ms(*, config: Config, boots: float | None) -> list[float]:
    pace = UpgradePace(boots=boots, source=PaceSource.COUNTED, recorded_boots=9) if boots else None
    field = [image("zstd", cpu_s=1), image("lz4 -9", cpu_s=70)]
    return [fact.extra_ms for fact in decision_result(case(*field, config=config, pace=pace)).facts]


@pytest.mark.parametrize(("boots", "divided_by"), [(None, 14), (35, 35), (1.5, 1.5)])
def test_a_build_is_spread_over_the_boots_that_were_counted(
    boots: float | None, divided_by: float
) -> None:
    assert extra_ms(config=BALANCED, boots=boots) == pytest.approx(
        [1000 / divided_by, 70_000 / divided_by]
    )


def test_what_the_user_says_goes_before_what_was_counted() -> None:
    config = Config(objective=Objective.BALANCED, boots_per_upgrade=7)
    assert extra_ms(config=config, boots=35) == pytest.approx([1000 / 7, 10_000])


@pytest.mark.parametrize("mates", [("zstd -3",), ("zstd -19",), ("zstd -3", "zstd -19")])
def test_what_is_weighed_beside_does_not_tell_the_level_of_an_image_that_was_found(
    mates: tuple[str, ...],
) -> None:
    cpu_s = {"zstd -3": 0.5, "zstd -19": 58.0}
    asked = case(
        "zstd",
        image("cat", cpu_s=0.1),
        *(level(mate, cpu_s=cpu_s[mate]) for mate in mates),
        given_mb_s=700,
        config=BALANCED,
        lab=lab_of("zstd", "cat", "zstd -19"),
    )
    judged = decision_result(asked)
    assert asked.todays_build
    assert asked.todays_build.least_s == pytest.approx(0.3)
    assert asked.todays_build.most_s == pytest.approx(72)
    assert judged.decision.outcome is Outcome.UNDECIDED
    assert judged.hinges_on_build
    shown = weigh(asked)
    assert (shown.plan, shown.deciding, shown.hinges_on_build) == (None, None, True)
    # The interval of each row reaches as far as what the build may be.
    less_ms, more_ms = asked.todays_build_off_ms
    assert less_ms + more_ms == pytest.approx(71.7 * 1000 / asked.pace.boots)
    drawn = savings(judged.posterior_costs.draws, 0)
    for row in shown.rows:
        column = judged.column(row.setting)
        if column:
            low_ms, middle_ms, high_ms = np.quantile(drawn[:, column], (0.025, 0.5, 0.975))
            assert row.saving_ms.middle == pytest.approx(middle_ms)
            assert row.saving_ms.low == pytest.approx(low_ms - less_ms)
            assert row.saving_ms.high == pytest.approx(high_ms + more_ms)
    assert judged.decision.leader_saving_ms == next(
        row.saving_ms for row in shown.rows if row.setting == judged.decision.leader
    )


def level(setting: str, *, cpu_s: float) -> Candidate:
    """Return an image like that of zstd at another level."""
    return replace(
        image("zstd -19", cpu_s=cpu_s),
        setting=Setting.parse(setting),
        digest="zstd -19" if setting.endswith("19") else "zstd",
    )


def alone(*, mb_s: float) -> RankedCandidates:
    """Weigh an image that was found against what has another codec."""
    return weigh(case("zstd", image("cat", cpu_s=0.1), given_mb_s=mb_s, config=BALANCED))


def test_where_nothing_tells_of_a_build_a_keep_is_not_certain() -> None:
    plain = weigh(case("zstd", image("cat", cpu_s=0.1), given_mb_s=20))
    assert plain.decision.outcome is Outcome.KEEP
    found = alone(mb_s=20)
    assert found.decision.outcome is Outcome.UNDECIDED
    assert found.hinges_on_build


def test_what_pays_even_if_todays_build_took_nothing_is_certain() -> None:
    found = weigh(case("xz", image("cat", cpu_s=0.1), given_mb_s=1500, config=BALANCED))
    assert found.decision.outcome is Outcome.SWITCH
    assert not found.hinges_on_build


def test_other_objectives_do_not_count_builds() -> None:
    assert extra_ms(config=Config(), boots=35) == [0, 0]


def test_how_often_kernels_are_upgraded_changes_the_answer() -> None:
    """A build of 30 s saves about 120 ms each boot: not in 14 boots, but in 2,000."""

    def asked(boots: float) -> RankedCandidates:
        return weigh(
            case(
                image("zstd", cpu_s=1),
                image("lz4 -9", cpu_s=30),
                given_mb_s=2000,
                config=BALANCED,
                pace=UpgradePace(boots=boots, source=PaceSource.COUNTED, recorded_boots=9),
                lab=lab_of("zstd", "lz4 -9"),
            )
        )

    assert asked(14).decision.outcome is Outcome.KEEP
    assert str(asked(14).decision.setting) == "zstd"
    assert asked(2000).decision.leader_saving_ms.mean > 0


def weighed(
    peak_mb: float, *, memory: Memory | None = SMALL, objective: Objective = Objective.BOOT
) -> RankedCandidates:
    """Weigh lz4 -9, which is far better than today's, but takes so much memory to build."""
    return weigh(
        case(
            image("xz", cpu_s=1, peak_mb=999),
            image("lz4 -9", cpu_s=1, peak_mb=peak_mb),
            image("zstd", cpu_s=1),
            given_mb_s=1000,
            memory=memory,
            config=Config(objective=objective),
        )
    )


@pytest.mark.parametrize("objective", list(Objective))
def test_what_needs_more_memory_than_there_is_is_not_advised_and_says_why(
    objective: Objective,
) -> None:
    result = weighed(519, objective=objective)
    row = next(row for row in result.rows if str(row.setting) == "lz4 -9")
    assert row.unusable == "its build needs 519 MB, this machine has 460 MB"
    assert row.notes == (row.unusable,)
    assert str(result.decision.setting) != "lz4 -9"
    assert str(result.decision.leader) != "lz4 -9"


def test_what_needs_more_than_is_free_now_may_be_advised_but_has_a_note() -> None:
    result = weighed(300)
    row = next(row for row in result.rows if str(row.setting) == "lz4 -9")
    assert row.unusable is None
    assert row.notes == (
        "its build needs 300 MB of memory, of which this machine has 200 MB free now",
    )
    assert str(result.decision.setting) == "lz4 -9"


@pytest.mark.parametrize(("peak_mb", "memory"), [(519, None), (199, SMALL), (200, SMALL)])
def test_what_has_enough_or_is_built_elsewhere_has_no_note(
    peak_mb: float, memory: Memory | None
) -> None:
    result = weighed(peak_mb, memory=memory)
    assert next(row for row in result.rows if str(row.setting) == "lz4 -9").notes == ()
    assert str(result.decision.setting) == "lz4 -9"


def test_today_s_setting_can_be_kept_whatever_its_build_takes() -> None:
    today = next(row for row in weighed(519).rows if str(row.setting) == "xz")
    assert today.unusable is None
    assert len(today.notes) == 1


def test_an_image_that_was_found_has_no_build_to_speak_of() -> None:
    result = weigh(case("zstd", "lz4 -9", memory=SMALL))
    assert all(row.notes == () for row in result.rows)
