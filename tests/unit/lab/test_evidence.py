"""Only what this kernel took, on this processor, for these bytes, is evidence of this machine."""

from __future__ import annotations

import hashlib
from math import log
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.estimates import Evidence
from initadvisor.data.tables import shipped_calibration
from initadvisor.decide.cost import Quantity
from initadvisor.host import Host
from initadvisor.lab import evidence
from initadvisor.lab.evidence import LabEvidence, difference, lab_evidence
from initadvisor.records.lab import BootKind, Engine, LabKernel, LabRun, LabSample
from initadvisor.store.store import open_store
from tests.fakes.runner import FakeRunner
from tests.fixtures.decision_cases import contender
from tests.fixtures.lab_runs import NOON

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RELEASE = "6.12.1-amd64"
CPU = "A Processor"
KERNEL_BYTES = b"a kernel"
KERNEL = LabKernel(
    path=f"/boot/vmlinuz-{RELEASE}",
    sha256=hashlib.sha256(KERNEL_BYTES).hexdigest(),
    release=RELEASE,
)
UML = LabKernel(path="/usr/bin/linux.uml", sha256="uml", release="6.1.176")


FIELD = [contender(setting) for setting in ("zstd", "lz4", "cat")]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with a processor and one kernel."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"model name\t: {CPU}\n")
    kernel = tmp_path / KERNEL.path.lstrip("/")
    kernel.parent.mkdir()
    kernel.write_bytes(KERNEL_BYTES)
    monkeypatch.setattr(evidence, "find_kernel", lambda host, _: host.path(KERNEL.path))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return Host(root=tmp_path, runner=FakeRunner())


def measured(
    host: Host,
    times_ms: Mapping[str, float],
    *,
    engine: Engine = Engine.KVM,
    kernel: LabKernel = KERNEL,
    cpu_model: str = CPU,
    kind: BootKind = BootKind.UNPACK,
) -> None:
    """Record a run with five samples of each image."""
    with open_store(host) as store:
        number = store.begin_lab_run(
            LabRun(
                started_at=NOON,
                engine=engine,
                engine_version="1",
                kernel=kernel,
                cpu_model=cpu_model,
                subjects=(),
            )
        )
        for image, time_ms in times_ms.items():
            for percent in (98, 99, 100, 101, 102):
                store.add_sample(
                    number,
                    LabSample(
                        image_sha256=image,
                        round=1,
                        kind=kind,
                        unpack_us=int(time_ms * percent * 10),
                    ),
                )


def test_where_nothing_was_measured_there_is_no_evidence(host: Host) -> None:
    assert lab_evidence(host, FIELD, RELEASE) == LabEvidence()
    assert not host.state_dir().exists()


def test_what_this_kernel_took_is_evidence(host: Host) -> None:
    measured(host, {"zstd": 218, "lz4": 136})
    found = lab_evidence(host, FIELD, RELEASE)
    assert found.unpack_ms["zstd"].median == pytest.approx(218, rel=0.01)
    assert found.unpack_ms["lz4"].median == pytest.approx(136, rel=0.01)
    assert found.unpack_ms.keys() == {"zstd", "lz4"}
    assert found.evidence("zstd") is Evidence.LAB
    assert found.source("zstd") == "lab"
    assert found.evidence("cat") is Evidence.BENCH
    assert (found.decompress_ms, found.warnings) == ({}, ())


def test_two_runs_are_one_figure_with_their_difference_in_it(host: Host) -> None:
    measured(host, {"zstd": 200})
    once = lab_evidence(host, FIELD, RELEASE).unpack_ms["zstd"]
    measured(host, {"zstd": 240})
    twice = lab_evidence(host, FIELD, RELEASE).unpack_ms["zstd"]
    assert 200 < twice.median < 240
    assert twice.log_sd > 2 * once.log_sd


@pytest.mark.parametrize(
    "other",
    [
        {"engine": Engine.TCG},
        {"cpu_model": "Another Processor"},
        {"kernel": LabKernel(path=KERNEL.path, sha256="rebuilt", release=RELEASE)},
        {"kind": BootKind.INIT},
    ],
)
def test_what_is_not_this_machine_s_is_not_used(host: Host, other: Mapping[str, object]) -> None:
    measured(host, {"zstd": 218, "cat": 97}, **other)  # type: ignore[arg-type]
    assert lab_evidence(host, FIELD, RELEASE) == LabEvidence()


def test_an_image_for_an_unknown_kernel_has_no_evidence(host: Host) -> None:
    measured(host, {"zstd": 218})
    assert lab_evidence(host, FIELD, None) == LabEvidence()


def test_a_kernel_that_is_gone_is_no_failure(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    measured(host, {"zstd": 218})
    monkeypatch.setattr(evidence, "find_kernel", lambda host, _: host.path("/gone"))
    assert lab_evidence(host, FIELD, RELEASE) == LabEvidence()


def test_user_mode_linux_tells_what_decompressing_adds(host: Host) -> None:
    measured(host, {"zstd": 218, "lz4": 186, "cat": 97}, engine=Engine.UML, kernel=UML)
    found = lab_evidence(host, FIELD, RELEASE)
    assert found.unpack_ms == {}
    assert found.decompress_ms["zstd"].median == pytest.approx(121 - own_ms(0), rel=0.02)
    assert found.decompress_ms["lz4"].median == pytest.approx(89 - own_ms(1), rel=0.02)
    assert "cat" not in found.decompress_ms
    # What two images scatter by weighs more on the smaller difference.
    assert found.decompress_ms["lz4"].log_sd > found.decompress_ms["zstd"].log_sd > 0.02
    assert found.evidence("zstd") is Evidence.BENCH
    assert found.source("zstd") == "predicted: user-mode Linux 6.1.176, another kernel"
    assert found.source("cat") == "predicted"


def own_ms(candidate: int) -> float:
    """Return what mapping the buffers takes in user-mode Linux only."""
    table = shipped_calibration()
    per_mb = table.uml_buffer_ms_per_mb - table.buffer_ms_per_mb
    return per_mb * FIELD[candidate].buffer_bytes / 1e6


def test_what_buffers_take_in_user_mode_linux_alone_tells_nothing(host: Host) -> None:
    measured(host, {"lz4": 97 + own_ms(1) + 3, "cat": 97}, engine=Engine.UML, kernel=UML)
    assert lab_evidence(host, FIELD, RELEASE).decompress_ms == {}


def test_user_mode_linux_without_the_uncompressed_image_tells_nothing(host: Host) -> None:
    measured(host, {"zstd": 218, "lz4": 136}, engine=Engine.UML, kernel=UML)
    assert lab_evidence(host, FIELD, RELEASE) == LabEvidence()
    with_plain = LabKernel(path="/other", sha256="other", release="6.6")
    measured(host, {"cat": 97}, engine=Engine.UML, kernel=with_plain)
    assert lab_evidence(host, FIELD, RELEASE) == LabEvidence()
    assert lab_evidence(host, FIELD[:2], RELEASE) == LabEvidence()


def test_of_two_user_mode_kernels_the_one_measured_last_counts(host: Host) -> None:
    newer = LabKernel(path=UML.path, sha256="newer", release="6.12")
    measured(host, {"zstd": 218, "cat": 97}, engine=Engine.UML, kernel=UML)
    measured(host, {"zstd": 180, "cat": 97}, engine=Engine.UML, kernel=newer)
    measured(host, {"zstd": 99}, engine=Engine.UML, kernel=UML)
    found = lab_evidence(host, FIELD, RELEASE).decompress_ms["zstd"]
    assert found.median == pytest.approx(83 - own_ms(0), rel=0.02)
    assert "6.12" in found.source


def test_this_machine_s_kernel_goes_before_another(host: Host) -> None:
    measured(host, {"zstd": 218, "cat": 97}, engine=Engine.UML, kernel=UML)
    measured(host, {"zstd": 300})
    assert lab_evidence(host, FIELD, RELEASE).source("zstd") == "lab"


def test_a_data_base_that_cannot_be_read_is_a_warning(host: Host) -> None:
    host.state_dir().mkdir()
    (host.state_dir() / "initadvisor.sqlite").write_bytes(b"garbage" * 1000)
    found = lab_evidence(host, FIELD, RELEASE)
    [warning] = found.warnings
    assert warning.startswith("nothing of the lab is used: cannot read")
    assert (found.unpack_ms, found.decompress_ms) == ({}, {})


def test_a_coarse_clock_s_nothing_is_no_time(host: Host) -> None:
    measured(host, {"zstd": 0})
    assert lab_evidence(host, FIELD, RELEASE).unpack_ms == {}


def test_a_difference_is_as_wide_as_both_its_ends() -> None:
    whole, part = (
        Quantity(median=200, log_sd=0.03, source="x"),
        Quantity(median=100, log_sd=0.04),
    )
    found = difference(whole, part)
    assert found is not None
    assert found.median == pytest.approx(100)
    assert found.log_sd == pytest.approx((6**2 + 4**2) ** 0.5 / 100)
    assert found.source == "x"


@pytest.mark.parametrize("whole_ms", [90.0, 100.0, 105.0])
def test_what_does_not_clearly_differ_has_no_difference(whole_ms: float) -> None:
    part = Quantity(median=100, log_sd=log(1.05))
    assert difference(Quantity(median=whole_ms, log_sd=log(1.05)), part) is None
