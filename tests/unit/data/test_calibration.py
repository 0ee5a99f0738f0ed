"""The calibration of this machine is used where it is one, and nothing else is taken for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.data.tables import CALIBRATION, calibration, shipped_calibration, shipped_document
from initadvisor.decide.cost import Calibration
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine that was not calibrated yet."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    return Host(root=tmp_path, runner=FakeRunner())


def keep(host: Host, document: object) -> None:
    (host.state_dir() / CALIBRATION).write_text(json.dumps(document))


def own_document() -> dict[str, Any]:
    document = shipped_document()
    document["source"] = "user-mode Linux 6.12 on this machine"
    document["decompress"]["zstd"] = {
        "log_sd": 0.07,
        "own_log_sd": 0.03,
        "near": {"ratio": 1.5, "user_ms_per_mb": 1.25},
    }
    document["populate_ms_per_mb"]["median"] = 2.5
    document["buffer_ms_per_mb"] = {"user-mode Linux": 3.0, "kernel": 0.2}
    return document


def test_without_one_the_shipped_table_is_used(host: Host) -> None:
    assert calibration(host) == shipped_calibration()


def test_this_machine_s_own_is_used_where_there_is_one(host: Host) -> None:
    keep(host, own_document())
    table = calibration(host)
    assert table.source == "user-mode Linux 6.12 on this machine"
    row = Calibration(ratio=1.5, user_ms_per_mb=1.25, log_sd=0.07, own_log_sd=0.03)
    assert table.row(Codec.ZSTD, far=False) == row
    assert table.row(Codec.ZSTD, far=True) == row  # the nearest that was measured
    assert table.populate_ms_per_mb.median == 2.5
    assert (table.uml_buffer_ms_per_mb, table.buffer_ms_per_mb) == (3.0, 0.2)
    assert table.warnings == ()


def test_a_codec_it_lacks_is_as_shipped(host: Host) -> None:
    document = own_document()
    del document["decompress"]["lzop"]
    keep(host, document)
    table = calibration(host)
    shipped = shipped_calibration()
    assert table.row(Codec.LZOP, far=False) == shipped.row(Codec.LZOP, far=False)
    assert table.row(Codec.ZSTD, far=False).ratio == 1.5


def changed(*path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        *parents, last = path
        for parent in parents:
            document = document[parent]
        document[last] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        changed("schema", value=1),
        changed("source", value=None),
        changed("decompress", value=[]),
        changed("decompress", value={}),
        changed("decompress", "zip", value={}),
        changed("decompress", "zstd", value={"log_sd": 0.1, "own_log_sd": 0.1}),
        changed("decompress", "zstd", "near", value={"ratio": 1}),
        changed("decompress", "zstd", "near", "ratio", value=0),
        changed("decompress", "zstd", "near", "ratio", value=-1),
        changed("decompress", "zstd", "near", "ratio", value=float("nan")),
        changed("decompress", "zstd", "near", "ratio", value=float("inf")),
        changed("decompress", "zstd", "near", "ratio", value=10**400),
        changed("decompress", "zstd", "near", "ratio", value="1.0"),
        changed("buffer_ms_per_mb", value={}),
        changed("buffer_ms_per_mb", "kernel", value=-1),
        changed("buffer_ms_per_mb", "user-mode Linux", value=float("nan")),
        changed("decompress", "zstd", "near", "user_ms_per_mb", value=0),
        changed("decompress", "zstd", "log_sd", value=-0.1),
        changed("decompress", "zstd", "own_log_sd", value=float("nan")),
        changed("populate_ms_per_mb", value=1),
        changed("machine_log_sd", "value", value=99),
    ],
)
def test_what_is_no_table_is_a_warning(
    host: Host, change: Callable[[dict[str, Any]], None]
) -> None:
    document = own_document()
    change(document)
    keep(host, document)
    table = calibration(host)
    [warning] = table.warnings
    assert warning.startswith("the shipped calibration is used, because")
    assert CALIBRATION in warning
    assert warning.isprintable()
    assert (table.source, table.rows) == (shipped_calibration().source, shipped_calibration().rows)


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"schema": 1}', b"1" * 5000]
)
def test_garbage_is_a_warning(host: Host, content: bytes) -> None:
    (host.state_dir() / CALIBRATION).write_bytes(content)
    assert len(calibration(host).warnings) == 1


def test_a_directory_in_its_place_is_a_warning(host: Host) -> None:
    (host.state_dir() / CALIBRATION).mkdir()
    [warning] = calibration(host).warnings
    assert "not an ordinary file" in warning


def test_what_it_says_of_itself_cannot_command_the_terminal(host: Host) -> None:
    document = own_document()
    document["source"] = "\x1b[31mred\n"
    keep(host, document)
    assert calibration(host).source == "\\x1b[31mred\\n"
