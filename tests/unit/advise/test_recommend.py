"""The whole answer rests on the lab where the lab saw this machine's kernel, and says so."""

from __future__ import annotations

import hashlib
import io
from contextlib import nullcontext
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.recommend import Request, recommend
from initadvisor.advise.recommendation import LIKE_TODAY
from initadvisor.candidates.build import build_candidates, cached_candidates
from initadvisor.core.errors import UnsafeError
from initadvisor.core.estimates import Evidence
from initadvisor.core.settings import Setting
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.image.contents import Verdict
from initadvisor.image.cpio import CpioWriter
from initadvisor.lab import timing
from initadvisor.lab.observing import Unseen
from initadvisor.records.lab import (
    BootKind,
    Engine,
    LabKernel,
    LabRun,
    LabSample,
    Unpacked,
    Verification,
)
from initadvisor.store.store import open_store
from initadvisor.target.source import open_source
from initadvisor.vm.engines import NoEngineError, Wanted
from tests.fakes.compressors import fake_compressors
from tests.fixtures.kernels import bzimage
from tests.fixtures.lab_runs import NOON
from tests.fixtures.small_images import write_image

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.candidates.search_space import Candidate

RELEASE = "6.12.1-amd64"
CPU = "A Processor"
CONFIG = (
    "CONFIG_BLK_DEV_INITRD=y\nCONFIG_RD_ZSTD=y\nCONFIG_RD_LZ4=y\n# CONFIG_RD_BZIP2 is not set\n"
)
CHOICE = tuple(Setting.parse(text) for text in ("zstd", "lz4", "cat", "bzip2"))


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with one kernel and its configuration, where nothing was measured yet."""
    for name, content in (
        ("proc/cpuinfo", f"model name\t: {CPU}\n".encode()),
        ("proc/self/mountinfo", b"22 1 0:22 / / rw - tmpfs tmpfs rw\n"),
        (f"boot/vmlinuz-{RELEASE}", bzimage(RELEASE)),
        (f"boot/config-{RELEASE}", CONFIG.encode()),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return Host(root=tmp_path, runner=fake_compressors())


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image for that kernel."""
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        for directory in ("lib", "lib/modules", f"lib/modules/{RELEASE}"):
            writer.directory(directory)
        writer.file(f"lib/modules/{RELEASE}/modules.dep", b"the same line\n" * 20_000)
    return write_image(tmp_path / "image", file.getvalue())


def asked(host: Host, image: Path, *, lab: bool = False) -> Recommendation:
    request = Request(
        image=image,
        only=CHOICE,
        read_speed_mb_s=20_000,
        overlap_ms=0,
        everything=True,
        build=lab,
        lab=lab,
    )
    return recommend(host, request, observer=Unseen())


def row(answer: Recommendation, setting: str) -> Row:
    return next(row for row in answer.rows if str(row.setting) == setting)


def digests(host: Host, image: Path) -> dict[str, str]:
    """Build every candidate; return the digest of each, and of the image in use as "today"."""
    with open_source(image) as source:
        assert build_candidates(host, unknown, source, CHOICE).skipped == ()
    built = {str(c.candidate.setting): c.candidate.sha256 for c in cached_candidates(host)}
    return {**built, "today": hashlib.sha256(image.read_bytes()).hexdigest()}


def measured(host: Host, engine: Engine, times_ms: dict[str, int]) -> None:
    """Record a run of this machine's kernel, or of another one, with samples by digest."""
    own = host.path(f"/boot/vmlinuz-{RELEASE}").read_bytes()
    sha256 = hashlib.sha256(own).hexdigest() if engine.runs_own_kernel else "another"
    with open_store(host) as store:
        number = store.begin_lab_run(
            LabRun(
                started_at=NOON,
                engine=engine,
                engine_version="1",
                kernel=LabKernel(path="/k", sha256=sha256, release="6.1.176"),
                cpu_model=CPU,
                subjects=(),
            )
        )
        for digest, time_ms in times_ms.items():
            for number_of_round in range(3):
                sample = LabSample(
                    image_sha256=digest,
                    round=number_of_round,
                    kind=BootKind.UNPACK,
                    unpack_us=time_ms * 1000 + number_of_round,
                )
                store.add_sample(number, sample)


def test_nothing_measured_is_bench(host: Host, image: Path) -> None:
    answer = asked(host, image)
    assert answer.evidence is Evidence.BENCH
    assert answer.kernel_release == RELEASE
    assert not host.state_dir().exists()


def test_what_is_configured_of_the_machine_holds_unless_an_option_says_otherwise(
    host: Host, image: Path
) -> None:
    host.path("/etc").mkdir()
    host.path("/etc/initadvisor.toml").write_text(
        "[machine]\nread_speed_mb_s = 33\noverlap_ms = 44\n"
    )

    def told(**known: float) -> str:
        request = Request(image=image, only=CHOICE, **known)  # type: ignore[arg-type]
        answer = recommend(host, request, observer=Unseen())
        assert not answer.installed
        return "; ".join([*(one.text for one in answer.assumptions), *answer.given])

    assert "33 MB/s, from /etc/initadvisor.toml" in told()
    assert "44 ms, from /etc/initadvisor.toml" in told()
    assert "22 MB/s, as given" in told(read_speed_mb_s=22)
    assert "0 ms, as given" in told(overlap_ms=0)
    assert told(read_speed_mb_s=22).endswith(
        "; read speed 22 MB/s; overlap 44 ms (/etc/initadvisor.toml)"
    )


def test_this_machine_s_kernel_in_a_vm_is_lab_evidence(host: Host, image: Path) -> None:
    of = digests(host, image)
    measured(host, Engine.KVM, {of["today"]: 500, of["lz4"]: 200, of["cat"]: 100})
    answer = asked(host, image)
    assert answer.evidence is Evidence.LAB
    for setting, expected_ms in ((str(answer.baseline), 500), ("lz4", 200), ("cat", 100)):
        unpack = row(answer, setting).unpack_ms
        assert unpack.source == "lab"
        assert unpack.low < expected_ms < unpack.high
        assert unpack.mean == pytest.approx(expected_ms, rel=0.05)
    [assumed] = [one.text for one in answer.assumptions if one.about is Parameter.LAB]
    assert assumed.startswith(
        "the time to unpack zstd, cat, lz4: the lab's, of this machine's kernel"
    )


@pytest.mark.parametrize("engine", [Engine.UML, Engine.TCG])
def test_another_kernel_or_processor_is_not(host: Host, image: Path, engine: Engine) -> None:
    of = digests(host, image)
    measured(host, engine, {of["today"]: 500, of["lz4"]: 200, of["cat"]: 100})
    answer = asked(host, image)
    assert answer.evidence is Evidence.BENCH
    assert not any(found.unpack_ms.source == "lab" for found in answer.rows)
    named = "user-mode Linux 6.1.176, another kernel" in row(answer, "lz4").unpack_ms.source
    assert named is (engine is Engine.UML)


def test_a_rebuilt_kernel_starts_anew(host: Host, image: Path) -> None:
    of = digests(host, image)
    measured(host, Engine.KVM, {of["today"]: 500, of["lz4"]: 200, of["cat"]: 100})
    host.path(f"/boot/vmlinuz-{RELEASE}").write_bytes(bzimage(RELEASE) + b"rebuilt")
    assert asked(host, image).evidence is Evidence.BENCH


def test_the_lab_is_run_first_where_that_is_asked(
    host: Host, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Sequence[Candidate], Wanted]] = []

    def run_lab_for(
        host: Host, _source: object, field: Sequence[Candidate], wanted: Wanted, **_named: object
    ) -> None:
        seen.append((field, wanted))
        measured(host, Engine.KVM, {c.stream.sha256: 300 for c in field if c.stream})

    monkeypatch.setattr(timing, "run_lab_for", run_lab_for)
    monkeypatch.setattr(timing, "timing_machine", lambda _host, wanted: nullcontext(wanted))
    asked(host, image)
    assert seen == []
    answer = asked(host, image, lab=True)
    [(field, wanted)] = seen
    assert wanted.release == RELEASE
    assert field[0].today
    assert "bzip2" not in {str(contender.setting) for contender in field}  # lint refuses it
    # What cannot win is not built, so the lab has not seen it.
    seen_by_lab = {found.setting for found in answer.rows if found.unpack_ms.source == "lab"}
    like_today = {found.setting for found in answer.rows if found.unusable == LIKE_TODAY}
    assert seen_by_lab == {c.setting for c in field if c.stream} | like_today
    assert {answer.baseline, answer.decision.leader} <= seen_by_lab


def test_without_an_engine_the_lab_fails_before_anything_is_built(host: Host, image: Path) -> None:
    with pytest.raises(NoEngineError, match="no virtual machine can be used"):
        asked(host, image, lab=True)
    request = timing.LabRequest(image=image, only=CHOICE)
    with pytest.raises(NoEngineError, match="no virtual machine can be used"):
        timing.run_lab(host, request, observer=Unseen())
    assert cached_candidates(host) == ()


def test_what_is_wrong_with_the_store_or_the_table_is_a_warning(host: Host, image: Path) -> None:
    host.state_dir().mkdir()
    for name in ("initadvisor.sqlite", "calibration.json"):
        (host.state_dir() / name).write_bytes(b"garbage" * 1000)
    warnings = "\n".join(asked(host, image).warnings)
    assert "nothing of the lab is used" in warnings
    assert "the shipped calibration is used" in warnings


def verified(host: Host, digest: str, unpacked: Unpacked, *, release: str = RELEASE) -> None:
    """Record what a kernel made of an image."""
    with open_store(host) as store:
        store.add_verification(
            Verification(
                at=NOON,
                engine=Engine.TCG,
                kernel=LabKernel(path="/k", sha256="k", release=release),
                image_sha256=digest,
                content_sha256="",
                unpacked=unpacked,
                reason="" if unpacked is Unpacked.YES else "decompressor failed",
            )
        )


def test_what_this_kernel_refused_is_never_recommended(host: Host, image: Path) -> None:
    verified(host, digests(host, image)["cat"], Unpacked.REFUSED)
    answer = asked(host, image)
    found = row(answer, "cat").lint
    assert found.verdict is Verdict.REFUSED
    assert found.reasons == (
        f"Linux {RELEASE} refused it in a virtual machine: decompressor failed",
    )
    assert str(answer.decision.leader) != "cat"


def test_what_it_unpacked_later_or_another_kernel_refused_may_be(host: Host, image: Path) -> None:
    of = digests(host, image)
    verified(host, of["cat"], Unpacked.REFUSED, release="5.4.0")
    verified(host, of["lz4"], Unpacked.REFUSED)
    verified(host, of["lz4"], Unpacked.YES)
    answer = asked(host, image)
    for setting in ("cat", "lz4"):
        assert row(answer, setting).lint.verdict is not Verdict.REFUSED


def test_advice_needs_an_image_that_this_kernel_unpacks(host: Host, image: Path) -> None:
    verified(host, digests(host, image)["today"], Unpacked.REFUSED)
    with pytest.raises(UnsafeError, match="refused it in a virtual machine: decompressor failed"):
        asked(host, image)
