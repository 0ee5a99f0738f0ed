"""What ``contents --variants`` says of less in an image, in guests that then boot with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from initadvisor.target.module_index import module_of_path
from tests.vm.boot import Then, boot
from tests.vm.filesystems import read
from tests.vm.guest import Generator, Recipe, guest
from tests.vm.installed import ENABLE, install
from tests.vm.machine import Machine

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm

_ALL_MODULES = {
    Generator.INITRAMFS_TOOLS: "echo MODULES=most >/etc/initramfs-tools/conf.d/guest\n",
    Generator.DRACUT: "sed -i 's/^drivers=.*//' /etc/dracut.conf.d/*.conf\n",
}
"""Guests have images of the few modules that they need."""

_ASK = """
initadvisor measure
initadvisor contents --unused --variants --json >/root/contents
"""
_DO = """
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
cat /proc/modules >/root/modules
stat -c %s /boot/initrd.img-* >/root/size
"""


@pytest.mark.parametrize("generator", [Generator.INITRAMFS_TOOLS, Generator.DRACUT])
def test_with_every_line_that_it_names_the_machine_boots(
    generator: Generator, tmp_path: Path
) -> None:
    copy = guest(Recipe(generator=generator)).copied_to(tmp_path / "guest")
    install(copy)
    machine = Machine(bare_metal=True)
    before_bytes = copy.initrd.stat().st_size
    boot(copy, machine, script=_ALL_MODULES[generator] + ENABLE + _ASK + _DO, then=Then.REBOOT)
    boot(copy, machine, script=_LOOK)

    def seen(name: str) -> str:
        return read(copy.disk.root, f"/root/{name}").decode()

    document = json.loads(seen("contents"))
    found, unused = document["variants"], document["unused"]
    assert found["skipped"] == []
    assert found["variants"]
    assert found["today_bytes"] > before_bytes
    for one in found["variants"]:
        assert one["removed"], one["name"]
        assert one["saving_ms"]["median"] > 0, one["saving_ms"]
    assert unused["boots"] == 1
    loaded = {line.split()[0] for line in seen("modules").splitlines()}
    assert loaded
    assert not {module_of_path(one["path"]) for one in unused["files"]} & loaded
    smallest_bytes = min(one["size_bytes"] for one in found["variants"])
    assert int(seen("size")) <= smallest_bytes * 1.05
