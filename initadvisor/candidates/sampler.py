"""Runs compressors on samples of the content, and controls on all of it; times decompressing both.

They run as other programs do, since somebody waits for the answer: beside a busy machine's work
an idle one of a few seconds took minutes.

A sample is small enough to stay in the processor's caches, which the whole is not. So the samples
are taken in turns, each of which throws the others out, and how much longer the whole takes for
each byte is seen on the controls, of which there is both.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import IO, TYPE_CHECKING, Protocol

from initadvisor.candidates.controls import controls_for, is_far, pieces_of, window_log
from initadvisor.candidates.payload import until_stopped
from initadvisor.candidates.schedule import expected_cpu_s
from initadvisor.core.codecs import Codec, codec_of_magic
from initadvisor.core.errors import BadImageError, InitadvisorError
from initadvisor.decide.sampling import SampleBlock
from initadvisor.generators.files import with_stream_size
from initadvisor.host.load import BUSY_PART, OthersLoad
from initadvisor.host.process import piped
from initadvisor.host.run import Priority
from initadvisor.image.decompressors.decompress import open_stream
from initadvisor.image.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from initadvisor.candidates.controls import Control
    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from initadvisor.image.stream_facts import StreamFacts

    NewFile = Callable[[], IO[bytes]]


_SLOW_CPU_S = 15.0
"""A setting that takes longer than this for 100 MB is slow: it is run on a small sample."""

_TIMEOUT_S = 120.0
_RELATIVES = {
    Codec.GZIP: Codec.GZIP,
    Codec.LZMA: Codec.XZ,
    Codec.XZ: Codec.XZ,
    Codec.LZOP: Codec.LZ4,
    Codec.LZ4: Codec.LZ4,
    Codec.ZSTD: Codec.ZSTD,
}
"""The codec in which a slow setting has fast relatives."""

_LIKE_THEIR_RELATIVES = frozenset({Codec.GZIP})
"""Codecs whose slow levels gain about the same on a fast one everywhere: more than 1 MB of them
tells no more, measured on nine images."""


class SampleObserver(Protocol):
    """Receives progress events of sampling."""

    def doing(self, what: str, *, done: int = 0, of: int = 0) -> None:
        """Something goes on, in words: ``done`` of its ``of`` steps, where they can be counted."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SampleTask:
    """A recipe, and what decides how it is sampled."""

    command: BuildCommand
    level: int | None
    window_log: float
    cpu_s_per_100_mb: float
    controls: tuple[Control, ...]

    @property
    def codec(self) -> Codec:
        """What is sampled."""
        return self.command.setting.codec

    @property
    def far(self) -> bool:
        """Tell whether it finds matches megabytes away."""
        return is_far(self.window_log)

    @property
    def timed_control(self) -> Control | None:
        """Which control tells how much slower than a sample the whole is decompressed.

        Of those of the same codec the one that looks back farthest, as far as this does, or for
        what looks back less than megabytes the one that does neither.
        """
        alike = [control for control in self.controls if control.codec is self.codec]
        return alike[-1 if self.far else 0] if alike else None

    @property
    def slow(self) -> bool:
        """Tell whether it is run on a small sample."""
        return self.cpu_s_per_100_mb > _SLOW_CPU_S


def sample_task(
    host: Host, generator: Generator, command: BuildCommand, whole_bytes: int
) -> SampleTask:
    """Return how a recipe is sampled."""
    codec = command.setting.codec
    level = generator.default_level(host, command.setting)
    window = window_log(codec, command.argv, level=level)
    return SampleTask(
        command=command,
        level=level,
        window_log=window,
        cpu_s_per_100_mb=expected_cpu_s(codec, level, 100_000_000),
        controls=controls_for(window, whole_bytes=whole_bytes),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A part of the content, or all of it, in a file."""

    file: IO[bytes]
    size_bytes: int

    @classmethod
    def taken(
        cls, content: IO[bytes], stretches: Sequence[SampleBlock], new_file: NewFile
    ) -> Sample:
        """Copy stretches of the content into a file."""
        file = new_file()
        for piece in pieces_of(content, stretches):
            file.write(piece)
        file.flush()
        return cls(file, file.tell())


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a compressor made of a sample, the times to decompress that again, what it says."""

    size_bytes: int
    cpu_s: float
    peak_bytes: int
    file: IO[bytes]
    decompress_ms: tuple[float, ...] = ()
    facts: tuple[StreamFacts, ...] = ()


@dataclass(slots=True, kw_only=True)
class Sampler:
    """What is measured, and what came of it; a reason in words where a compressor failed.

    ``new_file`` opens temporary files without names; it raises ``OSError`` where there is no room.
    ``busy_part``: what others used of the processors while decompression was timed.
    """

    host: Host
    whole: Sample
    large: Sample
    small: Sample
    smallest: Sample
    new_file: NewFile
    outputs: dict[tuple[str, Sample], Output | str] = field(default_factory=dict)
    control_bytes: dict[tuple[Control, Sample], int] = field(default_factory=dict)
    control_streams: dict[tuple[Control, Sample], Compressed] = field(default_factory=dict)
    control_ms: dict[tuple[Control, Sample], float] = field(default_factory=dict)
    relatives: dict[SampleTask, SampleTask] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    busy_part: float = 0.0

    def sample_of(self, subject: SampleTask) -> Sample:
        """Return the sample that a setting is run on."""
        if not subject.slow:
            return self.large
        known = subject.codec in _LIKE_THEIR_RELATIVES and subject in self.relatives
        return self.smallest if known else self.small

    def measure(self, subjects: Sequence[SampleTask], observer: SampleObserver) -> None:
        """Run everything, the longest first; then time decompression without other load."""
        compressed = [subject for subject in subjects if subject.codec is not Codec.CAT]
        self.relatives = _relatives(compressed)
        steps = sorted(self._steps(compressed), key=lambda step: -step[0])
        pool = ThreadPoolExecutor(self.host.cores)
        try:
            whole, done = sum(_cost(step) for step in steps), 0
            observer.doing(_COMPRESSING, of=whole)
            for step, _ in zip(steps, pool.map(lambda step: step[1](), steps), strict=True):
                done += _cost(step)
                observer.doing(_COMPRESSING, done=done, of=whole)
        except BaseException:
            self.stop.set()
            self.host.runner.stop_all()
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        self._time(compressed, observer)

    def _steps(self, subjects: Sequence[SampleTask]) -> list[tuple[float, Callable[[], None]]]:
        """Return what is to be run, each once, with about how long it takes."""
        steps: dict[object, tuple[float, Callable[[], None]]] = {}
        wanted = [(subject, self.sample_of(subject)) for subject in subjects]
        wanted += [(fast, self.sample_of(slow)) for slow, fast in self.relatives.items()]
        for subject, sample in wanted:
            cpu_s = subject.cpu_s_per_100_mb * sample.size_bytes / 100e6
            run = partial(self._compress, subject, sample)
            steps[subject.command.key, sample] = (cpu_s, run)
            for control in subject.controls:
                for part in (sample, self.whole):
                    cpu_s = control.expected_cpu_s(part.size_bytes)
                    steps[control, part] = (cpu_s, partial(self._control, control, part))
        return list(steps.values())

    def _control(self, control: Control, part: Sample) -> None:
        everything = (SampleBlock(offset=0, size_bytes=part.size_bytes),)
        pieces = until_stopped(pieces_of(part.file, everything), self.stop)
        file = self.new_file()
        size_bytes = control.compressed_bytes(pieces, into=file)
        self.control_bytes[control, part] = size_bytes
        self.control_streams[control, part] = Compressed(
            codec=control.codec, file=file, size_bytes=size_bytes, content_bytes=part.size_bytes
        )

    def _compress(self, subject: SampleTask, sample: Sample) -> None:
        command = subject.command
        file = self.new_file()
        try:
            with piped(sample.file) as pipe:
                completed = self.host.runner.run(
                    with_stream_size(command.argv, sample.size_bytes),
                    timeout_s=_TIMEOUT_S,
                    stdin=pipe,
                    stdout=file,
                    priority=Priority.MEASURED,
                )
        except InitadvisorError as err:
            self.outputs[command.key, sample] = err.message
            return
        self.outputs[command.key, sample] = Output(
            size_bytes=file.seek(0, os.SEEK_END),
            cpu_s=completed.cpu_s,
            peak_bytes=completed.peak_bytes,
            file=file,
        )

    def _time(self, subjects: Sequence[SampleTask], observer: SampleObserver) -> None:
        """Decompress every sample again, and make sure that it is what was compressed."""
        keys = [(subject.command.key, self.sample_of(subject)) for subject in subjects]
        made = [
            (subject, key, output)
            for subject, key in zip(subjects, keys, strict=True)
            if isinstance(output := self.outputs[key], Output)
        ]
        streams = [
            Compressed(
                codec=subject.codec,
                file=output.file,
                size_bytes=output.size_bytes,
                content_bytes=sample.size_bytes,
            )
            for subject, (_, sample), output in made
        ]
        compared = {
            (subject.timed_control, part)
            for subject, (_, sample), _ in made
            for part in (sample, self.whole)
        }
        controls = {of: stream for of, stream in self.control_streams.items() if of in compared}
        everything = [*streams, *controls.values()]
        times, self.busy_part = decompression_times(self.host, everything, observer=observer)
        for (subject, key, output), found in zip(made, times, strict=False):
            self.outputs[key] = (
                f"{subject.command.argv[0]} wrote {found}"
                if isinstance(found, str)
                else replace(output, decompress_ms=found.times_ms, facts=found.facts)
            )
        for of, found in zip(controls, times[len(made) :], strict=True):
            if not isinstance(found, str):
                self.control_ms[of] = min(found.times_ms)  # the one that was disturbed least


_COMPRESSING = "compressing a sample with every setting"


def _cost(step: tuple[float, object]) -> int:
    """Return about how many ms of processor time a step takes."""
    return 10 + round(1000 * step[0])


def _relatives(subjects: Sequence[SampleTask]) -> dict[SampleTask, SampleTask]:
    """Return for each slow setting the fast relative that searches most, if it has one."""
    found = {}
    for subject in subjects:
        family = _RELATIVES.get(subject.codec)
        fast = [
            other
            for other in subjects
            if other.codec is family and not other.slow and _comparable(subject, other)
        ]
        if subject.slow and fast:
            found[subject] = max(fast, key=lambda other: other.cpu_s_per_100_mb)
    return found


def _comparable(slow: SampleTask, fast: SampleTask) -> bool:
    """Tell whether what a sample does to one it does to the other.

    zstd's levels that look back megabytes do; those of xz differ more by codec than by window.
    """
    return slow.codec is not Codec.ZSTD or slow.far is fast.far


_ROUNDS = 3
_LONG_MS = 20.0
"""What has taken longer than this is not timed again: a disturbance is a small part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """A file that holds one compressed stream, and how long its content is."""

    codec: Codec
    file: IO[bytes]
    size_bytes: int
    content_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decompressed:
    """How long that took each time, in ms of processor time, and what the streams say."""

    times_ms: tuple[float, ...] = ()
    facts: tuple[StreamFacts, ...] = ()


def decompression_times(
    host: Host, streams: Sequence[Compressed], *, observer: SampleObserver
) -> tuple[list[Decompressed | str], float]:
    """Decompress each a few times, in turns; return what was found, or what is wrong, of each.

    Where others use the processors it is done once more, and of the times the shorter ones count;
    the second figure is which part others used then, 0 where that does not matter.
    """
    found: list[Decompressed | str] = [_wrong_format(s) or Decompressed() for s in streams]
    part = _time_in_turns(host, streams, found, observer, _TIMING)
    if part:
        again: list[Decompressed | str] = [
            one if isinstance(one, str) else Decompressed() for one in found
        ]
        what = "timing once more: the machine is busy"
        part = min(part, _time_in_turns(host, streams, again, observer, what))
        found = [_shorter(one, other) for one, other in zip(found, again, strict=True)]
    return found, part


_TIMING = "timing decompression of the samples"


def _time_in_turns(
    host: Host,
    streams: Sequence[Compressed],
    found: list[Decompressed | str],
    observer: SampleObserver,
    what: str,
) -> float:
    """Add times to what is found; return what others used meanwhile, 0 where that is little."""
    others = OthersLoad(host)
    steps = _ROUNDS * len(streams)
    for turn in range(_ROUNDS):
        for index, stream in enumerate(streams):
            observer.doing(what, done=turn * len(streams) + index, of=steps)
            known = found[index]
            if isinstance(known, str) or sum(known.times_ms) > _LONG_MS:
                continue
            now = _once(host, stream)
            found[index] = (
                now
                if isinstance(now, str)
                else Decompressed(times_ms=(*known.times_ms, *now.times_ms), facts=now.facts)
            )
    part = others.part()
    return part if part > BUSY_PART else 0.0


def _shorter(one: Decompressed | str, other: Decompressed | str) -> Decompressed | str:
    """Return the shorter half of both's times: what disturbs makes them longer."""
    if isinstance(one, str) or isinstance(other, str):
        return other
    times = sorted((*one.times_ms, *other.times_ms))
    return replace(one, times_ms=tuple(times[: max(len(one.times_ms), 1)]))


def _wrong_format(stream: Compressed) -> str | None:
    stream.file.seek(0)
    if codec_of_magic(stream.file.read(2)) is stream.codec:
        return None
    return f"something that is not {stream.codec}"


def _once(host: Host, stream: Compressed) -> Decompressed | str:
    started = host.clock.thread_cpu_ns()
    try:
        content_bytes, facts = _read_through(stream)
    except BadImageError as err:
        return f"something that cannot be unpacked ({err.message})"
    if content_bytes != stream.content_bytes:
        return "something else than it was given"
    took_ms = (host.clock.thread_cpu_ns() - started) / 1e6
    return Decompressed(times_ms=(took_ms,), facts=facts)


def _read_through(stream: Compressed) -> tuple[int, tuple[StreamFacts, ...]]:
    """Return how much was compressed, and each different thing that its streams say once."""
    reader = Reader(stream.file, 0, stream.size_bytes)
    content_bytes = 0
    facts: dict[StreamFacts, None] = {}
    while reader.left:
        pieces = open_stream(stream.codec, reader, verify=False)
        while True:
            try:
                content_bytes += len(next(pieces))
            except StopIteration as end:
                facts[end.value] = None
                break
    return content_bytes, tuple(facts)
