"""bootctl, efibootmgr and GRUB's tools over a tree of files: they check their arguments.

They do what was seen of the real ones (systemd 252, efibootmgr 17, GRUB 2.06): which variables and
files they change, what they print, what they refuse.
"""

from __future__ import annotations

import re
import struct
import uuid
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import ProgramError
from initadvisor.host.run import Completed, Priority
from tests.fakes.runner import FakeRunner
from tests.fixtures.trees import GLOBAL, LOADER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

KEPT = b"\x07\0\0\0"
"""Attributes of a variable that is kept over reboots."""

_BLOCK_BYTES = 1024
_BLOCK_HEAD = "# GRUB Environment Block\n"


@dataclass(slots=True)
class BootPrograms(FakeRunner):
    """Satisfies ``Runner``; ``root`` is where the machine's files are.

    ``esp`` and ``boot`` are what bootctl finds. ``version`` is efibootmgr's. ``partition_uuid`` is
    that of the disk efibootmgr is given. ``probed`` is what grub-probe prints by target.
    ``forgetful``: variables that are set do not stay.
    """

    root: Path = field(kw_only=True)
    esp: str = "/efi"
    boot: str = "/efi"
    listed: str = "[]"
    version: int = 17
    partition_uuid: str = "11111111-2222-4333-8444-555555555555"
    probed: dict[str, str] = field(default_factory=lambda: {"abstraction": "\n", "fs": "ext2\n"})
    forgetful: bool = False

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> Completed:
        """Do what the program does, or give the answer that a test prepared."""
        del cwd, priority
        words = [str(word) for word in argv]
        programs: dict[str, Callable[[list[str]], str]] = {
            "bootctl": self._bootctl,
            "efibootmgr": self._efibootmgr,
            "grub-editenv": self._editenv,
            "grub2-editenv": self._editenv,
            "grub-reboot": self._reboot,
            "grub2-reboot": self._reboot,
            "grub-probe": self._probe,
            "grub2-probe": self._probe,
        }
        prepared = any(tuple(words[: len(a.words)]) == a.words for a in self.answers)
        if prepared or words[0] not in programs:
            return super(BootPrograms, self).run(
                argv, timeout_s=timeout_s, check=check, stdin=stdin, stdout=stdout, env=env
            )
        assert timeout_s > 0
        super(BootPrograms, self).answer(words, programs[words[0]](words[1:]))
        try:
            return super(BootPrograms, self).run(argv, timeout_s=timeout_s, check=check)
        finally:
            self.answers.pop()

    def variable(self, name: str, vendor: str = GLOBAL) -> Path:
        """Return where a variable's file is."""
        return self.root / f"sys/firmware/efi/efivars/{name}-{vendor}"

    def _set(self, name: str, vendor: str, value: bytes | None) -> None:
        if self.forgetful and value is not None:
            return
        path = self.variable(name, vendor)
        if value is None:
            path.unlink()
        else:
            path.write_bytes(KEPT + value)

    def _bootctl(self, words: list[str]) -> str:
        match words:
            case ["--print-esp-path"]:
                return f"{self.esp}\n"
            case ["--print-boot-path"]:
                return f"{self.boot}\n"
            case ["list", "--json=short", "--no-pager"]:
                return self.listed
            case ["set-oneshot", ""]:
                self.variable("LoaderEntryOneShot", LOADER).unlink(missing_ok=True)
                return ""
            case ["set-oneshot", name]:
                if not re.fullmatch(r"[A-Za-z0-9_.][A-Za-z0-9+_.-]*", name):
                    msg = f"bootctl: Invalid loader entry name: {name}"
                    raise ProgramError(msg)
                self._set("LoaderEntryOneShot", LOADER, f"{name}\0".encode("utf-16-le"))
                return ""
            case _:
                raise AssertionError(words)

    def _efibootmgr(self, words: list[str]) -> str:
        match words:
            case ["--bootnext", number]:
                if not self.variable(f"Boot{number}").exists():
                    msg = f"efibootmgr: Boot entry {int(number, 16)} does not exist"
                    raise ProgramError(msg)
                self._set("BootNext", GLOBAL, struct.pack("<H", int(number, 16)))
            case ["--delete-bootnext"]:
                if not self.variable("BootNext").exists():
                    msg = "efibootmgr: Could not delete BootNext"
                    raise ProgramError(msg)
                self._set("BootNext", GLOBAL, None)
            case ["--bootnum", number, "--delete-bootnum"]:
                if not self.variable(f"Boot{number}").exists():
                    msg = "efibootmgr: Could not delete variable"
                    raise ProgramError(msg)
                self._set(f"Boot{number}", GLOBAL, None)
            case ["--create-only", "--disk", "/dev/sda", "--part", "1", "--label", label, *more]:
                assert more[::2] in (["--loader"], ["--loader", "--unicode"])
                self._create(label, more[1], more[3] if len(more) > 2 else "")
            case _:
                raise AssertionError(words)
        return self._listing()

    def _create(self, label: str, program: str, options: str) -> None:
        number = next(n for n in range(0xFFFF) if not self.variable(f"Boot{n:04X}").exists())
        value = load_option(label, self.partition_uuid, program, options)
        self._set(f"Boot{number:04X}", GLOBAL, value)

    def _listing(self) -> str:
        lines = []
        if self.variable("BootNext").exists():
            number = int.from_bytes(self.variable("BootNext").read_bytes()[4:], "little")
            lines.append(f"BootNext: {number:04X}")
        if self.variable("BootOrder").exists():
            raw = self.variable("BootOrder").read_bytes()[4:]
            order = [f"{n:04X}" for (n,) in struct.iter_unpack("<H", raw)]
            lines.append(f"BootOrder: {','.join(order)}")
        for path in sorted(self.variable("BootOrder").parent.glob(f"Boot????-{GLOBAL}")):
            if not re.fullmatch("Boot[0-9A-F]{4}", name := path.name[:8]):
                continue
            raw = path.read_bytes()[10:]
            label = raw.decode("utf-16-le", errors="replace").partition("\0")[0]
            place = f"\tHD(1,GPT,{self.partition_uuid},0x800,0x186a0)/\\x.efi"
            lines.append(f"{name}* {label}{place if self.version >= 18 else ''}")
        return "".join(f"{line}\n" for line in lines)

    def _editenv(self, words: list[str]) -> str:
        path = self._inside(words[0])
        content = path.read_text()
        if len(content) != _BLOCK_BYTES or not content.startswith(_BLOCK_HEAD):
            msg = "grub-editenv: invalid environment block"
            raise ProgramError(msg)
        lines = content[len(_BLOCK_HEAD) :].rstrip("#").splitlines()
        match words[1:]:
            case ["list"]:
                return "".join(f"{line}\n" for line in lines)
            case ["set", assignment]:
                name, _, value = assignment.partition("=")
                new = f"{name}={value}"
                old = [line for line in lines if line.startswith(f"{name}=")]
                lines = [new if line in old else line for line in lines]
                lines += [] if old else [new]
            case ["unset", name]:
                lines = [line for line in lines if not line.startswith(f"{name}=")]
            case _:
                raise AssertionError(words)
        if not self.forgetful:
            path.write_text(block("\n".join(lines)))
        return ""

    def _reboot(self, words: list[str]) -> str:
        match words:
            case [directory, identifier] if directory.startswith("--boot-directory="):
                boot = self._inside(directory.partition("=")[2])
                flavour = "grub2" if (boot / "grub2").is_dir() else "grub"
                file = str(boot / flavour / "grubenv")
                return self._editenv([file, "set", f"next_entry={identifier}"])
        raise AssertionError(words)

    def _probe(self, words: list[str]) -> str:
        match words:
            case [target, file] if target.startswith("--target="):
                assert self._inside(file).is_file()
                return self.probed[target.partition("=")[2]]
        raise AssertionError(words)

    def _inside(self, path: str) -> Path:
        """Return the path, which has to be the machine's and not the test's own machine's."""
        assert path.startswith(f"{self.root}/"), path
        return self.root / path[len(str(self.root)) + 1 :]


def block(variables: str) -> str:
    """Return an environment block of GRUB's."""
    lines = f"{variables}\n" if variables else ""
    return (_BLOCK_HEAD + lines).ljust(_BLOCK_BYTES, "#")


def load_option(
    label: str, partition: str, program: str, options: str, *, active: bool = True
) -> bytes:
    """Return a boot option as ``efibootmgr --unicode`` makes it: without a NUL at its end."""
    signature = uuid.UUID(partition).bytes_le
    disk = struct.pack("<BBHIQQ16sBB", 4, 1, 42, 1, 0x800, 0x186A0, signature, 2, 2)
    name = f"{program}\0".encode("utf-16-le")
    path = disk + struct.pack("<BBH", 4, 4, 4 + len(name)) + name + b"\x7f\xff\x04\0"
    head = struct.pack("<IH", int(active), len(path))
    return head + f"{label}\0".encode("utf-16-le") + path + options.encode("utf-16-le")
