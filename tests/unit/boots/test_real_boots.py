"""Boots of real guests, recorded by tests/vm/boot_traces.py: how they were started, what was used.

OVMF has no FPDT and in these guests the loader's times are those of an emulated processor: what is
held here is that each source is found, understood and agrees with the others.
"""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING, NamedTuple

import pytest

from initadvisor.boots.attribute import attribute, image_evidence
from initadvisor.boots.loader_times import loader_times
from initadvisor.core.estimates import Certainty
from initadvisor.firmware.boot_method import boot_start
from initadvisor.firmware.efi_variables import loader_variables
from initadvisor.host import Host
from initadvisor.records.attribution import AttributionSource, KnownImage
from initadvisor.records.boot_start import BootMethod, Phase, PhaseSource, boot_phases
from initadvisor.records.read_interval import (
    IntervalSource,
    NoInterval,
    ReadInterval,
    read_interval,
)
from tests.fakes.runner import FakeRunner
from tests.vm.boot_traces import ARCHIVE, FACTS, MANAGER, WAYS

if TYPE_CHECKING:
    from pathlib import Path


class Expected(NamedTuple):
    """What a recorded boot was, as the one who set it up knows it."""

    way: BootMethod
    certainty: Certainty
    times: bool
    digest: bool


EXPECTED = {
    "systemd-boot": Expected(BootMethod.SYSTEMD_BOOT, Certainty.CERTAIN, times=True, digest=True),
    "systemd-boot-252": Expected(
        BootMethod.SYSTEMD_BOOT, Certainty.CERTAIN, times=True, digest=True
    ),
    "systemd-boot-uki": Expected(
        BootMethod.SYSTEMD_BOOT_UKI, Certainty.CERTAIN, times=True, digest=True
    ),
    "firmware-uki": Expected(BootMethod.FIRMWARE_UKI, Certainty.CERTAIN, times=False, digest=True),
    "firmware-uki-252": Expected(
        BootMethod.FIRMWARE_UKI, Certainty.CERTAIN, times=False, digest=True
    ),
    "boot-option-uki": Expected(
        BootMethod.FIRMWARE_UKI, Certainty.CERTAIN, times=False, digest=True
    ),
    "grub": Expected(BootMethod.GRUB_EFI, Certainty.CERTAIN, times=False, digest=True),
    "efi-stub": Expected(BootMethod.EFI_STUB, Certainty.CERTAIN, times=False, digest=False),
    "kexec": Expected(BootMethod.KEXEC, Certainty.CERTAIN, times=True, digest=False),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("boots")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(directory, filter="data")
    return directory


@pytest.fixture(params=EXPECTED)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def host(recorded: Path, name: str) -> Host:
    root = recorded / name
    (root / "run/systemd/system").mkdir(parents=True, exist_ok=True)
    runner = FakeRunner()
    runner.answer("systemctl show", (root / MANAGER).read_text())
    return Host(root=root, runner=runner)


def test_every_way_that_is_recorded_is_looked_at() -> None:
    assert set(EXPECTED) == set(WAYS)


def test_the_way_it_was_started_is_told_for_certain(host: Host, name: str) -> None:
    variables = loader_variables(host)
    start = boot_start(host, variables)
    assert (start.method, start.certainty) == (EXPECTED[name].way, EXPECTED[name].certainty)
    assert variables.unreadable == ()


def test_the_loaders_times_are_those_that_systemd_has(host: Host, name: str) -> None:
    times = loader_times(host)
    assert times.unreadable == ()
    assert times.manager.finish_us
    efi = times.efi
    assert (efi.init_us is not None) is EXPECTED[name].times
    if efi.init_us is not None and efi.exec_us is not None:
        assert times.manager.firmware_us == efi.exec_us
        assert times.manager.loader_us == efi.exec_us - efi.init_us
        phases = {each.phase: each for each in boot_phases(EXPECTED[name].way, times)}
        if EXPECTED[name].way is BootMethod.KEXEC:
            assert Phase.LOADER not in phases
        else:
            assert phases[Phase.LOADER].duration_us == times.manager.loader_us
            assert phases[Phase.LOADER].source is PhaseSource.EFI


def test_the_interval_that_contains_the_reading_is_systemd_boots_or_none(
    host: Host, name: str
) -> None:
    start = boot_start(host, loader_variables(host))
    times = loader_times(host)
    interval = read_interval(start, times)
    if start.method in {BootMethod.SYSTEMD_BOOT, BootMethod.SYSTEMD_BOOT_UKI}:
        assert isinstance(interval, ReadInterval)
        assert interval.source is IntervalSource.EXEC_MINUS_INIT
        assert interval.duration_us == times.manager.loader_us
    else:
        assert isinstance(interval, NoInterval), name


def test_the_image_is_told_for_certain_by_size_and_digest(host: Host, name: str) -> None:
    facts = json.loads((host.root / FACTS).read_text())
    start = boot_start(host, loader_variables(host))
    traces, wrong = image_evidence(host, start, freed_kib=facts["freed_kib"], page_bytes=4096)
    image = KnownImage(
        path="/boot/initrd.img",
        size_bytes=facts["size_bytes"],
        sha256=facts["sha256"],
        is_uki=start.method.is_uki,
    )
    other = KnownImage(
        path="/boot/other.img",
        size_bytes=facts["size_bytes"] - 4096,
        sha256="0" * 64,
        is_uki=start.method.is_uki,
    )
    found = attribute(traces, (image, other))
    assert wrong == ()
    assert (found.image, found.certainty) == (image, Certainty.CERTAIN)
    assert AttributionSource.LOADED_SIZE in found.sources
    assert (AttributionSource.DIGEST in found.sources) is EXPECTED[name].digest


def test_the_kernel_frees_what_the_loader_handed_over_in_whole_pages(host: Host) -> None:
    facts = json.loads((host.root / FACTS).read_text())
    start = boot_start(host, loader_variables(host))
    traces, _ = image_evidence(host, start, freed_kib=facts["freed_kib"], page_bytes=4096)
    assert traces.loaded_bytes is not None
    assert facts["freed_kib"] == -(-traces.loaded_bytes // 4096) * 4
