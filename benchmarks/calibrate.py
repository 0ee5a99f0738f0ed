"""The calibration table, measured anew: kernel code against user space, on this machine.

    python -m benchmarks.calibrate [--uml FILE] [--rounds 9] [--output FILE] IMAGE...

The content of each image is compressed with every codec. User-mode Linux unpacks each candidate,
and this process decompresses the same bytes, in turns. A kernel's time for a codec, less its time
for the uncompressed image in the same round, is its time to decompress. Part of that is the time to
map buffers: user-mode Linux asks the host for each page of them, which no kernel on hardware does.
It is taken to be in proportion to their size, alike for all codecs; of the rest, the table holds
the ratio to the time in this process, for each codec, apart for windows of megabytes. The time for
the uncompressed image, per megabyte, is the time to create the files.

A kernel's own time to map buffers is that of the running one: it creates a map for BPF programs of
8 MB, which is memory that is allocated in the same way, and cleared (as with init_on_alloc). That
needs root; without it, the shipped figure stays.

The table goes to the state directory, from which `recommend` uses it in place of the shipped one;
remove it there to have the shipped one back. It takes some minutes for each image and needs a quiet
machine. Several images of different content give a truer interval, and only small ones beside
large ones tell the time for the buffers. On a machine that is not quiet, ``--uml`` may be a script
that preloads a ``clock_gettime`` into linux.uml which leaves out of CLOCK_MONOTONIC what
/proc/self/schedstat says it waited for a processor; the shipped table was made so.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import struct
import sys
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp, fsum, log, sqrt
from operator import sub
from pathlib import Path
from statistics import fmean, median, stdev
from typing import TYPE_CHECKING, Any

from initadvisor.candidates.build import build_candidates
from initadvisor.candidates.controls import buffer_bytes, is_far, window_log
from initadvisor.candidates.decompression import Stream, time_once
from initadvisor.cli.rendering.progress import Progress
from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.data.tables import CALIBRATION, shipped_document
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.host.files import make_directory, whole_file
from initadvisor.host.hardware import cpu_model
from initadvisor.lab.history import times_ms
from initadvisor.lab.timing import LEAST_ROUNDS, LabImage, Rounds, time_images
from initadvisor.records.lab import BootKind, Engine, LabSubject
from initadvisor.store.store import open_store
from initadvisor.target.source import open_source
from initadvisor.vm.engines import Wanted, machine_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.lab.timing import LabRunObserver
    from initadvisor.records.built_image import BuiltImage
    from initadvisor.records.lab import LabSample, LostBoot

SETTINGS = tuple(
    Setting.parse(text)
    for text in (
        "cat",
        "gzip -6",
        "gzip -9",
        "bzip2",
        "lzma",
        "xz",
        "xz -0",
        "lzop",
        "lzop -9",
        "lz4 -1",
        "lz4 -9",
        "zstd -1",
        "zstd -3",
        "zstd -19",
    )
)
_LEAST_LOG_SD, _LEAST_OWN_LOG_SD = 0.05, 0.02
_ONE_CONTENT_LOG_SD = 0.15
"""The spread over contents where only one was measured."""

_BUFFER_STEPS = 400
_BPF_CALL, _BPF_ARRAY, _PAGE_BYTES = 321, 2, 4096
_BPF_MAP_BYTES, _BPF_MAPS = 8 << 20, 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """What one setting took, medians of rounds.

    ``decompress_ms``: in the kernel, more than the uncompressed image in the same round.
    """

    compressed_bytes: int
    kernel_ms: float
    decompress_ms: float
    user_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The times of one content, by setting."""

    name: str
    unpacked_bytes: int
    kernel: str
    disturbed: tuple[str, ...]
    times: Mapping[Setting, Times]


class _Interleaved:
    """Decompresses in this process what a kernel has just unpacked."""

    def __init__(self, host: Host, streams: Mapping[str, Stream], observer: LabRunObserver) -> None:
        self._host = host
        self._streams = streams
        self._observer = observer
        self.user_ms: dict[str, list[float]] = defaultdict(list)

    def booted(self, subject: LabSubject, sample: LabSample) -> None:
        """Time the same bytes here, and tell."""
        self._observer.booted(subject, sample)
        stream = self._streams[subject.sha256]
        self.user_ms[subject.sha256].append(time_once(self._host, stream))

    def lost(self, subject: LabSubject, lost: LostBoot) -> None:
        """Tell."""
        self._observer.lost(subject, lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """What one setting took of one content."""

    content: str
    user_ms: float
    user_ms_per_mb: float
    decompress_ms: float
    buffer_mb: float


_Group = tuple[Codec, bool]
"""A codec, and whether its window is of megabytes."""


def table(
    measured: Sequence[Measured], *, source: str, kernel_buffer_ms_per_mb: float | None = None
) -> dict[str, Any]:
    """Return the document of the table: a ratio per codec and window, over all contents."""
    populate = [
        content.times[Setting(Codec.CAT)].kernel_ms / (content.unpacked_bytes / 1e6)
        for content in measured
    ]
    shipped = shipped_document()
    groups = _groups(measured)
    buffer_ms_per_mb = fitted_buffers(groups)
    return {
        "schema": shipped["schema"],
        "source": source,
        "machine_log_sd": shipped["machine_log_sd"],
        "decompress": {
            codec.value: _fitted(codec, groups, buffer_ms_per_mb)
            for codec in Codec
            if codec in {of for of, _ in groups}
        },
        "buffer_ms_per_mb": {
            **shipped["buffer_ms_per_mb"],
            "user-mode Linux": round(buffer_ms_per_mb, 3),
            **(
                {"kernel": round(kernel_buffer_ms_per_mb, 3)}
                if kernel_buffer_ms_per_mb is not None
                else {}
            ),
        },
        "populate_ms_per_mb": {
            **shipped["populate_ms_per_mb"],
            "median": round(median(populate), 3),
        },
        "measured": {
            content.name: {
                str(setting): {
                    "compressed_bytes": times.compressed_bytes,
                    "kernel_ms": round(times.kernel_ms, 1),
                    "decompress_ms": round(times.decompress_ms, 1),
                    "user_ms": round(times.user_ms, 1),
                }
                for setting, times in content.times.items()
            }
            for content in measured
        },
        "payload_bytes": {content.name: content.unpacked_bytes for content in measured},
    }


def _groups(measured: Sequence[Measured]) -> dict[_Group, list[_Point]]:
    groups: dict[_Group, list[_Point]] = defaultdict(list)
    for content in measured:
        for setting, times in content.times.items():
            if setting.codec is not Codec.CAT:
                argv = (setting.codec.value, *setting.options)
                window = window_log(setting.codec, argv, level=None)
                groups[setting.codec, is_far(window)].append(
                    _Point(
                        content=content.name,
                        user_ms=times.user_ms,
                        user_ms_per_mb=times.user_ms / (content.unpacked_bytes / 1e6),
                        decompress_ms=times.decompress_ms,
                        buffer_mb=buffer_bytes(setting.codec, window) / 1e6,
                    )
                )
    return groups


def fitted_buffers(groups: Mapping[_Group, Sequence[_Point]]) -> float:
    """Return the kernel's time per MB of buffers with which ratios explain the most.

    In proportion, that is: how far times are off is as bad of short ones as of long ones. It is
    not below 0, and less than any time divided by its buffers.
    """
    points = [point for group in groups.values() for point in group if point.buffer_mb]
    most = min((point.decompress_ms / point.buffer_mb for point in points), default=0.0)

    def spread(buffer_ms_per_mb: float) -> float:
        return fsum(
            off**2 for group in groups.values() for _, off in _errors(group, buffer_ms_per_mb)
        )

    return min((most * step / _BUFFER_STEPS for step in range(_BUFFER_STEPS)), key=spread)


def _ratio(group: Sequence[_Point], buffer_ms_per_mb: float) -> float:
    rest = ((p.decompress_ms - buffer_ms_per_mb * p.buffer_mb) / p.user_ms for p in group)
    return exp(fmean(map(log, rest)))


def _errors(group: Sequence[_Point], buffer_ms_per_mb: float) -> list[tuple[str, float]]:
    """Return how far each time is from its prediction, as a logarithm, with the content's name."""
    ratio = _ratio(group, buffer_ms_per_mb)
    return [
        (p.content, log(p.decompress_ms / (ratio * p.user_ms + buffer_ms_per_mb * p.buffer_mb)))
        for p in group
    ]


def _fitted(
    codec: Codec, groups: Mapping[_Group, Sequence[_Point]], buffer_ms_per_mb: float
) -> dict[str, Any]:
    """Return a codec's lines of the table, and how far what was measured is from them."""
    found: dict[str, Any] = {}
    off: dict[str, list[float]] = defaultdict(list)
    for window in ("near", "far"):
        group = groups.get((codec, window == "far"))
        if not group:
            continue
        found[window] = {
            "ratio": round(_ratio(group, buffer_ms_per_mb), 3),
            "user_ms_per_mb": round(median(point.user_ms_per_mb for point in group), 3),
        }
        for content, error in _errors(group, buffer_ms_per_mb):
            off[content].append(error)
    own = [one - fmean(of_content) for of_content in off.values() for one in of_content]
    shared = [fmean(of_content) for of_content in off.values()]
    return {
        "log_sd": round(
            max(_LEAST_LOG_SD, stdev(shared)) if len(shared) > 1 else _ONE_CONTENT_LOG_SD, 3
        ),
        "own_log_sd": round(max(_LEAST_OWN_LOG_SD, sqrt(fmean(one**2 for one in own))), 3),
        **found,
    }


def kernel_buffer_ms_per_mb() -> float | None:
    """Return what the running kernel takes to map memory and clear it; None where it will not."""
    if platform.machine() != "x86_64":
        return None  # where the system call has another number
    libc = ctypes.CDLL(None, use_errno=True)
    pages = _BPF_MAP_BYTES // _PAGE_BYTES
    attributes = ctypes.create_string_buffer(
        struct.pack("IIIII", _BPF_ARRAY, 4, _PAGE_BYTES, pages, 0), 128
    )
    times_ms = []
    for _ in range(_BPF_MAPS):
        started = time.thread_time_ns()
        file = libc.syscall(_BPF_CALL, 0, attributes, len(attributes))
        times_ms.append((time.thread_time_ns() - started) / 1e6)
        if file < 0:
            return None
        os.close(file)
    return median(times_ms) / (_BPF_MAP_BYTES / 1e6)


def measure(
    host: Host, path: Path, *, uml: Path | None, rounds: int, observer: LabRunObserver
) -> Measured:
    """Time the candidates of an image.

    Raises ``InitadvisorError`` where it cannot be read, a codec has no compressor here or boots
    were lost, ``NoEngineError`` without user-mode Linux.
    """
    with ExitStack() as stack:
        source = stack.enter_context(open_source(path))
        built = build_candidates(host, unknown, source, SETTINGS, observer=observer)
        if built.skipped:
            gaps = "; ".join(f"{gap.setting}: {gap.reason}" for gap in built.skipped)
            msg = f"cannot calibrate with {path}: {gaps}"
            raise InitadvisorError(msg, hint="install the compressors that are missing")
        store = stack.enter_context(open_store(host))
        wanted = Wanted(engine=Engine.UML, uml=uml)
        machine = stack.enter_context(machine_for(host, store, (Engine.UML,), wanted))
        interleaved = _Interleaved(host, {c.sha256: _stream(c) for c in built.candidates}, observer)
        recorded = time_images(
            host,
            machine,
            [_lab_image(candidate) for candidate in built.candidates],
            unpacked_bytes=source.contents.room_bytes,
            rounds=Rounds(most=rounds, until_settled=False),
            store=store,
            observer=interleaved,
            seed=rounds,
        )
        kernel_ms = times_ms(recorded.samples, BootKind.UNPACK)
        lacking = [c for c in built.candidates if len(kernel_ms.get(c.sha256, ())) < rounds]
        if lacking:
            msg = f"cannot calibrate with {path}: boots were lost ({lacking[0].setting})"
            raise InitadvisorError(msg, hint="see initadvisor history")
        [plain] = [c for c in built.candidates if c.setting.codec is Codec.CAT]
        content = Measured(
            name=path.name,
            unpacked_bytes=source.contents.unpacked_bytes,
            kernel=machine.version,
            disturbed=recorded.warnings,
            times={
                c.setting: Times(
                    compressed_bytes=c.size_bytes - c.main_offset,
                    kernel_ms=median(kernel_ms[c.sha256]),
                    decompress_ms=median(map(sub, kernel_ms[c.sha256], kernel_ms[plain.sha256])),
                    user_ms=median(interleaved.user_ms[c.sha256]),
                )
                for c in built.candidates
            },
        )
        _require_difference(content)
        return content


def _require_difference(content: Measured) -> None:
    """Raise where noise is larger than what is to be measured, as with a small image."""
    for setting, times in content.times.items():
        if setting.codec is not Codec.CAT and min(times.decompress_ms, times.user_ms) <= 0:
            msg = (
                f"cannot calibrate with {content.name}: the kernel took {times.kernel_ms:.1f} ms "
                f"for {setting}, {-times.decompress_ms:.1f} ms less than without compression"
            )
            raise InitadvisorError(msg, hint="name larger images; the machine must be quiet")


def provenance(host: Host, measured: Sequence[Measured], rounds: int) -> str:
    """Say what was measured, with what and when."""
    contents = ", ".join(content.name for content in measured)
    doubts = dict.fromkeys(doubt for content in measured for doubt in content.disturbed)
    disturbed = f"; disturbed: {', '.join(doubts)}" if doubts else ""
    return (
        f"{measured[0].kernel} against the decoders of Python's libraries (Python "
        f"{platform.python_version()}), medians of {rounds} interleaved rounds on {contents}, "
        f"{datetime.now(UTC):%Y-%m}, {cpu_model(host)}{disturbed}"
    )


def _stream(candidate: BuiltImage) -> Stream:
    return Stream(
        path=Path(candidate.path),
        offset=candidate.main_offset,
        size_bytes=candidate.size_bytes - candidate.main_offset,
        codec=candidate.setting.codec,
        sha256=candidate.sha256,
    )


def _lab_image(candidate: BuiltImage) -> LabImage:
    return LabImage(
        subject=LabSubject(
            setting=candidate.setting,
            path=candidate.path,
            sha256=candidate.sha256,
            size_bytes=candidate.size_bytes,
        ),
        file=Path(candidate.path),
    )


def main() -> None:
    """Measure, write the table and print its ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("images", type=Path, nargs="+", metavar="IMAGE")
    parser.add_argument("--uml", type=Path, metavar="FILE", help="instead of linux.uml")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, metavar="FILE")
    asked = parser.parse_args()
    if asked.rounds < LEAST_ROUNDS:
        parser.error(f"{LEAST_ROUNDS} rounds at least give a median")
    if len({os.path.realpath(image) for image in asked.images}) < len(asked.images):
        parser.error("the same image twice does not tell how contents differ")
    host = Host()
    try:
        with Progress() as progress:
            measured = [
                measure(host, image, uml=asked.uml, rounds=asked.rounds, observer=progress)
                for image in asked.images
            ]
    except InitadvisorError as err:
        sys.exit(err.with_hint)
    document = table(
        measured,
        source=provenance(host, measured, asked.rounds),
        kernel_buffer_ms_per_mb=kernel_buffer_ms_per_mb(),
    )
    path = asked.output or host.state_dir() / CALIBRATION
    make_directory(path.parent)
    with whole_file(path) as file:
        file.write(json.dumps(document, indent=2).encode() + b"\n")
    print(f"{path}: {document['source']}")
    for codec, rows in document["decompress"].items():
        for window in ("near", "far"):
            if row := rows.get(window):
                print(f"{codec:6} {window:5} {row['ratio']:.2f} times user space")
    for kernel in ("user-mode Linux", "kernel"):
        print(f"{kernel}: {document['buffer_ms_per_mb'][kernel]:.2f} ms per MB of buffers")


if __name__ == "__main__":
    main()
