"""GRUB's entries of the boot loader specification are read as GRUB does it, and never written."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.bootloaders.grub import bls_menu, grub
from initadvisor.bootloaders.grub.bls import (
    GrubVariant,
    expanded,
    in_menu_order,
    is_entry,
    read_entry,
)
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fixtures.bls_machine import (
    CFG,
    MACHINE_ID,
    RELEASES,
    RESCUE,
    bls_machine,
    entry,
    identifier,
)
from tests.fixtures.loader_machines import WORDS
from tests.fixtures.owners import OWNER
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.bootloaders.entry import BootEntry
    from tests.fixtures.loader_machines import Machine

FEDORA, UPSTREAM = GrubVariant.FEDORA, GrubVariant.UPSTREAM
NEWEST = RELEASES[-1]
FALLBACK = "root=/dev/mapper/fedora-root ro rhgb quiet"


def default(machine: Machine) -> BootEntry:
    return grub.default_entry(machine.host)


def order(names: Sequence[str], variant: GrubVariant) -> list[str]:
    entries = [read_entry(f"{name}.conf", "linux /k", variant) for name in names]
    return [each.identifier for each in in_menu_order(entries, variant)]


# The first was held against the vercmp() and split_cmp() of Fedora's blscfg.c, compiled; the second
# against GRUB 2.14 of Debian sid, booted (tests/guests/loaders/test_blscfg.py).
@pytest.mark.parametrize(
    ("variant", "newest_first"),
    [
        (FEDORA, ["m-6.12.10-300", "m-6.12.10-200", "m-6.12.9-300", "m-0-rescue"]),
        (UPSTREAM, ["m-6.12.10-300", "m-6.12.10-200", "m-6.12.9-300", "m-0-rescue"]),
        (FEDORA, ["m-6.12.0-65", "m-6.12.0-0.rc1.9", "m-6.12.0~rc2-1"]),
        (UPSTREAM, ["m-6.12.0-65", "m-6.12.0-0.rc1.9", "m-6.12.0~rc2-1"]),
        (FEDORA, ["a-2-1.el9_5", "a-2-1.el9", "a-1+2-1", "a-1-1"]),
        (UPSTREAM, ["a-2-1.el9_5", "a-2-1.el9", "a-1-1", "a-1+2-1"]),
        (FEDORA, ["5-1-1", "b-1-1", "B-1-1"]),
        (UPSTREAM, ["b-1-1", "B-1-1", "5-1-1"]),
        (FEDORA, ["a-6.12.10+deb13-amd64", "a-6.12.10-cloud"]),
        (UPSTREAM, ["a-6.12.10-cloud", "a-6.12.10+deb13-amd64"]),
        (FEDORA, ["a-1-x_y", "a-1-x"]),
        (UPSTREAM, ["x", ".x"]),
    ],
)
def test_the_newest_is_first(variant: GrubVariant, newest_first: list[str]) -> None:
    shown = [name for name in newest_first if is_entry(f"{name}.conf", variant)]
    for mixed in permutations(newest_first):
        assert [n for n in order(mixed, variant) if n in shown] == shown


@pytest.mark.parametrize(
    ("text", "variant", "values"),
    [
        ("title A\nlinux /k\n\noptions lost\n", FEDORA, {"title": ("A",), "linux": ("/k",)}),
        ("title A\nlinux /k\n\noptions lost\n", UPSTREAM, {"title": ("A",), "linux": ("/k",)}),
        ("title A\nquiet\nlinux /k\n", FEDORA, {"title": ("A",)}),
        ("title A\nquiet\nlinux /k\n", UPSTREAM, {"title": ("A",)}),
        ("# x\n#y\ninitrd /a\ninitrd /b\r\n", FEDORA, {"initrd": ("/a", "/b")}),
        ("# x\n#y\ninitrd /a\ninitrd /b\r\n", UPSTREAM, {"initrd": ("/a", "/b")}),
        ("linux\t/k a\n", FEDORA, {"linux\t/k": ("a",)}),
        ("linux\t/k a\n", UPSTREAM, {"linux": ("/k a",)}),
        ("linux \t /k\n", FEDORA, {"linux": ("/k",)}),
        ("linux \t /k\n", UPSTREAM, {"linux": ("/k",)}),
    ],
)
def test_a_file_is_read_as_far_as_grub_reads_it(
    text: str, variant: GrubVariant, values: dict[str, tuple[str, ...]]
) -> None:
    assert read_entry("a.conf", text, variant).values == values


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("root=a ro", "root=a ro"),
        ("$kk", "K "),
        ("$kk quiet", "K quiet"),
        ("$kk $tt quiet", "K T quiet"),
        ("$kk $none quiet", "K quiet"),
        ("ro $kk", "ro K "),
        ("ro $kk,x=1", "ro K ,x=1"),
        ("r$kk", "K "),  # a single character is lost, as a name at the end, too
        ("$kk 3", "K "),
        ("quiet $k", "quiet "),
        ("$none", None),
        ("$none$kk", None),
        ("", None),
        (None, None),
    ],
)
@pytest.mark.parametrize("variant", list(GrubVariant))
def test_variables_are_put_in_as_grub_puts_them_in(
    value: str | None, result: str | None, variant: GrubVariant
) -> None:
    assert expanded(value, {"kk": "K", "tt": "T", "k": "K"}, variant) == result


def test_a_dollar_that_is_escaped_is_one_on_fedora_only() -> None:
    assert expanded(r"a=\$kk b=1", {"kk": "K"}, FEDORA) == r"a=\$kk b=1"
    assert expanded(r"a=\$kk b=1", {"kk": "K"}, UPSTREAM) == "a=\\K b=1"


def test_which_files_are_entries() -> None:
    names = ("a.conf", ".a.conf", ".conf", "a.conf.rpmnew")
    assert [name for name in names if is_entry(name, FEDORA)] == ["a.conf"]
    assert [n for n in names if is_entry(n, UPSTREAM)] == ["a.conf", ".a.conf", ".conf"]


@given(
    names=st.lists(st.text(alphabet="ab.-_~+019", max_size=8), max_size=6),
    text=st.text(alphabet="lina \t\n#$\\'{};x=/", max_size=60),
    variant=st.sampled_from(GrubVariant),
)
def test_whatever_is_there_is_read(names: list[str], text: str, variant: GrubVariant) -> None:
    entries = [read_entry(f"{name}.conf", f"linux /k\n{text}", variant) for name in {*names}]
    found = in_menu_order(entries, variant)
    assert {each.name for each in found} == {each.name for each in entries}
    for each in found:
        each.menu_entry(each.body({}, variant), {}, variant)


@pytest.mark.parametrize(
    ("variables", "release"),
    [
        ("", NEWEST),
        ("saved_entry=1\n", RELEASES[1]),
        (f"saved_entry={identifier(RELEASES[0])}\n", RELEASES[0]),
        (f"saved_entry={identifier(RESCUE)}\n", RESCUE),
        (f"saved_entry=Fedora Linux ({RELEASES[1]}) 41 (Workstation Edition)\n", RELEASES[1]),
    ],
)
def test_the_default_is_the_saved_entry_or_the_first(
    tmp_path: Path, variables: str, release: str
) -> None:
    found = default(bls_machine(tmp_path, variables=variables))
    assert found.identifier == identifier(release)
    assert found.title == f"Fedora Linux ({release}) 41 (Workstation Edition)"
    assert found.kernel.path == f"/boot/vmlinuz-{release}"
    assert [image.path for image in found.initrds] == [f"/boot/initramfs-{release}.img"]
    assert found.options == FALLBACK
    assert found.source == f"/boot/loader/entries/{identifier(release)}.conf"


def test_a_title_whose_first_word_is_an_identifier_is_none_to_fedora_s_grub(tmp_path: Path) -> None:
    title = f"Fedora Linux ({RELEASES[1]}) 41 (Workstation Edition)"
    machine = bls_machine(tmp_path, variables=f"saved_entry={title}\n")
    assert default(machine).title == title
    write(tmp_path, "/boot/loader/entries/Fedora.conf", entry(RELEASES[0]))
    with pytest.raises(RefusedError, match="there is no such entry"):
        default(machine)


def test_options_have_the_values_of_grub_s_environment(tmp_path: Path) -> None:
    write(tmp_path, "/boot/tuned.img", "image")
    kept = "kernelopts=root=UUID=1 ro\ntuned_params=mitigations=off\ntuned_initrd=/tuned.img\n"
    found = default(bls_machine(tmp_path, variables=kept))
    assert found.options == "root=UUID=1 ro mitigations=off"
    assert [image.named for image in found.initrds] == [f"/initramfs-{NEWEST}.img", "/tuned.img"]


def test_an_entry_without_options_has_fedora_s_default_ones(tmp_path: Path) -> None:
    machine = bls_machine(tmp_path, variables="default_kernelopts=root=UUID=2\n")
    path = f"/boot/loader/entries/{identifier(NEWEST)}.conf"
    write(tmp_path, path, f"linux /vmlinuz-{NEWEST}\ninitrd /initramfs-{NEWEST}.img\n")
    assert default(machine).options == "root=UUID=2"


def test_fedora_s_early_image_comes_first(tmp_path: Path) -> None:
    write(tmp_path, "/boot/ucode.img", "microcode")
    found = default(bls_machine(tmp_path, variables="early_initrd=ucode.img\n"))
    assert [image.path for image in found.initrds] == [
        "/boot/ucode.img",
        f"/boot/initramfs-{NEWEST}.img",
    ]


def test_without_a_boot_partition_entries_are_found_below_boot(tmp_path: Path) -> None:
    machine = bls_machine(tmp_path)
    write(tmp_path, "/proc/self/mountinfo", "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n")
    for release in RELEASES:
        path = f"/boot/loader/entries/{identifier(release)}.conf"
        write(tmp_path, path, entry(release).replace(" /", " /boot/"))
    assert default(machine).kernel.path == f"/boot/vmlinuz-{NEWEST}"


@pytest.mark.parametrize(
    ("modules", "release"),
    [(("blsuki.mod", "blscfg.mod"), RELEASES[0]), (("blsuki.mod",), NEWEST), ((), None)],
)
def test_whose_grub_it_is_decides_what_a_name_with_a_digit_first_means(
    tmp_path: Path, modules: tuple[str, ...], release: str | None
) -> None:
    """Upstream takes 0 for the first entry, Fedora for a name if there is one of that name."""
    machine = bls_machine(tmp_path, variables="saved_entry=0th\n", command="")
    for module in modules:
        write(tmp_path, f"/boot/grub2/x86_64-efi/{module}", "module")
    write(tmp_path, "/boot/loader/entries/0th.conf", entry(RELEASES[0]))
    if release:
        assert default(machine).kernel.path == f"/boot/vmlinuz-{release}"
    else:
        with pytest.raises(RefusedError, match="whose GRUB reads"):
            default(machine)


def edit(machine: Machine, old: str, new: str) -> None:
    text = (machine.root / CFG.lstrip("/")).read_text()
    assert old in text
    write(machine.root, CFG, text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("\nblscfg\n", "\nblscfg non-default\n", "with arguments"),
        ("\nblscfg\n", "\nblscfg\nblscfg\n", "more than once"),
        ("\nblscfg\n", "\nset tuned_params=$other\nblscfg\n", "sets tuned_params"),
    ],
)
def test_what_cannot_be_told_is_said(tmp_path: Path, old: str, new: str, words: str) -> None:
    machine = bls_machine(tmp_path)
    edit(machine, old, new)
    with pytest.raises(RefusedError, match=words) as caught:
        default(machine)
    assert caught.value.refusal.kind is RefusalKind.UNCLEAR_DEFAULT


def test_of_too_many_entries_some_are_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bls_menu, "_MOST_ENTRIES", 3)
    with pytest.raises(RefusedError, match="more than 3 entries") as caught:
        default(bls_machine(tmp_path))
    assert caught.value.refusal.remedy == "remove those of kernels that are not there"


def test_a_counter_that_may_run_out_leaves_the_default_unclear(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="depends on more"):
        default(bls_machine(tmp_path, variables="boot_counter=2\n"))


def damaged(machine: Machine, name: str, text: str) -> tuple[str, ...]:
    """Return what is said of an entry beside the default one, which is still known."""
    path = f"/boot/loader/entries/{name}"
    write(machine.root, path, text)
    found = default(machine)
    assert found.identifier == identifier(NEWEST)
    assert all(each.startswith(f"{path} ") for each in found.damaged)
    return tuple(each.removeprefix(f"{path} ") for each in found.damaged)


SAVED = f"saved_entry={identifier(NEWEST)}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "names no kernel, so that GRUB does not show it"),
        ("title A\n\nlinux /k\n", "names no kernel, so that GRUB does not show it"),
        (
            "linux /k\n\noptions lost\n",
            "goes on behind a line without a value, where GRUB stops reading",
        ),
        ("linux /k\n\n# nothing\n\n", None),
        ("efi /k.efi\n", "has a unified kernel image, which not every GRUB shows"),
        ("linux /k\noptions a; reboot\n", "says more than a kernel and its command line"),
        ("linux /k\n" * 4000, "is larger than 32768 bytes"),
        ("linux /k\n" * 500_000, "is not known: cannot read"),
    ],
    ids=range(8),
)
def test_a_damaged_entry_is_named_and_hides_no_other(
    tmp_path: Path, text: str, problem: str | None
) -> None:
    machine = bls_machine(tmp_path, variables=SAVED)
    said = damaged(machine, f"{MACHINE_ID}-9-9.conf", text)
    assert len(said) == (problem is not None)
    assert "".join(said).startswith(problem or "")


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    machine = bls_machine(tmp_path, variables=SAVED)
    (tmp_path / "boot/loader/entries/x-9-9.conf").mkdir()
    [said] = default(machine).damaged
    assert said.startswith("/boot/loader/entries/x-9-9.conf is not known: ")


def test_names_that_grub_takes_for_the_same_are_said(tmp_path: Path) -> None:
    machine = bls_machine(tmp_path, variables=SAVED)
    for name in ("a-1-01.conf", "a-1-1.conf"):
        write(tmp_path, f"/boot/loader/entries/{name}", entry(NEWEST))
    assert {*default(machine).damaged} == {
        f"/boot/loader/entries/{one} is to GRUB the same as {other}, and it shows one of them"
        for one, other in permutations(("a-1-01.conf", "a-1-1.conf"))
    }


@pytest.mark.parametrize("name", ["x.conf.old.conf", "x.conf.conf.conf", ".x.conf.y.conf"])
@pytest.mark.parametrize("modules", [("blscfg.mod",), ("blsuki.mod",), ()])
def test_a_name_that_fedora_s_grub_hangs_on_leaves_no_default(
    tmp_path: Path, name: str, modules: tuple[str, ...]
) -> None:
    """Of a name with a dot first Fedora's GRUB never reads more, and upstream's hangs nowhere."""
    saved = f"saved_entry=Fedora Linux ({NEWEST}) 41 (Workstation Edition)\n"
    machine = bls_machine(tmp_path, variables=saved, command="")
    for module in modules:
        write(tmp_path, f"/boot/grub2/x86_64-efi/{module}", "module")
    write(tmp_path, f"/boot/loader/entries/{name}", "title A\noptions quiet\n")
    assert default(machine).identifier == identifier(NEWEST)
    write(tmp_path, f"/boot/loader/entries/{name}", entry(RELEASES[0]))
    if name.startswith(".") or modules == ("blsuki.mod",):
        assert default(machine).damaged == ()
        return
    refusals = [each for each in grub.refusals(machine.host) if name in each.reason]
    assert [each.remedy for each in refusals] == ["rename that file before the next boot"]
    with pytest.raises(RefusedError, match="in the middle of its name, where Fedora's GRUB hangs"):
        default(machine)


def test_fedora_s_grub_takes_the_ending_off_twice(tmp_path: Path) -> None:
    machine = bls_machine(tmp_path, variables="saved_entry=x.conf\n")
    write(tmp_path, "/boot/loader/entries/x.conf.conf", entry(RELEASES[0]))
    with pytest.raises(RefusedError, match=r"x.conf.conf has another name in GRUB"):
        default(machine)


def test_where_the_number_of_the_default_depends_on_a_damaged_entry_both_are_said(
    tmp_path: Path,
) -> None:
    machine = bls_machine(tmp_path)
    write(tmp_path, f"/boot/loader/entries/{MACHINE_ID}-9-9.conf", "efi /k.efi\n")
    with pytest.raises(RefusedError, match=r"which number an entry has .*9-9.conf has a uni"):
        default(machine)


def test_a_variable_s_value_put_in_ten_thousand_times_is_no_command_line(tmp_path: Path) -> None:
    machine = bls_machine(tmp_path, variables=f"{SAVED}kk={'k' * 900}\n")
    text = f"linux /k\noptions {'$kk' * 10_000}\n"
    [said] = damaged(machine, f"{MACHINE_ID}-9-9.conf", text)
    assert said == "says more than a kernel and its command line"


def test_fedora_looks_below_boot_where_the_named_directory_is_missing(tmp_path: Path) -> None:
    machine = bls_machine(tmp_path, variables="blsdir=/gone\n")
    (tmp_path / "boot/boot").mkdir()
    (tmp_path / "boot/loader").rename(tmp_path / "boot/boot/loader")
    assert default(machine).source == f"/boot/boot/loader/entries/{identifier(NEWEST)}.conf"


@pytest.mark.parametrize("options", ["a; reboot", "a }\nx", "a {", "'a", "a\nlinux /other"])
def test_an_entry_that_says_more_than_a_command_line_changes_no_other(
    tmp_path: Path, options: str
) -> None:
    machine = bls_machine(tmp_path, variables=f"saved_entry={identifier(RELEASES[0])}\n")
    path = f"/boot/loader/entries/{identifier(NEWEST)}.conf"
    write(tmp_path, path, entry(NEWEST, options=options))
    assert default(machine).identifier == identifier(RELEASES[0])


@pytest.mark.parametrize("options", ["a; reboot", "a }", "a {", "'a"])
def test_of_such_an_entry_nothing_is_said(tmp_path: Path, options: str) -> None:
    machine = bls_machine(tmp_path)
    path = f"/boot/loader/entries/{identifier(NEWEST)}.conf"
    write(tmp_path, path, entry(NEWEST, options=options))
    with pytest.raises(RefusedError, match="cannot be copied"):
        default(machine)


@pytest.mark.parametrize(
    ("module", "begins"),
    [
        ("blscfg.mod", ("load_video", "set gfxpayload=keep", "insmod gzio")),
        ("blsuki.mod", ()),
    ],
)
@pytest.mark.parametrize(
    ("users", "who"), [("", "--unrestricted"), ("grub_users=root\n", "--users 'root '")]
)
def test_a_trial_does_what_grub_makes_of_the_default_entry_s_file(
    tmp_path: Path, module: str, begins: Sequence[str], users: str, who: str
) -> None:
    """It is read behind all files, so that no name of theirs makes it the default."""
    machine = bls_machine(tmp_path, variables=users, command="")
    write(tmp_path, f"/boot/grub2/x86_64-efi/{module}", "module")
    before, found = machine.tree(), default(machine)
    plan = grub.trial(machine.host, machine.request)
    head, *lines = plan.text.splitlines()[1:]
    title = f"'{found.title} (initadvisor trial t1)'"
    assert head == f"menuentry {title} {who} --id 'initadvisor-{OWNER}-trial' {{"
    assert [line.rstrip() for line in lines] == [
        *begins,
        f"linux /vmlinuz-{NEWEST} {FALLBACK} {' '.join(WORDS)}",
        "initrd /initadvisor/trial.img",
        "}",
    ]
    grub.write(machine.host, plan)
    assert default(machine) == found
    assert {*machine.tree()} - {*before} == {"boot/grub2/custom.cfg"}


def test_where_custom_cfg_is_not_read_or_boots_are_counted_nothing_is_tried(
    tmp_path: Path,
) -> None:
    machine = bls_machine(tmp_path)
    path = tmp_path / f"boot/loader/entries/{identifier(NEWEST)}.conf"
    path.rename(path.with_name(f"{MACHINE_ID}-{NEWEST}+3-1.conf"))
    [refusal] = grub.refusals(machine.host)
    assert "counts its boots" in refusal.reason
    with pytest.raises(RefusedError, match="counts its boots"):
        grub.trial(machine.host, machine.request)
    path.with_name(f"{MACHINE_ID}-{NEWEST}+3-1.conf").rename(path)
    edit(machine, "custom.cfg", "other.cfg")
    assert "does not read custom.cfg" in grub.refusals(machine.host)[0].reason
