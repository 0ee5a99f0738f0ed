"""A machine to report on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fakes.runner import FakeRunner
from tests.fixtures.hosts import Machine
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host

PRIVATE_FILES = {
    "/etc/hostname": "wintermute\n",
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/etc/passwd": (
        "root:x:0:0:root:/root:/bin/sh\nno fields\n"
        "molly:x:1000:1000:Molly Millions,,,:/srv/people/mirrorshades:/bin/sh\n"
    ),
    "/sys/class/dmi/id/product_serial": "PF3XYZAB\n",
    "/sys/class/dmi/id/product_uuid": "4c4c4544-0042-3510-8052-b4c04f4e4b32\n",
    "/sys/block/sda/device/serial": "S4EWNX0R123456\n",
    "/proc/cpuinfo": "model name\t: A Processor of wintermute\n",
}


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with names, IDs and serial numbers."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    for path, text in PRIVATE_FILES.items():
        write(tmp_path, path, text)
    return Machine(root=tmp_path, runner=FakeRunner())
