"""What settings would give, estimated from a sample of the content in seconds instead of minutes.

Every compressor is run, as the generator would run it, on blocks taken from all over the content: a
fast one on the large sample, a slow one on a small sample, which is a part of it. What the whole
would be follows from fast compressors that are run on everything (``decide.sampling``). Estimates
are kept by what they were made of.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from dataclasses import dataclass, replace
from functools import cache, partial
from math import hypot, log
from pathlib import Path
from typing import IO, TYPE_CHECKING

from initadvisor.candidates.payload import LazyPayload
from initadvisor.candidates.sampler import Output, Sample, Sampler, sample_task
from initadvisor.candidates.schedule import PEAK_FULL_BYTES, expected_peak_bytes, threads_of
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, library_error
from initadvisor.core.settings import Setting
from initadvisor.core.text import shown
from initadvisor.data.tables import sampling_error
from initadvisor.decide.cost import Quantity
from initadvisor.decide.sampling import Growth, Rung, blocks, growth, related, thinned, whole_size
from initadvisor.host.cached import keep, read_cached
from initadvisor.host.files import make_directory
from initadvisor.host.hardware import cpu_model
from initadvisor.host.load import is_quiet
from initadvisor.image import stream_facts
from initadvisor.records.built_image import SkippedSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.candidates.sampler import SampleObserver, SampleTask
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.image.stream_facts import StreamFacts
    from initadvisor.target.source import Source


_SCHEMA = 13
"""Counts up when estimates are made in another way."""

_MOST_LOG_SD = 3.0
_NAMES = (stream_facts, Setting)


def estimates(
    host: Host,
    generator: Generator,
    source: Source,
    commands: Sequence[BuildCommand],
    *,
    observer: SampleObserver,
) -> Sampled:
    """Estimate what is not known yet, from a sample; in the order of the recipes.

    Raises ``BadImageError`` for a damaged image, ``InitadvisorError`` where there is no room.
    """
    quiet = cache(partial(is_quiet, host))
    known = {command.key: _load(host, command, quiet) for command in commands}
    missing = [command for command in commands if known[command.key] is None]
    skipped_settings: tuple[SkippedSetting, ...] = ()
    if missing:
        new = _sampled(host, generator, source, missing, observer)
        skipped_settings = new.skipped
        for sampled in new.candidates:
            known[sampled.key] = sampled
            _keep(host, sampled)
    return Sampled(
        candidates=tuple(found for found in known.values() if found), skipped=skipped_settings
    )


def _sampled(
    host: Host,
    generator: Generator,
    source: Source,
    commands: Sequence[BuildCommand],
    observer: SampleObserver,
) -> Sampled:
    directory = host.cache_dir()
    try:
        directory = _working_directory(directory)
        with LazyPayload(source, directory, threading.Event(), hashed=False) as payload:
            content = payload.get()
            found = sample_candidates(
                host,
                generator,
                content.file,
                content.size_bytes,
                commands,
                directory=directory,
                observer=observer,
            )
    except OSError as err:
        if lack := library_error(err):
            raise lack from err
        msg = f"cannot take samples of {source.path} in {directory}: {err.strerror}"
        raise InitadvisorError(
            msg, hint="set CACHE_DIRECTORY to a place with room that may be written"
        ) from err
    source.check_unchanged()
    return found


def _working_directory(kept: Path) -> Path:
    """Return a place for temporary files: the one where samples are kept, if it can be written to.

    Raises ``OSError`` where there is none.
    """
    with contextlib.suppress(InitadvisorError):
        make_directory(kept)
        if os.access(kept, os.W_OK):
            return kept
    return Path(tempfile.gettempdir())


def _file(host: Host, key: str) -> Path:
    return host.cache_dir() / "sampled" / f"{key}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _KeptEstimate:
    schema: int
    cpu: str | None
    sampled: SampledCandidate


def _load(host: Host, command: BuildCommand, quiet: Callable[[], bool]) -> SampledCandidate | None:
    """Return an estimate of an earlier run on this processor; what is unreadable counts as none.

    What was timed on a busy machine is timed again once it is quiet.
    """
    kept = read_cached(_file(host, command.key), _KeptEstimate, names=_NAMES)
    if kept is None or (kept.schema, kept.cpu) != (_SCHEMA, cpu_model(host)):
        return None
    found, size = kept.sampled, kept.sampled.main_bytes
    timed = command.setting.codec is Codec.CAT or (found.decompress_ms and found.facts)
    if not 0.0 <= found.busy_part <= 1.0 or (found.busy_part and quiet()):
        return None
    if not timed or min((size.median, *found.decompress_ms)) <= 0 or size.log_sd > _MOST_LOG_SD:
        return None
    size = replace(size, source=shown(size.source))
    return replace(
        found, setting=command.setting, key=command.key, command=command.argv, main_bytes=size
    )


def _keep(host: Host, sampled: SampledCandidate) -> None:
    kept = _KeptEstimate(schema=_SCHEMA, cpu=cpu_model(host), sampled=sampled)
    keep(_file(host, sampled.key), kept, what="an estimate")


_LARGE_PART, _LARGE_BYTES = 0.07, 8 << 20
"""How much of the content the large sample is, and how much at least."""

_SMALL_BYTES, _SMALLEST_BYTES = 2 << 20, 1 << 20
_SHORT_BYTES = 32 << 20
"""Of a content no longer than this the small sample is larger, as the rest is quick."""
_SHORT_TIMES = 3

_ALONE_DOUBT = 0.025
"""How far a slow setting's size is off besides, where no fast one corrects its small sample."""

_PHASE = 0.5
_SLOWER_MOST = 1.5
_EXPANSION = 1.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """What was estimated, and the settings that could not be, with the reasons."""

    candidates: tuple[SampledCandidate, ...]
    skipped: tuple[SkippedSetting, ...]


def sample_candidates(
    host: Host,
    generator: Generator,
    content: IO[bytes],
    whole_bytes: int,
    commands: Sequence[BuildCommand],
    *,
    directory: Path,
    observer: SampleObserver,
) -> Sampled:
    """Estimate what each recipe would make of the content, a file of ``whole_bytes``.

    ``directory`` is for temporary files. Raises ``OSError`` where there is no room for them.
    Interrupted by an exception, it kills the compressors and leaves nothing behind.
    """
    with contextlib.ExitStack() as stack:

        def new_file() -> IO[bytes]:
            return stack.enter_context(tempfile.TemporaryFile(dir=directory))

        most = max(_LARGE_BYTES, int(_LARGE_PART * whole_bytes))
        large = blocks(whole_bytes, most, phase=_PHASE)

        def small(size_bytes: int) -> Sample:
            everything = len(large) == 1
            return Sample.taken(
                content,
                blocks(whole_bytes, size_bytes, phase=_PHASE)
                if everything
                else thinned(large, size_bytes),
                new_file,
            )

        sampler = Sampler(
            host=host,
            whole=Sample(content, whole_bytes),
            large=Sample.taken(content, large, new_file),
            small=small(_SMALL_BYTES * (_SHORT_TIMES if whole_bytes <= _SHORT_BYTES else 1)),
            smallest=small(_SMALLEST_BYTES),
            new_file=new_file,
        )
        subjects = [sample_task(host, generator, command, whole_bytes) for command in commands]
        sampler.measure(subjects, observer)
        found = [estimate(sampler, subject) for subject in subjects]
    return Sampled(
        candidates=tuple(one for one in found if isinstance(one, SampledCandidate)),
        skipped=tuple(one for one in found if isinstance(one, SkippedSetting)),
    )


def estimate(sampler: Sampler, subject: SampleTask) -> SampledCandidate | SkippedSetting:
    """Return what was found of a setting."""
    command, whole_bytes = subject.command, sampler.whole.size_bytes
    if subject.codec is Codec.CAT:
        return _uncompressed(command, whole_bytes)
    sample = sampler.sample_of(subject)
    output = sampler.outputs[command.key, sample]
    if isinstance(output, str):
        return SkippedSetting(setting=command.setting, reason=output)
    scale = whole_bytes / sample.size_bytes
    cpu_s = output.cpu_s * scale
    return SampledCandidate(
        setting=command.setting,
        key=command.key,
        main_bytes=whole_size(
            output.size_bytes,
            _growth(sampler, subject),
            sampling_error(subject.codec, slow=subject.slow, far=subject.far),
            sampled_part=sample.size_bytes / whole_bytes,
            most_bytes=whole_bytes * _EXPANSION,
            source=f"{sample.size_bytes / 1e6:.1f} MB of {whole_bytes / 1e6:.1f} MB",
        ),
        build_s=cpu_s / threads_of(command.argv, whole_bytes, sampler.host.cores),
        build_cpu_s=cpu_s,
        build_peak_bytes=_peak_bytes(subject, output, sample, whole_bytes),
        decompress_ms=tuple(ms * scale * _slower(sampler, subject) for ms in output.decompress_ms),
        command=command.argv,
        sample_bytes=sample.size_bytes,
        whole_bytes=whole_bytes,
        facts=output.facts,
        busy_part=sampler.busy_part,
    )


def _uncompressed(command: BuildCommand, whole_bytes: int) -> SampledCandidate:
    return SampledCandidate(
        setting=command.setting,
        key=command.key,
        main_bytes=Quantity(median=float(whole_bytes), source="not compressed"),
        build_s=0.0,
        build_cpu_s=0.0,
        build_peak_bytes=0,
        decompress_ms=(),
        command=command.argv,
        sample_bytes=whole_bytes,
        whole_bytes=whole_bytes,
    )


def _growth(sampler: Sampler, subject: SampleTask) -> Growth:
    """Return what the whole is longer than the sample, for this setting."""
    sample = sampler.sample_of(subject)
    own = _controlled(sampler, subject, sample)
    if not subject.slow:
        return own
    logs = [
        log(output.size_bytes) + _controlled(sampler, relative, one).log
        for one in (sample, sampler.large)
        if (relative := sampler.relatives.get(subject))
        and isinstance(output := sampler.outputs[relative.command.key, one], Output)
    ]
    if len(logs) == 2:
        return related(own, *logs)
    return replace(own, doubt=hypot(own.doubt, _ALONE_DOUBT))


def _controlled(sampler: Sampler, subject: SampleTask, sample: Sample) -> Growth:
    rungs = [
        Rung(
            window_log=control.window_log,
            whole_bytes=sampler.control_bytes[control, sampler.whole],
            sample_bytes=sampler.control_bytes[control, sample],
        )
        for control in subject.controls
    ]
    in_bytes = log(sampler.whole.size_bytes / sample.size_bytes)
    return growth(rungs, subject.window_log, in_bytes=in_bytes)


def _slower(sampler: Sampler, subject: SampleTask) -> float:
    """Return how much longer the whole takes for each byte than the sample does.

    Known of a control of the same codec. A ratio beyond what caches can do is a measurement that
    was disturbed.
    """
    sample, control = sampler.sample_of(subject), subject.timed_control
    if control is None:
        return 1.0
    whole, part = (sampler.control_ms.get((control, of)) for of in (sampler.whole, sample))
    if not whole or not part:
        return 1.0
    ratio = whole / sampler.whole.size_bytes * sample.size_bytes / part
    return min(max(ratio, 1.0), _SLOWER_MOST)


def _peak_bytes(subject: SampleTask, output: Output, sample: Sample, whole_bytes: int) -> int:
    """Return what the compressor would need: more than for the sample, until its window is full.

    Its tables and those of all threads are with ``PEAK_FULL_BYTES``; how much that takes is known.
    """
    if 2**subject.window_log <= sample.size_bytes and subject.codec is not Codec.ZSTD:
        return output.peak_bytes
    most = expected_peak_bytes(subject.codec, subject.level)
    filled = min(1.0, (whole_bytes - sample.size_bytes) / PEAK_FULL_BYTES)
    return output.peak_bytes + int(max(0, most - output.peak_bytes) * filled)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCandidate:
    """A candidate that was not built: what it would be, estimated from a sample of the content.

    ``key`` is that of the candidate's recipe. ``main_bytes``: the length of the main segment.
    ``build_cpu_s``, ``build_s`` and ``build_peak_bytes``: what its compressor would take.
    ``decompress_ms``: processor time of user-space decompression of all of it, one value for each
    time the sample was decompressed. ``command`` is what was run on ``sample_bytes`` of
    ``whole_bytes``, ``facts`` what the result says of itself. ``busy_part``: what others used of
    the processors meanwhile, 0 where that was little.
    """

    setting: Setting
    key: str
    main_bytes: Quantity
    build_s: float
    build_cpu_s: float
    build_peak_bytes: int
    decompress_ms: tuple[float, ...]
    command: tuple[str, ...]
    sample_bytes: int
    whole_bytes: int
    facts: tuple[StreamFacts, ...] = ()
    busy_part: float = 0.0
