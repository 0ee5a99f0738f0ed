"""Machines below a directory, with a boot loader each, for a host whose root it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.host import Host
from initadvisor.model.boot_entry import EntryKind, TrialRequest
from initadvisor.model.trial_words import words_of_trial
from tests.fakes.boot_programs import GLOBAL, BootPrograms, block, load_option
from tests.unit.measure.trees import write, write_texts, write_variable

if TYPE_CHECKING:
    from initadvisor.bootloaders import BootLoader

PARTITION = "11111111-2222-4333-8444-555555555555"
GRUB_FIXTURES = Path(__file__).parents[2] / "fixtures/grub"
RELEASE = "6.1.0-50-amd64"
WORDS = words_of_trial("t1", generator="initramfs-tools")

_ON_ESP = "31 1 8:1 / /efi rw - vfat /dev/sda1 rw\n"
_ROOT = "20 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
_BOOT = "30 1 8:3 / /boot rw - ext4 /dev/sda3 rw\n"


@dataclass(slots=True, kw_only=True)
class Machine:
    """A machine with its programs; ``images`` are the default entry's and a candidate."""

    root: Path
    programs: BootPrograms
    installed: str
    candidate: str
    host: Host = field(init=False)

    def __post_init__(self) -> None:
        self.host = Host(root=self.root, runner=self.programs)

    @property
    def request(self) -> TrialRequest:
        """A trial of the candidate."""
        return TrialRequest(trial="t1", replaces=self.installed, image=self.candidate, words=WORDS)

    @property
    def previous(self) -> TrialRequest:
        """An entry for the image that was installed before, which is beside it."""
        directory, _, _ = self.installed.rpartition("/")
        image = f"{directory}/.initadvisor-3-0.old"
        if not (self.root / image.lstrip("/")).exists():
            write(self.root, image, (self.root / self.installed.lstrip("/")).read_bytes())
        return TrialRequest(
            kind=EntryKind.PREVIOUS, replaces=self.installed, image=image, label="zstd -19"
        )

    def tree(self) -> dict[str, bytes]:
        """Return every file with its content."""
        files = (path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in files}

    def reboots(self) -> str | None:
        """Do to the selection what the loader does; return what is booted, None for the default."""
        for name, vendor in (
            ("LoaderEntryOneShot", "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"),
            ("BootNext", GLOBAL),
        ):
            variable = self.programs.variable(name, vendor)
            if variable.exists():
                value = variable.read_bytes()[4:]
                variable.unlink()
                if name == "BootNext":
                    return f"Boot{int.from_bytes(value, 'little'):04X}"
                return value.decode("utf-16-le").rstrip("\0")
        for environment in self.root.glob("boot/grub*/grubenv"):
            lines = environment.read_text().rstrip("#").splitlines()[1:]
            selected = [line.partition("=")[2] for line in lines if line.startswith("next_entry=")]
            if selected and selected[0]:
                left = [
                    line if not line.startswith("next_entry=") else "next_entry=" for line in lines
                ]
                environment.write_text(block("\n".join(left)))
                return selected[0]
        return None


def systemd_boot_machine(root: Path, *, loader_conf: str = "default debian-*\n") -> Machine:
    """Return a machine with two kernels on an ESP."""
    _efi_disk(root)
    for release in (RELEASE, "6.1.0-49-amd64"):
        directory = f"/efi/debian/{release}"
        write(root, f"{directory}/linux", f"kernel {release}")
        write(root, f"{directory}/initrd.img", f"image {release}")
        write(
            root,
            f"/efi/loader/entries/debian-{release}.conf",
            "# kernel-install\ntitle      Debian GNU/Linux 12\n"
            f"version    {release}\nmachine-id 0123\nsort-key   debian\n"
            f"options    root=UUID=1234 ro quiet\nlinux      /debian/{release}/linux\n"
            f"initrd     /ucode.img\ninitrd     /debian/{release}/initrd.img\n",
        )
    write(root, "/efi/ucode.img", "microcode")
    write(root, "/efi/loader/loader.conf", loader_conf)
    write(root, "/efi/initadvisor/trial.img", "candidate")
    write(root, "/proc/cmdline", "initrd=\\debian\\initrd.img root=UUID=1234\n")
    write_texts(root, {"LoaderInfo": "systemd-boot 257.5-2", "LoaderDevicePartUUID": PARTITION})
    listed = ", ".join(
        f'{{"id": "debian-{release}.conf"}}' for release in (RELEASE, "6.1.0-49-amd64")
    )
    programs = BootPrograms(root=root, programs=("bootctl",), listed=f"[{listed}]")
    return Machine(
        root=root,
        programs=programs,
        installed=f"/efi/debian/{RELEASE}/initrd.img",
        candidate="/efi/initadvisor/trial.img",
    )


def grub_machine(
    root: Path,
    *,
    configuration: str = "numbered.cfg",
    variables: str = "",
    flavour: str = "grub",
) -> Machine:
    """Return a machine with GRUB on BIOS and a boot partition; the menu is grub-mkconfig's."""
    write(root, "/proc/self/mountinfo", _ROOT + _BOOT)
    for release in (RELEASE, "6.1.0-49-amd64"):
        write(root, f"/boot/vmlinuz-{release}", f"kernel {release}")
        write(root, f"/boot/initrd.img-{release}", f"image {release}")
    write(root, f"/boot/{flavour}/grub.cfg", (GRUB_FIXTURES / configuration).read_bytes())
    write(root, f"/boot/{flavour}/grubenv", block(variables))
    write(root, "/boot/initadvisor/trial.img", "candidate")
    write(root, "/proc/cmdline", f"BOOT_IMAGE=/vmlinuz-{RELEASE} root=UUID=1 ro quiet\n")
    write(root, "/proc/sys/kernel/bootloader_type", "114\n")
    tools = ("grub-reboot", "grub-editenv", "grub-probe")
    names = tuple(name.replace("grub-", f"{flavour}-") for name in tools)
    return Machine(
        root=root,
        programs=BootPrograms(root=root, programs=names),
        installed=f"/boot/initrd.img-{RELEASE}",
        candidate="/boot/initadvisor/trial.img",
    )


def efi_stub_machine(root: Path, *, version: int = 17) -> Machine:
    """Return a machine whose firmware starts the kernel from the ESP."""
    _efi_disk(root)
    write(root, "/efi/vmlinuz-linux", "kernel")
    write(root, "/efi/initramfs-linux.img", "image")
    write(root, "/efi/ucode.img", "microcode")
    write(root, "/efi/initadvisor/trial.img", "candidate")
    options = r"root=UUID=1234 rw initrd=\ucode.img initrd=\initramfs-linux.img"
    linux = load_option("Arch Linux", PARTITION, r"\vmlinuz-linux", options)
    write_variable(root, "Boot0003", linux, GLOBAL)
    other = load_option("Windows", PARTITION, r"\EFI\Microsoft\bootmgfw.efi", "")
    write_variable(root, "Boot0000", other, GLOBAL)
    write_variable(root, "BootOrder", b"\3\0\0\0", GLOBAL)
    write_variable(root, "BootCurrent", b"\3\0", GLOBAL)
    write(root, "/proc/cmdline", options)
    programs = BootPrograms(
        root=root, programs=("efibootmgr",), version=version, partition_uuid=PARTITION
    )
    return Machine(
        root=root,
        programs=programs,
        installed="/efi/initramfs-linux.img",
        candidate="/efi/initadvisor/trial.img",
    )


def armed_machine(loader: BootLoader, machine: Machine) -> None:
    """Write the trial's entry and arm it."""
    plan = loader.trial(machine.host, machine.request)
    loader.write(machine.host, plan)
    loader.arm(machine.host, plan)


def _efi_disk(root: Path) -> None:
    """Lay out a disk whose first partition is the ESP."""
    write(root, "/proc/self/mountinfo", _ROOT + _ON_ESP)
    write(root, "/sys/devices/pci/block/sda/sda1/partition", "1\n")
    classes = root / "sys/class/block"
    classes.mkdir(parents=True)
    (classes / "sda1").symlink_to("../../devices/pci/block/sda/sda1")
    links = root / "dev/disk/by-partuuid"
    links.mkdir(parents=True)
    (links / PARTITION).symlink_to("../../sda1")
