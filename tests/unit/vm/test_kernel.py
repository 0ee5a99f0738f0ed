"""The kernel's file is found, known by its release, and taken out of a UKI."""

from __future__ import annotations

import hashlib
import tempfile
from typing import TYPE_CHECKING, NoReturn

import pytest

from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.host import Host
from initadvisor.vm.kernel import bootable, find_kernel
from tests.fakes.runner import FakeRunner
from tests.fixtures.images import archive, pe
from tests.fixtures.kernels import bzimage
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "place",
    [
        "/usr/lib/modules/6.9.1-arch1-1/vmlinuz",
        "/boot/vmlinuz-6.9.1-arch1-1",
        "/boot/vmlinuz-linux",
        "/efi/0123456789abcdef/6.9.1-arch1-1/linux",
    ],
)
def test_a_kernel_is_found_by_its_release(tmp_path: Path, place: str) -> None:
    write(tmp_path, "/boot/vmlinuz-linux-lts", bzimage("6.6.1-lts"))
    path = write(tmp_path, place, bzimage("6.9.1-arch1-1"))
    assert find_kernel(Host(root=tmp_path, runner=FakeRunner()), "6.9.1-arch1-1") == path


def test_a_file_that_only_has_the_name_of_a_kernel_is_none(tmp_path: Path) -> None:
    write(tmp_path, "/boot/vmlinuz-6.9.1", bzimage("6.9.0"))
    write(tmp_path, "/usr/lib/modules/6.9.1/vmlinuz", b"short")
    with pytest.raises(InitadvisorError, match=r"cannot find the kernel Linux 6\.9\.1"):
        find_kernel(Host(root=tmp_path, runner=FakeRunner()), "6.9.1")


def test_a_kernel_is_found_in_a_uki_and_taken_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = bzimage("6.9.1")
    uki = write(
        tmp_path,
        "/efi/EFI/Linux/arch-linux.efi",
        pe([(".linux", kernel), (".initrd", archive({"init": b""}))]),
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    assert find_kernel(Host(root=tmp_path, runner=FakeRunner()), "6.9.1") == uki
    with bootable(uki) as found:
        assert found.file.read_bytes() == kernel
        assert found.kernel.release == "6.9.1"
        assert found.kernel.path == str(uki)
        assert found.kernel.sha256 == hashlib.sha256(uki.read_bytes()).hexdigest()
    assert list(scratch.iterdir()) == []


def test_a_plain_kernel_is_booted_from_where_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, "/vmlinuz", bzimage("6.9.1"))
    with bootable(path) as found:
        assert found.file == path
        assert found.kernel.release == "6.9.1"


@pytest.mark.parametrize("data", [b"", b"MZ", bytes(0x300), bzimage(""), bzimage("\x1b[2J")])
def test_what_is_no_kernel_is_refused(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, "/vmlinuz", data)
    with pytest.raises(InitadvisorError, match="neither a kernel"), bootable(path):
        pass


def test_a_kernel_that_only_root_may_read_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path) -> NoReturn:
        msg = f"cannot read {path}: only root may"
        raise NeedsRootError(msg)

    write(tmp_path, "/boot/vmlinuz-6.9.1", bzimage("6.9.1"))
    monkeypatch.setattr("initadvisor.vm.kernel.open_regular", denied)
    with pytest.raises(NeedsRootError, match=r"cannot read the kernel .*vmlinuz.*: only root may"):
        find_kernel(Host(root=tmp_path, runner=FakeRunner()), "6.9.1")
