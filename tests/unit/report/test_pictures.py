"""Pictures of boots and of the image: where their parts are."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.settings import Setting
from initadvisor.image.contents import FileKind, StoredFile
from initadvisor.records.boot import RejectionReason
from initadvisor.records.boot_start import EfiTimes, Phase, PhaseSource, PhaseTime
from initadvisor.records.marks import BootStep, Waiting
from initadvisor.report.history import HEIGHT, panels
from initadvisor.report.report import Lane
from initadvisor.report.time_line import stages, ticks
from initadvisor.report.trade_offs import trade_offs
from initadvisor.report.treemap import areas
from tests.fixtures.boots import LZ4, ZSTD, boot_record
from tests.fixtures.reports import SWEPT, kind_use, report_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.host import Host
    from initadvisor.records.boot import BootRecord

BOOT = boot_record(unpack_us=200_000, read_us=900_000)


def named(record: BootRecord) -> dict[str, tuple[float, float]]:
    """Return from when to when each stage goes."""
    return {stage.name: (stage.from_ms, stage.to_ms) for stage in stages(record)}


def phases(*durations_ms: tuple[Phase, int]) -> tuple[PhaseTime, ...]:
    """Return phases of a boot."""
    return tuple(
        PhaseTime(phase=phase, duration_us=1000 * ms, source=PhaseSource.MANAGER)
        for phase, ms in durations_ms
    )


def test_a_boot_is_told_stage_by_stage() -> None:
    known = phases(
        (Phase.FIRMWARE, 4000),
        (Phase.LOADER, 900),
        (Phase.KERNEL, 1100),
        (Phase.INITRD, 1900),
        (Phase.USERSPACE, 6000),
    )
    record = replace(BOOT, phases=known)
    assert named(record) == {
        "firmware": (-4900, -900),
        "loader": (-900, 0),
        "kernel, before the unpacking": (0, 300),
        "kernel, until /init": (300, 600),
        "initramfs, until switch-root": (600, 3000),
        "user space": (3000, 9000),
        "unpacking": (300, 500),
        "other work": (300, 350),
        "waiting for the unpacking": (350, 500),
    }
    lane = [stage for stage in stages(record) if stage.lane is Lane.BOOT]
    assert all(one.to_ms == other.from_ms for one, other in pairwise(lane))
    unseen = replace(record, shadow=replace(BOOT.shadow, waiting=Waiting.HIDDEN))
    assert named(unseen)["other work, until it ends"] == (300, 500)


def test_the_longest_steps_are_shown_by_the_names_that_people_write() -> None:
    steps = tuple(
        BootStep(
            name=rf"call\x2d{number}", start_us=1000 * number, duration_us=10_000 * (number + 1)
        )
        for number in range(40)
    )
    record = replace(BOOT, initcalls=steps, initrd_units=steps[:1], critical_chain=steps[1:3])
    lanes = {lane: [one for one in stages(record) if one.lane is lane] for lane in Lane}
    assert [one.name for one in lanes[Lane.INITCALLS]] == [f"call-{n}" for n in range(28, 40)]
    [unit] = lanes[Lane.INITRD_UNITS]
    assert (unit.name, unit.from_ms, unit.to_ms) == ("call-0", 0, 10)
    assert [one.name for one in lanes[Lane.CRITICAL_CHAIN]] == ["call-1", "call-2"]
    assert [lane for lane in Lane if lane.overlaps] == [
        *(Lane.INITCALLS, Lane.INITRD_UNITS, Lane.CRITICAL_CHAIN)
    ]


def test_the_menu_is_told_apart_and_what_is_not_known_is_left_out() -> None:
    efi = EfiTimes(init_us=5_000_000, menu_us=5_200_000, exec_us=5_900_000)
    shown = named(replace(BOOT, times=replace(BOOT.times, efi=efi)))
    assert (shown["loader"], shown["menu, then reading"]) == ((-900, -700), (-700, 0))
    assert "firmware" not in shown
    assert shown["initramfs, until switch-root"] == (600, 3000)  # one without systemd in it
    marks = replace(BOOT.timestamps, begin_us=None, run_init_us=None)
    assert named(replace(BOOT, timestamps=marks, phases=())) == {}


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-5100, 9000, (-5000, 0, 5000)),
        (300, 500, (300, 350, 400, 450)),  # of 500 the words would be cut off
        (0.25, 0.75, (0.3, 0.4, 0.5, 0.6)),
    ],
)
def test_the_marks_of_the_axis_are_round(
    low: float, high: float, expected: Sequence[float]
) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_history_marks_changes_and_what_does_not_count(host: Host) -> None:
    records = (
        *(boot_record(number) for number in range(1, 5)),
        *(boot_record(number, setting=LZ4, unpack_us=100_000) for number in range(5, 9)),
        boot_record(9, setting=LZ4, unpack_us=90_000_000, rejections=(RejectionReason.OOPSED,)),
    )
    unpacking, *others = panels(report_of(host, records=records).boots)
    assert [panel.title for panel in others] == [
        "firmware or loader, with the reading",
        "the whole boot",
    ]
    assert unpacking.sentence == (
        "zstd -19 200 ms (4 boots, 200 to 200 ms); lz4 -9 100 ms (4 boots, 100 to 100 ms)"
    )
    points = unpacking.points
    assert [point.counts for point in points] == [True] * 8 + [False]
    assert all(one.x < other.x for one, other in pairwise(points))
    assert points[0].y < points[5].y < HEIGHT  # lz4 takes less
    assert points[-1].y < points[0].y  # at the edge, so that the others can be seen
    assert "the kernel met an error" in points[-1].words
    assert [change.label for change in unpacking.changes] == ["zstd -19", "lz4 -9"]
    between = (points[3].x + points[4].x) / 2
    assert unpacking.changes[1].x == pytest.approx(between)
    assert panels(report_of(host, records=()).boots[:1]) == ()


def test_the_longest_stretches_of_boots_have_their_label(host: Host) -> None:
    def labels(*settings: Setting) -> list[str]:
        boots = [replace(boot, setting=setting) for setting in reversed(settings)]
        return [change.label for change in panels(boots)[0].changes]

    [boot] = report_of(host, records=(BOOT,)).boots

    assert labels(ZSTD, *[LZ4] * 20) == ["lz4 -9"]  # of one boot it would lie under the other
    zstd, lz4 = Setting.parse("zstd"), Setting.parse("lz4")
    assert labels(*[zstd, lz4] * 2, lz4) == ["zstd", "lz4", "zstd", "lz4"]
    assert labels(*[LZ4] * 20, ZSTD) == ["lz4 -9", ""]  # at the edge


def test_areas_fill_the_picture_by_size_and_files_stand_in_their_kind(host: Host) -> None:
    report = report_of(host)
    found = areas(report, aspect=3)
    total = sum(kind.size_bytes for kind in report.kinds)
    for area in found:
        assert area.width * area.height / 1e4 == pytest.approx(area.size_bytes / total)
        assert -1e-6 <= area.x <= area.x + area.width <= 100 + 1e-6
        assert -1e-6 <= area.y <= area.y + area.height <= 100 + 1e-6
    for number, one in enumerate(found):
        for other in found[number + 1 :]:
            across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
            down = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
            assert across < 1e-6 or down < 1e-6
    by_name = {area.name: area for area in found}
    assert by_name["amdgpu.ko"].kind == by_name["other graphics"].kind == 0
    assert by_name["libcrypto.so.3"].kind == by_name["other libraries"].kind
    purposes = [
        by_name[name].purpose for name in ("amdgpu.ko", "other graphics", "graphics firmware")
    ]
    assert purposes == ["graphics", "", ""]


def test_files_that_do_not_fit_their_kind_are_left_out(host: Host) -> None:
    report = replace(
        report_of(host),
        kinds=(kind_use(FileKind.OTHER, 1, 10),),
        largest=(StoredFile(path="etc/large", size_bytes=11, kind=FileKind.OTHER),),
    )
    [area] = areas(report, aspect=3)
    assert (area.name, area.width, area.height) == ("other", 100, 100)
    assert areas(replace(report, kinds=()), aspect=3) == ()


def test_settings_stand_by_size_and_time_and_what_none_beats_is_joined(host: Host) -> None:
    report = report_of(host)
    lz4, zstd, xz = report.settings
    cat = replace(xz, setting=Setting.parse("cat"), size_bytes=120_000_000, build_s=0.0)
    built = (replace(lz4, build_s=0.5), replace(zstd, build_s=4.0), replace(xz, build_s=20.0), cat)
    build, boot = trade_offs(replace(report, settings=built))
    for panel in (build, boot):
        left, middle, right = panel.points
        assert [point.label for point in panel.points] == ["lz4 -9, advised", "zstd, today", ""]
        assert 0 < left.x < middle.x < right.x < 100
        assert 0 < left.y < middle.y < right.y < 240
        assert all(point.front for point in panel.points)
        assert panel.joined == ((left, middle), (middle, right))
    assert (build.left, build.right) == ("0.50 s", "20.0 s")
    assert (build.smallest, build.largest) == ("33.0 MB", "55.0 MB")
    assert build.points[0].words == "lz4 -9: 55.0 MB, 0.50 s"
    slow = (replace(lz4, build_s=5.0, size_bytes=zstd.size_bytes), *built[1:])
    beaten, *others = trade_offs(replace(report, settings=slow))[0].points
    assert beaten.label == "lz4 -9, advised"
    assert [beaten.label_dy, others[0].label_dy] == [-4, 12]  # both are of one size
    assert [beaten.front, *(point.front for point in others)] == [False, True, True]
    [boot] = trade_offs(replace(report, settings=(replace(lz4, build_s=None), *built[1:2])))
    assert boot.title == "Size against what a boot costs"
    assert trade_offs(replace(report, settings=built[:1])) == ()
    assert trade_offs(replace(report, model=None)) == ()


def test_a_label_stands_where_it_hides_no_other_point(host: Host) -> None:
    report = report_of(host)
    lz4, zstd, xz = report.settings
    near = replace(xz, setting=Setting.parse("zstd -9"), size_bytes=zstd.size_bytes, build_s=4.5)
    for build_s, before in ((4.5, True), (3.5, False)):
        beside = replace(near, build_s=build_s)
        settings = (replace(lz4, build_s=0.5), replace(zstd, build_s=4), replace(xz, build_s=20))
        points = trade_offs(replace(report, settings=(*settings, beside)))[0].points
        [today] = [point for point in points if point.label == "zstd, today"]
        [advised] = [point for point in points if point.label == "lz4 -9, advised"]
        assert (advised.before, today.before) == (False, before)  # of lz4 the edge is too near


def test_what_was_swept_stands_beside_it_with_its_intervals(host: Host) -> None:
    report = replace(report_of(host), swept=SWEPT)
    build, boot = trade_offs(report)
    words = {panel.title: [point.words for point in panel.points] for panel in (build, boot)}
    assert "zstd -9 -T4: 41.0 MB, 1.5 s (1.2 to 2.0 s)" in words["Size against time to build"]
    # 41 MB at 500 MB/s, and 60 of 200 ms hidden; the loader's interval is by far the widest
    assert "zstd -9 -T1: 41.0 MB, 282 ms (202 to 1021 ms)" in words[boot.title]
    assert boot.sentence == (
        "lz4 -9, advised: 55.0 MB, 230 ms (129 to 1220 ms); "
        "zstd, today: 40.0 MB, 290 ms (212 to 1011 ms)"
    )
    own = SWEPT[0].build_wall_s
    again = replace(SWEPT[0], setting=report.today, build_wall_s=replace(own, mean=9.0))
    by_sweep = trade_offs(replace(report, swept=(again,)))[0].points
    assert [point.words for point in by_sweep if point.label == "zstd, today"] == [
        "zstd: 48.0 MB, 9.0 s (0.64 to 1.0 s)"
    ]
