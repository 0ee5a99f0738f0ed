"""What one machine's boots teach about all candidates, and what they must not pretend to."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.decide.boot_evidence import BootEvidence, Parameter, Relation
from initadvisor.decide.posterior.posterior import PosteriorCosts, sample_posterior_costs
from initadvisor.records.marks import Waiting
from initadvisor.records.read_interval import Beside, IntervalSource
from tests.fixtures.known_machines import draw_costs
from tests.fixtures.synthetic_boots import FIELD, WITH_LAB, simulate, unknown_machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from initadvisor.decide.cost import CandidateFacts, Machine
    from initadvisor.decide.costs import Draws

    Floats = NDArray[np.float64]

COUNT = 4000

WAITED = BootEvidence(
    relation=Relation.SAME,
    class_key="today's",
    age_days=1.0,
    digest=FIELD[0].digest,
    setting=FIELD[0].setting,
    loaded_mb=40.0,
    unpack_us=230_000,
    begin_to_init_us=330_000,
    waiting=Waiting.WAITED,
    shadow_us=20_000,
    rest_us=100_000,
    read_us=900_000,
    read_source=IntervalSource.EXEC_MINUS_INIT,
    read_beside=(Beside.LOADER, Beside.KERNEL),
)
"""An ordinary boot of today's image."""

HIDDEN = replace(
    WAITED, waiting=Waiting.HIDDEN, shadow_us=None, rest_us=None, begin_to_init_us=900_000
)


def learn(
    boots: Sequence[BootEvidence],
    *,
    machine: Machine | None = None,
    candidates: Sequence[CandidateFacts] = FIELD,
    count: int = COUNT,
) -> PosteriorCosts:
    """Learn from boots about a machine of which nothing else is known."""
    return sample_posterior_costs(
        machine or unknown_machine(), candidates, boots, seed=1, count=count
    )


def width(values: Floats) -> float:
    """Return the width of the middle 95 %."""
    low, high = np.quantile(values, [0.025, 0.975])
    return float(high - low)


def same(one: Draws, other: Draws) -> bool:
    """Tell whether draws are the same to the last bit."""
    arrays = [
        (of.size_mb, of.read_ms, of.unpack_ms, of.total_ms, of.extra_ms) for of in (one, other)
    ]
    return all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True))


def test_without_boots_nothing_changes() -> None:
    given = learn([])
    assert same(given.draws, draw_costs(unknown_machine(), FIELD, seed=1, count=COUNT))
    assert given.summary.boots_used == 0
    assert given.summary.own_boots == (0,) * len(FIELD)
    assert all(learnt.prior == learnt.posterior for learnt in given.summary.updates)


def test_boots_that_tell_nothing_change_nothing() -> None:
    silent = BootEvidence(relation=Relation.SAME, class_key="today's")
    given = learn([silent] * 3)
    assert same(given.draws, learn([]).draws)
    assert given.summary.boots_used == 0


def test_one_boot_of_today_s_image_sharpens_every_candidate() -> None:
    before, after = learn([]).draws, learn([WAITED]).draws
    for column in range(len(FIELD)):
        assert width(after.total_ms[:, column]) < 0.7 * width(before.total_ms[:, column])
        assert width(after.unpack_ms[:, column]) < 0.95 * width(before.unpack_ms[:, column])
    assert np.median(after.unpack_ms[:, 0]) == pytest.approx(230, rel=0.03)
    assert np.median(after.total_ms[:, 0]) == pytest.approx(900 + 330, rel=0.02)


def test_a_codec_s_error_is_learnt_from_any_of_its_images() -> None:
    fast = replace(FIELD[0], setting=Setting.parse("zstd -3"), digest="f" * 64)
    field = [replace(one, codec_log_sd=0.5) for one in (*FIELD, fast)]
    codec = field[0].setting.codec
    alike = [n for n, one in enumerate(field) if n and one.setting.codec is codec]
    others = [n for n, one in enumerate(field) if one.setting.codec not in (codec, Codec.CAT)]
    before, after = (
        learn(boots, candidates=field).posterior.parameters for boots in ([], [WAITED])
    )
    assert alike
    assert others
    for column in alike:
        assert np.array_equal(after.codec[:, column], after.codec[:, 0])
        assert width(np.log(after.codec[:, column])) < 0.9 * width(np.log(before.codec[:, column]))
    for column in others:
        assert np.array_equal(after.codec[:, column], before.codec[:, column])


def test_what_the_kernel_alone_tells_sharpens_every_candidate_as_well() -> None:
    boot = replace(WAITED, read_us=None)
    before, after = learn([]).draws, learn([boot]).draws
    assert np.array_equal(before.read_ms, after.read_ms)
    for column in range(len(FIELD)):
        kernel = [of.total_ms[:, column] - of.read_ms[:, column] for of in (before, after)]
        assert width(kernel[1]) < 0.6 * width(kernel[0])


@pytest.mark.parametrize("count", [1, 30, 1000])
def test_one_size_only_bounds_the_loader_s_time_per_byte(count: int) -> None:
    before = learn([]).posterior.parameters.read_s_per_mb
    after = learn([WAITED] * count).posterior.parameters.read_s_per_mb
    whole_s, read_mb = 0.9, 40 + 10
    assert np.quantile(after, 0.99) * read_mb < 1.15 * whole_s
    assert np.quantile(before, 0.975) * read_mb > 2 * whole_s
    # How fast it may be is as open as before, and so is most of what is between.
    for part in (0.025, 0.25, 0.5):
        assert np.quantile(after, part) == pytest.approx(np.quantile(before, part), rel=0.2)


def test_after_one_boot_the_loader_is_outside_its_95_percent_interval_in_about_5_percent() -> None:
    machines = simulate(count=300)
    silent = replace(WAITED, unpack_us=None, begin_to_init_us=None, waiting=Waiting.UNKNOWN)
    outside = 0
    for row, truth in enumerate(machines.parts.read_s_per_mb):
        (boot,) = machines.boot(row, 0)
        shown = replace(silent, loaded_mb=boot.loaded_mb, read_us=boot.read_us)
        drawn = learn([shown], count=1000).posterior.parameters.read_s_per_mb
        low, high = np.quantile(drawn, [0.025, 0.975])
        outside += not low <= truth <= high
    assert 0.02 <= outside / 300 <= 0.075


def test_intervals_of_other_classes_bound_the_loader_once_and_not_where_today_s_own_do() -> None:
    near = replace(WAITED, relation=Relation.NEAR)
    others = [replace(near, class_key=f"kernel {number}") for number in range(8)]
    for today in ([], [WAITED]):
        few, many = (
            learn(today + of).posterior.parameters.read_s_per_mb for of in (others[:1], others)
        )
        for part in (0.025, 0.5, 0.975):
            assert np.quantile(many, part) == pytest.approx(np.quantile(few, part), rel=0.05)


def test_sizes_that_are_one_but_for_rounding_are_one() -> None:
    exact, rounded = WAITED, replace(WAITED, loaded_mb=40.004)
    given = learn([exact, rounded] * 20)
    assert given.summary.read_sizes == 1
    speed = 1 / given.posterior.parameters.read_s_per_mb
    assert np.quantile(speed, 0.975) / np.quantile(speed, 0.025) > 25


def test_different_sizes_tell_the_loader_s_time_from_what_all_pay() -> None:
    """300 ms and 12 ms per MB; the noise is as much as boots' is."""
    rng = np.random.default_rng(3)
    boots = [
        replace(
            WAITED,
            digest=None,
            setting=None,
            loaded_mb=size,
            read_us=float(1000 * (300 + 12 * size) * np.exp(rng.normal(0, 0.02))),
        )
        for size in (20.0, 40.0, 60.0, 110.0)
        for _ in range(5)
    ]
    given = learn(boots)
    slope_ms = 1000 * given.posterior.parameters.read_s_per_mb
    assert np.median(slope_ms) == pytest.approx(12, rel=0.08)
    assert width(slope_ms) < 3
    assert given.summary.read_sizes == 4
    fixed = next(learnt for learnt in given.summary.updates if learnt.what is Parameter.FIXED)
    assert fixed.posterior.low < 300 < fixed.posterior.high
    assert fixed.posterior.high - fixed.posterior.low < 200


def test_a_disturbed_size_does_not_bend_the_line() -> None:
    sizes = (20.0, 40.0, 60.0, 110.0, 112.0)
    boots = [
        replace(WAITED, digest=None, loaded_mb=size, read_us=1000 * (300 + 12 * size))
        for size in sizes
        for _ in range(2)
    ]
    boots[-2:] = [replace(boot, read_us=9_000_000) for boot in boots[-2:]]
    slope_ms = 1000 * learn(boots).posterior.parameters.read_s_per_mb
    assert np.quantile(slope_ms, 0.025) < 12 < np.quantile(slope_ms, 0.975)
    assert np.median(slope_ms) == pytest.approx(12, rel=0.2)


def test_a_menu_that_was_shown_tells_nothing_of_the_loader() -> None:
    boot = replace(WAITED, read_beside=(Beside.LOADER, Beside.KERNEL, Beside.MENU))
    assert np.array_equal(learn([boot]).draws.read_ms, learn([]).draws.read_ms)


def test_a_menu_that_may_have_been_shown_leaves_a_bound() -> None:
    """Five seconds of waiting are not taken for a slow loader."""
    beside = (Beside.LOADER, Beside.KERNEL, Beside.STUB, Beside.MENU_IF_ANY)
    boot = replace(WAITED, read_us=5_200_000, read_beside=beside)
    before, after = learn([]), learn([boot] * 10)
    speed = [1 / given.posterior.parameters.read_s_per_mb for given in (before, after)]
    assert np.median(speed[1]) == pytest.approx(np.median(speed[0]), rel=0.1)
    fixed = [given.summary.updates[1].posterior for given in (before, after)]
    assert fixed[1].mean == pytest.approx(fixed[0].mean, rel=0.1)


def test_an_interval_without_the_kernel_s_reading_bounds_the_image_s_alone() -> None:
    boot = replace(WAITED, read_beside=(Beside.STUB,))
    per_mb = [learn([b]).posterior.parameters.read_s_per_mb for b in (WAITED, boot)]
    assert np.quantile(per_mb[1], 0.99) > 1.1 * np.quantile(per_mb[0], 0.99)
    assert np.quantile(per_mb[1], 0.99) * 40 < 1.15 * 0.9


def test_where_nothing_was_hidden_the_shadow_is_what_was_seen() -> None:
    shadow = learn([WAITED] * 5).posterior.parameters.shadow_ms
    assert np.median(shadow) == pytest.approx(20, rel=0.1)
    assert np.quantile(shadow, 0.999) < 230 * 1.3


def test_a_hidden_unpack_bounds_the_shadow_and_tells_the_sum() -> None:
    given = learn([HIDDEN] * 5, count=10_000)
    shadow = given.posterior.parameters.shadow_ms
    assert np.quantile(shadow, 0.025) > 0.8 * 230
    assert np.quantile(shadow, 0.975) < 900
    assert width(shadow) > 300
    rest = next(learnt for learnt in given.summary.updates if learnt.what is Parameter.REST)
    assert rest.posterior.mean + shadow.mean() == pytest.approx(900, rel=0.03)


def test_images_that_hid_and_that_did_not_have_the_shadow_between_them() -> None:
    long = replace(WAITED, digest=FIELD[2].digest, unpack_us=950_000, shadow_us=480_000)
    shadow = learn([HIDDEN] * 3 + [long] * 3).posterior.parameters.shadow_ms
    assert np.quantile(shadow, 0.025) > 0.9 * 230
    assert np.quantile(shadow, 0.975) < 950


def test_a_boot_that_does_not_show_whether_anything_waited_tells_the_sum() -> None:
    unclear = replace(HIDDEN, waiting=Waiting.UNKNOWN)
    before, after = learn([]), learn([unclear] * 3)
    kernel = [of.draws.total_ms[:, 0] - of.draws.read_ms[:, 0] for of in (before, after)]
    assert width(kernel[1]) < 0.5 * width(kernel[0])
    shadow = after.posterior.parameters.shadow_ms
    assert np.quantile(shadow, 0.025) < 30
    assert np.quantile(shadow, 0.975) > 500


def test_a_kernel_that_unpacks_synchronously_has_no_shadow_whatever_its_boots_show() -> None:
    machine = unknown_machine()
    machine = replace(machine, shadow=replace(machine.shadow, fixed_ms=0.0))
    alone = replace(
        WAITED, waiting=Waiting.SYNCHRONOUS, shadow_us=0, rest_us=400_000, begin_to_init_us=630_000
    )
    given = learn([alone] * 5, machine=machine)
    assert not given.posterior.parameters.shadow_ms.any()
    assert np.median(given.draws.total_ms[:, 0]) == pytest.approx(900 + 630, rel=0.02)


def test_a_synchronous_boot_tells_an_asynchronous_kernel_nothing_of_its_shadow() -> None:
    alone = replace(WAITED, waiting=Waiting.SYNCHRONOUS, shadow_us=0, rest_us=400_000)
    before, after = (learn(boots).posterior.parameters.shadow_ms for boots in ([], [alone]))
    assert np.array_equal(before, after)


def test_a_shadow_that_the_user_gives_stays_so() -> None:
    machine = unknown_machine()
    machine = replace(machine, shadow=replace(machine.shadow, fixed_ms=500.0))
    given = learn([HIDDEN] * 5, machine=machine)
    assert (given.posterior.parameters.shadow_ms == 500).all()
    learnt = {of.what: of for of in given.summary.updates}
    assert learnt[Parameter.SHADOW].boots == 0
    assert learnt[Parameter.REST].posterior.mean == pytest.approx(400, rel=0.1)


def test_one_disturbed_boot_among_ten_changes_next_to_nothing() -> None:
    disturbed = replace(WAITED, unpack_us=2_300_000, begin_to_init_us=2_400_000)
    calm, one = learn([WAITED] * 10).draws, learn([WAITED] * 9 + [disturbed]).draws
    assert np.median(one.total_ms, axis=0) == pytest.approx(np.median(calm.total_ms, axis=0), 0.02)
    assert width(one.unpack_ms[:, 0]) < 1.3 * width(calm.unpack_ms[:, 0])


def test_a_single_boot_that_contradicts_all_that_is_known_does_not_settle_it() -> None:
    disturbed = replace(WAITED, unpack_us=2_300_000, begin_to_init_us=2_400_000)
    expected = np.median(learn([]).draws.unpack_ms, axis=0)
    once = np.median(learn([disturbed]).draws.unpack_ms, axis=0)
    often = np.median(learn([disturbed] * 30).draws.unpack_ms, axis=0)
    assert once == pytest.approx(expected, rel=0.3)
    assert often[0] == pytest.approx(2300, rel=0.1)


def test_boots_of_another_class_are_less_evidence_however_many() -> None:
    near = replace(WAITED, relation=Relation.NEAR, class_key="another kernel")
    none, many, one = (learn(boots) for boots in ([], [near] * 300, [WAITED]))
    for column in range(len(FIELD)):
        widths = [width(of.draws.unpack_ms[:, column]) for of in (one, many, none)]
        assert widths == sorted(widths)
    shadows = [width(of.posterior.parameters.shadow_ms) for of in (one, many, none)]
    assert shadows == sorted(shadows)


def test_boots_of_today_s_class_overrule_those_of_others() -> None:
    near = replace(
        WAITED, relation=Relation.NEAR, class_key="another kernel", unpack_us=400_000, rest_us=9_000
    )
    unpack = learn([near] * 300 + [WAITED] * 3).draws.unpack_ms[:, 0]
    assert np.quantile(unpack, 0.025) < 230 < np.quantile(unpack, 0.975)
    assert np.median(unpack) == pytest.approx(230, rel=0.06)


def test_of_other_classes_the_latest_count() -> None:
    """What /init waited for a hundred kernels ago is not what it waits for now."""
    near = replace(WAITED, relation=Relation.NEAR, class_key="another kernel", digest=None)
    old = replace(near, class_key="an old kernel", shadow_us=200_000, age_days=900.0)
    unknown = replace(old, age_days=None)
    shadow = learn([old] * 500 + [unknown] * 500 + [near] * 100).posterior.parameters.shadow_ms
    assert np.median(shadow) == pytest.approx(20, rel=0.3)


def test_the_loader_s_slope_is_learnt_from_boots_of_other_kernels_too() -> None:
    near = [
        replace(
            *(WAITED,),
            relation=Relation.NEAR,
            class_key="another kernel",
            loaded_mb=size,
            read_us=1000 * (300 + 12 * size),
        )
        for size in (40.0, 110.0)
        for _ in range(5)
    ]
    slope_ms = 1000 * learn([*near, WAITED]).posterior.parameters.read_s_per_mb
    assert np.median(slope_ms) == pytest.approx(12, rel=0.15)
    assert width(slope_ms) > 5


def test_an_earlier_build_with_the_same_setting_counts_by_its_size() -> None:
    rebuilt = replace(WAITED, digest="another", loaded_mb=44.0, unpack_us=253_000, read_us=None)
    own, earlier = learn([WAITED] * 5), learn([rebuilt] * 5)
    assert np.median(earlier.draws.unpack_ms[:, 0]) == pytest.approx(230, rel=0.03)
    assert width(earlier.draws.unpack_ms[:, 0]) > 1.2 * width(own.draws.unpack_ms[:, 0])
    assert (own.summary.own_boots[0], earlier.summary.own_boots[0]) == (5, 0)


def test_an_image_of_another_content_with_the_same_setting_does_not() -> None:
    fallback = replace(WAITED, digest="another", loaded_mb=120.0, read_us=None)
    assert np.array_equal(learn([fallback]).draws.unpack_ms, learn([]).draws.unpack_ms)


def test_what_the_lab_measured_is_scaled_by_the_machine_s_own_boots() -> None:
    boot = replace(WAITED, unpack_us=252_000, begin_to_init_us=352_000)
    before, after = (learn(boots, candidates=WITH_LAB) for boots in ([], [boot] * 10))
    assert np.median(after.draws.unpack_ms[:, 1]) == pytest.approx(120 * 1.2, rel=0.05)
    assert width(after.draws.unpack_ms[:, 1]) < 0.7 * width(before.draws.unpack_ms[:, 1])
    lab = next(learnt for learnt in after.summary.updates if learnt.what is Parameter.LAB)
    assert lab.boots == 10
    assert lab.posterior.mean == pytest.approx(1.2, rel=0.05)


def test_an_uncompressed_image_that_booted_is_everybody_s_populate() -> None:
    plain = replace(WAITED, digest=FIELD[4].digest, unpack_us=120_000, begin_to_init_us=220_000)
    given = learn([plain] * 5)
    populate = next(learnt for learnt in given.summary.updates if learnt.what is Parameter.POPULATE)
    assert populate.posterior.mean == pytest.approx(120, rel=0.03)
    low = np.quantile(given.draws.unpack_ms, 0.025, axis=0)
    assert low[4] == low.min() > 107


@pytest.mark.parametrize("candidates", [FIELD, WITH_LAB])
def test_the_order_of_boots_does_not_matter(candidates: Sequence[CandidateFacts]) -> None:
    simulated = simulate(candidates, count=1)
    boots = [boot for column in range(4) for boot in simulated.boot(0, column, boots=9)]
    boots += [
        replace(boot, relation=Relation.NEAR, class_key=f"{index % 3}", digest=None, setting=None)
        for index, boot in enumerate(boots)
    ]
    draws = learn(boots, candidates=candidates, count=500).draws
    random.Random(1).shuffle(boots)
    assert same(draws, learn(boots, candidates=candidates, count=500).draws)


def test_the_same_seed_gives_the_same_draws_and_another_others() -> None:
    one, again, other = (
        sample_posterior_costs(unknown_machine(), FIELD, [WAITED], seed=seed, count=500).draws
        for seed in (1, 1, 2)
    )
    assert same(one, again)
    assert not same(one, other)


def test_lessons_say_what_was_learnt_from_how_many() -> None:
    blind = replace(WAITED, read_us=None)
    unknown = BootEvidence(relation=Relation.SAME, class_key="today's", unpack_us=1000)
    known = learn([WAITED, blind, unknown], count=10_000)
    lessons = known.summary
    assert lessons.boots_used == 2
    assert lessons.own_boots == (2, 0, 0, 0, 0)
    boots = {learnt.what: learnt.boots for learnt in lessons.updates}
    assert boots == {
        Parameter.LOADER: 1,
        Parameter.FIXED: 1,
        Parameter.SHADOW: 2,
        Parameter.REST: 2,
        Parameter.POPULATE: 2,
        Parameter.CPU: 2,
    }
    sources = {learnt.what: learnt.posterior.source for learnt in lessons.updates}
    assert sources[Parameter.LOADER] == "1 boot of this machine"
    assert sources[Parameter.SHADOW] == "2 boots of this machine"
    assert known.posterior.effective > 5000


def test_one_boot_of_thirty_that_took_a_hundred_times_as_long_overturns_nothing() -> None:
    hidden = replace(HIDDEN, unpack_us=150_000, begin_to_init_us=400_000)
    disturbed = replace(hidden, unpack_us=15_000_000, begin_to_init_us=15_250_000)
    alike, one_off = (learn([hidden] * 29 + [other]) for other in (hidden, disturbed))
    for what in (Parameter.SHADOW, Parameter.REST):
        before, after = alike.summary.now(what), one_off.summary.now(what)
        assert after.mean == pytest.approx(before.mean, rel=0.05)
        assert after.high - after.low > 0.8 * (before.high - before.low)
