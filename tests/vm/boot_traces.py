"""Record what boots leave behind of their loader, for the fast tests:

    python -m tests.vm.boot_traces

boots a guest in every way that OVMF offers, on a machine with a TPM (which takes swtpm(8)), and
writes ``tests/fixtures/boot_traces.tar.xz``. The archive has a directory for each boot: the files
of /sys and /proc that tell of it, systemd's account of it, and what there is to compare with.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fixtures.debian import Suite
from tests.judges.unified import with_sections
from tests.vm.boot import Then, boot
from tests.vm.guest import Guest, Loader, Recipe, guest
from tests.vm.kexec import KEXEC
from tests.vm.machine import Machine
from tests.vm.tpm import tpm

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.vm.boot import Boot

ARCHIVE = Path(__file__).parents[1] / "fixtures/boot_traces.tar.xz"
MANAGER, FACTS = "manager", "facts.json"
"""Beside the trees: what ``systemctl show`` said; the initramfs that was booted."""

_STUB = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"
_FREED = re.compile(r"Freeing initrd memory: (\d+)K")
_SHOWN = (
    "/sys/firmware/efi/efivars/*-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f",
    "/sys/firmware/efi/efivars/Boot*-8be4df61-93ca-11d2-aa0d-00e098032b8c",
    "/sys/kernel/boot_params/data",
    "/sys/kernel/security/tpm0/binary_bios_measurements",
    "/proc/cmdline",
    "/proc/sys/kernel/bootloader_type",
)
_COLLECT = f"""
mkdir /tmp/traces
cd /tmp/traces
for file in {" ".join(_SHOWN)}; do
    [ -r "$file" ] || continue
    mkdir -p ".${{file%/*}}"
    cat "$file" >".$file"
done
systemctl show | grep -E '^[A-Za-z]*Timestamp|^SoftRebootsCount' >{MANAGER}
echo traces:
tar c . | xz | base64 -w 700
"""
_BOOT_OPTION = "efibootmgr --create --disk /dev/vda --part 1 --label trial --loader '{file}'"
_STUB_OPTION = r"""
entry=/boot/loader/entries/*.conf
value() { sed -n "s/^$1 *//p" $entry | tr / '\\'; }
options=$(sed -n 's/^options *//p' $entry)
efibootmgr --create --disk /dev/vda --part 1 --label trial --loader "$(value linux)" \
    --unicode "initrd=$(value initrd) $options"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way of booting: of which guest, changed how; ``first`` is run in a boot before it."""

    recipe: Recipe = field(default_factory=Recipe)
    change: Callable[[Guest], None] = lambda _: None
    first: str = ""
    before: str = ""


def _put_uki(path: str) -> Callable[[Guest], None]:
    """Return what puts a unified kernel image of the guest's own parts on its ESP."""

    def put(copy: Guest) -> None:
        stub = copy.directory / "stub"
        copy.disk.root.fetch(_STUB, stub)
        sections = {
            ".osrel": b"ID=debian\nVERSION_ID=13\n",
            ".cmdline": copy.recipe.command_line.encode() + b"\0",
            ".initrd": copy.initrd.read_bytes(),
            ".linux": copy.kernel.read_bytes(),  # the last: the kernel may use the room behind it
        }
        image = copy.directory / "unified.efi"
        image.write_bytes(with_sections(stub.read_bytes(), sections))
        assert copy.recipe.loader.esp
        copy.disk.files(copy.recipe.loader.esp).put({path: image})

    return put


_BOOKWORM = Recipe(suite=Suite.BOOKWORM, loader=Loader.SYSTEMD_BOOT_XBOOTLDR)
WAYS = {
    "systemd-boot": Way(),
    "systemd-boot-252": Way(recipe=_BOOKWORM),
    "systemd-boot-uki": Way(
        change=_put_uki("/EFI/Linux/unified.efi"),
        first="bootctl set-default unified.efi",
    ),
    "firmware-uki": Way(change=_put_uki("/EFI/BOOT/BOOTX64.EFI")),
    "firmware-uki-252": Way(recipe=_BOOKWORM, change=_put_uki("/EFI/BOOT/BOOTX64.EFI")),
    "boot-option-uki": Way(
        change=_put_uki("/EFI/Linux/unified.efi"),
        first=_BOOT_OPTION.format(file=r"\EFI\Linux\unified.efi"),
    ),
    "grub": Way(recipe=Recipe(loader=Loader.GRUB)),
    "efi-stub": Way(first=_STUB_OPTION),
    "kexec": Way(before=KEXEC),
}


def record(name: str, way: Way, directory: Path) -> None:
    """Boot this way, and write what it left behind below ``directory``."""
    copy = guest(way.recipe).copied_to(directory / f"{name}.guest")
    way.change(copy)
    if way.first:
        _boot(copy, way.first)
    booted = _boot(copy, way.before + _COLLECT)
    encoded = booted.output[booted.output.index("traces:") + 1 :]
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode("".join(encoded)))) as traces:
        traces.extractall(directory / name, filter="data")
    image = copy.initrd.read_bytes()
    said = [match for line in booted.lines if (match := _FREED.search(line.text))]
    facts = {
        "size_bytes": len(image),
        "sha256": hashlib.sha256(image).hexdigest(),
        "freed_kib": int(said[-1][1]),
    }
    (directory / name / FACTS).write_text(json.dumps(facts))


def _boot(copy: Guest, script: str) -> Boot:
    with tempfile.TemporaryDirectory(prefix="tpm-") as state, tpm(Path(state)) as socket:
        machine = Machine(bare_metal=True, tpm=socket)
        return boot(copy, machine, script=script, then=Then.POWER_OFF)


def main() -> None:
    """Record every way, and pack what is to be kept."""
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        for name, way in WAYS.items():
            record(name, way, directory)
        with tarfile.open(ARCHIVE, "w:xz") as archive:
            for name in WAYS:
                archive.add(directory / name, name, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
