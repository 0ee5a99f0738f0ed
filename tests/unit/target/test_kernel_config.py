"""A kernel's configuration is found where distributions put it, and read safely."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host
from initadvisor.target.kernel_config import find_kernel_config, read_kernel_config

if TYPE_CHECKING:
    from pathlib import Path

RUNNING = os.uname().release
RELEASE = "6.1.0-1-amd64"
TEXT = "# Linux/x86 6.1 Kernel Configuration\nCONFIG_RD_ZSTD={}\n# CONFIG_RD_LZMA is not set\n"


def put(root: Path, place: str, value: str) -> None:
    path = root / place.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    data = TEXT.format(value).encode()
    path.write_bytes(gzip.compress(data) if place.endswith(".gz") else data)


@pytest.mark.parametrize("place", ["/boot/config-{}", "/usr/lib/modules/{}/config"])
def test_an_installed_kernels_configuration_is_found(place: str, tmp_path: Path) -> None:
    put(tmp_path, place.format(RELEASE), "y")
    config = find_kernel_config(Host(root=tmp_path), RELEASE)
    assert config
    assert config.enabled("CONFIG_RD_ZSTD")
    assert not config.enabled("CONFIG_RD_LZMA")
    assert config.source == place.format(RELEASE)


def test_the_running_kernel_speaks_for_itself(tmp_path: Path) -> None:
    put(tmp_path, "/proc/config.gz", "y")
    put(tmp_path, f"/boot/config-{RUNNING}", "n")
    put(tmp_path, f"/boot/config-{RELEASE}", "n")
    running = find_kernel_config(Host(root=tmp_path), RUNNING)
    other = find_kernel_config(Host(root=tmp_path), RELEASE)
    assert running
    assert (running.source, running.enabled("CONFIG_RD_ZSTD")) == ("/proc/config.gz", True)
    assert other
    assert not other.enabled("CONFIG_RD_ZSTD")


def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / f"boot/config-{RELEASE}").write_text("<html>no configuration</html>")
    assert find_kernel_config(Host(root=tmp_path), RELEASE) is None
    put(tmp_path, f"/usr/lib/modules/{RELEASE}/config", "y")
    config = find_kernel_config(Host(root=tmp_path), RELEASE)
    assert config
    assert config.source == f"/usr/lib/modules/{RELEASE}/config"


@pytest.mark.parametrize("release", ["", ".", "..", "../../etc", "a/b"])
def test_a_release_leads_nowhere_else(release: str, tmp_path: Path) -> None:
    put(tmp_path, "/boot/config-a/b", "y")
    put(tmp_path, "/etc/config", "y")
    assert find_kernel_config(Host(root=tmp_path), release) is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x7fELF binary",
        b"\x1f\x8bno gzip",
        gzip.compress(TEXT.encode())[:-9],
        gzip.compress(bytes(64 << 20)),
        b"CONFIG_A=y\n" * 500_000,
    ],
    ids=["empty", "binary", "no gzip", "truncated", "bomb", "endless"],
)
def test_what_is_no_configuration_is_an_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(data)
    with pytest.raises(InitadvisorError, match=f"^cannot read {path}: "):
        read_kernel_config(path)


def test_a_pipe_is_no_configuration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing"):
        with pytest.raises(InitadvisorError, match=r"^cannot read"):
            read_kernel_config(path)
