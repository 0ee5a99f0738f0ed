"""What the lab measured is weighed as measured, and every figure says what it rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.boots import BootContext
from initadvisor.advise.decision_input import DecisionInput, Unpacking, decision_result
from initadvisor.advise.machine import know_machine, unpacking_assumptions
from initadvisor.advise.ranking import RankedCandidates, summarise
from initadvisor.candidates.estimates import SampledCandidate
from initadvisor.candidates.search_space import Candidate
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Config, Objective
from initadvisor.core.estimates import Estimate, Evidence
from initadvisor.core.settings import Setting
from initadvisor.decide.boot_evidence import BootEvidence, Parameter, Relation
from initadvisor.decide.cost import Outcome, Quantity
from initadvisor.decide.upgrades import upgrade_pace
from initadvisor.image.contents import Lint, Verdict
from initadvisor.image.decompressors.lz4_legacy import BLOCK_BYTES
from initadvisor.lab.evidence import LabEvidence
from initadvisor.records.marks import Waiting
from initadvisor.target.disk import Disk
from tests.fixtures.decision_cases import TABLE, contender, weigh

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.advise.machine import Knowledge
    from initadvisor.advise.ranking import RankedCandidates
    from initadvisor.advise.recommendation import Row
    from initadvisor.decide.next_boot import BootLimits
    from initadvisor.decide.upgrades import UpgradePace
    from initadvisor.host.hardware import Memory

BENCH_MS = {"zstd": (100.0, 101.0, 99.0), "lz4": (60.0, 61.0, 59.0), "cat": (0.0,) * 3}
FIELD = [contender(setting) for setting in BENCH_MS]
OK = Lint(verdict=Verdict.OK)
REFUSED = Lint(verdict=Verdict.REFUSED, reasons=("CONFIG_RD_LZ4",))
FAST = Estimate(mean=500, low=480, high=520, source="a test")
KNOWLEDGE = know_machine(
    read_mb_s=FAST,
    given_read_mb_s=20_000,
    given_overlap_ms=0,
    unpacked_bytes=100_000_000,
    context=BootContext(
        asynchronous=False, whole_boot_ms=None, kernel_mb=10, kernel_mb_source="a test"
    ),
    table=TABLE,
)
DISK = Disk(device="sda", kind="sata", read_mb_s=FAST, free_bytes=10**9, room_on="/boot")
UML = "user-mode Linux 6.1.176, another kernel"


def lab(**times_ms: float) -> LabEvidence:
    """Return what a lab of this machine's kernel measured."""
    return LabEvidence(
        unpack_ms={
            name: Quantity(median=time_ms, log_sd=0.03, source="lab")
            for name, time_ms in times_ms.items()
        }
    )


def other_kernel(**times_ms: float) -> LabEvidence:
    """Return what a lab of another kernel measured of decompression."""
    return LabEvidence(
        decompress_ms={
            name: Quantity(median=time_ms, log_sd=0.03, source=UML)
            for name, time_ms in times_ms.items()
        }
    )


def case(
    evidence: LabEvidence,
    *,
    field: Sequence[Candidate] = FIELD,
    refused: str | None = None,
    boots: Sequence[BootEvidence] = (),
    free_bytes: int = 10**9,
    config: Config = Config(),  # noqa: B008 # frozen
    pace: UpgradePace | None = None,
    memory: Memory | None = None,
    limits: BootLimits | None = None,
    knowledge: Knowledge = KNOWLEDGE,
) -> DecisionInput:
    return DecisionInput(
        candidates=field,
        unpacking=Unpacking(bench_ms=BENCH_MS, table=TABLE, lab=evidence),
        verdicts={c.digest: REFUSED if str(c.setting) == refused else OK for c in field},
        disk=replace(DISK, free_bytes=free_bytes),
        knowledge=knowledge,
        boots=boots,
        config=config,
        pace=upgrade_pace(config.boots_per_upgrade, pace),
        memory=memory,
        limits=limits,
        seed=1,
    )


def weighed(
    evidence: LabEvidence,
    *,
    field: Sequence[Candidate] = FIELD,
    refused: str | None = None,
    boots: Sequence[BootEvidence] = (),
    free_bytes: int = 10**9,
    objective: Objective = Objective.BOOT,
) -> RankedCandidates:
    return weigh(
        case(
            evidence,
            field=field,
            refused=refused,
            boots=boots,
            free_bytes=free_bytes,
            config=Config(objective=objective),
        )
    )


def row(result: RankedCandidates, setting: str) -> Row:
    return next(row for row in result.rows if str(row.setting) == setting)


def test_what_saves_most_comes_first_and_what_may_not_be_chosen_last() -> None:
    def order(objective: Objective, refused: str | None = None) -> list[str]:
        found = weighed(LabEvidence(), refused=refused, objective=objective).rows
        return [str(row.setting) for row in found]

    assert order(Objective.BOOT) == ["cat", "lz4", "zstd"]
    assert order(Objective.BOOT, refused="cat") == ["lz4", "zstd", "cat"]
    by_size = order(Objective.SIZE)
    assert by_size == sorted(by_size, key=lambda name: contender(name).size.median)


def test_the_best_guess_is_the_first_row_whatever_shows_more() -> None:
    decision_input = case(LabEvidence())
    result = decision_result(decision_input)
    for guess in ("zstd", "lz4"):
        decision = replace(result.decision, guess=Setting.parse(guess))
        found = summarise(decision_input, replace(result, decision=decision)).rows
        assert [str(row.setting) for row in found] == [
            guess,
            *(name for name in ("cat", "lz4", "zstd") if name != guess),
        ]


def test_without_a_lab_everything_is_bench() -> None:
    result = weighed(LabEvidence())
    assert result.evidence is Evidence.BENCH
    for found in result.rows:
        assert {found.unpack_ms.source, found.total_ms.source, found.saving_ms.source} == {
            "predicted"
        }


def test_a_measured_time_is_shown_with_its_own_width() -> None:
    unpack = row(weighed(lab(zstd=300.0)), "zstd").unpack_ms
    assert unpack.source == "lab"
    assert unpack.mean == pytest.approx(300, rel=0.02)
    # The samples' 3 % and the 10 % by which a virtual machine may differ.
    assert unpack.high / unpack.mean == pytest.approx(1.22, abs=0.04)


def test_where_all_were_measured_the_advice_rests_on_the_lab() -> None:
    result = weighed(lab(zstd=300.0, lz4=150.0, cat=100.0))
    assert result.evidence is Evidence.LAB
    assert result.decision.saving_ms.source == "lab"
    assert {found.total_ms.source for found in result.rows} == {"lab"}
    assert {found.saving_ms.source for found in result.rows} == {"lab"}


def test_the_differences_of_measured_ones_are_surer_than_those_of_the_others() -> None:
    def width(evidence: LabEvidence) -> float:
        saving = row(weighed(evidence), "lz4").saving_ms
        return saving.high - saving.low

    bench = row(weighed(LabEvidence()), "lz4").unpack_ms.mean
    today = row(weighed(LabEvidence()), "zstd").unpack_ms.mean
    both = lab(zstd=today, lz4=bench)
    assert width(both) < 0.6 * width(LabEvidence())
    assert width(lab(zstd=today)) > width(both)


def test_a_switch_rests_on_the_two_it_compares() -> None:
    measured_two = weighed(lab(zstd=300.0, cat=100.0), refused="lz4")
    assert measured_two.decision.outcome is Outcome.SWITCH
    assert str(measured_two.decision.setting) == "cat"
    assert measured_two.evidence is Evidence.LAB
    assert weighed(lab(cat=1.0), refused="lz4").evidence is Evidence.BENCH


def test_what_is_no_switch_rests_on_every_one_that_could_be_chosen() -> None:
    kept = lab(zstd=10.0, lz4=30.0)
    result = weighed(kept)
    assert result.decision.outcome is not Outcome.SWITCH
    assert result.evidence is Evidence.BENCH
    assert weighed(kept, refused="cat").evidence is Evidence.LAB


def test_a_saving_is_no_better_known_than_today_s_image() -> None:
    result = weighed(lab(lz4=150.0))
    assert row(result, "lz4").unpack_ms.source == "lab"
    assert row(result, "lz4").saving_ms.source == "predicted"


def test_the_lab_s_uncompressed_time_replaces_the_assumed_one() -> None:
    def populate(evidence: LabEvidence) -> float:
        return row(weighed(evidence), "zstd").unpack_ms.mean

    assert populate(lab(cat=500.0)) - populate(LabEvidence()) == pytest.approx(390, abs=30)


def test_another_kernel_s_decompression_counts_but_is_bench_and_as_doubtful_as_kernels_are() -> (
    None
):
    result = weighed(other_kernel(zstd=400.0))
    unpack = row(result, "zstd").unpack_ms
    assert unpack.source == f"predicted: {UML}"
    assert unpack.mean == pytest.approx(400 * 1.03 + 108, rel=0.05)
    assert unpack.high - unpack.low > 400 * 0.25 * 2
    assert row(result, "zstd").total_ms.source == "predicted"
    assert result.evidence is Evidence.BENCH


def test_d_is_a_ratio_of_user_space_and_a_time_for_buffers_that_grows_with_slowness() -> None:
    row = replace(TABLE.row(Codec.LZ4, far=False), ratio=0.5, user_ms_per_mb=0.3)
    table = replace(
        TABLE, rows=TABLE.rows | {(Codec.LZ4, False): row}, buffer_ms_per_mb=8 / (BLOCK_BYTES / 1e6)
    )
    [lz4] = [one for one in FIELD if one.codec is Codec.LZ4]
    unpacking = Unpacking(bench_ms=BENCH_MS, table=table, lab=LabEvidence())
    assert unpacking.decompress_ms(lz4).median == pytest.approx(0.5 * 60 + 8)
    slow = unpacking.compared([lz4], 100_000_000)
    assert slow.slowness == pytest.approx(60 / (100 * 0.3))
    assert slow.decompress_ms(lz4).median == pytest.approx(0.5 * 60 + 8 * 2)
    assert unpacking.codec_log_sd(lz4) == row.log_sd


def test_where_user_space_is_slow_files_are_created_slowly() -> None:
    slower = KNOWLEDGE.slower(2.0).machine.populate_ms
    assert slower.median == 2 * KNOWLEDGE.machine.populate_ms.median
    assert slower.log_sd == KNOWLEDGE.machine.populate_ms.log_sd


def test_what_a_kernel_took_shares_no_error_with_its_codec() -> None:
    [zstd] = [one for one in FIELD if one.codec is Codec.ZSTD]
    for seen in (other_kernel(zstd=400.0), lab(zstd=400.0)):
        known = Unpacking(bench_ms=BENCH_MS, table=TABLE, lab=seen)
        assert known.codec_log_sd(zstd) == 0


def said(evidence: LabEvidence) -> list[str]:
    return [one.text for one in unpacking_assumptions(FIELD, KNOWLEDGE.machine, evidence)]


def test_without_a_lab_the_ratios_and_their_source_are_assumed() -> None:
    decompression, populate = said(LabEvidence())
    assert decompression.startswith("the kernel's decompression: user space times the ratios of")
    assert TABLE.source in decompression
    assert populate.startswith("creating the files: 102 ms")


def test_a_lab_of_everything_leaves_one_assumption() -> None:
    [assumption] = said(lab(zstd=300.0, lz4=150.0, cat=100.0))
    assert assumption.startswith("the time to unpack every image: the lab's")
    assert "within a factor of 1.2" in assumption


def test_a_lab_of_some_says_which() -> None:
    measured, decompression, populate = said(lab(zstd=300.0, cat=97.0))
    assert "the time to unpack zstd, cat: the lab's" in measured
    assert decompression.startswith("the kernel's decompression of lz4: user space")
    assert populate == ("creating the files: 97 ms, the lab's time for the uncompressed image")


def test_another_kernel_is_named() -> None:
    measured, scaled, populate = said(other_kernel(zstd=120.0))
    assert "the kernel's decompression of zstd" in measured
    assert UML in measured
    assert "of lz4: user space times" in scaled
    assert "other kernels and processors change" in measured
    assert populate.startswith("creating the files: 102 ms")


@pytest.mark.parametrize(
    ("evidence", "about"),
    [
        (LabEvidence(), {Parameter.CPU, Parameter.POPULATE}),
        (other_kernel(zstd=120.0), {Parameter.CPU, Parameter.POPULATE}),
        (lab(zstd=300.0, cat=97.0), {Parameter.LAB, Parameter.CPU, Parameter.POPULATE}),
        (lab(zstd=300.0, lz4=150.0, cat=100.0), {Parameter.LAB}),
    ],
)
def test_what_boots_told_of_is_not_said_to_be_as_doubtful_as_without_them(
    evidence: LabEvidence, about: set[Parameter]
) -> None:
    before = unpacking_assumptions(FIELD, KNOWLEDGE.machine, evidence)
    after = unpacking_assumptions(FIELD, KNOWLEDGE.machine, evidence, told=set(Parameter))
    assert {one.about for one in before} == about
    assert {one.about for one in after} == about - {Parameter.POPULATE}
    assert any("within a factor of" in one.text for one in before)
    assert not any("within a factor of" in one.text for one in after)
    kept = [one for one in before if one.about is not Parameter.POPULATE]
    for one, same in zip(after, kept, strict=True):
        assert same.text.startswith(one.text)


def test_one_boot_of_todays_image_sharpens_every_candidate() -> None:
    boot = BootEvidence(
        relation=Relation.SAME,
        class_key="c",
        digest=FIELD[0].digest,
        unpack_us=400_000,
        begin_to_init_us=600_000,
        waiting=Waiting.WAITED,
        shadow_us=40_000,
        rest_us=200_000,
    )
    before, after = weighed(LabEvidence()), weighed(LabEvidence(), boots=[boot])
    for one in FIELD:
        wide, narrow = (row(found, str(one.setting)).unpack_ms for found in (before, after))
        assert narrow.high / narrow.low < wide.high / wide.low
    today = row(after, str(FIELD[0].setting))
    assert today.unpack_ms.source == "boots"
    assert today.unpack_ms.low < 400 < today.unpack_ms.high
    assert after.summary.boots_used == 1
    assert row(after, str(FIELD[1].setting)).unpack_ms.source != "boots"


def estimated(setting: str, size_mb: float, *, log_sd: float = 0.02) -> Candidate:
    """Return a contender that was not built, and is decompressed as fast as what was."""
    parsed = Setting.parse(setting)
    size = Quantity(median=size_mb * 1e6, log_sd=log_sd)
    return Candidate(
        setting=parsed,
        size=size,
        digest=f"the key of {setting}",
        stream=None,
        sampled=SampledCandidate(
            setting=parsed,
            key=f"the key of {setting}",
            main_bytes=size,
            build_s=1,
            build_cpu_s=2,
            build_peak_bytes=3,
            decompress_ms=BENCH_MS[setting],
            command=(setting,),
            sample_bytes=1,
            whole_bytes=100,
        ),
    )


TODAY = replace(contender("zstd"), size=Quantity(median=40e6), today=True)


def test_an_estimate_has_a_row_with_its_doubt() -> None:
    result = weighed(LabEvidence(), field=[TODAY, estimated("lz4", 50)])
    found, today = row(result, "lz4"), row(result, "zstd")
    assert (found.size_source, found.size_bytes, found.size_log_sd) == ("sampled", 50_000_000, 0.02)
    assert (today.size_source, today.size_log_sd) == ("built", 0)


def test_a_time_of_a_sample_is_less_certain_than_one_of_the_image() -> None:
    def spread(field: Sequence[Candidate]) -> float:
        unpack = row(weighed(LabEvidence(), field=field), "lz4").unpack_ms
        return unpack.high - unpack.low

    built = replace(contender("lz4"), size=Quantity(median=50e6))
    assert spread([TODAY, estimated("lz4", 50)]) > spread([TODAY, built])


def test_a_doubtful_size_makes_the_reading_as_doubtful() -> None:
    def spread(log_sd: float) -> float:
        read = row(
            weighed(LabEvidence(), field=[TODAY, estimated("lz4", 50, log_sd=log_sd)]), "lz4"
        ).read_ms
        return read.high / read.low

    assert spread(0.5) > spread(0.02) > spread(0.0)


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize(("free_mb", "fits"), [(49, False), (51.9, False), (52.1, True)])
def test_an_estimate_fits_only_if_its_upper_bound_does(
    objective: Objective, free_mb: float, *, fits: bool
) -> None:
    """50 MB within 2 %: 52.0 MB is the upper bound of the 95 % interval."""
    smaller_and_faster = replace(TODAY, size=Quantity(median=90e6))
    result = weighed(
        LabEvidence(),
        field=[smaller_and_faster, estimated("lz4", 50)],
        free_bytes=int(free_mb * 1e6),
        objective=objective,
    )
    assert row(result, "lz4").fits is fits
    assert (str(result.decision.leader) == "lz4") is fits
    assert [str(setting) for setting in result.unbuilt] == (["lz4"] if fits else [])


def test_only_estimates_that_may_win_are_worth_building() -> None:
    hopeless, likely = estimated("lz4", 900), estimated("cat", 30)
    result = weighed(LabEvidence(), field=[TODAY, hopeless, likely])
    assert [str(setting) for setting in result.unbuilt] == ["cat"]
    refused = weighed(LabEvidence(), field=[TODAY, hopeless, likely], refused="cat")
    assert "cat" not in {str(setting) for setting in refused.unbuilt}
    by_size = weighed(
        LabEvidence(), field=[TODAY, hopeless, estimated("cat", 39)], objective=Objective.SIZE
    )
    assert [str(setting) for setting in by_size.unbuilt] == ["cat"]


def test_where_everything_was_built_nothing_is_left_to_build() -> None:
    assert weighed(LabEvidence()).unbuilt == ()


def test_what_is_said_to_lead_is_worth_building_however_unlikely() -> None:
    result = weighed(LabEvidence(), field=[TODAY, estimated("lz4", 900)])
    assert [str(setting) for setting in result.unbuilt] == ["lz4"]
