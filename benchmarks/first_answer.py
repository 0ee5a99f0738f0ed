"""How much sooner `recommend` answers than a user who tries every codec by hand.

    python -m benchmarks.first_answer IMAGE [--runs 3] [--all]

By hand: the content is compressed with each of the eight codecs, by the commands of the generator
that made the image, one after the other; then hyperfine decompresses each 10 times. The
first `recommend --json` with an empty cache and the second one are run beside it, in turns.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from initadvisor.core.codecs import Codec
from initadvisor.core.settings import Setting
from initadvisor.host import Host
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.scan import scan
from initadvisor.target.target import find_target

LIMIT, AIM = 15.0, 30.0
SECOND_LIMIT_S = 0.4
TOOLS = {
    Codec.CAT: "cat",
    Codec.GZIP: "gzip -dc",
    Codec.BZIP2: "bzip2 -dc",
    Codec.LZMA: "lzma -dc",
    Codec.XZ: "xz -dc",
    Codec.LZOP: "lzop -dc",
    Codec.LZ4: "lz4 -dc",
    Codec.ZSTD: "zstd -dc",
}


def unpack(image: Path, target: Path) -> None:
    """Write the content of the main segment to ``target``."""
    with image.open("rb") as file, target.open("wb") as out:
        main = scan(file).main
        for piece in decompress(main.codec, file, main.offset, main.size_bytes):
            out.write(piece)


def by_hand(image: Path, content: Path, directory: Path) -> float:
    """Do what a careful user does without initadvisor; return wall seconds."""
    host = Host()
    target = find_target(host, image)
    with image.open("rb") as file:
        generator = target.made_by(scan(file))
    started = time.perf_counter()
    for codec in Codec:
        command = generator.compressor(host, Setting(codec))
        with content.open("rb") as source, (directory / codec).open("wb") as out:
            subprocess.run(command, stdin=source, stdout=out, check=True)
    for codec in Codec:
        command = f"{TOOLS[codec]} < {shlex.quote(str(directory / codec))} > /dev/null"
        hyperfine = ["hyperfine", "--style", "none", "--warmup", "1", "--runs", "10", command]
        subprocess.run(hyperfine, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def answer(image: Path, cache: str, options: list[str]) -> float:
    """Run the command; return wall seconds, the start of Python included."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "initadvisor", "recommend", "--json", "--image", image, *options],
        env={**os.environ, "CACHE_DIRECTORY": cache, "STATE_DIRECTORY": f"{cache}/state"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


def show(name: str, values: list[float], unit: str) -> None:
    """Print a median with its spread."""
    print(
        f"{name:24} {statistics.median(values):8.2f} {unit} ({min(values):.2f}-{max(values):.2f})"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="sample the hopeless settings, too")
    arguments = parser.parse_args()
    if not shutil.which("hyperfine"):
        sys.exit("hyperfine is needed: apt-get install hyperfine")
    options = ["--all"] if arguments.all else []
    manual, first, second, ratios = [], [], [], []
    with tempfile.TemporaryDirectory() as directory:
        content = Path(directory) / "content"
        unpack(arguments.image, content)
        print(f"content: {content.stat().st_size / 1e6:.1f} MB", flush=True)
        for _ in range(arguments.runs):
            with tempfile.TemporaryDirectory() as cache:
                first.append(answer(arguments.image, cache, options))
                second += [answer(arguments.image, cache, options) for _ in range(3)]
            manual.append(by_hand(arguments.image, content, Path(directory)))
            ratios.append(manual[-1] / first[-1])
            print(f"by hand {manual[-1]:.1f} s, first answer {first[-1]:.1f} s", flush=True)
    show("by hand", manual, "s")
    show("first answer", first, "s")
    show("times faster", ratios, f"(limit {LIMIT:g}, aim {AIM:g})")
    show("second answer", second, f"s (limit {SECOND_LIMIT_S:g})")


if __name__ == "__main__":
    main()
