"""How long a build takes, in processor time and from start to end, each with an interval.

Each compressor is run alone, twice: on the whole content, or, where that takes long and one thread
does it, on two different samples. A sample is shorter than what one thread takes at a time, so that
it tells nothing of several.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, variance
from typing import IO, TYPE_CHECKING

from initadvisor.candidates.payload import LazyPayload
from initadvisor.candidates.sampler import Sample
from initadvisor.candidates.schedule import expected_cpu_s, threads_of
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, library_error
from initadvisor.core.estimates import Estimate
from initadvisor.decide.sampling import blocks
from initadvisor.generators.files import with_stream_size
from initadvisor.host.files import make_directory
from initadvisor.host.load import BUSY_PART, OthersLoad
from initadvisor.host.process import piped
from initadvisor.host.run import Priority
from initadvisor.records.built_image import SkippedSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.candidates.sampler import SampleObserver
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.host.run import Completed
    from initadvisor.target.source import Source


_PHASES = (0.25, 0.75)
"""Where the samples begin in their shares; each command is run once for each."""

_SAMPLE_PART, _SAMPLE_BYTES = 0.035, 3 << 20
_WHOLE_CPU_S = 10.0
"""What is expected to take no longer than this is run on everything."""
_TIMEOUT_S = 3600.0
_Z95 = 1.96
_LEAST_S = 0.001
"""Less than this cannot be told from the start of a program."""

_EXTRAPOLATED_LOG_SD = 0.2
"""How far the time of a whole is off from that of its samples, as a logarithm: its content differs,
and so does what fits into a processor's cache. Half as much again is within the interval.
"""

_T95 = {
    1: 12.71,
    2: 4.30,
    3: 3.18,
    4: 2.78,
    5: 2.57,
    6: 2.45,
    8: 2.31,
    10: 2.23,
    20: 2.09,
    40: 2.02,
}
"""Student's t for 95 %, by the degrees of freedom; the next lower entry is on the safe side."""

_ON_ALL, _ON_SAMPLES = "twice on the whole content", "on two samples, extrapolated"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTime:
    """What a setting takes to build: processor time and time from start to end, in seconds.

    ``main_bytes``: the length of what was made of the whole content; None where samples were run.
    """

    command: BuildCommand
    cpu_s: Estimate
    wall_s: Estimate
    main_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTimes:
    """What was timed, what could not be; ``busy_part``: what others used of the processors."""

    times: tuple[BuildTime, ...]
    skipped: tuple[SkippedSetting, ...]
    busy_part: float


@dataclass(slots=True)
class _Task:
    command: BuildCommand
    samples: tuple[Sample, ...]
    whole_bytes: int
    cpu_s: list[float]
    wall_s: list[float]
    made_bytes: int = 0

    @property
    def on_all(self) -> bool:
        return self.samples[0].size_bytes == self.whole_bytes

    def add(self, sample: Sample, completed: Completed) -> None:
        scale = self.whole_bytes / sample.size_bytes
        self.cpu_s.append(max(completed.cpu_s, _LEAST_S) * scale)
        self.wall_s.append(max(completed.wall_s, _LEAST_S) * scale)


def build_times(
    host: Host,
    generator: Generator,
    source: Source,
    commands: Sequence[BuildCommand],
    *,
    whole: bool,
    observer: SampleObserver,
) -> BuildTimes:
    """Time each command, alone on the machine as far as this program can tell.

    ``whole``: run all of them on the whole content. Raises ``BadImageError`` for a damaged image,
    ``InitadvisorError`` where there is no room.
    """
    directory = host.cache_dir()
    make_directory(directory)
    try:
        with (
            LazyPayload(source, directory, threading.Event(), hashed=False) as payload,
            contextlib.ExitStack() as stack,
        ):

            def new_file() -> IO[bytes]:
                return stack.enter_context(tempfile.TemporaryFile(dir=directory))

            content = payload.get()
            everything = Sample(content.file, content.size_bytes)
            most = max(_SAMPLE_BYTES, int(_SAMPLE_PART * content.size_bytes))
            samples = tuple(
                Sample.taken(content.file, blocks(content.size_bytes, most, phase=phase), new_file)
                for phase in _PHASES
            )
            tasks = [
                _Task(
                    command,
                    (everything,) * len(_PHASES)
                    if whole or not _sampled(host, generator, command, content.size_bytes)
                    else samples,
                    content.size_bytes,
                    [],
                    [],
                )
                for command in commands
                if command.setting.codec is not Codec.CAT
            ]
            found = _timed(host, tasks, directory, observer)
    except OSError as err:
        if lack := library_error(err):
            raise lack from err
        msg = f"cannot time builds of {source.path} in {directory}: {err.strerror}"
        raise InitadvisorError(
            msg, hint="set CACHE_DIRECTORY to a place with room that may be written"
        ) from err
    source.check_unchanged()
    return found


def _sampled(host: Host, generator: Generator, command: BuildCommand, whole_bytes: int) -> bool:
    """Tell whether a sample is honest: one thread does it; and whether it saves enough."""
    level = generator.default_level(host, command.setting)
    return (
        threads_of(command.argv, sys.maxsize, host.cores) == 1
        and expected_cpu_s(command.setting.codec, level, whole_bytes) > _WHOLE_CPU_S
    )


def _timed(
    host: Host, tasks: Sequence[_Task], directory: os.PathLike[str], observer: SampleObserver
) -> BuildTimes:
    others = OthersLoad(host)
    failed: dict[BuildCommand, str] = {}
    for turn in range(len(_PHASES)):
        for index, task in enumerate(tasks):
            what = f"timing how long {task.command.setting} takes to build"
            observer.doing(what, done=turn * len(tasks) + index, of=len(_PHASES) * len(tasks))
            if task.command in failed:
                continue
            try:
                _run(host, task, task.samples[turn], directory)
            except InitadvisorError as err:
                failed[task.command] = err.message
    part = others.part()
    timed = [task for task in tasks if task.command not in failed]
    spreads = {
        on_all: (
            _Spread.of([task.cpu_s for task in timed if task.on_all is on_all]),
            _Spread.of([task.wall_s for task in timed if task.on_all is on_all]),
        )
        for on_all in {task.on_all for task in timed}
    }
    return BuildTimes(
        times=tuple(
            BuildTime(
                command=task.command,
                cpu_s=_interval(task.cpu_s, spreads[task.on_all][0], on_all=task.on_all),
                wall_s=_interval(task.wall_s, spreads[task.on_all][1], on_all=task.on_all),
                main_bytes=task.made_bytes if task.on_all else None,
            )
            for task in timed
        ),
        skipped=tuple(
            SkippedSetting(setting=command.setting, reason=reason)
            for command, reason in failed.items()
        ),
        busy_part=part if part > BUSY_PART else 0.0,
    )


def _run(host: Host, task: _Task, sample: Sample, directory: os.PathLike[str]) -> None:
    with tempfile.TemporaryFile(dir=directory) as file, piped(sample.file) as pipe:
        completed = host.runner.run(
            with_stream_size(task.command.argv, sample.size_bytes),
            timeout_s=_TIMEOUT_S,
            stdin=pipe,
            stdout=file,
            priority=Priority.MEASURED,
        )
        task.made_bytes = file.seek(0, os.SEEK_END)
    task.add(sample, completed)


@dataclass(frozen=True, slots=True)
class _Spread:
    """The variance of the logarithm of a time, pooled over settings, and its t for 95 %."""

    log_variance: float
    t: float

    @classmethod
    def of(cls, times_s: Sequence[Sequence[float]]) -> _Spread:
        freedom = sum(len(times) - 1 for times in times_s)
        squares = sum(
            variance([log(time) for time in times]) * (len(times) - 1) for times in times_s
        )
        return cls(squares / freedom, _T95[max(known for known in _T95 if known <= freedom)])


def _interval(times_s: Sequence[float], spread: _Spread, *, on_all: bool) -> Estimate:
    """Return the geometric mean and its 95 % interval."""
    middle = fmean(map(log, times_s))
    reach = spread.t * sqrt(spread.log_variance / len(times_s))
    if not on_all:
        reach = sqrt(reach**2 + (_Z95 * _EXTRAPOLATED_LOG_SD) ** 2)
    return Estimate(
        mean=exp(middle),
        low=exp(middle - reach),
        high=exp(middle + reach),
        source=_ON_ALL if on_all else _ON_SAMPLES,
    )
