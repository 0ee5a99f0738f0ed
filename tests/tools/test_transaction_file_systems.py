"""Transactions on small file systems that are really mounted, through loop devices.

Where this kernel or this user cannot mount them, guests do (tests/vm); what was not tried is said.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.tools

_CHECKOUT = Path(__file__).parents[2]
_SHARE = 0.01
_SEED = 21
_MOUNTED = """
set -e
mount -o loop "$1/root.img" "$1/root"
mkdir -p "$1/root/boot"
mount -o loop "$1/boot.img" "$1/root/boot"
"""
"""In a mount namespace of their own, so that they are gone with the last process."""


@pytest.fixture(params=["ext4", "vfat"])
def tries(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """Return what tries things on an ext4 root with a small ``/boot`` of another file system."""
    (tmp_path / "root").mkdir()
    _format(tmp_path / "root.img", 24 << 20, "mkfs.ext4", "-q", "-m", "0")
    maker = {"ext4": ("mkfs.ext4", "-q", "-m", "0"), "vfat": ("mkfs.vfat",)}[request.param]
    _format(tmp_path / "boot.img", 6 << 20, *maker)
    mounted = _run(_MOUNTED, tmp_path)
    if mounted.returncode:
        pytest.skip(f"cannot mount {request.param} here, a guest does: {mounted.stderr.strip()}")

    def run(what: str) -> dict[str, Any]:
        words = f'{what} "$1/root" {request.param} {_SEED} {_SHARE}'
        done = _run(f"{_MOUNTED}\nexec {sys.executable} -m tests.faults {words}", tmp_path)
        assert done.returncode == 0, done.stderr
        result: dict[str, Any] = json.loads(done.stdout)
        return result

    return run


def _format(image: Path, size_bytes: int, *maker: str) -> None:
    with image.open("wb") as file:
        file.truncate(size_bytes)
    path = "/usr/sbin:/sbin:/usr/bin:/bin"
    subprocess.run(
        [*maker, str(image)], check=True, capture_output=True, timeout=HANGS_S, env={"PATH": path}
    )


def _run(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/usr/bin/unshare", "--mount", "sh", "-c", script, "sh", str(directory)],
        cwd=_CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_a_share_of_all_points(tries: Callable[[str], dict[str, Any]]) -> None:
    result = tries("points")
    assert result["bad"] == []
    assert result["tried"] > 100


def test_a_partition_that_is_too_small_or_read_only_is_refused_and_one_that_fills_up_cleared(
    tries: Callable[[str], dict[str, Any]],
) -> None:
    assert tries("room") == {"tried": 3, "bad": []}
