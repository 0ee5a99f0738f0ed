"""GRUB 2.14 of Debian sid makes the menu of boot loader specification entries that is read here.

GRUB runs alone, from a directory that QEMU shows as a disk: no kernel is started. ``linux`` and
``initrd`` are functions that print what they are given; then the entry fails and the next one is
tried. The guest's clock counts instructions, so that GRUB's pauses take no time. Trials of such a
machine are in test_boot_loaders, a setting applied there in tests/guests/apply/test_proving.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import TrialRequest
from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.grub import menu as grub_menu
from initadvisor.bootloaders.grub.bls import GrubVariant
from initadvisor.bootloaders.grub.bls_menu import BlsMenu, bls_menus
from initadvisor.bootloaders.grub.environment import place
from initadvisor.host import Host
from tests.fakes.boot_programs import BootPrograms, block
from tests.fixtures.loader_machines import WORDS
from tests.fixtures.owners import identify
from tests.fixtures.trees import write
from tests.vm import tools
from tests.vm.blscfg import core_image, unpacked

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vm

_MODULES = (
    *("biosdisk", "part_msdos", "fat", "normal", "serial", "terminal", "echo", "test", "blsuki"),
    *("configfile", "halt", "loadenv", "minicmd"),
)
_EARLY = """\
serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
set root=hd0,msdos1
set prefix=(hd0,msdos1)/grub
configfile (hd0,msdos1)/grub/grub.cfg
"""
_MENU = """\
function linux { echo "<linux|$chosen|$@>"; [ a = b ]; }
function initrd { echo "<initrd|$chosen|$@>"; [ a = b ]; }
set kernelopts="root=/dev/sda2 ro quiet"
set default="${saved_entry}"
set timeout=0
insmod blsuki
blscfg
menuentry 'the last' --id last { echo "<last|$chosen|>"; halt; }
"""
_ONCE = """\
if [ "${next_entry}" ]; then
  set default="${next_entry}"
  set next_entry=
  save_env next_entry
fi
"""
_CUSTOM = "source $prefix/custom.cfg\n"
_VARIABLES = {"kernelopts": "root=/dev/sda2 ro quiet", "tt": "a=1", "tuned_initrd": "/tuned.img"}
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SAID = re.compile(r"<(linux|initrd|last)\|([^|]*)\|([^>]*)>")

_NAMES = (
    *(
        "8f-6.12.10-300.fc41.x86_64",
        "8f-6.12.10-200.fc41.x86_64",
        "8f-6.12.9-300.fc41.x86_64",
    ),
    *("8f-0-rescue", "m-6.12.0-65", "m-6.12.0-0.rc1.9", "m-6.12.0~rc2-1", "a-2-1.el9_5"),
    *("a-2-1.el9", "a-1+2-1", "a-1-1", "5-1-1", "a-6.12.10+deb13-amd64", "a-6.12.10-cloud"),
    *("x", "x.9", ".x", ".h0a", ".910", "..d", "x.old", "x.old2", "x~", "x_", "010-1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An entry: what GRUB calls it, and the words that kernel and images are loaded with."""

    identifier: str
    linux: str
    initrd: str = ""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """GRUB as a file that QEMU starts like a kernel."""
    packages = unpacked("grub-pc-bin", "grub-common")
    whole = (packages / "usr/lib/grub/i386-pc/lnxboot.img").read_bytes()
    path = tmp_path_factory.mktemp("core") / "grub"
    path.write_bytes(whole + core_image(packages, "i386-pc", _EARLY, _MODULES))
    return path


def booted(
    core: Path, root: Path, *others: int, saved: str = "0", menu: str = _MENU
) -> list[Shown]:
    """Have GRUB boot by default, then the entries of these numbers; return all that it tried.

    The last of them has to be the one that halts.
    """
    script = f'set saved_entry="{saved}"\nset fallback="{" ".join(map(str, others))}"\n'
    script += "".join(f'set {name}="{value}"\n' for name, value in _VARIABLES.items())
    write(root, "/boot/grub/grub.cfg", script + menu)
    said = tools.run(
        "qemu-system-x86_64",
        *("-L", tools.tree() / "usr/share/seabios", "-L", tools.tree() / "usr/share/qemu"),
        *("-accel", "tcg,thread=single", "-icount", "shift=10,sleep=off", "-m", "128"),
        *("-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-kernel", core),
        *("-drive", f"file=fat:rw:{root / 'boot'},format=raw,if=ide"),
    )
    text = _ESCAPE.sub("", said.decode(errors="replace")).replace("\r", "").replace("\n", "")
    found: list[Shown] = []
    for command, identifier, words in _SAID.findall(text):
        if command == "initrd":
            found[-1] = Shown(
                identifier=identifier, linux=found[-1].linux, initrd=" ".join(words.split())
            )
        elif command == "linux":
            found.append(Shown(identifier=identifier, linux=" ".join(words.split())))
    return found


def read(root: Path) -> tuple[BlsMenu, list[Shown]]:
    """Return the menu that is read of the same files, and its entries."""
    host = Host(root=root)
    where = place(host)
    script = grub_menu.parsed(_MENU, where.configuration)
    [menu] = bls_menus(host, where, _MENU, script, _VARIABLES)
    assert menu.variant is GrubVariant.UPSTREAM
    found: list[Shown] = []
    for each in grub_menu.parsed(menu.text, where.configuration):
        words = " ".join(word.literal or "" for word in each.words[1:])
        inside = any(block.command == "menuentry" for block in each.blocks)
        if inside and each.command == "linux":
            identifier = each.blocks[-1].words[-1].literal or ""
            found.append(Shown(identifier=identifier, linux=words))
        elif inside and each.command == "initrd":
            found[-1] = Shown(identifier=found[-1].identifier, linux=found[-1].linux, initrd=words)
    return menu, found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with a boot partition and GRUB on it."""
    mounts = "22 1 8:2 / / rw - ext4 a rw\n23 22 8:1 / /boot rw - vfat b rw\n"
    write(tmp_path, "/proc/self/mountinfo", mounts)
    write(tmp_path, "/boot/grub/grub.cfg", _MENU)
    return tmp_path


def test_the_menu_s_order_is_grub_s(core: Path, root: Path) -> None:
    for name in _NAMES:
        write(root, f"/boot/loader/entries/{name}.conf", f"title {name}\nlinux /k\n")
    _, found = read(root)
    assert [each.identifier for each in found] == [
        each.identifier for each in booted(core, root, *range(1, len(_NAMES) + 1))
    ]
    assert len(found) == len(_NAMES)


_ENTRIES = {
    "90": "title A\nlinux /k\noptions $kernelopts quiet $tt\ninitrd /a.img $tuned_initrd\n",
    "80": "title A\nlinux /k\n\noptions lost\n",
    "70": "title A\nlinux /k\noptions one\noptions two\ninitrd /a.img\ninitrd /b.img\r\n",
    "60": "# x\n title A\n linux\t/k a\noptions r$tt\n",
    "50": "linux /k\noptions $none $tt,b=2 3\n",
    "40": "linux /k\noptions $none\n",
    "30": "linux /k\noptions 'a b' c\\ d $tt 3\nquiet\ninitrd /lost\n",
}


def test_what_an_entry_loads_is_what_grub_loads(core: Path, root: Path) -> None:
    for name, text in _ENTRIES.items():
        write(root, f"/boot/loader/entries/{name}-1-1.conf", text)
    _, found = read(root)
    assert found == booted(core, root, *range(1, len(_ENTRIES) + 1))
    assert [each.linux for each in found[:2]] == ["/k root=/dev/sda2 ro quiet quiet a=1", "/k"]


@pytest.mark.shows(
    "order and default of entries", "GRUB with blscfg", system="Debian 13, GRUB 2.14 of sid"
)
@pytest.mark.parametrize("saved", ["0", "2", "010", "8f-1-1", "a-1-2", "The 3rd", "1st"])
def test_the_default_is_grub_s(core: Path, root: Path, saved: str) -> None:
    names = [f"a-1-{number}" for number in range(10)] + ["8f-1-1"]
    for name in names:
        title = "The 3rd" if name.endswith("3") else name
        write(root, f"/boot/loader/entries/{name}.conf", f"title {title}\nlinux /k\n")
    menu, _ = read(root)
    script = grub_menu.parsed(menu.text, "grub.cfg")
    chosen = grub_menu.default_entry(
        menu.text, script, "grub.cfg", saved_entry=saved, variant=menu.variant
    )
    [shown] = booted(core, root, len(names), saved=saved)
    assert chosen.path == shown.identifier


def test_a_trial_s_entry_is_behind_all_files_and_loads_what_was_planned(
    core: Path, root: Path
) -> None:
    """Files that GRUB sorts last are before it: 0-rescue, and names with a dot first."""
    for name in ("debian-6", "0-rescue", ".hidden"):
        text = f"title {name}\nlinux /k\ninitrd /i\noptions $kernelopts {name}\n"
        write(root, f"/boot/loader/entries/{name}.conf", text)
    for name in ("k", "i", "new", "grub/i386-pc/blsuki.mod"):
        write(root, f"/boot/{name}", "content")
    menu = _MENU.replace("set timeout", f"{_ONCE}set timeout") + _CUSTOM
    write(root, "/boot/grub/grub.cfg", menu)
    write(root, "/boot/grub/grubenv", block(""))
    identify(root)
    host = Host(root=root, runner=BootPrograms(root=root))
    request = TrialRequest(replaces="/boot/i", image="/boot/new", trial="t1", parameters=WORDS)
    plan = grub.trial(host, request)
    grub.write(host, plan)
    (root / "boot/grub/grubenv").unlink()  # QEMU's directories are none that GRUB should write to

    *files, ours = booted(core, root, 1, 2, 4, 3, menu=menu)
    assert files[0].identifier == plan.default.identifier == "debian-6"
    assert [each.identifier for each in files[1:]] == ["0-rescue", ".hidden"]
    words = f"/k {plan.default.options} {' '.join(request.parameters)}"
    assert ours == Shown(identifier=plan.identifier, linux=words, initrd="/new")
    selected = f"set next_entry={plan.identifier}\n{menu}"
    assert booted(core, root, 3, menu=selected) == [ours]
