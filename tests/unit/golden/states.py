"""A state directory with every kind of file that may be in it, and what comes back of it."""

from __future__ import annotations

import dataclasses
import io
import tarfile
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from initadvisor.daemon import seen
from initadvisor.daemon.queue import Queue
from initadvisor.host import Host
from initadvisor.model.attribution import Witness
from initadvisor.model.boot_marks import DebugAid, MachineWords, WaitEvidence, Waiting
from initadvisor.model.boot_phases import Phase, PhaseSource, PhaseTime
from initadvisor.model.boot_record import RecordSource
from initadvisor.model.campaign import CampaignState
from initadvisor.model.certainty import Certainty
from initadvisor.model.fate import Fate
from initadvisor.model.lab import BootKind, Engine, RunEnd, Unpacked
from initadvisor.model.loader import BootWay
from initadvisor.model.policy import Policy, PolicyChange
from initadvisor.model.proof import Proof, ProofStage
from initadvisor.model.queue import Job, Note, Task
from initadvisor.model.queue import Reason as Occasion
from initadvisor.model.read_interval import Beside, IntervalSource, NoInterval, ReadInterval
from initadvisor.model.rejection import Reason
from initadvisor.model.setting import Setting
from initadvisor.model.transaction import (
    Content,
    FileChange,
    FileIdentity,
    FileRole,
    SettingChange,
    Transaction,
    TransactionState,
)
from initadvisor.store.store import open_store
from initadvisor.workflow.campaign_log import (
    is_noted_active,
    note_active,
    read_campaigns,
    write_campaign,
)
from initadvisor.workflow.policy_log import policy_changes, record_change
from initadvisor.workflow.transaction_log import read_transactions, write_transaction
from initadvisor.workflow.trial_notes import (
    note_entry,
    note_previous,
    note_rehearsed,
    noted_entry,
    previous_noted,
    was_rehearsed,
)
from tests.fakes.runner import FakeRunner
from tests.fixtures.boots import LZ4, MACHINE, OTHER_MACHINE, boot_record, full_record
from tests.fixtures.campaigns import GROUND, READY, arming, campaign
from tests.unit.golden.documents import GOLDEN
from tests.unit.store.values import (
    CAT,
    fill,
    lost,
    run,
    sample,
    trial,
    verification,
)

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.model.boot_record import BootRecord
    from initadvisor.model.campaign import Campaign
    from initadvisor.store.store import Store

STATE = GOLDEN / "state/state.tar.xz"

_AT_S = 1_772_366_400
_LOADER = "systemd-boot"
_SEEN = seen.Seen(boot_id="b" * 32, image="/boot/initrd.img 42 7", release="6.1.0", disk="sda1")
_RETRIED = Job(task=Task.LAB, release="6.1.0")

_Kind = TypeVar("_Kind", bound=StrEnum)


def state_host(directory: Path) -> Host:
    """Return a machine whose state is in a directory that ``STATE_DIRECTORY`` names."""
    for name, text in (
        ("etc/machine-id", f"{MACHINE}\n"),
        ("sys/class/dmi/id/product_name", "A Machine\n"),
    ):
        path = directory / "machine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(root=directory / "machine", runner=FakeRunner())


def make_state(host: Host) -> None:
    """Write a file of each kind, as the program does."""
    with open_store(host) as store:
        store.add_boots([*_boots(), full_record()])
        _measure(store)
    for transaction in _transactions():
        write_transaction(host, transaction)
    for number, state in enumerate(list(CampaignState)[1:], 1):
        write_campaign(host, dataclasses.replace(campaign(state), number=number))
    write_campaign(host, _whole_campaign())
    note_active(host)
    for change in _policy_changes():
        record_change(host, change)
    note_entry(host, _LOADER)
    note_rehearsed(host, _LOADER)
    note_previous(host)
    seen._write(host, _SEEN)
    _fill_queue(host)


def pack(directory: Path) -> bytes:
    """Return the directory as an archive that is the same each time."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:xz", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(directory.rglob("*")):
            entry = tarfile.TarInfo(str(path.relative_to(directory)))
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(entry)
            else:
                entry.size = path.stat().st_size
                archive.addfile(entry, io.BytesIO(path.read_bytes()))
    return packed.getvalue()


def unpack(directory: Path) -> None:
    """Write the committed state into a new directory."""
    directory.mkdir()
    with tarfile.open(STATE) as archive:
        for entry in archive:
            path = directory / entry.name
            if content := archive.extractfile(entry):
                path.write_bytes(content.read())
            else:
                path.mkdir(mode=0o755)


def values(host: Host) -> dict[str, object]:
    """Return all that comes back of a state directory, as plain values; its notes are used up."""
    with open_store(host, readonly=True) as store:
        kept = {
            "boots": store.boots(),
            "known_boots": store.known_boots(),
            "boot_figures": store.boot_figures(),
            "boot_groups": store.boot_groups(),
            "lab_runs": store.lab_runs(),
            "lab_images": store.lab_images(),
            "verifications": store.verifications(),
            "engine_trials": [store.engine_trial(Engine.KVM, words) for words in ("a", "b", "c")],
        }
    queue = Queue(host, Policy.ADVISE)
    with queue.attempt(_RETRIED) as attempt:
        jobs = queue.jobs()
    found = {
        **kept,
        "transactions": read_transactions(host),
        "campaigns": read_campaigns(host),
        "campaign_active": is_noted_active(host),
        "policy_changes": policy_changes(host),
        "entry": noted_entry(host),
        "rehearsed": [was_rehearsed(host, name) for name in (_LOADER, "another")],
        "previous": previous_noted(host),
        "seen": seen._read(host),
        "jobs": jobs,
        "attempt": attempt,
        "notes": queue.take_in(),
    }
    plain = _plain(found)
    assert isinstance(plain, dict)
    return plain


def _each(kind: type[_Kind], number: int) -> _Kind:
    """Return a value of an enumeration, another for each number until all had their turn."""
    return list(kind)[number % len(kind)]


def _boots() -> list[BootRecord]:
    """Return boots that between them have every word a record may have."""
    return [_boot(number) for number in range(2, 2 + len(BootWay))]


def _boot(number: int) -> BootRecord:
    mine = _each(RecordSource, number) is not RecordSource.IMPORT
    ordinary = boot_record(
        number,
        source=_each(RecordSource, number),
        machine=MACHINE if mine else OTHER_MACHINE,
        setting=LZ4 if number % 2 else None,
        certainty=_each(Certainty, number),
        boot_disk="sda" if number % 3 else None,
        rejections=tuple({_each(Reason, 2 * number): 1, _each(Reason, 2 * number + 1): 1})
        if number > 3
        else (),
    )
    [image] = ordinary.attribution.images
    waiting = _each(Waiting, number)
    return dataclasses.replace(
        ordinary,
        start=dataclasses.replace(ordinary.start, way=_each(BootWay, number), stub="a stub"),
        marks=dataclasses.replace(
            ordinary.marks,
            command_line="root=/dev/sda1 ro",
            debug_aids=(_each(DebugAid, number),),
            machine=MachineWords(hypervisor="KVM", product="A", processor="B", microcode="0x1"),
        ),
        shadow=dataclasses.replace(
            ordinary.shadow, waiting=waiting, evidence=_each(WaitEvidence, number)
        ),
        read=NoInterval(reason="the loader tells nothing")
        if number % 4 == 0
        else ReadInterval(
            source=_each(IntervalSource, number),
            duration_us=900_000 + number,
            beside=(_each(Beside, number),),
        ),
        phases=(
            PhaseTime(phase=_each(Phase, number), duration_us=7, source=_each(PhaseSource, number)),
        ),
        attribution=dataclasses.replace(
            ordinary.attribution,
            images=(
                dataclasses.replace(
                    image, candidate=True, is_uki=True, beside_bytes=(1, 2), trial="t1"
                ),
            ),
            witnesses=(_each(Witness, number),),
        ),
    )


def _measure(store: Store) -> None:
    """Record runs of the lab, and what kernels made of images."""
    for end, engine in zip(RunEnd, (*Engine, Engine.KVM), strict=False):
        number = store.begin_lab_run(run(engine=engine))
        for round_number in range(1, 5):
            store.add_sample(number, sample(200_000 + 999 * round_number, number=round_number))
        store.add_sample(number, sample(97_000, image=CAT))
        store.add_sample(number, sample(250_000, kind=BootKind.INIT))
        store.add_lost(number, lost("the VM said nothing for 60 s", image=CAT))
        store.end_lab_run(number, end, ("the machine runs on battery",))
    fill(store, 190_000)
    for unpacked in Unpacked:
        one = verification(words="" if unpacked is Unpacked.YES else f"its words: {unpacked}")
        store.add_verification(dataclasses.replace(one, unpacked=unpacked))
    store.remember_engine(trial(works=True, circumstances="a"))
    store.remember_engine(trial(works=False, circumstances="b"))


def _transactions() -> list[Transaction]:
    """Return one in each state, with what belongs to it."""
    return [
        Transaction(
            number=number,
            state=state,
            purpose="zstd to lz4",
            began_at_s=_AT_S + number,
            files=tuple(_file(number, index, role) for index, role in enumerate(FileRole)),
            reason="a person wanted it" if state is TransactionState.UNDONE else "",
            left=("/etc/own.conf",) if state is TransactionState.UNDONE else (),
            setting=None
            if state is TransactionState.FAILED
            else SettingChange(
                generator="dracut", kernel_release="6.1.0", before="zstd -19", after="lz4 -9"
            ),
            proof=_proof(_each(ProofStage, number))
            if state in {TransactionState.PROVING, TransactionState.COMMITTED}
            else None,
        )
        for number, state in enumerate(TransactionState, 1)
    ]


def _file(number: int, index: int, role: FileRole) -> FileChange:
    content = Content(size_bytes=10 + index, sha256=f"{index}" * 64)
    before = FileIdentity(content=content, inode=5, mtime_ns=6)
    if role is FileRole.CONFIGURATION:
        before = FileIdentity(content=content, inode=None, mtime_ns=None)
    is_new = role is FileRole.LOADER_ENTRY
    return FileChange(
        path=f"/boot/file-{index}",
        role=role,
        staged=f"/boot/.initadvisor-{number}-{index}.new",
        backup=None if is_new else f"/boot/.initadvisor-{number}-{index}.old",
        before=None if is_new else before,
        after=None if number == 1 else dataclasses.replace(content, sha256="f" * 64),
        mode=0o600,
        mount_point="/boot",
    )


def _proof(stage: ProofStage) -> Proof:
    return Proof(
        stage=stage,
        loader=_LOADER,
        trial="t1",
        armed_in_boot="a" * 32,
        image="/boot/file-0",
        sha256="f" * 64,
        size_bytes=10,
        is_uki=True,
        entry="trial.conf",
        own_words=("initadvisor.trial=t1",),
        ignore_unlocking=True,
        asleep=True,
    )


def _whole_campaign() -> Campaign:
    """Return the latest one, which stands, with a boot of each fate."""
    whole = campaign(CampaignState.ARMED)
    [current] = whole.armings
    over = tuple(
        dataclasses.replace(
            arming(rehearsal=fate is Fate.PENDING, name=f"t-{fate}"),
            known_panics=("1" * 64,),
            fate=fate,
            words=f"its fate: {fate}",
        )
        for fate in Fate
    )
    return dataclasses.replace(
        whole,
        number=len(CampaignState),
        began_at_s=_AT_S,
        only=("lz4 -9",),
        reboots=True,
        ignore_unlocking=True,
        ground=dataclasses.replace(GROUND, options="root=/dev/sda1 ro quiet"),
        ready=tuple(dataclasses.replace(each, verified="Linux 6.1.0 (kvm)") for each in READY),
        armings=(*over, dataclasses.replace(current, proof=_proof(ProofStage.PROOF))),
        boots=len(over),
        reason="the next boot is of lz4 -9",
    )


def _policy_changes() -> list[PolicyChange]:
    """Return a decision that came to a transaction, and one that came to nothing."""
    applied = PolicyChange(
        after="lz4 -9", kernel_release="6.1.0", decided_at_s=_AT_S, number=3, failed=""
    )
    refused = dataclasses.replace(
        applied, decided_at_s=_AT_S + 1, number=None, failed="it is refused"
    )
    return [applied, refused]


def _fill_queue(host: Host) -> None:
    """Have jobs and, as hooks write them, notes."""
    queue = Queue(host, Policy.APPLY)
    queue.put(*(Job(task=task) for task in Task), _RETRIED)
    with queue.attempt(_RETRIED):
        pass
    notes = host.state_dir() / "queue"
    notes.mkdir(mode=0o755)
    for occasion in Occasion:
        for release in (None, "6.1.0"):
            (notes / str(Note(reason=occasion, release=release))).touch(mode=0o644)


def _plain(value: object) -> object:
    """Return a value as JSON has it; of a dataclass all fields, by their names."""
    match value:
        case Setting() | StrEnum() | datetime():
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case tuple() | list():
            return [_plain(each) for each in value]
        case Mapping():
            return {str(name): _plain(each) for name, each in value.items()}
        case _ if dataclasses.is_dataclass(value):
            names = [field.name for field in dataclasses.fields(value)]
            return {name: _plain(getattr(value, name)) for name in names}
        case _:
            raise TypeError(value)
