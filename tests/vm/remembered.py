"""What guests left behind, on this side: recorded and weighed by the package as on a machine.

Guests whose system is their initramfs cannot run Python. So the files they showed are put into a
directory, what their kernels said into a journal beside them, and both are measured there.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from initadvisor.advise.boots import BootContext, recorded_boots
from initadvisor.advise.machine import know_machine
from initadvisor.core.estimates import Estimate, Evidence
from initadvisor.data.tables import calibration
from initadvisor.decide.cost import CandidateFacts, Quantity
from initadvisor.decide.decision import Thresholds, decide
from initadvisor.decide.posterior.posterior import sample_posterior_costs
from initadvisor.decide.repeats import pooled
from initadvisor.host import Host
from initadvisor.records.lab import (
    BootKind,
    Engine,
    LabKernel,
    LabRun,
    LabSample,
    LabSubject,
    RunEnd,
)
from initadvisor.store.store import open_store
from tests.fixtures.booted import Booted
from tests.fixtures.journals import Boot as JournalledBoot
from tests.fixtures.measured_boots import measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from initadvisor.decide.boot_evidence import BootEvidence
    from initadvisor.decide.cost import Decision, Machine
    from initadvisor.decide.posterior.posterior import PosteriorCosts
    from initadvisor.records.boot import BootRecord
    from tests.vm.boot import Boot
    from tests.vm.emulated import Candidate
    from tests.vm.guest import Guest

LINUX_READS_MB_S = Estimate(mean=60.0, low=50.0, high=70.0, source="a test's assumption")
"""Between what both loaders do, and so wide of both that only boots can tell."""

_KERNEL_LINE = re.compile(r"^\[ *(\d+)\.(\d{6})\] (.*)$")
_RUN = re.compile(r"Run /init as init process$")
_LONG_AGO = datetime(2023, 1, 1, tzinfo=UTC)
_PROCESSOR = "QEMU TCG"
_SEED = 6


@dataclass(slots=True, kw_only=True)
class Memory:
    """The measurements of a guest, below ``root``, which does not exist yet.

    ``STATE_DIRECTORY`` decides where they are.
    """

    root: Path
    guest: Guest
    _boots: int = field(default=0, init=False)

    @property
    def host(self) -> Host:
        """The machine that the files make."""
        return Host(root=self.root)

    def boot(self, boot: Boot, left: Mapping[str, bytes]) -> BootRecord:
        """Record a boot: what the console said up to /init, and the files that were shown."""
        self._boots += 1
        machine = Booted(root=self.root, boot=_journalled(self._boots, boot))
        for path, content in left.items():
            machine.write(path, content)
        machine.journal(machine.boot)
        [record] = measured(machine).records
        return record

    def lab(self, unpack_us: Mapping[Candidate, int]) -> None:
        """Record that the machine's kernel took so long to unpack, with nothing beside it."""
        subjects = [_subject(candidate) for candidate in unpack_us]
        run = LabRun(
            started_at=_LONG_AGO,
            engine=Engine.TCG,
            engine_version="10",
            kernel=self._kernel,
            cpu_model=_PROCESSOR,
            subjects=tuple(subjects),
        )
        with open_store(self.host) as store:
            number = store.begin_lab_run(run)
            for subject, time_us in zip(subjects, unpack_us.values(), strict=True):
                sample = LabSample(
                    image_sha256=subject.sha256, round=1, kind=BootKind.UNPACK, unpack_us=time_us
                )
                store.add_sample(number, sample)
            store.end_lab_run(number, RunEnd.ROUNDS, ())

    @property
    def _kernel(self) -> LabKernel:
        return LabKernel(
            path=str(self.guest.kernel),
            sha256=hashlib.sha256(self.guest.kernel.read_bytes()).hexdigest(),
            release=self.guest.release,
        )

    def facts(self, candidates: Sequence[Candidate]) -> list[CandidateFacts]:
        """Return what is known of the candidates: their sizes, and what the lab has of them."""
        digests = [candidate.sha256 for candidate in candidates]
        with open_store(self.host, readonly=True) as store:
            samples = store.unpack_samples(
                digests,
                engine=Engine.TCG,
                kernel_sha256=self._kernel.sha256,
                cpu_model=_PROCESSOR,
            )
        in_ms = {
            digest: [[sample / 1000 for sample in run] for run in runs]
            for digest, runs in samples.items()
        }
        unpack_ms = pooled(in_ms, source=str(Evidence.LAB))
        return [
            CandidateFacts(
                setting=candidate.setting,
                size_mb=Quantity(median=candidate.size_bytes / 1e6),
                decompress_ms=Quantity(median=0.0, source="not needed"),
                unpack_ms=unpack_ms[digest],
                digest=digest,
            )
            for candidate, digest in zip(candidates, digests, strict=True)
        ]

    def machine(self, *, asynchronous: bool, loader_mb_s: float | None = None) -> Machine:
        """Return what is known of it before it has booted once; ``loader_mb_s`` is told."""
        kernel_mb = self.guest.kernel.stat().st_size / 1e6
        return know_machine(
            read_mb_s=LINUX_READS_MB_S,
            given_read_mb_s=loader_mb_s,
            given_overlap_ms=None,
            unpacked_bytes=0,  # the lab has the time to create the files
            context=BootContext(
                asynchronous=asynchronous,
                whole_boot_ms=None,
                kernel_mb=kernel_mb,
                kernel_mb_source="its file",
            ),
            table=calibration(self.host),
        ).machine

    def evidence(self) -> tuple[BootEvidence, ...]:
        """Return what the recorded boots tell."""
        found = recorded_boots(self.host, self.guest.release)
        assert not found.warnings
        return found.evidence

    def given(
        self,
        candidates: Sequence[Candidate],
        *,
        asynchronous: bool,
        loader_mb_s: float | None = None,
    ) -> PosteriorCosts:
        """Weigh the candidates by all that is recorded, and by ``loader_mb_s`` if told."""
        machine = self.machine(asynchronous=asynchronous, loader_mb_s=loader_mb_s)
        return sample_posterior_costs(machine, self.facts(candidates), self.evidence(), seed=_SEED)

    def decision(
        self, given: PosteriorCosts, candidates: Sequence[Candidate], today: Candidate
    ) -> Decision:
        """Decide as ``recommend`` does with the usual configuration."""
        return decide(
            given.draws,
            self.facts(candidates),
            baseline=candidates.index(today),
            thresholds=Thresholds(),
            source=str(Evidence.LAB),
        )


def _journalled(number: int, boot: Boot) -> JournalledBoot:
    """Return the journal's boot of the same words; journald keeps the kernel's stamps."""
    journalled = JournalledBoot(number=number)
    for line in boot.lines:
        if found := _KERNEL_LINE.match(line.text):
            journalled.kernel(int(found[1]) * 1_000_000 + int(found[2]), found[3])
            if _RUN.search(found[3]):
                return journalled
    message = "no /init was run"
    raise AssertionError(message)


def _subject(candidate: Candidate) -> LabSubject:
    return LabSubject(
        setting=candidate.setting,
        path=str(candidate.image),
        sha256=candidate.sha256,
        size_bytes=candidate.size_bytes,
    )
