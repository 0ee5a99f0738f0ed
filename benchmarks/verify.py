"""How long `lab --verify` takes under emulation, and what a KVM that hangs costs.

    python -m benchmarks.verify [IMAGE] [--kernel FILE] [--runs 5]

Without IMAGE the large one of Debian's (see tests/fixtures) is compressed with zstd and made that
large; without --kernel it is Debian's own. Every run starts with what earlier runs remember of KVM,
the first with nothing.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAIN = [sys.executable, "-c", "from initadvisor.cli import main; main()"]


def run(words: list[str | Path], directory: str) -> float:
    """Run the command as a user does; return the wall time in s."""
    started = time.perf_counter()
    subprocess.run(
        [*MAIN, *words],
        env={**os.environ, "STATE_DIRECTORY": f"{directory}/state"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - started


def default(directory: str) -> tuple[Path, Path]:
    """Return an image of about 30 MB and the kernel it is for."""
    from tests.fixtures.debian import Kernel, Suite, debian
    from tests.fixtures.generated import large_image
    from tests.fixtures.payload import main_payload

    tree = debian(Suite.BOOKWORM, Kernel.FULL)
    image = Path(directory) / "image"
    with image.open("wb") as target:
        subprocess.run(
            ["/usr/bin/zstd", "-q", "-3", "-c"],
            input=main_payload(large_image()),
            stdout=target,
            check=True,
        )
    return image, tree.root / "boot" / f"vmlinuz-{tree.release}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path, nargs="?")
    parser.add_argument("--kernel", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        image, kernel = arguments.image, arguments.kernel
        if image is None:
            image, kernel = default(directory)
        words: list[str | Path] = ["lab", "--verify", image]
        words += ["--kernel", kernel] if kernel else []
        tcg = [run([*words, "--engine", "tcg"], directory) for _ in range(arguments.runs)]
        chosen = [run(words, directory) for _ in range(3)]
    print(
        f"{image.name}: {arguments.runs} runs under tcg: median {statistics.median(tcg):.1f} s "
        f"({min(tcg):.1f}-{max(tcg):.1f}), at most 12"
    )
    print(
        "the engine left open: "
        + ", then ".join(f"{wall_s:.1f} s" for wall_s in chosen)
        + "; the first beyond the others is what trying KVM cost, at most 10"
    )


if __name__ == "__main__":
    main()
