"""Names say which system something belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.refusals import RefusedError
from initadvisor.host.owner import owned_name, owner_of_host, owner_of_name
from tests.fixtures.journals import MACHINE_ID
from tests.fixtures.owners import OTHER_ID, OTHER_OWNER, OWNER, identify
from tests.fixtures.trees import host_at, write

if TYPE_CHECKING:
    from pathlib import Path


def test_it_is_made_of_the_machine_id_and_does_not_tell_that(tmp_path: Path) -> None:
    host = host_at(tmp_path)
    identify(tmp_path)
    assert owner_of_host(host) == OWNER
    assert OWNER not in MACHINE_ID
    identify(tmp_path, OTHER_ID)
    assert owner_of_host(host) == OTHER_OWNER


@pytest.mark.parametrize("text", ["", "uninitialized\n", "0" * 32, "A" * 32, "a" * 31])
def test_what_is_no_machine_id_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path, "/etc/machine-id", text)
    with pytest.raises(RefusedError, match="/etc/machine-id") as raised:
        owner_of_host(host_at(tmp_path))
    assert "systemd-machine-id-setup" in raised.value.with_hint


def test_an_id_of_this_boot_only_is_refused(tmp_path: Path) -> None:
    identify(tmp_path)
    mount = "40 1 0:9 /machine-id /etc/machine-id ro - tmpfs tmpfs rw\n"
    write(tmp_path, "/proc/self/mountinfo", mount)
    with pytest.raises(RefusedError, match="of this boot only"):
        owner_of_host(host_at(tmp_path))


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        (owned_name(OWNER, "3-0.old"), OWNER),
        (f"/boot/.partial-initadvisor-{OWNER}-abcdefgh", OWNER),
        ("/boot/.initadvisor-3-0.old", None),
        ("/boot/.initadvisor-trial", None),
        (f"/boot/initadvisor-{OWNER}-trial", None),
    ],
)
def test_a_name_says_whose_it_is(name: str, owner: str | None) -> None:
    assert owner_of_name(name) == owner
