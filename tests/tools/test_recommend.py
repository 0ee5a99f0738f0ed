"""``recommend`` from end to end: real compressors, a real disk, the command as a user calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.image.cpio import CpioWriter
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("recommend")]

CONTENT_BYTES = 8_000_000
"""Of this, settings that compress slowly are given a sample, and the others all."""
ESTIMATE = {"mean", "low", "high", "source"}
CONFIG = "CONFIG_BLK_DEV_INITRD=y\nCONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\n# CONFIG_RD_LZ4 is not set\n"


CODE = """
from initadvisor.cli import main
from tests.fixtures.idle_programs import run_like_others
run_like_others()
main()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with an image of programs of this machine, and a cache beside it."""
    directory = tmp_path_factory.mktemp("recommend")
    payload = directory / "payload.cpio"
    with payload.open("wb") as file, CpioWriter(file) as writer:
        writer.directory("bin")
        left = CONTENT_BYTES
        for path in sorted(Path("/usr/bin").iterdir()):
            size = path.stat().st_size if path.is_file() and not path.is_symlink() else 0
            if 0 < size <= min(left, 1_000_000):
                writer.file(f"bin/{path.name}", path.read_bytes(), mode=0o755)
                left -= size
    with payload.open("rb") as source, (directory / "image").open("wb") as target:
        subprocess.run(["/usr/bin/zstd", "-q", "-3", "-c"], stdin=source, stdout=target, check=True)
    (directory / "config").write_text(CONFIG)
    return directory


def initadvisor(
    place: Path, *arguments: str, inside: Sequence[str | Path] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*inside, sys.executable, "-c", CODE, *arguments],
        env={
            **os.environ,
            "CACHE_DIRECTORY": str(place / "cache"),
            "STATE_DIRECTORY": str(place / "state"),
        },
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )


def answered(place: Path, *options: str) -> dict[str, Any]:
    done = initadvisor(place, "recommend", "--json", "--image", str(place / "image"), *options)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


CHROOT = """
set -e
root=$1
shift
for place in /*; do
    if [ -h "$place" ]; then cp -P "$place" "$root$place"
    elif [ -d "$place" ]; then
        mkdir "$root$place"
        [ "$place" = /boot ] || mount --rbind "$place" "$root$place"
    fi
done
exec chroot "$root" /usr/bin/env --chdir="$PWD" "$@"
"""
"""Runs a program in a directory with all of this machine but /boot, which no mount has then."""


def test_a_sample_is_weighed_in_a_plain_chroot(place: Path, tmp_path: Path) -> None:
    own = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    namespace = ("unshare", *own, "--mount", "--propagation", "private")
    inside = (*namespace, "sh", "-c", CHROOT, "chroot", tmp_path)
    asked = ("recommend", "--sample", "--json", *only("zstd -1", "gzip -1"))
    done = initadvisor(place, *asked, inside=inside)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    [said] = [line for line in answer["warnings"] if line.startswith("the room ")]
    assert said.endswith("not known: /proc/self/mountinfo does not tell what /boot is on")
    assert (answer["storage"]["free_bytes"], answer["storage"]["room_on"]) == (None, None)
    assert {row["fits"] for row in answer["candidates"]} == {True, None}


def settings(answer: dict[str, Any]) -> list[str]:
    return [candidate["setting"] for candidate in answer["candidates"]]


def only(*names: str) -> Sequence[str]:
    return [word for name in names for word in ("--only", name)]


def test_everything_that_is_promised_is_in_the_json(place: Path) -> None:
    answer = answered(place, "--all")
    assert answer["schema"] == 3
    assert answer["sample"] is False
    assert {candidate["codec"] for candidate in answer["candidates"]} == set(Codec)
    assert answer["skipped"] == []
    recommendation = answer["recommendation"]
    assert recommendation["action"] in {"keep", "switch"}
    assert recommendation["setting"] in settings(answer)
    assert 0 <= recommendation["probability"] <= 1
    assert recommendation["evidence"] == "predicted"
    assert set(recommendation["saving_ms"]) >= ESTIMATE
    assert set(answer["storage"]["read_mb_s"]) >= ESTIMATE
    assert set(answer["unbuilt"]) < set(settings(answer))
    assert recommendation["leader"]["setting"] in answer["unbuilt"]
    for candidate in answer["candidates"]:
        today = candidate["setting"] == answer["baseline"]
        assert candidate["size_source"] == ("built" if today else "sampled")
        assert candidate["size_bytes"] > 1_000_000
        low, high = candidate["size_interval_bytes"]
        assert low <= candidate["size_bytes"] <= high
        assert candidate["fits"] is True
        for name in ("read_ms", "unpack_ms", "total_ms"):
            estimate = candidate[name]
            assert set(estimate) >= ESTIMATE
            assert 0 <= estimate["low"] <= estimate["mean"] <= estimate["high"]
        assert candidate["unpack_ms"]["source"] == "predicted"


def candidates(place: Path) -> dict[str, int]:
    """Return the size of every candidate that was built."""
    done = initadvisor(place, "candidates", "list", "--json")
    assert done.returncode == 0, done.stderr
    return {row["setting"]: row["size_bytes"] for row in json.loads(done.stdout)["candidates"]}


def test_build_builds_what_may_be_the_best_and_nothing_else(place: Path, tmp_path: Path) -> None:
    own = tmp_path / "place"
    own.mkdir()
    (own / "image").write_bytes((place / "image").read_bytes())
    machine = ("--read-speed", "20", "--overlap", "0")
    # How long today's image takes is timed as often as for a build: all answers rest on that.
    answered(own, "--build", *machine, *only("cat"))
    assert set(candidates(own)) == {"cat"}
    choice = only("zstd", "gzip -1", "gzip -9", "bzip2", "lz4", "lz4 -9", "xz -2")
    first = answered(own, *machine, *choice)
    assert set(candidates(own)) == {"cat"}
    built = answered(own, "--build", *machine, *choice)
    assert not set(built["unbuilt"]) & set(first["unbuilt"])
    sizes = candidates(own)
    del sizes["cat"]
    assert set(first["unbuilt"]) <= {"zstd -3", *sizes}
    assert 0 < len(sizes) < 7
    rows = {row["setting"]: row for row in built["candidates"]}
    for setting, size_bytes in sizes.items():
        if setting in rows:
            assert rows[setting]["size_source"] == "built"
            assert rows[setting]["size_interval_bytes"] == [size_bytes, size_bytes]
    again = answered(own, *machine, *choice)
    assert again["unbuilt"] == built["unbuilt"]


def test_the_image_s_own_setting_is_found_out_by_rebuilding_it(place: Path) -> None:
    built = initadvisor(
        place, "candidates", "build", "--image", str(place / "image"), *only("zstd")
    )
    assert built.returncode == 0, built.stderr
    answer = answered(place, *only("zstd -1", "zstd", "gzip"))
    assert answer["baseline"] == "zstd"
    assert "same bytes" in answer["baseline_source"]
    today = next(row for row in answer["candidates"] if row["setting"] == "zstd")
    assert today["size_bytes"] == (place / "image").stat().st_size
    assert today["saving_ms"]["mean"] == 0
    assert today["build_s"] > 0


def test_sizes_and_times_are_those_of_the_codecs(place: Path) -> None:
    rows = {row["setting"]: row for row in answered(place, "--all")["candidates"]}
    assert rows["xz"]["size_bytes"] < rows["zstd"]["size_bytes"] < rows["lz4"]["size_bytes"]
    assert rows["cat"]["size_bytes"] > rows["lz4"]["size_bytes"]
    unpack = {name: row["unpack_ms"]["mean"] for name, row in rows.items()}
    assert unpack["cat"] < unpack["lz4"] < unpack["gzip"] < unpack["xz"] < unpack["bzip2"]


def test_a_slow_loader_wants_a_small_image_and_a_fast_one_a_quick_one(place: Path) -> None:
    choice = only("zstd", "cat", "xz")
    slow = answered(place, "--read-speed", "0.5", "--overlap", "0", *choice)
    assert (slow["recommendation"]["action"], slow["recommendation"]["setting"]) == ("switch", "xz")
    assert slow["recommendation"]["saving_ms"]["low"] > 0
    fast = answered(place, "--read-speed", "20000", "--overlap", "0", *choice)
    assert fast["recommendation"]["leader"]["setting"] == "cat"
    hidden = answered(place, "--read-speed", "20000", "--overlap", "5000", *choice)
    assert hidden["recommendation"]["outcome"] == "keep"
    assert hidden["recommendation"]["probability"] > 0.95


def test_what_the_kernel_would_refuse_is_shown_and_never_recommended(place: Path) -> None:
    answer = answered(
        place,
        *("--kernel-config", str(place / "config"), "--read-speed", "20000", "--overlap", "0"),
        *only("zstd", "lz4"),
    )
    rows = {row["setting"]: row for row in answer["candidates"]}
    assert "CONFIG_RD_LZ4" in rows["lz4"]["lint"]
    assert rows["zstd"]["lint"] == "ok"
    assert answer["recommendation"]["leader"]["setting"] == "zstd"


def test_what_no_kernel_unpacks_is_told_from_the_sample(place: Path) -> None:
    refused = ("xz --check=sha256", "zstd --ultra --long=31")
    answer = answered(place, "--objective", "size", *only("gzip", *refused))
    rows = {row["setting"]: row for row in answer["candidates"]}
    assert "SHA-256" in rows[refused[0]]["lint"]
    assert "a zstd window of 2048 MiB" in rows[refused[1]]["lint"]
    assert answer["recommendation"]["leader"]["setting"] not in refused
    assert not set(refused) & set(answer["unbuilt"])


def test_an_image_its_kernel_would_refuse_is_not_weighed(place: Path) -> None:
    config = place / "gzip-only"
    config.write_text("CONFIG_BLK_DEV_INITRD=y\nCONFIG_RD_GZIP=y\n")
    done = initadvisor(
        place,
        *("recommend", "--image", str(place / "image"), "--kernel-config", str(config)),
        *only("zstd", "gzip"),
    )
    assert done.returncode == 3
    assert "CONFIG_RD_ZSTD" in done.stderr
    assert done.stdout == ""


def test_where_nothing_can_be_compared_that_is_said(place: Path) -> None:
    image = ("--image", str(place / "image"))
    done = initadvisor(place, "recommend", *image, "--build", *only("zstd"))
    assert done.returncode == 1
    assert "nothing to compare" in done.stderr


def test_the_build_counts_for_every_row_or_none(place: Path) -> None:
    """All rows are compared with one build of today's setting, and each with its own."""
    balanced = answered(place, "--objective", "balanced", *only("zstd -1", "zstd -9"))
    boot = answered(place, "--objective", "boot", *only("zstd -1", "zstd -9"))
    assert balanced["baseline"] == "zstd"
    assert "level" in balanced["baseline_source"]
    boots = balanced["boots_per_upgrade"]["boots"]
    todays_s = []
    of_boots = {row["setting"]: row for row in boot["candidates"]}
    for after in balanced["candidates"]:
        before = of_boots.pop(after["setting"])
        saved_ms = after["saving_ms"]["mean"] - before["saving_ms"]["mean"]
        if after["setting"] == "zstd":
            assert (after["build_s"], saved_ms) == (None, 0.0)
        else:
            assert after["build_s"] == before["build_s"] > 0
            todays_s.append(after["build_s"] + saved_ms / 1000 * boots)
    assert not of_boots
    one, other = todays_s
    # Four savings are rounded to a microsecond, and two build times.
    assert one == pytest.approx(other, abs=(4 * 0.5 * boots + 2 * 0.5 + 0.1) / 1e6)
    assert one > 0


def test_by_size_the_smallest_wins_and_its_price_is_named(place: Path) -> None:
    done = initadvisor(
        place,
        *("recommend", "--image", str(place / "image"), "--objective", "size"),
        *only("zstd", "xz"),
    )
    assert done.returncode == 0, done.stderr
    assert "Switch to xz: the image is" in " ".join(done.stdout.split())
    assert ", but boots " in " ".join(done.stdout.split())


def test_the_table_fits_80_columns(place: Path) -> None:
    done = initadvisor(place, "recommend", "--image", str(place / "image"), "--all")
    assert "--build does that" in " ".join(done.stdout.split())
    *_, slow = [line for line in done.stdout.splitlines() if line.startswith("gzip -9")]
    *_, fast = [line for line in done.stdout.splitlines() if line.startswith("gzip -1")]
    assert "~" in slow
    assert "~" not in fast
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "…" not in done.stdout


def kept(place: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (place / "cache").rglob("*")}


def costs(answer: dict[str, Any]) -> list[tuple[object, ...]]:
    """Return what is not measured anew, in an order of its own."""
    names = ("setting", "size_bytes", "size_interval_bytes", "size_source", "build_s")
    return sorted(tuple(row[name] for name in names) for row in answer["candidates"])


@pytest.mark.parametrize("build", [(), ("--build",)])
def test_a_second_run_makes_nothing(place: Path, build: tuple[str, ...]) -> None:
    choice = only("zstd", "gzip")
    first = answered(place, *build, *choice)
    while build and first["unbuilt"]:  # what is named after the one before was built
        first = answered(place, *build, *choice)
    before = kept(place)
    second = answered(place, *build, *choice)
    assert {path for path in kept(place) if path.is_file()} == {
        path for path in before if path.is_file()
    }
    assert costs(second) == costs(first)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--image", "/nonexistent"), 1, "/nonexistent"),
        (("--image", "/dev/zero"), 1, "/dev/zero"),
        (("--image", "/etc/passwd"), 1, "/etc/passwd"),
        (("--image", "x", "--sample"), 2, "exclude each other"),
        (("--image", "x", "--only", "zip"), 2, "zip"),
        (("--image", "x", "--only", "zstd -99"), 2, "no level 99"),
        (("--read-speed", "-3"), 2, "-3"),
        (("--read-speed", "nan"), 2, "nan"),
        (("--read-speed", "inf"), 2, "inf"),
        (("--overlap", "nan"), 2, "nan"),
        (("--objective", "speed"), 2, "speed"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    place: Path, arguments: tuple[str, ...], status: int, said: str
) -> None:
    done = initadvisor(place, "recommend", *arguments)
    assert done.returncode == status
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
