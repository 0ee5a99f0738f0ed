"""Less in an image, as ``contents --variants`` has it, in guests: applied, taken back, by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.target.module_index import module_of_path
from tests.vm.boot import Boot, Then, boot
from tests.vm.filesystems import read
from tests.vm.guest import Generator, Guest, Loader, Recipe, guest
from tests.vm.installed import ENABLE, install
from tests.vm.witness import freed_kib

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm

_NAME = "this-machine"
_ALL_MODULES = {
    Generator.INITRAMFS_TOOLS: "echo MODULES=most >/etc/initramfs-tools/conf.d/guest\n"
    "update-initramfs -u -k all\n",
    Generator.DRACUT: "sed -i 's/^drivers=.*//' /etc/dracut.conf.d/*.conf\n"
    "dracut --force --regenerate-all\n",
}
"""Guests have images of the few modules that they need."""

_ASK = """
initadvisor measure
initadvisor contents --unused --variants --json >/root/contents
"""
_APPLY = f"""
initadvisor apply --variant {_NAME} --confirm --unverified
"""
_SETTLE = """
systemctl start initadvisor-settle.service
initadvisor settle
"""
_GO_BACK = """
initadvisor rollback --confirm
"""
_WRITE_ALL = """
python3 - <<'END'
import json, pathlib, subprocess
found = json.loads(pathlib.Path("/root/contents").read_text())["variants"]
for one in found["variants"]:
    with open(one["path"], "a") as file:
        file.write(one["line"] + "\\n")
subprocess.run(found["rebuild"].removeprefix("sudo ").split(), check=True)
END
sync
"""
_LOOK = """
python3 - <<'END'
import glob, hashlib, json, pathlib

def read(path):
    return pathlib.Path(path).read_text() if pathlib.Path(path).exists() else ""

(image,) = glob.glob("/boot/initrd.img-*")
records = sorted(glob.glob("/var/lib/initadvisor/transactions/*.json"))
print(json.dumps({
    "transaction": json.loads(read(records[-1])) if records else None,
    "command_line": read("/proc/cmdline").split(),
    "modules": [line.split()[0] for line in read("/proc/modules").splitlines()],
    "image": hashlib.sha256(pathlib.Path(image).read_bytes()).hexdigest(),
    "image_bytes": pathlib.Path(image).stat().st_size,
    "written": [path for path in glob.glob("/etc/*/conf.d/*content*")
        + glob.glob("/etc/dracut.conf.d/*content*")],
    "menu": read("/boot/grub/custom.cfg"),
}))
END
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A boot, and what there was to see in it at its end."""

    boot: Boot
    look: dict[str, Any]


def told(copy: Guest, script: str) -> Told:
    """Boot and do something."""
    done = boot(copy, script=script + _LOOK, then=Then.REBOOT)
    return Told(boot=done, look=json.loads(done.output[-1]))


@pytest.mark.parametrize(
    "generator",
    [
        pytest.param(
            Generator.INITRAMFS_TOOLS, marks=pytest.mark.shows("less content", "GRUB on UEFI")
        ),
        Generator.DRACUT,
    ],
)
def test_less_in_the_image_boots_applied_or_by_hand(generator: Generator, tmp_path: Path) -> None:
    recipe = Recipe(generator=generator, loader=Loader.GRUB)
    copy = guest(recipe).copied_to(tmp_path / "guest")
    install(copy)
    before_bytes = copy.initrd.stat().st_size
    armed = told(copy, _ALL_MODULES[generator] + ENABLE + _ASK + _APPLY)
    rehearsal = told(copy, _SETTLE)
    proof = told(copy, _SETTLE)
    used = told(copy, "")
    back = told(copy, _GO_BACK)
    by_hand = told(copy, _WRITE_ALL)
    after = told(copy, "")

    document = json.loads(read(copy.disk.root, "/root/contents"))
    found, unused = document["variants"], document["unused"]
    assert all("saves nothing" in one["reason"] for one in found["skipped"])
    assert found["today_bytes"] > before_bytes
    for one in found["variants"]:
        assert one["removed"], one["name"]
        assert one["saving_ms"]["median"] > 0, one["saving_ms"]
    assert unused["boots"] == 1
    sizes = {one["name"]: one["size_bytes"] for one in found["variants"]}

    full = armed.look["image"]
    assert rehearsal.look["image"] == full
    assert _trial(rehearsal) == armed.look["transaction"]["armed_boot"]["trial"]
    assert _trial(proof) == rehearsal.look["transaction"]["armed_boot"]["trial"]
    transaction = proof.look["transaction"]
    assert (transaction["state"], transaction["setting"]["variant"]) == ("committed", _NAME)
    assert len(proof.look["written"]) == 1
    assert _trial(used) is None
    assert used.look["image_bytes"] == pytest.approx(sizes[_NAME], rel=0.01)
    assert _freed(used) == _freed(proof) < _freed(rehearsal)
    assert "all content" in used.look["menu"]
    assert (back.look["image"], back.look["written"]) == (full, [])
    assert "all content" not in back.look["menu"]
    assert _freed(by_hand) == _freed(rehearsal)

    about = {one["name"]: one["size_bytes"] for one in document["estimates"]}
    loaded = {*after.look["modules"]}
    assert loaded
    assert not {module_of_path(one["path"]) for one in unused["files"]} & loaded
    assert after.look["image_bytes"] <= min(sizes.values()) * 1.05
    assert about[_NAME] == pytest.approx(sizes[_NAME], rel=0.05)


def _freed(found: Told) -> int:
    return freed_kib(found.boot) or 0


def _trial(found: Told) -> str | None:
    words = [w for w in found.look["command_line"] if w.startswith("initadvisor.trial=")]
    return words[0].partition("=")[2] if words else None
