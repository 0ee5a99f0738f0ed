"""The lab: how long a kernel takes to unpack each candidate, without a reboot.

The same images are booted again and again, in turns, and each sample is kept as it comes.
"""

from __future__ import annotations

import random
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time_ns
from typing import TYPE_CHECKING, Protocol

from initadvisor.candidates.build import BuildObserver
from initadvisor.candidates.search_space import built_candidate_set, open_search_space
from initadvisor.core.errors import LostVMError, UnsafeError
from initadvisor.decide.repeats import is_precise, is_settled, log_spread, middles
from initadvisor.host.configuration import load_config
from initadvisor.host.files import open_regular, sha256_of
from initadvisor.host.hardware import cpu_model
from initadvisor.lab.history import times_ms
from initadvisor.lab.observing import LabObserver
from initadvisor.records.lab import (
    BootKind,
    LabRun,
    LabSample,
    LabSubject,
    LostBoot,
    RecordedRun,
    RunEnd,
    Unpacked,
    Verification,
)
from initadvisor.store.store import open_store
from initadvisor.target.context import disturbances
from initadvisor.target.source import initramfs_alone
from initadvisor.target.target import find_target
from initadvisor.vm.boot import Boot, boot
from initadvisor.vm.engines import FOR_TIMING, Wanted, machine_for, require_purpose

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from initadvisor.candidates.search_space import Candidate
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.records.lab import Engine
    from initadvisor.store.store import Store
    from initadvisor.target.source import Source
    from initadvisor.vm.machine import VirtualMachine


LEAST_ROUNDS = 3
MOST_ROUNDS = 15
PRECISE_WITHIN = 0.1
_MOST_LOST = 2
_NOISY_LOG_SD = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LabImage:
    """An image to time and the file to boot, which is another one where the image is in a UKI."""

    subject: LabSubject
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """How often each image is booted: until the result is settled, or exactly ``most`` times.

    Settled: the order is certain, and another run would find every median within 10 %.

    ``tolerance_ms`` and ``tolerance_fraction``: a difference below the larger need not be settled.
    """

    most: int = MOST_ROUNDS
    until_settled: bool = True
    tolerance_ms: float = 5.0
    tolerance_fraction: float = 0.02


def lab_images(source: Source, candidates: Sequence[Candidate], stack: ExitStack) -> list[LabImage]:
    """Return the contenders as files that a virtual machine can load; ``stack`` removes copies.

    Of several with the same bytes (a level, and the default that means it) there is one; those that
    were not built are left out.
    """
    different = {c.digest: (c, c.stream) for c in reversed(candidates) if c.stream}
    return [
        LabImage(
            subject=LabSubject(
                setting=candidate.setting,
                path=str(stream.path),
                sha256=candidate.digest,
                size_bytes=int(candidate.size.median),
                today=candidate.today,
            ),
            file=initramfs_alone(source.path, source.file, source.contents, stack)
            if candidate.today
            else stream.path,
        )
        for candidate, stream in reversed(different.values())
    ]


def time_images(
    host: Host,
    machine: VirtualMachine,
    images: Sequence[LabImage],
    *,
    unpacked_bytes: int,
    rounds: Rounds,
    store: Store,
    observer: LabObserver,
    seed: int,
) -> RecordedRun:
    """Boot every image once per round, in random order, and return what was recorded.

    What was measured is kept whatever ends the run. Raises ``UnsafeError`` where a file is not what
    it was when it was built, ``LostVMError`` where no boot gave a sample.
    """
    # Reads them, too: the first boot finds its image in memory like the others.
    seals = {image.subject.sha256: _check(image) for image in images}
    noise = disturbances(host)
    run = LabRun(
        started_at=datetime.now(UTC),
        engine=machine.engine,
        engine_version=machine.version,
        kernel=machine.kernel,
        cpu_model=cpu_model(host),
        subjects=tuple(image.subject for image in images),
    )
    number = store.begin_lab_run(run)
    bench = _Bench(host, machine, unpacked_bytes, store, observer, number, seals)
    end = RunEnd.FAILED
    try:
        end = bench.work_through(images, rounds, random.Random(seed))  # noqa: S311 - no secret
    except KeyboardInterrupt:
        end = RunEnd.INTERRUPTED
        raise
    finally:
        warnings = (*noise, *_doubts(run, bench.samples, end))
        store.end_lab_run(bench.number, end, warnings)
    if not bench.samples:
        first = bench.lost[0].reason if bench.lost else "nothing was booted"
        msg = f"the lab measured nothing: {first}"
        raise LostVMError(msg)
    return RecordedRun(
        number=bench.number,
        run=run,
        samples=tuple(bench.samples),
        lost=tuple(bench.lost),
        end=end,
        warnings=warnings,
    )


class _Bench:
    """Where boots are made and written down."""

    def __init__(
        self,
        host: Host,
        machine: VirtualMachine,
        unpacked_bytes: int,
        store: Store,
        observer: LabObserver,
        number: int,
        seals: Mapping[str, _Seal | None],
    ) -> None:
        self._host = host
        self._machine = machine
        self._unpacked_bytes = unpacked_bytes
        self._store = store
        self._observer = observer
        self._seals = seals
        self.number = number
        self.samples: list[LabSample] = []
        self.lost: list[LostBoot] = []
        self._given_up: set[str] = set()
        self._refused = 0

    def work_through(
        self, images: Sequence[LabImage], rounds: Rounds, chance: random.Random
    ) -> RunEnd:
        """Boot in rounds until the order is settled or there have been enough of them."""
        # Once for nothing: the engine's own files are in memory from now on.
        with suppress(LostVMError):  # the first round will tell
            self._boot(images[0], BootKind.UNPACK)
        end = RunEnd.ROUNDS
        for number in range(1, rounds.most + 1):
            order = list(images)
            chance.shuffle(order)
            for image in order:
                if image.subject.sha256 not in self._given_up:
                    self._once(image, number, BootKind.UNPACK)
                if not self.samples and len(self.lost) - self._refused >= _MOST_LOST:
                    return RunEnd.FAILED  # no image is at fault: the engine does not work
            if len(self._given_up) == len(images):
                return RunEnd.FAILED
            if rounds.until_settled and number >= LEAST_ROUNDS and self._is_settled(rounds):
                end = RunEnd.SETTLED
                break
        # With one processor, whatever runs when the unpacking ends looks as if it had waited.
        for image in images if self._machine.cores > 1 else ():
            if image.subject.today and image.subject.sha256 not in self._given_up:
                self._once(image, 0, BootKind.INIT)
        return end

    def _once(self, image: LabImage, number: int, kind: BootKind) -> None:
        digest = image.subject.sha256
        try:
            result = self._boot(image, kind)
        except LostVMError as err:
            self._note_lost(image, number, err.message)
            if sum(lost.image_sha256 == digest for lost in self.lost) >= _MOST_LOST:
                self._given_up.add(digest)
            return
        if result.refusal is not None:
            self._note_lost(image, number, f"the kernel refused it: {result.refusal}")
            self._note_refusal(digest, result.refusal)
            self._refused += 1
            self._given_up.add(digest)
            return
        sample = LabSample(
            image_sha256=digest,
            round=number,
            kind=kind,
            unpack_us=result.unpack_us,
            init_us=result.init_us,
            waiter=result.waiter,
        )
        self._store.add_sample(self.number, sample)
        self.samples.append(sample)
        self._observer.booted(image.subject, sample)

    def _boot(self, image: LabImage, kind: BootKind) -> Boot:
        """Boot it; what comes of it counts only if the file is still the one that was read."""
        try:
            return boot(
                self._host,
                self._machine,
                image.file,
                unpacked_bytes=self._unpacked_bytes,
                kind=kind,
            )
        finally:
            if _seal(image.file) != self._seals[image.subject.sha256]:
                msg = f"cannot time {image.file} any further: it was changed meanwhile"
                raise UnsafeError(msg, hint="what was measured before is kept; try again")

    def _note_lost(self, image: LabImage, number: int, reason: str) -> None:
        lost = LostBoot(image_sha256=image.subject.sha256, round=number, reason=reason)
        self._store.add_lost(self.number, lost)
        self.lost.append(lost)
        self._observer.lost(image.subject, lost)

    def _note_refusal(self, digest: str, words: str) -> None:
        """What this machine's own kernel does not unpack must never be recommended."""
        if self._machine.engine.runs_own_kernel:
            self._store.add_verification(
                Verification(
                    at=datetime.now(UTC),
                    engine=self._machine.engine,
                    kernel=self._machine.kernel,
                    image_sha256=digest,
                    content_sha256="",
                    unpacked=Unpacked.REFUSED,
                    reason=words,
                )
            )

    def _is_settled(self, rounds: Rounds) -> bool:
        times = times_ms(self.samples, BootKind.UNPACK)
        return is_precise(times, within=PRECISE_WITHIN) and is_settled(
            times,
            tolerance=rounds.tolerance_ms,
            tolerance_fraction=rounds.tolerance_fraction,
        )


def _doubts(run: LabRun, samples: Sequence[LabSample], end: RunEnd) -> Iterator[str]:
    """Yield what the samples themselves say against the run."""
    times = times_ms(samples, BootKind.UNPACK)
    if not times:
        return
    spread = log_spread(times)
    if spread > _NOISY_LOG_SD and any(len(values) > 1 for values in times.values()):
        yield f"samples of the same image differ by {100 * spread:.0f} %: the machine was not quiet"
    settings = {subject.sha256: subject.setting for subject in run.subjects}
    for digest, middle in middles(times).items():
        if middle.outliers:
            yield (
                f"{settings[digest]}: {len(middle.outliers)} of {middle.count} samples are far "
                f"from the median of {middle.median:.0f} ms, up to {max(middle.outliers):.0f} ms"
            )
    if end is RunEnd.ROUNDS and not is_settled(times, tolerance=0.0, tolerance_fraction=0.02):
        yield "not all differences are certain: the order of close neighbours is open"


_Seal = tuple[int, int, int, int]
"""Device, inode, length and time stamp (ns) of a file."""


def _seal(path: Path) -> _Seal | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _check(image: LabImage) -> _Seal | None:
    """Return what tells that the file is another one later; raise where it already is."""
    before = _seal(image.file)
    with open_regular(image.file) as file:
        found = sha256_of(file)
    if found != image.subject.sha256:
        msg = f"cannot time {image.file}: it was changed since it was read or built"
        raise UnsafeError(msg, hint="initadvisor candidates prune, then try again")
    return before


@dataclass(frozen=True, slots=True, kw_only=True)
class LabRequest:
    """What the user asks for; fields as the options of ``initadvisor lab``."""

    image: Path | None = None
    only: tuple[Setting, ...] = ()
    everything: bool = False
    engine: Engine | None = None
    kernel: Path | None = None
    uml: Path | None = None
    rounds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabResult:
    """What was recorded, and the settings that could not be built."""

    recorded: RecordedRun
    skipped: tuple[SkippedSetting, ...]


class LabRunObserver(BuildObserver, LabObserver, Protocol):
    """Receives progress events."""


def run_lab(host: Host, request: LabRequest, *, observer: LabRunObserver) -> LabResult:
    """Build the candidates of an image and time them in a virtual machine.

    Raises ``InitadvisorError`` where there is no image or nothing can be built, ``NoEngineError``
    where no virtual machine works, ``LostVMError`` where none of them gave a sample.
    """
    require_purpose(FOR_TIMING, request.engine)  # before anything takes long
    config = load_config(host)
    target = find_target(host, request.image)
    with (
        open_search_space(
            host, target, config, only=request.only, everything=request.everything
        ) as search_space,
        timing_machine(
            host,
            Wanted(
                release=search_space.kernel_release,
                kernel=request.kernel,
                engine=request.engine,
                uml=request.uml,
            ),
        ) as machine,
    ):
        candidate_set = built_candidate_set(
            host, search_space, config, search_space.settings, observer=observer
        )
        rounds = Rounds(
            most=request.rounds or MOST_ROUNDS,
            until_settled=request.rounds is None,
            tolerance_ms=config.tolerance_ms,
            tolerance_fraction=config.tolerance_fraction,
        )
        recorded = run_lab_for(
            host,
            candidate_set.source,
            candidate_set.candidates,
            machine,
            rounds=rounds,
            observer=observer,
        )
        return LabResult(recorded=recorded, skipped=candidate_set.skipped)


@contextmanager
def timing_machine(host: Host, wanted: Wanted) -> Iterator[VirtualMachine]:
    """Give the best virtual machine that works, before anything is built for it.

    Raises what ``machine_for`` does.
    """
    with ExitStack() as stack:
        with open_store(host) as store:
            machine = stack.enter_context(machine_for(host, store, FOR_TIMING, wanted))
        yield machine


def run_lab_for(
    host: Host,
    source: Source,
    candidates: Sequence[Candidate],
    machine: VirtualMachine,
    *,
    rounds: Rounds,
    observer: LabObserver,
) -> RecordedRun:
    """Time the contenders in a virtual machine; see ``run_lab``."""
    with ExitStack() as stack, open_store(host) as store:
        return time_images(
            host,
            machine,
            lab_images(source, candidates, stack),
            unpacked_bytes=source.contents.room_bytes,
            rounds=rounds,
            store=store,
            observer=observer,
            seed=time_ns(),
        )
