"""Samples with the real compressors: how near they come, and what is left of a run cut short."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import log
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import psutil
import pytest

from initadvisor.candidates.estimates import sample_candidates
from initadvisor.candidates.plan import build_commands
from initadvisor.core.settings import Setting
from initadvisor.generators import unknown
from initadvisor.host import Host, process
from initadvisor.host.run import SystemRunner
from initadvisor.lab.observing import Unseen
from tests.fakes.scripts import programs_in
from tests.fixtures.content import mixed_content
from tests.fixtures.small_images import archive, write_image
from tests.fixtures.waiting import HANGS_S, alive, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from initadvisor.candidates.estimates import Sampled
    from initadvisor.candidates.plan import BuildCommand
    from initadvisor.host.run import Completed

pytestmark = pytest.mark.tools

CONTENT = mixed_content(17_000_000, seed=2)
"""Long enough that neither sample is all of it."""

SETTINGS = [
    Setting.parse(text)
    for text in (
        *("cat", "lz4", "lz4 -9", "lzop", "lzop -9", "gzip", "gzip -9", "bzip2"),
        *("zstd -1", "zstd", "zstd -9", "xz -0", "xz -2"),
    )
]
WITHIN = 0.03


@contextmanager
def a_file(content: bytes) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file


def planned(host: Host, settings: Sequence[Setting]) -> tuple[BuildCommand, ...]:
    found, gaps = build_commands(host, unknown, settings, image_sha256="an image")
    assert gaps == ()
    return found


def sampled(host: Host, wanted: Sequence[BuildCommand], *, content: bytes = CONTENT) -> Sampled:
    with a_file(content) as file:
        return sample_candidates(
            host, unknown, file, len(content), wanted, directory=host.root, observer=Unseen()
        )


def built_bytes(recipe: BuildCommand) -> int:
    with subprocess.Popen(recipe.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        return len(process.communicate(CONTENT)[0])


def test_estimates_are_near_what_the_compressors_make_of_the_whole(tmp_path: Path) -> None:
    host = Host(root=tmp_path)
    wanted = planned(host, SETTINGS)
    found = sampled(host, wanted)
    assert found.skipped == ()
    with ThreadPoolExecutor(host.cores) as pool:
        built = dict(zip(wanted, pool.map(built_bytes, wanted), strict=True))
    inside = 0
    for (recipe, size_bytes), candidate in zip(built.items(), found.candidates, strict=True):
        size = candidate.main_bytes
        error = log(size.median / size_bytes)
        assert abs(error) < WITHIN, (recipe.setting, error)
        assert candidate.sample_bytes < len(CONTENT) or size.log_sd == 0
        assert candidate.build_peak_bytes > 0 or size.log_sd == 0
        assert candidate.build_cpu_s > 0 or size.log_sd == 0
        inside += abs(error) <= 1.96 * size.log_sd or error == 0
    # The intervals are those of real images; a made-up content gives one setting in six more room.
    assert inside >= 5 / 6 * len(SETTINGS)


@pytest.mark.parametrize("size_bytes", [1, 1000, 500_000])
def test_what_is_compressed_completely_is_exact(tmp_path: Path, size_bytes: int) -> None:
    host = Host(root=tmp_path)
    content = CONTENT[:size_bytes]
    wanted = planned(host, SETTINGS)
    for recipe, candidate in zip(
        wanted, sampled(host, wanted, content=content).candidates, strict=True
    ):
        done = subprocess.run(recipe.argv, input=content, capture_output=True, check=True)
        assert candidate.main_bytes.median == pytest.approx(len(done.stdout)), recipe.setting
        assert candidate.main_bytes.log_sd == 0


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put a script in the place of a program."""
    directory = tmp_path / "programs"
    directory.mkdir()
    programs_in(monkeypatch, directory)

    def put(name: str, script: str) -> None:
        path = directory / name
        path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {name} 1 && exit\n{script}\n')
        path.chmod(0o755)

    return put


HANGS = "sleep 3600 & wait"


class Hasty(SystemRunner):
    """Gives gzip no time."""

    def run(self, argv: Sequence[str | Path], *, timeout_s: float, **more: Any) -> Completed:  # noqa: ANN401
        limit_s = 0.2 if argv[0] == "gzip" and "--version" not in argv else timeout_s
        return super().run(argv, timeout_s=limit_s, **more)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no memory >&2; exit 3", "exited with status 3: no memory"),
        ("kill -9 $$", "was killed by signal 9"),
        ("cat", "gzip wrote something that is not gzip"),
        ("exec zstd -q -c", "gzip wrote something that is not gzip"),
        ("exit 0", "gzip wrote something that is not gzip"),
        ("head -c 100000 | exec /bin/gzip -c", "gzip wrote something else than it was given"),
        ("/bin/gzip -c | head -c 100000", "gzip wrote something that cannot be unpacked"),
        (HANGS, "did not end within 0.2 s and was killed"),
    ],
    ids=["fails", "dies", "copies", "another format", "nothing", "half", "cut", "hangs"],
)
def test_a_compressor_that_does_not_work_is_a_gap_in_words(
    tmp_path: Path, programs: Callable[[str, str], None], script: str, said: str
) -> None:
    programs("gzip", script)
    host = Host(root=tmp_path, runner=Hasty() if script == HANGS else SystemRunner())
    found = sampled(host, planned(host, [Setting.parse("gzip"), Setting.parse("lz4")]))
    [gap] = found.skipped
    assert str(gap.setting) == "gzip"
    assert said in gap.reason
    assert [str(candidate.setting) for candidate in found.candidates] == ["lz4"]
    children = psutil.Process().children(recursive=True)
    assert not [child for child in children if sleeping(child)]


def sleeping(process: psutil.Process) -> bool:
    try:
        return bool(process.name() == "sleep")
    except psutil.NoSuchProcess:
        return False


def test_a_compressor_that_is_gone_since_is_a_gap(
    tmp_path: Path, programs: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs("gzip", "exit 0")
    host = Host(root=tmp_path)
    wanted = planned(host, [Setting.parse("gzip")])
    monkeypatch.setattr(process, "SYSTEM_DIRECTORIES", (str(tmp_path),))
    [gap] = sampled(host, wanted).skipped
    assert gap.reason == "cannot run gzip: not installed"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_takes_its_compressors_along_and_leaves_nothing(
    tmp_path: Path, programs: Callable[[str, str], None], number: signal.Signals
) -> None:
    programs("gzip", "touch $0.started; sleep 600 & wait")
    image = write_image(tmp_path / "image", archive())
    arguments = ["recommend", "--image", str(image), "--only", "gzip", "--only", "zstd"]
    begin = (
        "from initadvisor.cli import main; from initadvisor.host import process;"
        f"process.SYSTEM_DIRECTORIES = {process.SYSTEM_DIRECTORIES!r}; main()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", begin, *arguments],
        env={
            **os.environ,
            "CACHE_DIRECTORY": str(tmp_path / "cache"),
            "STATE_DIRECTORY": str(tmp_path / "state"),
            "TMPDIR": str(tmp_path / "tmp"),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert wait_until(
            lambda: list(tmp_path.glob("programs/*.started")) or running.poll() is not None
        )
        compressors = psutil.Process(running.pid).children(recursive=True)
        assert compressors
        running.send_signal(number)
        try:
            said, complaint = running.communicate(timeout=HANGS_S)
        finally:
            running.kill()
    assert running.returncode == (130 if number is signal.SIGINT else 128 + number)
    assert said == ""
    assert "Traceback" not in complaint
    assert wait_until(lambda: not any(alive(compressor.pid) for compressor in compressors))
    left = [path for path in Path(tmp_path / "cache").rglob("*") if path.is_file()]
    assert {path.parent.name for path in left} <= {"contents", "read"}
