"""Finding and reading the configuration file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.config import Config
from initadvisor.core.errors import InitadvisorError, UsageError
from initadvisor.host import Host
from initadvisor.host.configuration import load_config

if TYPE_CHECKING:
    from pathlib import Path


def config_file(root: Path) -> Path:
    (root / "etc").mkdir()
    return root / "etc/initadvisor.toml"


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_config(Host(root=tmp_path)) == Config()


def test_the_file_is_read(tmp_path: Path) -> None:
    config_file(tmp_path).write_text("[candidates]\njobs = 7\n", encoding="utf-8")
    assert load_config(Host(root=tmp_path)).jobs == 7


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"[candidates\n", "line 1"), (b"\xff\xfe", "UTF-8"), (b"[candidates]\nx = 1\n", "key x")],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, reason: str) -> None:
    path = config_file(tmp_path)
    path.write_bytes(content)
    with pytest.raises(UsageError, match=reason) as caught:
        load_config(Host(root=tmp_path))
    assert str(path) in caught.value.message


def test_a_directory_in_its_place_is_an_error(tmp_path: Path) -> None:
    config_file(tmp_path).mkdir()
    with pytest.raises(InitadvisorError, match="cannot read"):
        load_config(Host(root=tmp_path))
