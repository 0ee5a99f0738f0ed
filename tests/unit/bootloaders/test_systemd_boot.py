"""systemd-boot: which entry is the default, and every reason to leave it alone."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from initadvisor.bootloaders.entry import OneShotState, TrialRequest
from initadvisor.bootloaders.systemd_boot import systemd_boot
from initadvisor.bootloaders.systemd_boot.menu import entry_identifier, key_values
from initadvisor.core.errors import InitadvisorError, NeedsRootError
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fixtures.hosts import RELEASE
from tests.fixtures.images import pe
from tests.fixtures.loader_machines import (
    PARTITION,
    WORDS,
    Machine,
    armed_machine,
    systemd_boot_machine,
)
from tests.fixtures.owners import OWNER
from tests.fixtures.trees import GLOBAL, write, write_texts, write_variable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ENTRY = f"debian-{RELEASE}.conf"
OLDER = "debian-6.1.0-49-amd64.conf"
ENTRIES = "efi/loader/entries"
TRIAL = f"a-initadvisor-{OWNER}-trial.conf"
PREVIOUS = f"a-initadvisor-{OWNER}-previous.conf"


def kinds(machine: Machine) -> set[RefusalKind]:
    return {refusal.kind for refusal in systemd_boot.refusals(machine.host)}


def test_the_trials_entry_is_the_defaults_with_another_image(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    plan = systemd_boot.trial(machine.host, machine.request)
    assert plan.target == f"/efi/loader/entries/{TRIAL}"
    assert plan.text.splitlines()[1:] == [
        "# image /efi/initadvisor/trial.img",
        "title Debian GNU/Linux 12 (initadvisor trial t1)",
        f"version {RELEASE}",
        "machine-id 0123",
        f"linux /debian/{RELEASE}/linux",
        "initrd /ucode.img",
        "initrd /initadvisor/trial.img",
        "options root=UUID=1234 ro quiet initadvisor.trial=t1 panic=30",
    ]


@pytest.mark.parametrize(
    ("variables", "loader_conf", "expected"),
    [
        ({}, f"default {OLDER}\n", OLDER),
        ({}, f"default\t{OLDER.upper()}\n", OLDER),
        ({}, f'timeout 3\ndefault "{OLDER}"\n# default x\n', OLDER),
        ({}, "default debian-*\n", ENTRY),
        ({}, "default debian-*49*\n", OLDER),
        ({}, f"default {ENTRY}\ndefault {OLDER}\n", OLDER),
        ({}, f"default {ENTRY}\npreferred {OLDER}\n", OLDER),
        ({"LoaderEntryDefault": OLDER}, f"default {ENTRY}\n", OLDER),
        ({"LoaderEntryDefault": "gone.conf"}, f"default {OLDER}\n", OLDER),
        ({"LoaderEntryDefault": ENTRY, "LoaderEntryPreferred": OLDER}, "", OLDER),
    ],
)
def test_the_default_is_what_systemd_boot_takes(
    tmp_path: Path, variables: dict[str, str], loader_conf: str, expected: str
) -> None:
    machine = systemd_boot_machine(tmp_path, loader_conf=loader_conf)
    write_texts(tmp_path, variables)
    assert systemd_boot.default_entry(machine.host).identifier == expected


@pytest.mark.parametrize("form", ["[{}, {}]", "{}\n{}\n", "\n[{},{}]\n"])
def test_several_entries_are_taken_in_bootctls_order(tmp_path: Path, form: str) -> None:
    """Of systemd 252, and of later versions, which print one array."""
    machine = systemd_boot_machine(tmp_path)
    machine.programs.listed = form.format(f'{{"id":"{OLDER}"}}', f'{{"id":"{ENTRY}"}}')
    assert systemd_boot.default_entry(machine.host).identifier == OLDER


def _default_is(value: str) -> Callable[[Machine], object]:
    return lambda machine: write(machine.root, "/efi/loader/loader.conf", f"default {value}\n")


def _variable_is(name: str, value: str) -> Callable[[Machine], object]:
    return lambda machine: write_texts(machine.root, {name: value})


def _unordered(machine: Machine) -> None:
    machine.programs.listed = "Unknown output format."


def _counted(machine: Machine) -> None:
    directory = machine.root / ENTRIES
    (directory / ENTRY).rename(directory / f"debian-{RELEASE}+2-1.conf")


def _twice(machine: Machine) -> None:
    machine.programs.boot = "/boot"
    write(machine.root, f"/boot/loader/entries/{ENTRY}", "title Other\nlinux /x\n")


def _other_esp(machine: Machine) -> None:
    write_texts(machine.root, {"LoaderDevicePartUUID": PARTITION.replace("1", "9")})


def _foreign_file(machine: Machine) -> None:
    write(machine.root, f"/{ENTRIES}/{TRIAL}", "title Mine\nlinux /x\n")


def _linked_file(machine: Machine) -> None:
    (machine.root / ENTRIES / TRIAL).symlink_to(ENTRY)


def _no_kernel(machine: Machine) -> None:
    (machine.root / f"efi/debian/{RELEASE}/linux").unlink()


def _no_name(machine: Machine) -> None:
    path = machine.root / ENTRIES / ENTRY
    path.write_bytes(path.read_bytes().replace(b"/linux\n", b"/linux\0\n"))


def _no_bootctl(machine: Machine) -> None:
    machine.programs.programs = ()


def _shell(machine: Machine) -> None:
    write(machine.root, f"/{ENTRIES}/shell.conf", "title Shell\nefi /shell.efi\n")
    write(machine.root, "/efi/shell.efi", b"MZ" + bytes(200))
    _default_is("shell.conf")(machine)


def _not_linux(machine: Machine) -> None:
    write(machine.root, f"/{ENTRIES}/none.conf", "title None\n")
    _default_is("none.conf")(machine)


def _gone_variables(machine: Machine) -> None:
    write_variable(machine.root, "LoaderEntryOneShot", b"odd")


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (_default_is("gone-*"), RefusalKind.NO_DEFAULT, "could become it"),
        (_default_is("@saved"), RefusalKind.TRIAL_MAY_BECOME_DEFAULT, "booted last"),
        (_default_is("*"), RefusalKind.TRIAL_MAY_BECOME_DEFAULT, "fits an entry of"),
        (_default_is("A-*"), RefusalKind.TRIAL_MAY_BECOME_DEFAULT, "fits an entry of"),
        (_default_is(PREVIOUS), RefusalKind.TRIAL_MAY_BECOME_DEFAULT, "fits an entry of"),
        (
            _variable_is("LoaderEntryDefault", "@saved"),
            RefusalKind.TRIAL_MAY_BECOME_DEFAULT,
            "LoaderEntryDefault",
        ),
        (_unordered, RefusalKind.UNCLEAR_DEFAULT, "several entries"),
        (_counted, RefusalKind.UNCLEAR_DEFAULT, "still counts"),
        (_twice, RefusalKind.UNCLEAR_DEFAULT, "several entries"),
        (_other_esp, RefusalKind.OTHER_PARTITION, "not from /efi"),
        (_foreign_file, RefusalKind.FOREIGN_ENTRY, "not written by initadvisor"),
        (_linked_file, RefusalKind.FOREIGN_ENTRY, "not written by initadvisor"),
        (_no_kernel, RefusalKind.UNCLEAR_DEFAULT, "is not on its partition"),
        (_no_name, RefusalKind.UNCLEAR_DEFAULT, "is not on its partition"),
        (_no_bootctl, RefusalKind.MISSING_PROGRAM, "bootctl is not installed"),
        (_shell, RefusalKind.UNCLEAR_DEFAULT, "no unified kernel image"),
        (_not_linux, RefusalKind.UNCLEAR_DEFAULT, "starts no kernel"),
        (_gone_variables, RefusalKind.UNREADABLE, "no text in UTF-16"),
        (
            _variable_is("LoaderEntryOneShot", OLDER),
            RefusalKind.PENDING_ONE_SHOT,
            "selected by somebody else",
        ),
    ],
)
def test_every_reason_is_told_with_what_to_do_and_nothing_is_armed(
    tmp_path: Path, spoil: Callable[[Machine], object], kind: RefusalKind, words: str
) -> None:
    machine = systemd_boot_machine(tmp_path)
    plan = systemd_boot.trial(machine.host, machine.request)
    spoil(machine)
    before = machine.tree()
    found = [refusal for refusal in systemd_boot.refusals(machine.host) if refusal.kind is kind]
    assert len(found) == 1
    assert words in found[0].reason
    assert found[0].remedy
    with pytest.raises(RefusedError):
        systemd_boot.arm(machine.host, plan)
    assert machine.tree() == before


def test_nothing_that_endangers_the_machine_can_be_overridden(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path, loader_conf="default @saved\n")
    plan = systemd_boot.trial(systemd_boot_machine(tmp_path / "sound").host, machine.request)
    with pytest.raises(RefusedError) as caught:
        systemd_boot.arm(machine.host, plan, accepted=set(RefusalKind))
    assert caught.value.refusal.kind is RefusalKind.TRIAL_MAY_BECOME_DEFAULT


def test_somebody_elses_selection_is_left_alone(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    armed_machine(systemd_boot, machine)
    write_texts(tmp_path, {"LoaderEntryOneShot": OLDER})
    assert systemd_boot.armed(machine.host).state is OneShotState.OTHERS
    assert not systemd_boot.disarm(machine.host)
    assert systemd_boot.remove(machine.host)
    assert systemd_boot.armed(machine.host).identifier == OLDER


def test_somebody_elses_file_of_our_name_is_not_removed(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    _foreign_file(machine)
    with pytest.raises(RefusedError, match="not written by initadvisor"):
        systemd_boot.remove(machine.host)


def test_entries_may_be_on_a_partition_of_their_own(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    machine.programs.boot = "/boot"
    for directory in ("loader/entries", "debian", "initadvisor", "ucode.img"):
        (tmp_path / "boot" / directory).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(tmp_path / "efi" / directory, tmp_path / "boot" / directory)
    mountinfo = tmp_path / "proc/self/mountinfo"
    mountinfo.write_text(mountinfo.read_text() + "32 1 8:3 / /boot rw - vfat /dev/sda3 rw\n")
    request = TrialRequest(
        trial="t1",
        replaces=f"/boot/debian/{RELEASE}/initrd.img",
        image="/boot/initadvisor/trial.img",
        parameters=WORDS,
    )
    plan = systemd_boot.trial(machine.host, request)
    assert plan.target == f"/boot/loader/entries/{TRIAL}"
    before = machine.tree()
    systemd_boot.write(machine.host, plan)
    assert machine.tree().keys() - before.keys() == {plan.target.lstrip("/")}
    on_esp = TrialRequest(
        trial="t1", replaces=request.replaces, image="/efi/loader/loader.conf", parameters=WORDS
    )
    with pytest.raises(InitadvisorError, match="looks for images in /boot"):
        systemd_boot.trial(machine.host, on_esp)


def unified(
    tmp_path: Path, machine: Machine, *, stub: int = 252, words: bytes = b"root=UUID=1 quiet"
) -> None:
    """Have the default be a unified kernel image, and the candidate another one."""
    magic = f"#### LoaderInfo: systemd-stub {stub}.1 ####\0".encode()
    sections = [(".linux", b"MZ kernel"), (".cmdline", words + b"\n\0"), (".initrd", b"image")]
    image = pe([(".sdmagic", magic), *sections])
    write(tmp_path, "/efi/EFI/Linux/arch.efi", image)
    write(tmp_path, "/efi/initadvisor/trial.efi", image)
    _default_is("arch.efi")(machine)
    machine.installed = "/efi/EFI/Linux/arch.efi"
    machine.candidate = "/efi/initadvisor/trial.efi"


def test_a_unified_kernel_image_is_tried_with_its_own_command_line(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    unified(tmp_path, machine)
    default = systemd_boot.default_entry(machine.host)
    assert default.is_uki
    assert default.options == "root=UUID=1 quiet"
    assert systemd_boot.refusals(machine.host) == ()
    armed_machine(systemd_boot, machine)
    written = key_values((tmp_path / ENTRIES / TRIAL).read_text())
    assert written.all("efi") == ("/initadvisor/trial.efi",)
    assert written.all("linux", "initrd") == ()
    assert written.last("options") == "root=UUID=1 quiet initadvisor.trial=t1 panic=30"


def _enforcing(machine: Machine) -> None:
    write_variable(machine.root, "SecureBoot", b"\1", GLOBAL)
    write_variable(machine.root, "SetupMode", b"\0", GLOBAL)


def _setting_up(machine: Machine) -> None:
    write_variable(machine.root, "SecureBoot", b"\1", GLOBAL)
    write_variable(machine.root, "SetupMode", b"\1", GLOBAL)


def _addons(machine: Machine) -> None:
    (machine.root / "efi/EFI/Linux/arch.efi.extra.d").mkdir()


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_enforcing, {RefusalKind.SIGNED_UKI}),
        (_setting_up, set()),
        (_addons, set()),
    ],
)
def test_a_unified_kernel_image_that_takes_no_other_options_is_refused(
    tmp_path: Path, spoil: Callable[[Machine], object], expected: set[RefusalKind]
) -> None:
    machine = systemd_boot_machine(tmp_path)
    unified(tmp_path, machine)
    spoil(machine)
    assert kinds(machine) == expected


def test_with_secure_boot_on_a_trial_s_words_are_for_an_addon(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    unified(tmp_path, machine, stub=254)
    _enforcing(machine)
    assert kinds(machine) == set()
    plan = systemd_boot.trial(machine.host, machine.request)
    assert plan.needs_addon
    assert plan.options == "root=UUID=1 quiet initadvisor.trial=t1 panic=30"
    assert key_values(plan.text).all("efi") == ("/initadvisor/trial.efi",)
    assert key_values(plan.text).all("options") == ()


def test_an_addon_s_words_must_not_become_init_s(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    unified(tmp_path, machine, stub=257, words=b"root=UUID=1 -- single")
    _enforcing(machine)
    with pytest.raises(RefusedError, match="hands words over to init"):
        systemd_boot.trial(machine.host, machine.request)


def test_secure_boot_does_not_keep_an_image_of_its_own_from_being_tried(tmp_path: Path) -> None:
    machine = systemd_boot_machine(tmp_path)
    _enforcing(machine)
    assert kinds(machine) == set()


@pytest.mark.usefixtures("ordinary_user")
def test_what_only_root_may_read_is_for_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = systemd_boot_machine(tmp_path)
    opened = os.open

    def refuse(path: Path, flags: int, mode: int = 0o777) -> int:
        if "/loader/" in str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, flags, mode)

    with monkeypatch.context() as patch:
        patch.setattr("os.open", refuse)
        with pytest.raises(NeedsRootError):
            systemd_boot.refusals(machine.host)


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("Arch.conf", "arch.conf"),
        ("arch+3.conf", "arch.conf"),
        ("arch+3-1.efi", "arch.efi"),
        ("arch-6.1+deb12.conf", "arch-6.1+deb12.conf"),
    ],
)
def test_boot_counters_are_no_part_of_an_identifier(name: str, identifier: str) -> None:
    assert entry_identifier(name) == identifier


def test_lines_are_read_as_systemd_boot_reads_them() -> None:
    text = (
        '\ttitle   A  B \r\n#options no\n\n  options\troot="LABEL=x" rw\nsort-key\noptions "a b"\n'
    )
    assert key_values(text).lines == (
        ("title", "A  B"),
        ("options", 'root="LABEL=x" rw'),
        ("options", "a b"),
    )
