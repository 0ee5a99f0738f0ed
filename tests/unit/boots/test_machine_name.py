"""A machine's name is the one systemd would make."""

from __future__ import annotations

import pytest

from initadvisor.boots.machine_name import command_line_key, machine_name, without_id
from initadvisor.host.owner import app_specific

MACHINE_ID = "00112233445566778899aabbccddeeff"


def test_an_application_specific_id_is_systemd_s() -> None:
    """As systemd-id128(1) makes it of a machine's ID; the two were compared on a real machine."""
    application = bytes.fromhex("0123456789abcdef0123456789abcdef")
    made = app_specific(bytes.fromhex(MACHINE_ID), application).hex()
    assert made == "c8901bc0e5314628a0823810f7ac9ff6"


def test_the_name_is_not_the_id_and_stays_the_same() -> None:
    name = machine_name(MACHINE_ID)
    assert name is not None
    assert len(name) == 32
    assert name not in {MACHINE_ID, machine_name(MACHINE_ID[::-1])}
    assert name == machine_name(MACHINE_ID)


def test_the_key_is_the_machine_s_own_and_not_its_name() -> None:
    key = command_line_key(MACHINE_ID)
    assert len(key) == 16
    assert key not in {command_line_key(MACHINE_ID[::-1]), bytes.fromhex(MACHINE_ID)}
    assert key.hex() != machine_name(MACHINE_ID)


def test_the_name_takes_the_place_of_the_id_and_of_no_other() -> None:
    name, digest = machine_name(MACHINE_ID), f"{MACHINE_ID}{MACHINE_ID}"
    text = f"{MACHINE_ID}-6.1.conf {MACHINE_ID.upper()}\\6.1 {'0' * 32} {digest}"
    assert without_id(text, name) == f"{name}-6.1.conf {name}\\6.1 {'0' * 32} {digest}"
    assert without_id(text, None) == text


@pytest.mark.parametrize("machine_id", [None, "", "uninitialized", "f" * 31, "F" * 32])
def test_without_an_id_there_is_no_name(machine_id: str | None) -> None:
    assert machine_name(machine_id) is None
    assert command_line_key(machine_id) == b""
