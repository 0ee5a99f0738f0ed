"""The lab: how long a kernel takes to unpack each candidate, without a reboot."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from time import time_ns
from typing import TYPE_CHECKING, Protocol

from initadvisor.candidates.build_pool import BuildObserver
from initadvisor.candidates.search_space import build_candidate_set
from initadvisor.host.configuration import load_config
from initadvisor.lab.observing import LabObserver
from initadvisor.lab.timing import MOST_ROUNDS, Rounds, lab_images, time_images
from initadvisor.store.store import open_store
from initadvisor.target.target import find_target
from initadvisor.vm.choose import FOR_TIMING, Wanted, machine_for, require_purpose

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.candidates.candidate import Candidate
    from initadvisor.core.settings import Setting
    from initadvisor.host import Host
    from initadvisor.records.built_image import SkippedSetting
    from initadvisor.records.lab import Engine, RecordedRun
    from initadvisor.target.source import Source


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
    with build_candidate_set(
        host,
        target,
        config,
        only=request.only,
        everything=request.everything,
        observer=observer,
    ) as candidate_set:
        wanted = Wanted(
            release=candidate_set.kernel_release,
            kernel=request.kernel,
            engine=request.engine,
            uml=request.uml,
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
            wanted,
            rounds=rounds,
            observer=observer,
        )
        return LabResult(recorded=recorded, skipped=candidate_set.skipped)


def run_lab_for(
    host: Host,
    source: Source,
    candidates: Sequence[Candidate],
    wanted: Wanted,
    *,
    rounds: Rounds,
    observer: LabObserver,
) -> RecordedRun:
    """Time the contenders in the best virtual machine that works; see ``run_lab``."""
    with (
        ExitStack() as stack,
        open_store(host) as store,
        machine_for(host, store, FOR_TIMING, wanted) as machine,
    ):
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
