"""Builds with the real compressors, left alone and killed (about a minute in all)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from initadvisor.candidates.build import build_candidates, cached_candidates
from initadvisor.candidates.plan import plan_settings
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Config
from initadvisor.generators import unknown
from initadvisor.host import Host
from initadvisor.image.decompressors.decompress import decompress
from initadvisor.image.scan import scan
from initadvisor.target.source import open_source
from tests.fixtures.small_images import early_archive, program_archive, write_image
from tests.fixtures.waiting import HANGS_S, alive, wait_until

if TYPE_CHECKING:
    from initadvisor.records.built_image import BuiltImage

pytestmark = [pytest.mark.tools, pytest.mark.xdist_group("build")]

SETTINGS = ["zstd", "gzip", "xz -9", "zstd -19", "lz4 -9"]
DRIVER = """
import sys
from pathlib import Path
from initadvisor import host as package
from tests.fixtures.idle_programs import run_like_others
run_like_others()
machine = package.Host(root=Path(sys.argv[1]))
package.Host = lambda: machine
sys.argv = ["initadvisor", *sys.argv[2:]]
from initadvisor.cli import main
main()
"""
"""The command line on a machine of its own, where compressors do not wait for idle time."""


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine of its own with this one's programs."""
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path / "cache"))
    return Host(root=tmp_path)


@pytest.fixture(scope="session")
def payload() -> bytes:
    """Programs of this machine, 4 MB."""
    return program_archive(4_000_000)


@pytest.fixture
def image(tmp_path: Path, payload: bytes) -> Path:
    """An image of them."""
    return write_image(tmp_path / "image", payload, early=early_archive())


def unpacked(candidate: BuiltImage) -> bytes:
    with Path(candidate.path).open("rb") as file:
        size_bytes = candidate.size_bytes - candidate.main_offset
        pieces = decompress(candidate.setting.codec, file, candidate.main_offset, size_bytes)
        return b"".join(bytes(piece) for piece in pieces)


def start(host: Host, image: Path, *, before: str = "") -> subprocess.Popen[bytes]:
    """Start a build of several settings; ``before``: what is done before that."""
    only = [word for setting in SETTINGS for word in ("--only", setting)]
    arguments = [str(host.root), "candidates", "build", "--image", str(image), "--json", *only]
    return subprocess.Popen(
        [sys.executable, "-c", before + DRIVER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def in_the_middle(host: Host) -> bool:
    """Tell whether at least one candidate is there and another is being written."""
    directory = host.cache_dir() / "candidates"
    return any(map(_has_content, directory.glob(".partial-*"))) and any(directory.glob("*.json"))


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:  # it was completed meanwhile
        return False


def check_candidates(host: Host, payload: bytes) -> list[str]:
    """Make sure that whatever counts as a candidate is one; return their settings."""
    for cached in cached_candidates(host):
        assert unpacked(cached.candidate) == payload
    return sorted(str(cached.candidate.setting) for cached in cached_candidates(host))


def test_every_setting_is_built_and_unpacks_to_the_same(
    host: Host, image: Path, payload: bytes
) -> None:
    with open_source(image) as source:
        settings = plan_settings(host, unknown, Config(), everything=True)
        result = build_candidates(host, unknown, source, settings)
    assert result.skipped == ()
    assert {candidate.setting.codec for candidate in result.candidates} == set(Codec)
    for candidate in result.candidates:
        assert unpacked(candidate) == payload
        assert candidate.build_s > 0
        assert candidate.build_peak_bytes > 1 << 20 or candidate.setting.codec is Codec.CAT
        with Path(candidate.path).open("rb") as file:
            assert scan(file).main.codec is candidate.setting.codec


def test_candidates_are_what_a_generators_pipe_would_have_written(
    host: Host, image: Path, payload: bytes, tmp_path: Path
) -> None:
    (tmp_path / "payload").write_bytes(payload)
    with open_source(image) as source:
        settings = plan_settings(host, unknown, Config())
        candidates = build_candidates(host, unknown, source, settings).candidates
    for candidate in candidates:
        if candidate.setting.codec is Codec.LZOP:  # writes the time into its header
            continue
        with subprocess.Popen(["/bin/cat", tmp_path / "payload"], stdout=subprocess.PIPE) as pipe:
            written = subprocess.run(
                candidate.command, stdin=pipe.stdout, stdout=subprocess.PIPE, check=True
            ).stdout
        data = Path(candidate.path).read_bytes()
        assert data[candidate.main_offset :] == written, candidate.setting


def test_a_killed_build_leaves_whole_candidates_only_and_the_next_one_is_clean(
    host: Host, image: Path, payload: bytes
) -> None:
    for number in range(3):
        with start(host, image) as process:
            assert wait_until(lambda: in_the_middle(host) or process.poll() is not None)
            time.sleep(0.1 * number)
            process.kill()
        check_candidates(host, payload)
    with start(host, image) as process:
        output, errors = process.communicate(timeout=HANGS_S)
    assert (process.returncode, errors) == (0, b"")
    assert json.loads(output)["skipped"] == []
    assert check_candidates(host, payload) == sorted(SETTINGS)
    names = {path.name for path in (host.cache_dir() / "candidates").iterdir()}
    assert len(names) == 2 * len(SETTINGS)
    assert not any(name.startswith(".partial-") for name in names)


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGINT, 130),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
    ],
)
def test_an_interrupted_build_ends_at_once_and_takes_its_compressors_along(
    host: Host, image: Path, payload: bytes, number: signal.Signals, status: int
) -> None:
    """One compressor does not end by itself: the build is in the middle when the signal comes."""
    endless = host.root / "programs/lz4"
    endless.parent.mkdir()
    endless.write_text(
        '#!/bin/sh\n[ "$1" != --version ] || exec /usr/bin/lz4 "$@"\necho x; sleep 3600 & wait\n'
    )
    endless.chmod(0o755)
    before = (
        "from initadvisor.host import process\n"
        f"process.SYSTEM_DIRECTORIES = ({str(endless.parent)!r}, *process.SYSTEM_DIRECTORIES)\n"
    )
    with start(host, image, before=before) as process:
        assert wait_until(lambda: in_the_middle(host) or process.poll() is not None)
        compressors = psutil.Process(process.pid).children(recursive=True)
        os.kill(process.pid, number)
        output, errors = process.communicate(timeout=HANGS_S)
    assert process.returncode == status
    assert output == b""
    assert b"Traceback" not in errors
    assert wait_until(lambda: not any(alive(process.pid) for process in compressors))
    assert not list((host.cache_dir() / "candidates").glob(".partial-*"))
    check_candidates(host, payload)


def test_a_compressor_that_runs_out_of_room_is_a_gap_and_leaves_nothing(
    host: Host, image: Path, payload: bytes
) -> None:
    """A limit of the file size stands in for a full disk; the early archive has cat exceed it."""
    limit = len(payload) + 1000
    code = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit},) * 2){DRIVER}"
    arguments = [str(host.root), "candidates", "build", "--image", str(image), "--json"]
    completed = subprocess.run(
        [sys.executable, "-c", code, *arguments, "--only", "cat", "--only", "zstd"],
        capture_output=True,
        timeout=HANGS_S,
        check=True,
    )
    (gap,) = json.loads(completed.stdout)["skipped"]
    assert gap["setting"] == "cat"
    assert f"killed by signal {signal.SIGXFSZ:d}" in gap["reason"]
    assert check_candidates(host, payload) == ["zstd"]
    assert len(list((host.cache_dir() / "candidates").glob("*.img"))) == 1
