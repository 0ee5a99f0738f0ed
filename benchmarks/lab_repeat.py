"""Does another run of `lab` find what the first one said it would.

    python -m benchmarks.lab_repeat [IMAGE] [--pairs 10] [--rounds N]

Runs the lab with user-mode Linux twice, PAIRS times, on the same candidates (without IMAGE: of one
in Arch's layout, see tests/fixtures), until it is settled unless N is given. Of each pair, the
shown interval of every setting should hold the other run's median (95 % by construction; 90 % is
asked), and be no wider than 10 % either way.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.lab import lab

SETTINGS = ("cat", "lz4 -9", "zstd -19", "gzip -9")


def small_image() -> Path:
    """Return an image in Arch's layout, made once."""
    from initadvisor.core.settings import Setting
    from tests.fixtures.arch import arch_image

    return arch_image(Setting.parse("zstd"))


def figures(answer: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return what is shown of each setting."""
    return {row["setting"]: row["unpack_ms"] for row in answer["settings"]}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path, nargs="?")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--rounds", type=int)
    arguments = parser.parse_args()
    image = arguments.image or small_image()
    held, widths = [], []
    with tempfile.TemporaryDirectory() as directory:
        lab(image, 1, directory, SETTINGS)  # builds the candidates
        for number in range(arguments.pairs):
            answers = [lab(image, arguments.rounds, directory, SETTINGS)[1] for _ in range(2)]
            first, second = map(figures, answers)
            for shown, other in ((first, second), (second, first)):
                for setting, interval in shown.items():
                    median = other[setting]["median"]
                    held.append(interval["low"] <= median <= interval["high"])
                    widths.append((interval["high"] - interval["low"]) / 2 / interval["median"])
            apart = max(abs(second[s]["median"] / first[s]["median"] - 1) for s in first)
            print(
                f"pair {number + 1}: medians up to {apart:.1%} apart, so far {sum(held)} of "
                f"{len(held)} held, widest {max(widths):.1%}; "
                f"{'; '.join(w for a in answers for w in a['warnings']) or 'quiet'}",
                flush=True,
            )
    print(f"held {sum(held) / len(held):.1%} of {len(held)} (at least 90 %)")
    print(f"half-widths {min(widths):.1%} to {max(widths):.1%} (at most 10 %)")


if __name__ == "__main__":
    main()
