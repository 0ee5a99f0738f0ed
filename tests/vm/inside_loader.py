"""Inside a guest: what initadvisor's boot loaders do there. It takes words, a step in each line:

    look
    write trial REPLACED IMAGE NAME | write previous REPLACED IMAGE LABEL
    arm | disarm
    remove trial | remove previous

and prints a line of JSON for each ``look``. A step that fails ends everything with its traceback.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from initadvisor.bootloaders.detect import detect_boot_loader
from initadvisor.bootloaders.entry import EntryKind, TrialRequest
from initadvisor.bootloaders.extra_cmdline import extra_cmdline
from initadvisor.host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from initadvisor.bootloaders import BootLoader
    from initadvisor.bootloaders.entry import TrialPlan

_VARIABLES = Path("/sys/firmware/efi/efivars")
_KEPT = 0x1
"""The attribute of variables that are there after a reboot (EFI_VARIABLE_NON_VOLATILE)."""
_LOADERS_OWN = "LoaderEntryLastBooted"
"""systemd-boot writes it in every boot."""
_WRITTEN = ("loader", "grub/grub.cfg", "grub/custom.cfg")
_MENU_COMMANDS = ("menuentry", "submenu", "linux", "initrd")
_ENVIRONMENT = Path("/boot/grub/grubenv")


def main() -> None:
    """Do what standard input says."""
    host = Host()
    loader = detect_boot_loader(host)
    plan: TrialPlan | None = None
    for line in sys.stdin:
        match line.rstrip("\n").split(" ", 4):
            case ["look"]:
                sys.stdout.write(f"{json.dumps(_look(host, loader))}\n")
            case ["write", kind, replaced, image, name]:
                plan = loader.trial(host, _request(kind, replaced, image, name))
                loader.write(host, plan)
            case ["arm"]:
                assert plan
                loader.arm(host, plan)
            case ["disarm"]:
                assert loader.disarm(host)
            case ["remove", kind]:
                assert loader.remove(host, EntryKind(kind))
            case words:
                raise AssertionError(words)


def _request(kind: str, replaced: str, image: str, name: str) -> TrialRequest:
    if kind == EntryKind.PREVIOUS:
        return TrialRequest(kind=EntryKind.PREVIOUS, replaces=replaced, image=image, label=name)
    words = extra_cmdline(name, generator="initramfs-tools", guarded=True)
    return TrialRequest(trial=name, replaces=replaced, image=image, parameters=words)


def _look(host: Host, loader: BootLoader) -> dict[str, object]:
    return {
        "loader": loader.NAME,
        "refusals": [refusal.kind for refusal in loader.refusals(host)],
        "default": asdict(loader.default_entry(host)),
        "armed": asdict(loader.armed(host)),
        "entries": {kind: loader.entry(host, kind) for kind in EntryKind},
        "menu": _menu(loader),
        "command_line": Path("/proc/cmdline").read_text().strip(),
        "state": dict(sorted((*_files(), *_variables()))),
    }


def _menu(loader: BootLoader) -> list[str]:
    """Return what there is to choose from, and what it loads where that is written down.

    Of systemd-boot, that is what it itself has found; of the firmware, the options in its order.
    """
    match loader.NAME:
        case "systemd-boot":
            return _value("LoaderEntries").decode("utf-16-le").rstrip("\0").split("\0")
        case "grub":
            lines = map(str.strip, Path("/boot/grub/grub.cfg").read_text().splitlines())
            files = sorted(path.name for path in Path("/boot/loader/entries").glob("*"))
            return [*(line for line in lines if line.startswith(_MENU_COMMANDS)), *files]
        case _:
            order = _value("BootOrder")
            return [order[at : at + 2].hex() for at in range(0, len(order), 2)]


def _value(name: str) -> bytes:
    (path,) = _VARIABLES.glob(f"{name}-*")
    return path.read_bytes()[4:]


def _files() -> Iterator[tuple[str, str]]:
    for name in _WRITTEN:
        found = Path("/boot") / name
        for path in (found, *found.rglob("*")):
            if path.is_file():
                yield str(path), _digest(path.read_bytes())
    if _ENVIRONMENT.exists():  # of one length, whatever is in it
        yield str(_ENVIRONMENT), _ENVIRONMENT.read_text().rstrip("#")


def _variables() -> Iterator[tuple[str, str]]:
    for path in _VARIABLES.glob("*"):
        content = path.read_bytes()
        about_booting = path.name.startswith(("Boot", "Loader"))
        if about_booting and content[0] & _KEPT and not path.name.startswith(_LOADERS_OWN):
            yield path.name, _digest(content)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


if __name__ == "__main__":
    main()
