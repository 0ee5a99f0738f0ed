"""Where kernel-install(8) copies what update-initramfs writes, as Debian's package systemd-boot has
it do, and the entry loads the copy: both are replaced, and the copy is what is proven.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.vm.applying import CONFIGURATION, SETTING, small_guest
from tests.vm.boot import Then, boot
from tests.vm.guest import Loader
from tests.vm.installed import UNPACK, install
from tests.vm.witness import witnessed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.vm.boot import Boot

pytestmark = pytest.mark.vm

_LOOK = """
import glob, hashlib, json, pathlib, subprocess, sys

def described(path):
    content = pathlib.Path(path).read_bytes()
    return {"sha256": hashlib.sha256(content).hexdigest(), "size_bytes": len(content)}

(record,) = glob.glob("/var/lib/initadvisor/transactions/*.json")
(entry,) = glob.glob("/boot/loader/entries/debian-*.conf")
images = [*glob.glob("/boot/initrd.img-*"), *glob.glob("/boot/debian/*/initrd.img-*")]
print(json.dumps({
    "transaction": json.loads(pathlib.Path(record).read_text()),
    "entry": pathlib.Path(entry).read_text(),
    "images": {path: described(path) for path in images},
    "configuration": pathlib.Path(sys.argv[1]).read_text(),
    "failed": subprocess.check_output(["systemctl", "--failed", "--plain", "-q"], text=True),
}))
"""
_SAY = f"python3 - {CONFIGURATION} <<'END'\n{_LOOK}\nEND\n"
_ARM = f"""
{UNPACK}
release=$(uname -r)
kernel-install add $release /boot/vmlinuz-$release /boot/initrd.img-$release
initadvisor apply '{SETTING}' --confirm --unverified
"""
_JUDGE = "systemctl start initadvisor-settle.service\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A boot, and what there was to see at its end."""

    boot: Boot
    look: dict[str, Any]


def test_the_copy_is_proven_and_both_are_replaced(tmp_path: Path) -> None:
    copy = small_guest(Loader.SYSTEMD_BOOT).copied_to(tmp_path / "guest")
    install(copy)
    own = f"/boot/initrd.img-{copy.release}"
    copied = f"/boot/debian/{copy.release}/initrd.img-{copy.release}"

    def told(name: str, script: str) -> Told:
        log = tmp_path / f"{name}.log"
        done = boot(copy, script=f"{script}{_SAY}", then=Then.REBOOT, log=log)
        return Told(boot=done, look=json.loads(done.output[-1]))

    applied, rehearsed, proven = (
        told("applied", _ARM),
        told("rehearsed", _JUDGE),
        told("proven", _JUDGE),
    )
    used = told("used", "")

    before, after = applied.look["images"], used.look["images"]
    assert before.keys() == after.keys() == {own, copied}
    assert before[own] == before[copied] != after[own] == after[copied]
    assert f"/debian/{copy.release}/initrd.img-{copy.release}" in applied.look["entry"]
    assert rehearsed.look["transaction"]["proof"]["image"].startswith(
        f"{copied.rpartition('/')[0]}/"
    )
    assert _freed_kib(proven) == _freed_kib(used) == _in_kib(after[copied])
    assert _freed_kib(rehearsed) == _in_kib(before[copied])
    transaction = used.look["transaction"]
    assert transaction["state"] == "committed"
    replaced = {file["path"]: file for file in transaction["files"] if file["role"] == "image"}
    assert {path: file["after"] for path, file in replaced.items()} == after
    assert "COMPRESS=gzip\n" in used.look["configuration"]
    assert used.look["entry"] == applied.look["entry"]
    assert [each.look["failed"] for each in (applied, rehearsed, proven, used)] == [""] * 4


def _freed_kib(told: Told) -> int | None:
    return witnessed(told.boot)[-1].freed_kib


def _in_kib(image: dict[str, Any]) -> int:
    """Return its size as the kernel tells it: whole pages."""
    pages: int = -(-image["size_bytes"] // 4096)
    return pages * 4
