"""The command ``recommend``: what it takes beside its answer."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from initadvisor.core.codecs import Codec
from initadvisor.image.cpio import CpioWriter
from tests.fixtures.content import mixed_content
from tests.fixtures.small_images import write_image
from tests.fixtures.waiting import HANGS_S

if TYPE_CHECKING:
    from pathlib import Path

NEEDLESS = {
    *("rich", "psutil", "numpy.ma", "initadvisor.boots.kernel_messages"),
    *("initadvisor.bootloaders.detect", "initadvisor.campaign.campaign"),
    *("initadvisor.candidates.builder", "initadvisor.decide.whatif_values"),
    *("initadvisor.measure.measure", "initadvisor.records.boot"),
}
SCRIPT = """
import sys
from initadvisor.cli import root
root(["recommend", *sys.argv[1:]], standalone_mode=False)
print(*sorted(sys.modules), file=sys.stderr)
"""


def test_an_answer_imports_only_what_it_needs(tmp_path: Path) -> None:
    file = io.BytesIO()
    with CpioWriter(file) as writer:
        writer.file("content", mixed_content(300_000))
    image = write_image(tmp_path / "image", file.getvalue(), codec=Codec.GZIP)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, "--image", image, "--only", "cat", "--quiet"],
        env={
            **os.environ,
            "STATE_DIRECTORY": str(tmp_path / "state"),
            "CACHE_DIRECTORY": str(tmp_path / "cache"),
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=HANGS_S,
    )
    assert done.stdout.strip() in {"cat", "gzip"}
    *_, last = done.stderr.splitlines()
    assert {"numpy", "initadvisor.advise.recommend"} <= set(last.split())
    assert NEEDLESS.isdisjoint(last.split())
