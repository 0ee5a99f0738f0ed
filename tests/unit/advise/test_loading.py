"""What loading modules takes that are stored otherwise is what boots have shown, or not known."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from initadvisor.advise.loading import applied_loading, loading_time
from initadvisor.core.estimates import Certainty
from initadvisor.generators import VariantName
from initadvisor.records.boot import RejectionReason
from initadvisor.records.boot_start import Phase, PhaseSource, PhaseTime
from initadvisor.store.store import open_store
from initadvisor.transaction.log import read_transactions, write_transaction
from initadvisor.transaction.transaction import (
    Content,
    FileChange,
    FileIdentity,
    FileRole,
    SettingChange,
    Transaction,
    TransactionState,
)
from tests.fakes.runner import FakeRunner
from tests.fixtures.boots import boot_record
from tests.fixtures.encrypted_disks import with_open_disk
from tests.fixtures.hosts import Machine
from tests.fixtures.images import pe
from tests.fixtures.owners import OWNER
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.advise.loading import LoadingTime
    from initadvisor.records.boot import BootRecord

COMPRESSED, DECOMPRESSED = VariantName.MODULES_COMPRESSED, VariantName.MODULES_DECOMPRESSED
IMAGES = {name: name * 64 for name in "abcdef"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return Machine(root=tmp_path, runner=FakeRunner())


def change(
    machine: Machine,
    before: str,
    after: str,
    variant: str = DECOMPRESSED,
    *,
    number: int = 1,
    state: TransactionState = TransactionState.COMMITTED,
    with_updates: bool = False,
    path: str = "/boot/image",
) -> None:
    """Have an image been replaced."""

    def content(image: str) -> Content:
        return Content(size_bytes=1, sha256=IMAGES[image])

    own = f"/boot/.initadvisor-{OWNER}-{number}-0"
    image = FileChange(
        path=path,
        role=FileRole.IMAGE,
        staged=f"{own}.new",
        backup=f"{own}.old",
        before=FileIdentity(content=content(before), inode=None, mtime_ns=None),
        after=content(after),
    )
    about = SettingChange(
        generator="mkinitcpio",
        kernel_release="6.12.1-amd64",
        before="zstd",
        after="zstd",
        variant=variant,
        with_updates=with_updates,
    )
    done = Transaction(
        number=number, state=state, purpose="test", began_at_s=1, files=(image,), setting=about
    )
    write_transaction(machine, done)


def boot(number: int, image: str, initramfs_ms: int) -> BootRecord:
    """Return a boot that was so long in its initramfs."""
    found = boot_record(number)
    known = replace(found.attribution.images[0], sha256=IMAGES[image])
    end_us = (found.timestamps.run_init_us or 0) + initramfs_ms * 1000
    return replace(
        found,
        attribution=replace(found.attribution, images=(known,)),
        phases=(PhaseTime(phase=Phase.KERNEL, duration_us=end_us, source=PhaseSource.MANAGER),),
    )


def booted(machine: Machine, *boots: BootRecord) -> None:
    with open_store(machine) as store:
        assert len(store.add_boots(boots)) == len(boots)


def told(machine: Machine, variant: VariantName = DECOMPRESSED) -> LoadingTime:
    found = loading_time(machine, variant)
    assert found is not None
    return found


def saved(machine: Machine, variant: VariantName = DECOMPRESSED) -> float:
    found = told(machine, variant)
    assert found.saved_ms is not None, found.missing
    return found.saved_ms.middle


def test_it_is_known_once_boots_of_both_ways_are(machine: Machine) -> None:
    assert loading_time(machine, VariantName.THIS_MACHINE) is None
    assert told(machine).words.endswith(
        "not measured: no boot with modules decompressed is recorded"
    )
    change(machine, "a", "b", state=TransactionState.PROVING)
    # The first of a kernel may be the first after an upgrade.
    booted(machine, boot(1, "a", 900), boot(2, "a", 510))
    assert told(machine).missing == "no boot with modules decompressed counts yet"
    booted(machine, boot(3, "b", 440))
    assert (told(machine).missing, told(machine).boots) == ("one more boot is needed", 1)
    booted(machine, boot(4, "a", 490))
    first = told(machine).saved_ms
    assert first is not None
    assert first.middle == 60
    assert first.low < 0 < first.high
    booted(machine, boot(5, "b", 441), boot(6, "b", 439))
    found = told(machine)
    assert found.saved_ms is not None
    assert 30 < found.saved_ms.low < found.saved_ms.middle == 60
    assert (found.boots, found.others, found.saved_ms.source) == (3, 2, "boots")
    assert found.words.startswith("loading took 60 ms less (95 %: 3")
    assert found.words.endswith("by 3 boots and 2 boots without")
    back = told(machine, COMPRESSED)
    assert back.words.startswith("loading took 60 ms more (95 %: 3")
    assert applied_loading(machine, read_transactions(machine)) == (
        f"modules decompressed: {found.words}"
    )


def test_boots_that_were_disturbed_or_are_no_sample_are_left_out(machine: Machine) -> None:
    change(machine, "a", "b")
    usual = [boot(number, "ab"[number % 2], (500, 450)[number % 2]) for number in range(2, 8)]
    booted(machine, boot(1, "a", 500), *usual)
    booted(
        machine,
        boot(8, "a", 9000),
        boot(9, "b", 100),
        replace(boot(10, "a", 700), rejections=(RejectionReason.EMERGENCY,)),
        replace(boot(11, "a", 700), boot_class=boot_record(kernel="6.13 #1").boot_class),
        replace(boot(12, "a", 700), phases=()),
        replace(
            boot(13, "a", 700),
            attribution=replace(boot(13, "a", 1).attribution, certainty=Certainty.LIKELY),
        ),
    )
    found = told(machine)
    assert saved(machine) == 50
    assert (found.boots, found.others, found.disturbed) == (3, 3, 2)
    assert found.words.endswith("; 2 disturbed, left out")


def test_on_another_machine_nothing_is_known_of_it(machine: Machine) -> None:
    change(machine, "a", "b")
    booted(machine, *(boot(number, "ab"[number % 2], 500) for number in range(1, 8)))
    assert saved(machine) == 0
    other = replace(boot(9, "c", 500).timestamps.machine, product="Another Machine")
    booted(
        machine,
        replace(boot(9, "c", 500), timestamps=replace(boot(9, "c", 500).timestamps, machine=other)),
    )
    assert told(machine).missing == "no boot with modules decompressed counts yet"


def test_where_somebody_types_in_the_initramfs_boots_do_not_tell(machine: Machine) -> None:
    change(machine, "a", "b")
    booted(machine, *(boot(number, "ab"[number % 2], 500) for number in range(1, 8)))
    assert isinstance(machine.runner, FakeRunner)
    with_open_disk(machine.root, machine.runner)
    assert told(machine).missing.startswith("boots do not tell, since it is not known whether a ")
    assert not told(machine).boots_tell


def test_changes_of_the_compression_are_followed_and_others_are_not(machine: Machine) -> None:
    change(machine, "a", "b", "", number=1)
    change(machine, "b", "c", number=2)
    change(machine, "c", "d", "", number=3)
    change(machine, "d", "e", VariantName.THIS_MACHINE, number=4)
    change(machine, "c", "f", "", number=5, with_updates=True)
    times = {"a": 500, "b": 510, "c": 440, "d": 450, "e": 100, "f": 100}
    booted(machine, *(boot(n, image, times[image]) for n, image in enumerate("aabcdeffe", 1)))
    found = told(machine)
    assert (found.boots, found.others, saved(machine)) == (2, 2, 60)


def test_of_unified_kernel_images_their_initramfs_counts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"a": b"one", "b": b"another"}
    files = {name: pe([(".linux", b"Linux"), (".initrd", part)]) for name, part in parts.items()}
    for name, file in files.items():
        monkeypatch.setitem(IMAGES, name, hashlib.sha256(file).hexdigest())
    change(machine, "a", "b", path="/boot/linux.efi")
    for name, part in parts.items():
        monkeypatch.setitem(IMAGES, name, hashlib.sha256(part).hexdigest())
    booted(machine, *(boot(number, "ab"[number % 2], 500) for number in range(1, 8)))
    assert told(machine).missing == "no boot with modules decompressed is recorded"
    write(machine.root, f"/boot/.initadvisor-{OWNER}-1-0.old", files["a"])
    write(machine.root, "/boot/linux.efi", files["b"])
    assert saved(machine) == 0
    write(machine.root, "/boot/linux.efi", files["b"] + b"made anew")
    assert told(machine).missing == "no boot with modules decompressed is recorded"


def test_what_was_undone_was_measured_all_the_same(machine: Machine) -> None:
    change(machine, "a", "b", state=TransactionState.UNDONE)
    booted(machine, boot(1, "a", 500), boot(2, "b", 550))
    assert applied_loading(machine, read_transactions(machine)) is None
    booted(machine, boot(3, "b", 550), boot(4, "a", 500))
    assert saved(machine) == -50
    change(machine, "b", "c", COMPRESSED, number=2)
    booted(machine, boot(5, "c", 480))
    assert (told(machine, COMPRESSED).boots, saved(machine, COMPRESSED)) == (2, 60)
    words = applied_loading(machine, read_transactions(machine)) or ""
    assert words.startswith("modules as they are installed: loading took 60 ms less")


def test_records_that_cannot_be_read_are_named(machine: Machine) -> None:
    change(machine, "a", "b")
    (machine.state_dir() / "initadvisor.sqlite").mkdir(parents=True)
    assert "initadvisor.sqlite" in told(machine).words
