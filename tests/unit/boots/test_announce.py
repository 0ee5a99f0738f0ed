"""What the journal is told of a boot."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.boots import announce as module
from initadvisor.boots.announce import MESSAGE_ID, announce, described
from initadvisor.records.boot import RejectionReason, as_record
from tests.fixtures.boots import boot_record, full_record

if TYPE_CHECKING:
    from initadvisor.records.boot import BootRecord

MAN = Path(__file__).parents[3] / "man/initadvisor-measure.1"


def sent(record: BootRecord, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Announce a record; return the entry's fields."""
    entries: list[dict[str, object]] = []

    def send(message: str, **fields: object) -> None:
        entries.append({"MESSAGE": message, **fields})

    monkeypatch.setattr("systemd.journal.send", send)
    announce(record)
    [entry] = entries
    return entry


def test_an_entry_has_the_record_and_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = sent(boot_record(), monkeypatch)
    assert entry["MESSAGE_ID"] == MESSAGE_ID
    assert entry["MESSAGE"] == (
        "Boot 00000000 unpacked its initramfs in 200.000 ms and ran /init 300.000 ms after it "
        "began to"
    )
    assert as_record(json.loads(str(entry["INITADVISOR_RECORD"]))) == boot_record()
    assert entry["INITADVISOR_BOOT_ID"] == boot_record().boot_id
    assert entry["INITADVISOR_SOURCE"] == "unit"
    assert entry["INITADVISOR_UNPACK_US"] == "200000"
    assert entry["INITADVISOR_BEGIN_TO_INIT_US"] == "300000"
    assert entry["INITADVISOR_READ_US"] == "900000"
    assert entry["INITADVISOR_LOADED_BYTES"] == "40000000"
    assert entry["INITADVISOR_SETTING"] == "zstd -19"
    assert all(re.fullmatch(r"[A-Z][A-Z_]*", name) for name in entry)


def test_what_is_not_known_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = sent(full_record(), monkeypatch)
    assert "INITADVISOR_SETTING" not in entry


def test_a_boot_that_is_no_sample_says_why() -> None:
    words = described(boot_record(rejections=(RejectionReason.UNPACK_FAILED,)))
    assert words == f"Boot 00000000 is no sample: {RejectionReason.UNPACK_FAILED.explanation}"


def test_a_boot_whose_menu_was_shown_is_still_one_of_the_kernel_s() -> None:
    assert "unpacked its initramfs" in described(boot_record(rejections=(RejectionReason.MENU,)))


@pytest.mark.parametrize("error", [OSError(111, "refused"), ImportError("systemd")])
def test_without_a_journal_nothing_fails(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def send(message: str, **fields: object) -> None:
        del message, fields
        raise error

    monkeypatch.setattr("systemd.journal.send", send)
    announce(boot_record())


def test_the_manual_names_the_id_and_every_field() -> None:
    page = MAN.read_text(encoding="utf-8")
    assert MESSAGE_ID in page
    source = Path(module.__file__).read_text(encoding="utf-8")
    fields = set(re.findall(r"INITADVISOR_[A-Z_]+", source))
    assert fields
    assert fields == set(re.findall(r"INITADVISOR_[A-Z_]+", page))
