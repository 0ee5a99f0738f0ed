"""What is assumed of a machine is what is said to be assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from initadvisor.advise.boots import BootContext
from initadvisor.advise.machine import LOADER_DOWN, LOADER_UP, know_machine
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Estimate
from initadvisor.data.tables import observed_boots, shipped_calibration
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.costs import quantity_at

if TYPE_CHECKING:
    from initadvisor.advise.machine import Knowledge

OVERLAP = "how long the kernel is busy before it needs the initramfs (overlap)"
READ = Estimate(mean=500, low=480, high=520, source="a test")


def known(
    *,
    read: Estimate = READ,
    link_mb_s: float | None = None,
    given_read: float | None = None,
    given_shadow: float | None = None,
    asynchronous: bool | None = True,
    one_processor: bool = False,
) -> Knowledge:
    return know_machine(
        read_mb_s=read,
        link_mb_s=link_mb_s,
        given_read_mb_s=given_read,
        given_overlap_ms=given_shadow,
        unpacked_bytes=100_000_000,
        context=BootContext(
            asynchronous=asynchronous,
            one_processor=one_processor,
            whole_boot_ms=None,
            kernel_mb=10,
            kernel_mb_source="a test",
        ),
        table=shipped_calibration(),
    )


def loader_mb_s(knowledge: Knowledge) -> tuple[float, float]:
    """Return between which speeds the loader's is with 95 % probability."""
    slowest, fastest = quantity_at(knowledge.machine.read_s_per_mb, np.array([1.96, -1.96]))
    return 1 / float(slowest), 1 / float(fastest)


def test_the_loader_is_expected_to_read_half_as_fast_as_linux_and_rather_slower_than_faster() -> (
    None
):
    low, high = loader_mb_s(known())
    assert 1 / known().machine.read_s_per_mb.median == pytest.approx(250)
    assert low == pytest.approx(250 / 15, rel=0.02)
    assert high == pytest.approx(250 * 4, rel=0.02)


def test_the_loader_is_never_faster_than_the_link_to_the_disk() -> None:
    linked = known(link_mb_s=600)
    assert loader_mb_s(linked)[1] == pytest.approx(600)
    assert loader_mb_s(linked)[0] == pytest.approx(250 / LOADER_DOWN, rel=0.02)
    assert "at most the link's 600 MB/s" in linked.machine.read_s_per_mb.source


def test_a_doubtful_read_leaves_the_loader_wider_open() -> None:
    low, high = loader_mb_s(known(read=Estimate(mean=300, low=60, high=1500, source="assumed")))
    assert high > 150 * LOADER_UP * 1.5
    assert low < 150 / LOADER_DOWN / 1.5


def test_a_speed_that_is_given_is_believed() -> None:
    low, high = loader_mb_s(known(given_read=120))
    assert 105 < low < 120 < high < 135


@pytest.mark.parametrize("asynchronous", [True, None])
def test_the_shadow_is_drawn_from_real_boots_where_it_may_exist(asynchronous: bool | None) -> None:
    shadow = known(asynchronous=asynchronous).machine.shadow
    assert shadow.fixed_ms is None
    assert len(shadow.boots) == 30


def test_a_synchronous_kernel_or_one_processor_has_no_shadow_unless_one_is_given() -> None:
    assert known(asynchronous=False).machine.shadow.fixed_ms == 0
    assert known(one_processor=True).machine.shadow.fixed_ms == 0
    assert known(given_shadow=800).machine.shadow.fixed_ms == 800


def test_every_prior_of_reading_and_waiting_is_stated() -> None:
    loader, shadow, fixed = known().assumptions
    assert (loader.about, shadow.about, fixed.about) == (
        Parameter.LOADER,
        Parameter.SHADOW,
        Parameter.FIXED,
    )
    assert "the loader's reading: Linux reads 500 MB/s (a test)" in loader.text
    assert shadow.text == f"{OVERLAP}: unknown here, drawn from 30 boots of other machines"
    assert fixed.text == (
        "what every image pays: 100 ms within a factor of 7, plus reading the kernel (10.0 MB, "
        "a test)"
    )


def test_a_shadow_that_is_known_is_not_said_to_be_unknown() -> None:
    for machine, words in (
        (known(given_shadow=800), f"{OVERLAP}: 800 ms, as given"),
        (known(asynchronous=False), f"{OVERLAP}: none, this kernel unpacks the initramfs"),
        (known(one_processor=True), f"{OVERLAP}: none, on one processor unpacking"),
    ):
        assert machine.assumptions[1].text.startswith(words)


def test_the_calibration_knows_every_codec_and_says_where_from() -> None:
    table = shipped_calibration()
    assert {codec for codec, _ in table.rows} == set(Codec) - {Codec.CAT}
    for row in table.rows.values():
        assert 0.2 < row.ratio < 10
        assert 0.04 < row.log_sd < 1
        assert 0.01 < row.own_log_sd < 1
    assert {codec for codec, far in table.rows if far} == {Codec.XZ, Codec.LZMA, Codec.ZSTD}
    assert table.buffer_ms_per_mb < table.uml_buffer_ms_per_mb / 10
    assert "Linux" in table.source


def test_the_observed_boots_are_consistent() -> None:
    boots = observed_boots()
    for boot in boots:
        assert boot.unpack_ms > 0
        assert boot.begin_to_init_ms is None or boot.begin_to_init_ms >= boot.unpack_ms
        assert (boot.shadow_ms is not None) == boot.waited
        assert boot.shadow_ms is None or boot.shadow_ms <= boot.unpack_ms
    assert any(not boot.waited for boot in boots)
