"""Which modules a device asks for, and what they need, by what depmod wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.host import Host
from initadvisor.target.module_index import ModuleIndex, read_module_index
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from pathlib import Path

ALIAS = r"""
# Aliases extracted from modules themselves.
alias pci:v00008086d00002922sv*sd*bc*sc*i* ahci
alias pci:v*d*sv*sd*bc01sc06i01* ahci
alias usb:v0BDAp8153d*dc*dsc*dp*ic*isc*ip*in* r8152
alias input:b*v*p*e*-e*[0-9]* snd-hda
alias crypto-crc32c crc32c_generic
alias of:N*T*Cbrcm,bcm2835_aux bcm_aux
alias set:[!0-9x]-[a-c-]* sets
alias set:*[^q]z\*[\q]?[!9-1] escapes
alias set:*[]]z unbalanced
alias set:a\b literal
alias set:?[open unclosed
alias
nonsense
"""
DEP = """\
kernel/drivers/ata/ahci.ko.xz: kernel/drivers/ata/libahci.ko.xz kernel/drivers/ata/libata.ko.xz
kernel/drivers/ata/libahci.ko.xz:
kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko
kernel/sound/snd-hda.ko.zst: kernel/sound/snd-pcm.ko.zst
updates/dkms/zfs.ko: updates/dkms/spl.ko
"""
SOFTDEP = "softdep ext4 pre: crypto-crc32c\nsoftdep crc32c_generic post: ext4\nsoftdep ext4\n"
WEAKDEP = "weakdep jbd2 zfs\n"
BUILTIN = "\0".join(
    (
        *("usb4.alias=pci:v*d*sv*sd*bc0Csc03i40*", "usb4.license=GPL", "usb4.firmware=usb4.bin"),
        *("core.softdep=pre: ahci", "core", ""),
    )
)
INDEX = ModuleIndex(DEP, ALIAS, SOFTDEP, WEAKDEP, builtin=BUILTIN)


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01", {"ahci"}),
        ("pci:v00001022d00007901sv00000000sd00000000bc01sc06i01", {"ahci"}),
        ("pci:v00001022d00007901sv00000000sd00000000bc02sc06i01", set()),
        ("pci:v00001022d00007901sv00000000sd00000000bc0Csc03i40", {"usb4"}),
        ("usb:v0BDAp8153d3100dc00dsc00dp00icFFiscFFip00in00", {"r8152"}),
        ("input:b0003v1p2e0-e3", {"snd_hda"}),
        ("of:NauxT(null)Cbrcm,bcm2835-aux", {"bcm_aux"}),
        ("crypto-crc32c", {"crc32c_generic"}),
        ("crypto-crc32", set()),
        ("set:y_b", {"sets"}),
        ("set:y-bbb", {"sets"}),
        ("set:5_b", set()),
        ("set:y_d", set()),
        ("set:az*qqq", {"escapes"}),
        ("set:qz*qqq", set()),
        ("set:azzqqq", set()),
        (r"set:a\b", {"literal"}),
        ("set:ab", set()),
        ("set:x[open", set()),
        ("set:]z", set()),
        ("ext4", set()),
        ("", set()),
        ("[*?", set()),
        ("pci:v" * 1500, set()),
    ],
)
def test_a_name_stands_for_the_modules_whose_alias_fits(name: str, modules: set[str]) -> None:
    assert set(INDEX.asked_for(name)) - {name.replace("-", "_")} == modules


def test_where_modules_are_and_what_asks_for_them() -> None:
    assert INDEX.directories["ahci"] == "drivers/ata"
    assert INDEX.directories["zfs"] == "dkms"
    assert INDEX.buses["ahci"] == {"pci"}
    assert INDEX.buses["crc32c_generic"] == {""}
    assert INDEX.builtin_firmware == {"usb4.bin"}


def test_what_a_module_needs_or_would_like_comes_with_it() -> None:
    assert INDEX.with_needed(["pci:v1d1sv1sd1bc01sc06i01"]) >= {"ahci", "libahci", "libata"}
    assert INDEX.with_needed(["ext4"]) >= {"ext4", "jbd2", "crc32c_generic", "zfs", "spl"}
    assert INDEX.with_needed(["snd-hda"]) == {"snd_hda", "snd_pcm"}
    assert INDEX.with_needed(["core"]) == {"core", "ahci", "libahci", "libata"}
    assert INDEX.with_needed(["zfs"]) == {"zfs", "spl"}


def test_modules_that_are_not_installed_are_said_to_be_missing(tmp_path: Path) -> None:
    host = Host(root=tmp_path)
    with pytest.raises(InitadvisorError, match=r"what depmod wrote of the modules of Linux 6\.1"):
        read_module_index(host, "6.1")
    for name, text in (("alias", ALIAS), ("dep", DEP)):
        write(tmp_path, f"/lib/modules/6.1/modules.{name}", text)
    assert "libata" in read_module_index(host, "6.1").with_needed(["ahci"])


def test_what_modprobe_is_told_counts_too(tmp_path: Path) -> None:
    for name, text in (("alias", ALIAS), ("dep", DEP)):
        write(tmp_path, f"/usr/lib/modules/6.1/modules.{name}", text)
    write(tmp_path, "/etc/modprobe.d/own.conf", "alias my-disk zfs\nsoftdep ahci \\\n pre: ext4\n")
    write(tmp_path, "/etc/modprobe.d/none", "alias other zfs\n")
    index = read_module_index(Host(root=tmp_path), "6.1")
    assert index.with_needed(["my_disk"]) == {"my_disk", "zfs", "spl"}
    assert index.with_needed(["other"]) == {"other"}
    assert index.with_needed(["ahci"]) >= {"ext4", "jbd2"}
