"""Make initadvisor/data/calibration.json: how a kernel's decompressors compare with user space.

    python -m benchmarks.calibrate PAYLOAD.cpio... [--rounds 5] [--keep DIR] [--output FILE]

The machine must be quiet: a kernel's time is wall time. Each uncompressed cpio is compressed with
every setting below, then in rounds of random order

* user-mode Linux (`linux.uml`, a kernel that runs as a process) unpacks the image synchronously and
  its own initcall accounting tells how long populate_rootfs took, and
* this process decompresses the same bytes with the very function `initadvisor` times.

The kernel's decompress part is its time for a codec less its time for the uncompressed image of the
same content; the ratio of that to the user-space time is what goes into the table.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import re
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from math import log
from pathlib import Path

from initadvisor.image.decompress import decompress
from initadvisor.model.codec import Codec
from initadvisor.model.setting import Setting

COMMANDS = {
    "cat": "cat",
    "gzip -6": "gzip -n -6",
    "gzip -9": "gzip -n -9",
    "bzip2": "bzip2 -9",
    "lzma": "lzma -6",
    "xz": "xz --check=crc32 -6",
    "xz -0": "xz --check=crc32 -0",
    "lzop": "lzop -3",
    "lzop -9": "lzop -9",
    "lz4 -1": "lz4 -l -1",
    "lz4 -9": "lz4 -l -9",
    "zstd -3": "zstd -q -3",
    "zstd -19": "zstd -q -19 -T0",
}
INITCALL = re.compile(rb"initcall populate_rootfs\+\S+ returned 0 after (\d+) usecs")
KERNEL_TIMEOUT_S = 120


def kernel_ms(image: Path) -> float:
    """Boot user-mode Linux with the image; return what its initcall accounting says."""
    argv = [
        "linux.uml", "mem=1500M", f"initrd={image}", "initramfs_async=0", "initcall_debug",
        "loglevel=8", "rdinit=/does-not-exist", "panic=-1", "con=null", "con0=fd:0,fd:1",
    ]  # fmt: skip
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=KERNEL_TIMEOUT_S)
        finally:
            # user-mode Linux leaves children behind when only its first process is gone
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    match = INITCALL.search(said)
    if match is None or b"Initramfs unpacking failed" in said or b"not initramfs" in said:
        msg = f"{image}: the kernel did not unpack it:\n{said.decode(errors='replace')}"
        raise SystemExit(msg)
    return int(match[1]) / 1000


def user_ms(codec: Codec, image: Path) -> float:
    """Decompress the image in this process, as the advisor's bench does."""
    with image.open("rb") as file:
        started = time.thread_time()
        for _ in decompress(codec, file, 0, image.stat().st_size):
            pass
        return (time.thread_time() - started) * 1000


def measure(payload: Path, directory: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Return the median kernel and user times of every setting for one content."""
    images = {}
    for setting, command in COMMANDS.items():
        images[setting] = directory / f"{payload.stem}-{setting.replace(' ', '')}"
        if images[setting].exists():
            continue
        with payload.open("rb") as source, images[setting].open("wb") as target:
            subprocess.run(shlex.split(command), stdin=source, stdout=target, check=True)
    kernel, user = defaultdict(list), defaultdict(list)
    for number in range(rounds + 1):
        order = list(images)
        random.shuffle(order)
        for setting in order:
            codec = Setting.parse(setting).codec
            times = kernel_ms(images[setting]), user_ms(codec, images[setting])
            if number:  # the first round warms the page cache
                kernel[setting].append(times[0])
                user[setting].append(times[1])
        print(f"{payload.name}: round {number} of {rounds}", file=sys.stderr)
    for setting in images:
        spread = f"{min(kernel[setting]):.0f}-{max(kernel[setting]):.0f}"
        spread_user = f"{min(user[setting]):.0f}-{max(user[setting]):.0f}"
        print(
            f"{payload.name} {setting:9} kernel {statistics.median(kernel[setting]):7.1f} ms "
            f"({spread}), user {statistics.median(user[setting]):7.1f} ms ({spread_user})",
            file=sys.stderr,
        )
    return {
        setting: {
            "kernel_ms": round(statistics.median(kernel[setting]), 1),
            "user_ms": round(statistics.median(user[setting]), 1),
        }
        for setting in images
    }


def table(measured: dict[str, dict[str, dict[str, float]]], sizes: dict[str, int]) -> dict:
    """Turn the measured times into the ratios the package ships."""
    ratios = defaultdict(list)
    for times in measured.values():
        populate = times["cat"]["kernel_ms"]
        for setting, row in times.items():
            codec = Setting.parse(setting).codec
            if codec is not Codec.CAT:
                ratios[codec].append((row["kernel_ms"] - populate) / row["user_ms"])
    populate = [measured[name]["cat"]["kernel_ms"] / (sizes[name] / 1e6) for name in measured]
    return {
        "decompress": {
            codec: {
                "ratio": round(statistics.median(values), 3),
                "log_sd": round(max(0.05, statistics.stdev([log(value) for value in values])), 3),
            }
            for codec, values in ratios.items()
        },
        "populate_ms_per_mb": {
            "median": round(statistics.median(populate), 3),
            "log_sd": 0.35,
            "why": "contents differ by 40 %; page faults of real hardware and init_on_alloc, which "
            "user-mode Linux lacks, are not in it",
        },
    }


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("payloads", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="keep the images in this directory for reuse")
    parser.add_argument("--output", type=Path, default=Path("/dev/stdout"))
    arguments = parser.parse_args()
    if len(arguments.payloads) < 2:
        parser.error("two payloads at least: how they differ becomes the interval")
    with tempfile.TemporaryDirectory() as directory:
        measured = {
            payload.name: measure(payload, arguments.keep or Path(directory), arguments.rounds)
            for payload in arguments.payloads
        }
    release = subprocess.run(
        ["/usr/bin/linux.uml", "--version"], capture_output=True, text=True, check=True
    )
    cpu = next(
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    )
    sizes = {payload.name: payload.stat().st_size for payload in arguments.payloads}
    result = {
        "schema": 1,
        "source": f"user-mode Linux {release.stdout.strip()} against the decoders of Python's "
        f"libraries (Python {platform.python_version()}), medians of {arguments.rounds} "
        f"interleaved rounds, "
        f"{time.strftime('%Y-%m')}, {cpu}",
        "machine_log_sd": {
            "value": 0.25,
            "why": "assumed, not measured: other kernels, compilers, mitigations and processors",
        },
        **table(measured, sizes),
        "measured": measured,
        "payload_bytes": sizes,
    }
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
