"""Every document that a command prints for programs is what it was, field by field.

A test's golden file has the test's name.
"""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import struct
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from initadvisor import host as host_package
from initadvisor.apply import plan
from initadvisor.apply.apply import ApplyChoices, apply
from initadvisor.apply.plan import ApplyRequest, plan_apply
from initadvisor.apply.plan_values import ApplyStep, Blocker
from initadvisor.campaign.campaign import CampaignState
from initadvisor.campaign.record import write_campaign
from initadvisor.candidates import estimates
from initadvisor.cli import root as initadvisor
from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Estimate
from initadvisor.core.settings import Setting
from initadvisor.daemon.manager import StatusReporter
from initadvisor.decide.next_boot import Purpose
from initadvisor.decide.sampling import BLOCK_BYTES
from initadvisor.doctor import software
from initadvisor.host import Host, SystemClock
from initadvisor.host.storage.mounts import device_of
from initadvisor.image.cpio import CpioWriter
from initadvisor.lab import timing
from initadvisor.measure import measure
from initadvisor.records.storage import ColdRead
from initadvisor.target import disk
from initadvisor.trial.campaigns import pause
from initadvisor.trial.markers import note_rehearsed
from tests.fakes import work_clock
from tests.fakes.compressors import COMPRESSORS, fake_compressors
from tests.fakes.generators import FakeGenerators
from tests.fakes.machines import REFUSED, UNPACKED, UNTIL_INIT, Machines
from tests.fakes.runner import FakeRunner
from tests.fixtures import images
from tests.fixtures.booted import RELEASE, Booted
from tests.fixtures.campaign_machine import Campaigning, make_campaigning
from tests.fixtures.campaigns import LZ4, TODAY, campaign
from tests.fixtures.content import mixed_content
from tests.fixtures.doctor_machine import make_examinable
from tests.fixtures.dracut_machine import applied_setting, make_appliable
from tests.fixtures.dracut_machine import image as dracut_image
from tests.fixtures.enabling_machine import make_enabling
from tests.fixtures.golden_documents import GOLDEN, check, steady
from tests.fixtures.golden_states import state_host, unpack
from tests.fixtures.journals import Boot
from tests.fixtures.kernels import bzimage
from tests.fixtures.small_images import early_archive, write_image
from tests.fixtures.used_modules import (
    FIRMWARE,
    add_boots,
    answer_modinfo,
    write_image_of_modules,
    write_modules,
)
from tests.fixtures.variants import CONFIG_OPTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.generators import Ordered
    from tests.fixtures.hosts import Machine

Golden = Callable[..., None]

CHOICE = ("--only", "zstd", "--only", "lz4", "--only", "cat")

PINNED = ("cat", "lz4", "zstd")
"""Compressors of which everybody has the same version, so that sizes are the same."""

ROOM = os.statvfs_result((4096, 4096, *[1_000_000] * 6, 0, 255))
CONFIG = "".join(f"{option}=y\n" for option in CONFIG_OPTIONS)
EXACT = "[recommend]\ntolerance_ms = 0.1\ntolerance_fraction = 0\n"
"""Small images differ by little."""

ALL_MATTERS = EXACT.replace("0.1", "0.001") + "[machine]\noverlap_ms = 0\n"

TOLD = StatusReporter()
TABLE = "setting,size_mb,unpack_ms,log_sd\nlz4 -9,50,100,0.1\nzstd -19,30,300,\nxz,29.5,298,\n"


@pytest.fixture(autouse=True)
def _same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have directories of the test's own, and nothing rest on how quick the machine is."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setattr(measure, "announce", lambda _record: None)
    monkeypatch.setattr(timing, "disturbances", lambda _host: ("the machine runs on battery",))
    monkeypatch.setattr(Host, "is_root", property(lambda _host: True))
    monkeypatch.setattr(Host, "cores", property(lambda _host: 2))
    monkeypatch.setattr(SystemClock, "monotonic_ns", lambda _clock: 0)
    monkeypatch.setattr(timing, "time_ns", lambda: 1)
    monkeypatch.setattr(estimates, "_LARGE_BYTES", 3 * BLOCK_BYTES)
    monkeypatch.setattr(estimates, "_SMALL_BYTES", 2 * BLOCK_BYTES)
    monkeypatch.setattr(estimates, "_SHORT_BYTES", 0)
    monkeypatch.setattr(disk, "cold_read", read_at_once)
    monkeypatch.setattr(os, "statvfs", lambda _path: ROOM)
    monkeypatch.setitem(COMPRESSORS, Codec.GZIP, stored)
    work_clock.install(monkeypatch)


def stored(data: bytes) -> bytes:
    """Return what is no smaller in gzip's format, and the same with every version of zlib."""
    blocks = [data[start : start + 65535] for start in range(0, len(data), 65535)]
    return b"".join(
        [
            b"\x1f\x8b\x08" + bytes(7),
            *(
                struct.pack("<?HH", number == len(blocks), len(block), 65535 - len(block)) + block
                for number, block in enumerate(blocks, 1)
            ),
            struct.pack("<II", zlib.crc32(data), len(data)),
        ]
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """Return what calls a command and holds the document it prints against the test's file."""

    def hold(*arguments: str | Path, read: Callable[[str], object] = json.loads) -> None:
        check(golden_file(request.node.name), steady(read(called(*arguments)), tmp_path))

    return hold


def golden_file(test: str) -> Path:
    """Return where the document of a test is."""
    return GOLDEN / f"json/{test.removeprefix('test_').replace('_', '-')}.json"


def called(*arguments: str | Path) -> str:
    """Return what a command prints, also before it says by its status that it did nothing."""
    result = CliRunner().invoke(initadvisor, [str(a) for a in arguments])
    if result.exception and not result.stdout:
        raise result.exception
    return result.stdout


def is_host(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    """Have commands take a machine for the real one."""
    monkeypatch.setattr(host_package, "Host", lambda: host)


@pytest.fixture
def appliable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine on which settings can be applied."""
    machine, _ = make_appliable(tmp_path / "machine", monkeypatch)
    is_host(monkeypatch, machine)
    return machine


@pytest.fixture
def campaigning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine that goes through campaigns."""
    made = make_campaigning(Booted(root=tmp_path / "machine"), monkeypatch)
    note_rehearsed(made.host, made.provable.loader.NAME)
    is_host(monkeypatch, made.host)
    return made


@pytest.fixture
def begun(campaigning: Campaigning) -> Campaigning:
    """One whose campaign has a single candidate, which is armed."""
    campaigning.candidates = {LZ4.setting: campaigning.candidates[LZ4.setting]}
    campaigning.start()
    return campaigning


@pytest.fixture
def enabling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaigning:
    """A machine on which nothing is enabled yet."""
    made, _ = make_enabling(tmp_path, monkeypatch)
    is_host(monkeypatch, made.host)
    return made


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image with content of several kinds behind microcode."""
    return write_image(tmp_path / "image", content(), early=early_archive())


def content() -> bytes:
    """Return an archive of one large file, of modules of ``RELEASE``."""
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for directory in ("lib", "lib/modules", f"lib/modules/{RELEASE}"):
            writer.directory(directory)
        writer.file(f"lib/modules/{RELEASE}/modules.dep", mixed_content(800_000))
    return file.getvalue()


@pytest.fixture
def building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    """Compressors and virtual machines, on a machine that has a kernel and little else."""
    runner, compressors = Machines(), fake_compressors()
    runner.programs = [*PINNED, "qemu-system-x86_64", "linux.uml"]
    runner.answers = compressors.answers
    runner.answer("/usr/bin/qemu-system-x86_64 --version", "QEMU emulator version 9.0")
    runner.answer("/usr/bin/linux.uml --version", "6.1.176")
    for name, data in (
        (f"/boot/vmlinuz-{RELEASE}", kernel(RELEASE)),
        (f"/boot/config-{RELEASE}", CONFIG.encode()),
        ("/usr/bin/linux.uml", b"a kernel"),
        ("/dev/kvm", b""),
        ("/etc/initadvisor.toml", EXACT.encode()),
        ("/proc/cpuinfo", b"model name\t: A Processor\n"),
        ("/proc/self/mountinfo", b"22 1 0:22 / / rw - tmpfs tmpfs rw\n"),
        ("/proc/sys/kernel/random/boot_id", b"a boot\n"),
    ):
        path = tmp_path / "machine" / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    monkeypatch.setattr(Host, "machine", lambda _host: "x86_64")
    monkeypatch.setattr(Host, "kernel_release", lambda _host: RELEASE)
    is_host(monkeypatch, Host(root=tmp_path / "machine", runner=runner))
    return runner


def kernel(release: str) -> bytes:
    """Return as much of a bzImage as is looked at (Linux, Documentation/arch/x86/boot.rst)."""
    header = bytearray(0x600)
    header[0x202:0x206] = b"HdrS"
    header[0x20E:0x210] = (0x300).to_bytes(2, "little")
    text = f"{release} (builder@host) #1 SMP\0".encode()
    header[0x500 : 0x500 + len(text)] = text
    return bytes(header)


@pytest.fixture
def booted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Booted:
    """A Debian that has just booted an image, as it did before, and can build others."""
    machine = Booted(root=tmp_path / "machine")
    compressors = fake_compressors()
    machine.runner.programs = {*machine.runner.programs, *PINNED}
    machine.runner.answers = [*compressors.answers, *machine.runner.answers]
    machine.initramfs_tools("COMPRESS=lz4\n")
    machine.write("/etc/initadvisor.toml", EXACT)
    machine.write(f"/boot/config-{RELEASE}", CONFIG)
    machine.write("/proc/self/mountinfo", "22 1 0:22 / / rw - tmpfs tmpfs rw\n")
    installed = write_image(machine.image(), content(), codec=Codec.LZ4)
    written_s = Boot(number=0).started_us / 1e6
    os.utime(installed, (written_s, written_s))
    size_bytes = installed.stat().st_size
    machine.boot = Boot(number=9).ordinary(freed_kib=-(-size_bytes // 4096) * 4)
    machine.earlier = [Boot(number=1).ordinary(), Boot(number=2).kernel(0, "Linux version 6.1")]
    machine.systemd_boot()
    machine.loaded(size_bytes)
    monkeypatch.setattr(host_package, "Host", machine.host)
    return machine


def read_at_once(host: Host, image: Path) -> ColdRead:
    """Return how fast a disk is, which none is asked for."""
    speed = Estimate(mean=500, low=480, high=520, source="a test")
    return ColdRead(speed_mb_s=speed, samples_mb_s=(500,), device=device_of(host, image))


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of three settings, on a machine without anything."""
    is_host(monkeypatch, Host(root=tmp_path / "machine", runner=FakeRunner()))
    path = tmp_path / "mine.csv"
    path.write_text(TABLE)
    return path


def test_apply(golden: Golden, appliable: Machine) -> None:
    del appliable
    golden("apply", "zstd", "--all", "--json")


def test_apply_in_the_way(
    golden: Golden, appliable: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    del appliable
    obstacle = Blocker(
        step=ApplyStep.PROVING_BOOT, reason="rEFInd started it", remedy="use another"
    )
    monkeypatch.setattr(plan, "_of_the_boot_loader", lambda _host, _images: (obstacle,))
    golden("apply", "lz4", "--json")


def test_candidates_build(golden: Golden, building: Machines, image: Path) -> None:
    del building
    golden("candidates", "build", "--image", image, *CHOICE, "--only", "lzop", "--json")


def test_candidates_list(golden: Golden, building: Machines, image: Path) -> None:
    del building
    for setting in ("zstd", "lz4"):
        called("candidates", "build", "--image", image, "--only", setting)
    golden("candidates", "list", "--image", image, "--json")


def test_candidates_prune(golden: Golden, building: Machines, image: Path) -> None:
    del building
    called("candidates", "build", "--image", image, *CHOICE)
    golden("candidates", "prune", "--all", "--json")


def test_candidates_sweep(golden: Golden, building: Machines, image: Path) -> None:
    del building
    choice = ("--levels", "1,19", "--threads", "1..2")
    golden("candidates", "sweep", "--image", image, *choice, "--json")


def test_config(golden: Golden, booted: Booted) -> None:
    text = "[machine]\nread_speed_mb_s = 500\n[candidates]\nsettings = ['zstd', 'lz4 -9']\n"
    booted.write("/etc/initadvisor.toml", text)
    golden("config", "--json")


def test_config_set(golden: Golden, booted: Booted) -> None:
    del booted
    golden("config", "set", "overlap_ms", "40", "--json")


def test_config_unset(golden: Golden, booted: Booted) -> None:
    del booted
    golden("config", "unset", "recommend.tolerance_ms", "--json")


def test_doctor(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _ = make_examinable(tmp_path / "machine", monkeypatch)
    is_host(monkeypatch, machine)
    monkeypatch.setattr(platform, "python_version", lambda: "3.11.0")
    monkeypatch.setattr(software, "version", lambda _package: "1.0")
    golden("doctor", "--json")


def test_history(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path / "state")
    is_host(monkeypatch, state_host(tmp_path))
    golden("history", "--json")


def test_history_csv(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(tmp_path / "state")
    is_host(monkeypatch, state_host(tmp_path))
    golden("history", "--csv", read=rows_of)


def rows_of(text: str) -> object:
    """Return the rows of a table, each with its record as an object."""
    return [{**r, "record": json.loads(r["record"])} for r in csv.DictReader(text.splitlines())]


def test_inspect(golden: Golden, tmp_path: Path, building: Machines, image: Path) -> None:
    del building
    config = tmp_path / "config"
    config.write_text(CONFIG)
    golden("inspect", image, "--kernel-config", config, "--json")


def test_inspect_refused(golden: Golden, tmp_path: Path, building: Machines) -> None:
    del building
    path = tmp_path / "image"
    path.write_bytes(images.compress(Codec.CAT, content()) + b"junk")
    golden("inspect", path, "--json")


def test_inspect_uki(golden: Golden, tmp_path: Path, building: Machines) -> None:
    del building
    sections = [(".uname", b"6.6.6"), (".initrd", COMPRESSORS[Codec.ZSTD](content()))]
    (tmp_path / "uki").write_bytes(images.pe(sections))
    golden("inspect", tmp_path / "uki", "--json")


def test_contents(golden: Golden, building: Machines, image: Path, tmp_path: Path) -> None:
    del building
    kernel_file = bzimage(RELEASE, Codec.ZSTD, mixed_content(300_000))
    (tmp_path / f"machine/boot/vmlinuz-{RELEASE}").write_bytes(kernel_file)
    golden("contents", image, "--kernel-codecs", "--json")


def test_contents_unused(golden: Golden, building: Machines, tmp_path: Path) -> None:
    machine = Host(root=tmp_path / "machine", runner=building)
    write_modules(machine)
    add_boots(machine, count=2)
    answer_modinfo(building, FIRMWARE)
    golden("contents", write_image_of_modules(tmp_path / "image"), "--unused", "--json")


def test_contents_variants(golden: Golden, appliable: Machine) -> None:
    def make(order: Ordered) -> None:
        small = "hostonly" in "".join(order.config.values())
        extra = "" if small else "usr/firmware.bin"
        order.image.write_bytes(dracut_image(Codec.GZIP, extra=extra))

    assert isinstance(appliable.runner, FakeGenerators)
    appliable.runner.make = make
    golden("contents", "--variants", "--json")


def test_contents_without_a_kernel(golden: Golden, building: Machines, image: Path) -> None:
    """One of before Linux 2.6.26, say, which does not tell where in it the compressed part is."""
    del building
    golden("contents", image, "--json")


def test_lab(golden: Golden, building: Machines, image: Path) -> None:
    building.says = unpacking
    golden("lab", "--image", image, *CHOICE, "--only", "lzop", "--rounds", "3", "--json")


def unpacking(image: bytes, command: str) -> str | None:
    """Return what a kernel says: it takes longer for a smaller image, and never boots lz4's."""
    if COMPRESSORS[Codec.LZ4](b"")[:4] in image:
        return None
    if "initadvisor-end" in command:
        return UNTIL_INIT
    return UNPACKED.format(us=2_000_000 - len(image))


def test_lab_verify(golden: Golden, building: Machines, image: Path) -> None:
    del building
    golden("lab", "--verify", image, "--json")


def test_lab_verify_refused(golden: Golden, building: Machines, image: Path) -> None:
    building.says = lambda _image, _command: REFUSED.format(why="ZSTD-compressed data is corrupt")
    golden("lab", "--verify", image, "--json")


def test_lab_engines(golden: Golden, building: Machines) -> None:
    del building
    golden("lab", "--engines", "--json")


def test_measure(golden: Golden, booted: Booted) -> None:
    del booted
    golden("measure", "--json")


def test_measure_backfill(golden: Golden, booted: Booted) -> None:
    del booted
    golden("measure", "--backfill", "--dry-run", "--json")


def test_recommend(golden: Golden, booted: Booted) -> None:
    """It records what the journal has before it answers, where the system is an installed one."""
    (booted.root / "proc/1").mkdir()
    (booted.root / "proc/1/root").symlink_to(booted.root)
    golden("recommend", *CHOICE, "--explain", "--json")
    assert len(json.loads(called("history", "--json"))["boots"]) > 1


def test_recommend_image(golden: Golden, building: Machines, image: Path) -> None:
    del building
    golden("recommend", "--image", image, *CHOICE, "--only", "lzop", "--overlap", "0", "--json")
    assert json.loads(called("history", "--json"))["boots"] == []


def test_recommend_lab(golden: Golden, building: Machines, image: Path) -> None:
    building.says = lambda image, _command: UNPACKED.format(us=2_000_000 - len(image))
    golden("recommend", "--image", image, *CHOICE, "--objective", "balanced", "--lab", "--json")


def test_enable(golden: Golden, enabling: Campaigning) -> None:
    del enabling
    golden("enable", "--policy", "try", "--yes", "--json")


def test_disable(golden: Golden, enabling: Campaigning) -> None:
    del enabling
    called("enable", "--policy", "try", "--yes", "--json")
    golden("disable", "--json")


def test_status_at_first(golden: Golden, appliable: Machine) -> None:
    del appliable
    golden("status", "--json")


def test_status(golden: Golden, appliable: Machine) -> None:
    for setting, choices in (
        ("zstd", ApplyChoices(immediate=True)),
        ("lz4", ApplyChoices()),
    ):
        request = ApplyRequest(setting=Setting.parse(setting))
        apply(appliable, plan_apply(appliable, request, observer=TOLD), choices, observer=TOLD)
    golden("status", "--check", "--json")


def test_status_of_a_campaign(golden: Golden, campaigning: Campaigning) -> None:
    campaigning.start()
    golden("status", "--json")


def test_trial_status(golden: Golden, campaigning: Campaigning) -> None:
    campaigning.start(only=("lz4 -9", "gzip"), most_boots=9)
    for _ in range(2):
        campaigning.boot()
    golden("trial", "status", "--json")


def test_trial_status_at_first(golden: Golden, campaigning: Campaigning) -> None:
    del campaigning
    golden("trial", "status", "--json")


def test_trial_start(golden: Golden, campaigning: Campaigning) -> None:
    campaigning.candidates = {LZ4.setting: campaigning.candidates[LZ4.setting]}
    golden("trial", "start", "--yes", "--json")


def test_trial_pause(golden: Golden, begun: Campaigning) -> None:
    del begun
    golden("trial", "pause", "--json")


def test_trial_resume(golden: Golden, begun: Campaigning) -> None:
    pause(begun.host)
    golden("trial", "resume", "--json")


def test_trial_stop(golden: Golden, begun: Campaigning) -> None:
    del begun
    golden("trial", "stop", "--json")


def test_settle(golden: Golden, begun: Campaigning) -> None:
    del begun
    golden("settle", "--json")


def test_rollback(golden: Golden, appliable: Machine) -> None:
    applied_setting(appliable, Setting(Codec.ZSTD))
    golden("rollback", "--json")


def test_rollback_of_nothing(golden: Golden, appliable: Machine) -> None:
    del appliable
    golden("rollback", "--json")


def test_trial_next(golden: Golden, campaigning: Campaigning) -> None:
    campaigning.start()
    pause(campaigning.host)
    golden("trial", "next", "--dry-run", "--json")


def test_trial_next_armed(golden: Golden, begun: Campaigning) -> None:
    del begun
    golden("trial", "next", "--json")


def test_trial_next_unknown(golden: Golden, campaigning: Campaigning) -> None:
    del campaigning
    golden("trial", "next", "--dry-run", "--json")


def test_whatif(golden: Golden, booted: Booted) -> None:
    del booted
    called("measure")
    golden("whatif", "--json")


def test_recommend_and_whatif_know_the_same_of_the_machine(booted: Booted) -> None:
    """Means of what is known up to a factor would differ: of a speed, and of the time it takes."""
    del booted
    called("measure")
    said = json.loads(called("recommend", "--explain", "--json"))
    asked = json.loads(called("whatif", "--json"))
    (own, *_) = asked["columns"]
    updates = {update["what"]: update["now"] for update in said["explain"]["updates"]}
    assert own["overlap_ms"] == pytest.approx(updates["overlap"]["median"], rel=1e-3)
    assert own["read_mb_s"] == pytest.approx(said["storage"]["loader_mb_s"]["median"], rel=1e-3)
    rows = {row["setting"]: row for row in said["candidates"]}
    figures = {one["setting"]: one for one in asked["settings"]}
    costs_ms = {one["setting"]: one["cost_ms"]["mean"] for one in own["settings"]}
    assert len(figures) > 2
    for name in figures:
        row = rows[name]
        saving_ms = costs_ms[said["baseline"]] - costs_ms[name]
        assert row["saving_ms"]["median"] == pytest.approx(saving_ms, abs=2e-3)
        size_mb = figures[name]["size_mb"]["mean"]
        assert row["read_ms"]["median"] == pytest.approx(
            1000 * size_mb / own["read_mb_s"], rel=0.02
        )
        assert row["unpack_ms"]["median"] == figures[name]["unpack_ms"]["mean"]


def test_apply_and_trials_tell_of_the_answer_that_recommend_gives(booted: Booted) -> None:
    """Between settings that are next to alike, of which boots are to be planned."""
    booted.runner.answer("bootctl", "/efi\n")
    booted.write("/etc/initadvisor.toml", ALL_MATTERS)
    called("measure")
    said = json.loads(called("recommend", "--json"))
    rows = {row["setting"]: row["saving_ms"] for row in said["candidates"]}
    for name in ("zstd", "zstd -19"):
        saving_ms = json.loads(called("apply", name, "--json"))["saving_ms"]
        assert saving_ms == {key: pytest.approx(rows[name][key], abs=1e-3) for key in saving_ms}
    others = ("zstd", "zstd -1", "zstd -3")
    asked = [word for name in others for word in ("--only", name)]
    said = json.loads(called("recommend", *asked, "--json"))
    ready = (replace(TODAY, setting=said["baseline"]), *(replace(LZ4, setting=n) for n in others))
    write_campaign(booted.host(), replace(campaign(CampaignState.PAUSED), ready=ready))
    note_rehearsed(booted.host(), "systemd-boot")
    following, plan = json.loads(called("trial", "next", "--dry-run", "--json")), said["plan"]
    assert plan["purpose"] == Purpose.LEARN
    assert following["next"]["setting"] == plan["next"]
    contrast = plan["contrast"]
    assert f"about {contrast['one']} against {contrast['other']};" in following["reason"]
    assert f"({100 * plan['chance']:.0f} % likely)" in following["reason"]


def test_whatif_table(golden: Golden, table: Path) -> None:
    golden("whatif", "--table", table, "--json")


def test_whatif_range(golden: Golden, table: Path) -> None:
    golden("whatif", "--table", table, "--read-speed", "20..2000", "--json")


def test_whatif_map(golden: Golden, table: Path) -> None:
    ranges = ("--read-speed", "20..2000", "--overlap", "0..500")
    golden("whatif", "--table", table, *ranges, "--json")


def test_whatif_list(golden: Golden, table: Path) -> None:
    del table
    golden("whatif", "--list", "--json")


def test_each_command_has_documents_and_each_document_a_test() -> None:
    """A command that learns ``--json`` needs a test here."""
    files = {path.name for path in (GOLDEN / "json").iterdir()}
    assert files <= {golden_file(name).name for name in globals()}
    names = named(initadvisor, "")
    assert [name for name in names if not any(file.startswith(name) for file in files)] == []


def named(command: click.Command, name: str) -> list[str]:
    """Return the commands with ``--json``, by the beginnings of their files' names."""
    own = [name] if any("--json" in parameter.opts for parameter in command.params) else []
    if isinstance(command, click.Group):
        context = click.Context(command)
        return own + [
            each
            for word in command.list_commands(context)
            if (inner := command.get_command(context, word))
            for each in named(inner, f"{name}-{word}".lstrip("-"))
        ]
    return own
