"""Several files are replaced as one, and given back as one."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.host import Host, renames
from initadvisor.host import replace as immutable
from initadvisor.transaction.log import read_transactions
from initadvisor.transaction.plan import Replacement, SpaceRequirement
from initadvisor.transaction.transaction import (
    ArmedBoot,
    FileRole,
    ProofStage,
    SettingChange,
    Transaction,
    TransactionState,
)
from initadvisor.transaction.transactions import pending, transactions
from tests.fixtures.owners import OWNER
from tests.fixtures.replaced_files import NEW, OLD, apply, held, host_of_old, wanted

if TYPE_CHECKING:
    from pathlib import Path

CHANGE = SettingChange(
    generator="mkinitcpio", kernel_release="6.12.1-arch1-1", before="zstd", after="lz4 -9"
)
PROOF = ArmedBoot(
    stage=ProofStage.PROOF,
    loader="systemd-boot",
    trial="apply-1",
    armed_in_boot="0" * 32,
    image=f"/boot/.initadvisor-{OWNER}-1-0.new",
    sha256="0" * 64,
)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A machine with an image and a configuration."""
    return host_of_old(tmp_path, monkeypatch)


def named(host: Host) -> dict[str, bytes]:
    """Return the files that have names of their own."""
    return {path: content for path, content in held(host).items() if "/.initadvisor" not in path}


def test_all_files_are_replaced_and_the_old_ones_kept(host: Host) -> None:
    with transactions(host) as engine:
        done = apply(engine)
    assert done.state is TransactionState.COMMITTED
    assert read_transactions(host) == (done,)
    assert pending(host) == ()
    assert named(host) == NEW
    kept = [c for path, c in held(host).items() if path not in NEW]
    assert sorted(kept) == sorted(OLD.values())


def test_several_are_undone_one_after_the_other(host: Host) -> None:
    third = {"/boot/initrd.img": b"third", "/etc/generator.conf": b"third"}
    with transactions(host) as engine:
        first, second = apply(engine), apply(engine, third)
        with pytest.raises(UnsafeError, match="2 came after it"):
            engine.undo(first, reason="test")
        assert engine.undo(second, reason="test").state is TransactionState.UNDONE
        assert named(host) == NEW
        assert engine.undo(first, reason="test").state is TransactionState.UNDONE
    assert held(host) == OLD


def test_what_a_kernel_upgrade_has_rebuilt_is_left(host: Host) -> None:
    with transactions(host) as engine:
        done = apply(engine)
        host.path("/boot/initrd.img").write_bytes(b"rebuilt")
        with pytest.raises(UnsafeError, match="changed meanwhile"):
            engine.undo(done, reason="test")
        undone = engine.undo(done, reason="test", leave=["/boot/initrd.img"])
    assert undone.left == ("/boot/initrd.img",)
    assert named(host) == {**OLD, "/boot/initrd.img": b"rebuilt"}


def test_what_was_made_anew_for_going_back_is_left(host: Host) -> None:
    path = "/boot/initrd.img"
    anew = Replacement(path=path, role=FileRole.IMAGE, new=b"made anew", keep=False)
    with transactions(host) as engine:
        done = apply(engine)
        engine.commit(engine.verify(engine.begin([anew], purpose="test")))
        with pytest.raises(UnsafeError, match="changed meanwhile"):
            engine.undo(done, reason="test")
        engine.undo(done, reason="test", leave=[path])
    assert named(host) == {**OLD, path: b"made anew"}


def test_a_file_that_others_replaced_after_the_plan_is_theirs(host: Host) -> None:
    with transactions(host) as engine:
        ready = engine.verify(engine.begin(wanted(), purpose="test"))
        path = host.path("/boot/initrd.img")
        other = path.with_name("other")
        other.write_bytes(OLD["/boot/initrd.img"])
        other.rename(path)  # the same bytes, but somebody is at work
        with pytest.raises(UnsafeError, match=r"initrd\.img: it was changed meanwhile"):
            engine.commit(ready)
    assert held(host) == OLD
    assert read_transactions(host)[0].state is TransactionState.UNDONE


def test_a_check_that_refuses_undoes_everything(host: Host) -> None:
    def refuse(found: Transaction) -> None:
        assert host.path(found.files[0].staged).read_bytes() == NEW["/boot/initrd.img"]
        msg = "no good image"
        raise UnsafeError(msg)

    with transactions(host) as engine, pytest.raises(UnsafeError, match="no good image"):
        engine.verify(engine.begin(wanted(), purpose="test"), refuse)
    assert held(host) == OLD
    assert read_transactions(host)[0].reason == "no good image"


@pytest.mark.parametrize("error", [InitadvisorError("failed"), KeyboardInterrupt()])
def test_a_builder_that_fails_leaves_nothing(host: Host, error: BaseException) -> None:
    def build(path: Path) -> None:
        path.write_bytes(b"half")
        path.with_name(f"{path.name}.tmp").write_bytes(b"half")
        raise error

    item = Replacement(path="/boot/initrd.img", role=FileRole.IMAGE, new=build, size_bytes=100)
    with transactions(host) as engine, pytest.raises(type(error)):
        engine.begin([item], purpose="test")
    assert held(host) == OLD


def test_what_the_disk_did_not_keep_is_never_committed(host: Host) -> None:
    with transactions(host) as engine:
        staged = engine.begin(wanted(), purpose="test")
        path = host.path(staged.files[0].staged)
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(UnsafeError, match="not what was written"):
            engine.verify(staged)
    assert held(host) == OLD


def test_one_that_waits_for_a_boot_waits_through_recovery(host: Host) -> None:
    with transactions(host) as engine:
        verified = engine.verify(engine.begin(wanted(), purpose="test", setting=CHANGE))
        rehearsing = engine.prove(verified, replace(PROOF, stage=ProofStage.REHEARSAL))
        waiting = engine.prove(rehearsing, PROOF)
    assert (waiting.setting, waiting.armed_boot) == (CHANGE, PROOF)
    with transactions(host) as engine:
        assert engine.recover() == ()
        assert pending(host) == (waiting,)
        with pytest.raises(UnsafeError, match="transaction 1 is proving"):
            engine.begin(wanted(), purpose="test")
        engine.commit(waiting)
    assert named(host) == NEW


def test_owner_mode_and_attributes_survive_both_ways(host: Host) -> None:
    path = host.path("/boot/initrd.img")
    path.chmod(0o640)
    os.setxattr(path, "user.kept", b"value")
    with transactions(host) as engine:
        done = apply(engine)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert os.getxattr(path, "user.kept") == b"value"
        engine.undo(done, reason="test")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.getxattr(path, "user.kept") == b"value"


def test_links_are_refused_before_anything_is_written(host: Host) -> None:
    path = host.path("/boot/initrd.img")
    path.with_name("second").hardlink_to(path)
    with transactions(host) as engine, pytest.raises(UnsafeError, match="2 names"):
        engine.begin(wanted(), purpose="test")
    path.unlink()
    path.symlink_to("second")
    with transactions(host) as engine, pytest.raises(UnsafeError, match="symbolic link"):
        engine.begin(wanted(), purpose="test")
    assert read_transactions(host) == ()


def test_too_little_room_is_refused_before_anything_is_written(host: Host) -> None:
    room = SpaceRequirement(directory=host.root, size_bytes=1 << 60)
    with transactions(host) as engine, pytest.raises(UnsafeError, match="bytes are needed"):
        engine.begin(wanted(), purpose="test", room=[room])
    assert held(host) == OLD
    assert read_transactions(host) == ()


def test_a_second_run_waits_and_then_names_the_first(host: Host) -> None:
    refused = pytest.raises(InitadvisorError, match=f"process {os.getpid()} holds")
    with transactions(host), refused, transactions(host, wait_s=0.1):
        pass


@pytest.mark.parametrize("undoing", [False, True], ids=["replacing", "undoing"])
def test_what_is_not_permitted_to_root_is_named_with_the_way_out(
    host: Host, monkeypatch: pytest.MonkeyPatch, undoing: bool
) -> None:
    rename, image = renames.renameat2, str(host.path("/boot/initrd.img"))

    def refuse(source: Path, target: Path, flags: int) -> None:
        if os.fspath(target) == image:
            strerror = os.strerror(errno.EPERM)
            raise OSError(errno.EPERM, strerror, str(source), None, str(target))
        rename(source, target, flags)

    with transactions(host) as engine:
        done = apply(engine) if undoing else engine.verify(engine.begin(wanted(), purpose="test"))
        with monkeypatch.context() as patched:
            patched.setattr(os, "geteuid", lambda: 0)
            patched.setattr(renames, "renameat2", refuse)
            with pytest.raises(InitadvisorError, match=f"{image}.: Operation not") as caught:
                engine.undo(done, reason="test") if undoing else engine.commit(done)
    assert caught.value.hint is not None
    assert f"lsattr -d {image}" in caught.value.hint
    assert "chattr -i" in caught.value.hint


def test_what_is_immutable_is_refused_before_anything_is_written(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = host.path("/boot/initrd.img")
    with transactions(host) as engine:
        with monkeypatch.context() as patched:
            forbid(patched, image)
            with pytest.raises(UnsafeError, match="is immutable"):
                apply(engine)
        assert held(host) == OLD
        assert read_transactions(host) == ()
        done = apply(engine)
        with monkeypatch.context() as patched:
            forbid(patched, image)
            with pytest.raises(UnsafeError, match="is immutable"):
                engine.undo(done, reason="test")
        assert read_transactions(host) == (done,)
        engine.undo(done, reason="test")
    assert held(host) == OLD


def forbid(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Have a file with the attribute i."""
    monkeypatch.setattr(
        immutable, "forbidding_attribute", lambda place: "i" if place == path else ""
    )


def test_pruning_keeps_the_latest_and_leaves_no_litter(host: Host) -> None:
    with transactions(host) as engine:
        apply(engine)
        second = apply(engine, {"/etc/generator.conf": b"third"})
        engine.prune(keep=1)
        assert read_transactions(host) == (second,)
        engine.undo(second, reason="test")
        assert held(host) == NEW
        engine.prune()
    assert read_transactions(host) == ()


def test_what_kept_nothing_is_not_among_the_latest(host: Host) -> None:
    """As the rebuild is that goes before undoing: nothing could be gone back to over it."""
    with transactions(host) as engine:
        first = apply(engine)
        second = apply(engine, {"/etc/generator.conf": b"third"})
        items = [Replacement(path="/boot/image", role=FileRole.IMAGE, new=b"anew", keep=False)]
        engine.commit(engine.verify(engine.begin(items, purpose="test")))
        assert engine.prune(keep=2) == ()
        assert engine.prune(keep=1) == (first,)
        assert [t.number for t in read_transactions(host)] == [2, 3]
        engine.undo(second, reason="test")


def test_a_record_of_a_newer_version_is_not_touched(host: Host) -> None:
    with transactions(host) as engine:
        apply(engine)
        [record] = (host.state_dir() / "transactions").glob("*.json")
        record.write_text(record.read_text().replace('"schema": 4', '"schema": 5'))
        with pytest.raises(UnsafeError, match="newer version"):
            engine.recover()
        record.write_text("{")
        with pytest.raises(InitadvisorError, match="cannot read the transaction"):
            engine.recover()


def test_old_content_that_is_gone_is_said_and_not_made_up(host: Host) -> None:
    with transactions(host) as engine:
        done = apply(engine)
        backup = done.files[0].backup
        assert backup is not None
        host.path(backup).write_bytes(b"damaged")
        with pytest.raises(UnsafeError, match="is gone"):
            engine.undo(done, reason="test")
        assert named(host) == NEW


def test_without_a_copy_there_is_no_going_back(host: Host) -> None:
    with transactions(host) as engine:
        items = [replace(item, keep=False) for item in wanted()]
        done = engine.commit(engine.verify(engine.begin(items, purpose="test")))
        assert held(host) == NEW
        with pytest.raises(UnsafeError, match="is gone"):
            engine.undo(done, reason="test")
