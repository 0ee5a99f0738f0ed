"""How well bench predicts a kernel's decompression, and how badly the usual way does.

    python -m benchmarks.predict [IMAGE...] [--rounds 5]

The images (without any: a large one of dracut's, one of initramfs-tools' and one in Arch's layout,
see tests/fixtures) must not be those that the calibration table was made with. For each content
user-mode Linux, which is another kernel than any machine's own, unpacks every setting; after each
boot this process decompresses the same bytes as bench does, and the command line tool does it too.

What matters for a choice are differences between settings. Shown is the mean absolute error of the
predicted differences as a part of the mean absolute difference, over all pairs of settings: of
bench (user-space time by the lines of the shipped table) and of the tools' plain times. For the
settings that are chosen between (cat, lz4, lzop, zstd) each pair is shown by itself, as a part of
the larger of its two times to unpack; beside, how many pairs are within 10 %, and of how many
another measurement of the same kernel is, which nothing can predict better.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shlex
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.candidates.build import build_candidates
from initadvisor.candidates.controls import buffer_bytes, is_far, window_log
from initadvisor.candidates.decompression import Stream, time_once
from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.data.tables import shipped_calibration
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.target.source import open_source
from initadvisor.vm.boot import boot
from initadvisor.vm.engines import uml_machine

if TYPE_CHECKING:
    from initadvisor.records.built_image import BuiltImage

SETTINGS = tuple(
    Setting.parse(text)
    for text in (
        *("cat", "lz4 -1", "lz4 -9", "lzop", "lzop -9", "zstd -1", "zstd -3", "zstd -19"),
        *("gzip -6", "gzip -9", "xz", "xz -0"),
    )
)
TOOLS = {
    Codec.CAT: "cat",
    Codec.LZ4: "lz4 -dc",
    Codec.LZOP: "lzop -dc",
    Codec.ZSTD: "zstd -dc",
    Codec.GZIP: "gzip -dc",
    Codec.XZ: "xz -dc",
}
LIMIT = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Medians in ms, by setting; ``again``: of another measurement of the kernel."""

    kernel: dict[Setting, float]
    again: dict[Setting, float]
    bench: dict[Setting, float]
    tool: dict[Setting, float]


def tool_ms(candidate: BuiltImage) -> float:
    """Time the command line tool on the main segment, as people do."""
    with Path(candidate.path).open("rb") as file:
        os.lseek(file.fileno(), candidate.main_offset, os.SEEK_SET)
        started = time.perf_counter()
        subprocess.run(
            shlex.split(TOOLS[candidate.setting.codec]),
            stdin=file,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return (time.perf_counter() - started) * 1000


def measure(host: Host, image: Path, rounds: int) -> Times:
    """Time everything in turns, the kernel twice."""
    machine = uml_machine(host)
    with open_source(image) as source:
        built = build_candidates(host, unknown, source, SETTINGS)
        unpacked_bytes = source.contents.unpacked_bytes
    assert not built.skipped, built.skipped
    kernel, again, bench, tool = (defaultdict(list) for _ in range(4))
    for number in range(rounds + 1):
        order = list(built.candidates)
        random.shuffle(order)
        for candidate in order:
            unpack_ms = []
            for _ in range(2):
                result = boot(host, machine, Path(candidate.path), unpacked_bytes=unpacked_bytes)
                assert result.refusal is None, result.refusal
                unpack_ms.append(result.unpack_us / 1000)
            stream = Stream(
                path=Path(candidate.path),
                offset=candidate.main_offset,
                size_bytes=candidate.size_bytes - candidate.main_offset,
                codec=candidate.setting.codec,
                sha256=candidate.sha256,
            )
            times = *unpack_ms, time_once(host, stream), tool_ms(candidate)
            if number:  # the first round finds everything on the disk
                for kept, value in zip((kernel, again, bench, tool), times, strict=True):
                    kept[candidate.setting].append(value)
    return Times(
        kernel=medians(kernel), again=medians(again), bench=medians(bench), tool=medians(tool)
    )


def medians(of: dict[Setting, list[float]]) -> dict[Setting, float]:
    """Return the median of each setting's times."""
    return {setting: statistics.median(values) for setting, values in of.items()}


def error(true: dict[Setting, float], predicted: dict[Setting, float]) -> float:
    """Return the mean absolute error of the differences, by the mean absolute difference."""
    pairs = list(itertools.combinations(true, 2))
    off = [abs((predicted[a] - predicted[b]) - (true[a] - true[b])) for a, b in pairs]
    return statistics.fmean(off) / statistics.fmean(abs(true[a] - true[b]) for a, b in pairs)


def predicted_ms(setting: Setting, user_ms: float) -> float:
    """Return what the shipped table makes of a time in user space, for user-mode Linux here."""
    if setting.codec is Codec.CAT:
        return 0.0
    log = window_log(setting.codec, (setting.codec.value, *setting.options), level=None)
    table = shipped_calibration()
    row = table.row(setting.codec, far=is_far(log))
    buffer_mb = buffer_bytes(setting.codec, log) / 1e6
    return user_ms * row.ratio + buffer_mb * table.uml_buffer_ms_per_mb


def pair_errors(
    true: dict[Setting, float], predicted: dict[Setting, float]
) -> list[tuple[float, tuple[Setting, Setting]]]:
    """Return by how much each predicted difference is off, as a part of the longer time."""
    of_interest = [s for s in true if s.codec in (Codec.CAT, Codec.LZ4, Codec.LZOP, Codec.ZSTD)]
    return [
        (
            abs((predicted[a] - predicted[b]) - (true[a] - true[b])) / max(true[a], true[b]),
            (a, b),
        )
        for a, b in itertools.combinations(of_interest, 2)
    ]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", type=Path, nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    images = arguments.images or default_images()
    errors = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory:
        os.environ["CACHE_DIRECTORY"] = directory
        for image in images:
            times = measure(Host(), image, arguments.rounds)
            predicted = {setting: predicted_ms(setting, ms) for setting, ms in times.bench.items()}
            print(f"{image}: user-mode Linux, what each takes longer than cat; ms")
            for setting in sorted(times.kernel, key=lambda s: times.kernel[s]):
                populate = times.kernel[Setting(Codec.CAT)]
                print(
                    f"  {setting!s:9} kernel {times.kernel[setting] - populate:7.1f}  bench "
                    f"{predicted[setting]:7.1f}  tool {times.tool[setting]:7.1f}"
                )
            for name, values in (("bench", predicted), ("tool", times.tool)):
                errors[name].append(error(times.kernel, values))
                print(f"  error of the differences, {name}: {errors[name][-1]:.1%}", flush=True)
            pairs = sorted(pair_errors(times.kernel, predicted), reverse=True)
            for off, pair in pairs:
                print(f"  {off:6.1%}  {pair[0]} and {pair[1]}")
            repeated = pair_errors(times.kernel, times.again)
            for name, found in (("bench", pairs), ("the kernel once more", repeated)):
                within = sum(off <= LIMIT for off, _ in found)
                print(
                    f"  {name}: {within} of {len(found)} pairs within {LIMIT:.0%},"
                    f" worst {max(off for off, _ in found):.1%}",
                    flush=True,
                )
    for name, values in errors.items():
        low, high = min(values), max(values)
        print(f"{name}: {statistics.fmean(values):.1%} ({low:.1%}-{high:.1%})")


def default_images() -> list[Path]:
    """Return images of three generators, made once."""
    from tests.fixtures.arch import arch_image
    from tests.fixtures.debian import Kernel, Suite, debian
    from tests.fixtures.generated import initramfs_tools_image, large_image

    tree = debian(Suite.BOOKWORM, Kernel.FULL)
    return [
        large_image(),
        initramfs_tools_image(tree, Codec.GZIP, small=False),
        arch_image(Setting(Codec.ZSTD)),
    ]


if __name__ == "__main__":
    main()
