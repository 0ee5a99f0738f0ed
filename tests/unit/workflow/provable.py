"""A machine whose images are tried before they are installed: it is armed, booted and measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typing_extensions import override

from initadvisor.host import Host
from initadvisor.model.boot_entry import EntryKind
from initadvisor.model.transaction import FileRole, SettingChange, Transaction
from initadvisor.workflow.proving import arm_proof
from initadvisor.workflow.transaction import Replacement, transactions
from initadvisor.workflow.transaction_log import read_transactions
from tests.fakes.boot_loader import FakeLoader
from tests.fixtures.booted import RELEASE, Booted
from tests.fixtures.journals import Boot
from tests.unit.workflow.measuring import measured

if TYPE_CHECKING:
    import pytest

    from initadvisor.model.boot_record import BootRecord
    from initadvisor.model.one_shot import OneShot

IMAGE = f"/boot/initrd.img-{RELEASE}"
CONFIG = "/etc/initramfs-tools/initramfs.conf"
LINE = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 ro quiet"
OLD = b"\x28\xb5\x2f\xfd" + bytes(400 * 1024 - 4)
NEW = b"\x02\x21\x4c\x18" + bytes(300 * 1024 - 4)
OLD_TEXT, NEW_TEXT = "COMPRESS=zstd\nCOMPRESSLEVEL=19\n", "COMPRESS=lz4\nCOMPRESSLEVEL=9\n"
CHANGE = SettingChange(
    generator="initramfs-tools", kernel_release=RELEASE, before="zstd -19", after="lz4 -9"
)
ACTIVE = "ActiveState=active\n"
ASKED = "ActiveState=activating\nExecMainStartTimestampMonotonic=70000000\n"
NOT_ASKED = "ActiveState=inactive\nExecMainStartTimestampMonotonic=0\n"


@dataclass(slots=True)
class Loader(FakeLoader):
    """A boot loader that may fail: ``broken`` names what; ``selected`` is what it says is next."""

    broken: str = ""
    error: BaseException = field(default_factory=lambda: OSError("broken"))
    selected: OneShot | None = None

    def fail(self, where: str) -> None:
        """Fail if that is what is broken."""
        if where == self.broken:
            raise self.error

    @override
    def armed(self, host: Host) -> OneShot:
        return self.selected or FakeLoader.armed(self, host)

    @override
    def remove(self, host: Host, kind: EntryKind = EntryKind.TRIAL) -> bool:
        self.fail("remove")
        return FakeLoader.remove(self, host, kind)


@dataclass(slots=True, kw_only=True)
class Provable:
    """The machine, which boots ``IMAGE`` by default; its boots are numbered from 9 on."""

    machine: Booted
    loader: Loader
    host: Host
    past: list[Boot] = field(default_factory=list)

    def stage(self) -> Transaction:
        """Have a new image and a new configuration beside the old ones, verified."""
        with transactions(self.host) as engine:
            replacements = (
                Replacement(path=IMAGE, role=FileRole.IMAGE, new=NEW),
                Replacement(path=CONFIG, role=FileRole.CONFIGURATION, new=NEW_TEXT.encode()),
            )
            begun = engine.begin(replacements, purpose="zstd to lz4", setting=CHANGE)
            return engine.verify(begun)

    def arm(self) -> Transaction:
        """Do the same and have it wait for a boot."""
        staged = self.stage()
        with transactions(self.host) as engine:
            return arm_proof(self.host, engine, staged)

    def reboot(self, *, line: str = LINE, image: bytes | None = None) -> None:
        """Boot what is selected; its command line is ``line`` and what the entry adds."""
        words = self.loader.entries[EntryKind.TRIAL].own_words if self.loader.is_armed else ()
        content = self.host.path(self.loader.boot()).read_bytes() if image is None else image
        self.past.append(self.machine.boot)
        number = self.past[-1].number + 1
        self.machine.boot = Boot(number=number).ordinary(freed_kib=len(content) // 1024)
        self.machine.write("/proc/cmdline", " ".join((line, *words)) + "\n")
        self.machine.loaded(len(content))
        self.machine.identify(self.machine.boot)
        self.write_journal()

    def write_journal(self) -> None:
        """Have the journal hold all boots."""
        for path in self.host.path("/var/log/journal").rglob("*.journal"):
            path.unlink()
        self.machine.journal(*self.past, self.machine.boot)

    def measure(self) -> BootRecord:
        """Record the running boot."""
        [record] = measured(self.machine).records
        return record

    def units(self, *, default: str = ACTIVE, complete: str = ACTIVE, service: str = ASKED) -> None:
        """Have systemd say so of its targets and of the service that asks for the latter."""
        command = "systemctl show --property=ActiveState,ExecMainStartTimestampMonotonic"
        self.machine.runner.answer(command, "\n".join((default, complete, service)))

    def latest(self) -> Transaction:
        """Return the latest transaction as it is recorded."""
        return read_transactions(self.host)[-1]

    def installed(self) -> tuple[bytes, str]:
        """Return the image and the configuration that are installed."""
        return self.host.path(IMAGE).read_bytes(), self.host.path(CONFIG).read_text()

    def litter(self) -> list[str]:
        """Return the names of what lies beside them."""
        found = [*self.host.path("/boot").iterdir(), *self.host.path(CONFIG).parent.iterdir()]
        return sorted(path.name for path in found if path.name.startswith("."))


def make_provable(machine: Booted, monkeypatch: pytest.MonkeyPatch) -> Provable:
    """Return it, having booted the ninth time."""
    machine.initramfs_tools(OLD_TEXT)
    machine.write("/proc/self/mountinfo", "22 1 0:22 / / rw - tmpfs tmpfs rw\n")
    machine.write("/proc/cmdline", f"{LINE}\n")
    first = machine.write("/proc/1/root", "")
    first.unlink()
    first.symlink_to(machine.root, target_is_directory=True)
    path = machine.image(size_bytes=len(OLD))
    assert path.read_bytes() == OLD
    machine.boot = Boot(number=9).ordinary(freed_kib=len(OLD) // 1024)
    machine.loaded(len(OLD))
    loader = Loader(image=IMAGE)
    loader.use(monkeypatch)
    monkeypatch.setattr(Host, "is_root", property(lambda _self: True))
    made = Provable(machine=machine, loader=loader, host=machine.host())
    unit = "LoadState=loaded\nWantedBy=timers.target\n"
    machine.runner.answer("systemctl show --property=LoadState,WantedBy", unit)
    machine.runner.answer("systemctl list-units", "")
    made.units()
    return made
