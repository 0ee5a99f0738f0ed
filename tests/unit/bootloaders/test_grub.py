"""GRUB: which entry is the default, and every reason to leave it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.bootloaders.entry import EntryKind, OneShotOutcome, OneShotState, one_shot_outcome
from initadvisor.bootloaders.grub import custom as grub_custom
from initadvisor.bootloaders.grub import grub
from initadvisor.bootloaders.grub.script import ScriptError, statements
from initadvisor.core.errors import UnsafeError
from initadvisor.core.refusals import RefusalKind, RefusedError
from tests.fakes.boot_programs import block
from tests.fixtures.loader_machines import Machine, armed_machine, grub_machine
from tests.fixtures.operations import grows_in_proportion
from tests.fixtures.owners import OWNER
from tests.fixtures.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import SupportsIndex

UUID = "3f0c2a51-6f4e-4f0e-9d0b-5f5b5a2c7e11"
SIMPLE = f"gnulinux-simple-{UUID}"
ADVANCED = f"gnulinux-advanced-{UUID}"
OLDER = f"gnulinux-6.1.0-49-amd64-advanced-{UUID}"
CFG = "boot/grub/grub.cfg"


def edit(old: str, new: str) -> Callable[[Machine], object]:
    """Return what replaces a text in grub.cfg."""

    def spoil(machine: Machine) -> None:
        text = (machine.root / CFG).read_text()
        assert old in text
        (machine.root / CFG).write_text(text.replace(old, new))

    return spoil


def variables(text: str) -> Callable[[Machine], object]:
    """Return what writes the environment block anew."""
    return lambda machine: write(machine.root, "/boot/grub/grubenv", block(text))


def probe(target: str, printed: str) -> Callable[[Machine], object]:
    """Return what has grub-probe print something else."""
    return lambda machine: machine.programs.probed.update({target: printed})


def mapped(*uuids: str) -> Callable[[Machine], object]:
    """Return what puts /boot on mappings, each on the next, as the kernel shows them."""

    def spoil(machine: Machine) -> None:
        directory = "/sys/dev/block/8:3"
        for number, uuid in enumerate(uuids):
            write(machine.root, f"{directory}/dm/uuid", f"{uuid}\n")
            directory += f"/slaves/dm-{number}"

    return spoil


def custom(text: str) -> Callable[[Machine], object]:
    """Return what writes a custom.cfg of somebody's."""
    return lambda machine: write(machine.root, "/boot/grub/custom.cfg", text)


def default_is(value: str) -> Callable[[Machine], object]:
    """Return what sets GRUB_DEFAULT."""
    return edit('set default="0"', f'set default="{value}"')


def default_is_of(value: str, head: str) -> Callable[[Machine], object]:
    """Return what sets GRUB_DEFAULT, and how the default entry begins."""

    def spoil(machine: Machine) -> None:
        default_is(value)(machine)
        edit("menuentry 'Debian GNU/Linux' ", head)(machine)

    return spoil


def _no_programs(machine: Machine) -> None:
    machine.programs.programs = ()


def _no_menu(machine: Machine) -> None:
    (machine.root / CFG).unlink()


def _no_block(machine: Machine) -> None:
    (machine.root / "boot/grub/grubenv").unlink()


def _damaged_block(machine: Machine) -> None:
    (machine.root / "boot/grub/grubenv").write_text("")


def _two_menus(machine: Machine) -> None:
    write(machine.root, "/boot/grub2/grub.cfg", "")


def _signed(machine: Machine) -> None:
    write(machine.root, "/boot/grub/grub.cfg.sig", "")


def _no_kernel(machine: Machine) -> None:
    (machine.root / "boot/vmlinuz-6.1.0-50-amd64").unlink()


def test_the_trials_entry_finds_its_disk_as_the_default_does(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    plan = grub.trial(machine.host, machine.request)
    note, *lines = plan.text.splitlines()
    assert note == "# image /boot/initadvisor/trial.img"
    assert lines[0] == (
        "menuentry 'Debian GNU/Linux (initadvisor trial t1)' --class debian --class gnu-linux "
        f"--class gnu --class os --id 'initadvisor-{OWNER}-trial' {{"
    )
    original = (tmp_path / CFG).read_text().splitlines()
    start = next(i for i, line in enumerate(original) if line.startswith("menuentry"))
    changed = [
        (old, new) for old, new in zip(original[start + 1 :], lines[1:], strict=False) if old != new
    ]
    assert [new for _, new in changed] == [
        f"\tlinux\t/vmlinuz-6.1.0-50-amd64 root=UUID={UUID} ro console=ttyS0 quiet "
        "initadvisor.trial=t1 panic=30",
        "\tinitrd\t/initadvisor/trial.img",
    ]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("0", SIMPLE),
        ("Debian GNU/Linux", SIMPLE),
        (SIMPLE, SIMPLE),
        ("1>0", f"{ADVANCED}>gnulinux-6.1.0-50-amd64-advanced-{UUID}"),
        ("1>2", f"{ADVANCED}>{OLDER}"),
        ("00", SIMPLE),
        (" \t0", SIMPLE),
        ("0X1", SIMPLE),
        ("0 Debian", SIMPLE),
        ("1.9 old>0x2.6", f"{ADVANCED}>{OLDER}"),
        ("001>02", f"{ADVANCED}>{OLDER}"),
        (f"{ADVANCED}>{OLDER}", f"{ADVANCED}>{OLDER}"),
        (
            "Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.1.0-49-amd64",
            f"{ADVANCED}>{OLDER}",
        ),
    ],
)
def test_the_default_is_the_entry_that_grub_would_take(
    tmp_path: Path, wanted: str, expected: str
) -> None:
    numbered, saved = (
        grub_machine(tmp_path / "a"),
        grub_machine(tmp_path / "b", configuration="saved.cfg", variables=f"saved_entry={wanted}"),
    )
    default_is(wanted)(numbered)
    assert grub.default_entry(numbered.host).identifier == expected
    assert grub.default_entry(saved.host).identifier == expected
    assert grub.refusals(saved.host) == ()


@pytest.mark.parametrize(
    "setting",
    [
        variables("opts=quiet\n"),
        edit('set default="0"', 'set default="0"\nset opts=quiet'),
        edit('set default="0"', 'set default="0"\nopts="quiet"'),
        edit('set default="0"', 'set default="0"\nif true; then\n  set opts=quiet\nfi'),
    ],
)
@pytest.mark.parametrize("written", ["$opts", "${opts}", '"a $opts b"'])
def test_what_sets_a_variable_of_the_command_line_belongs_to_it(
    tmp_path: Path, setting: Callable[[Machine], object], written: str
) -> None:
    machine = grub_machine(tmp_path)
    edit(" ro console=ttyS0 quiet", f" ro {written}")(machine)
    before = grub.default_entry(machine.host)
    variables("other=1\n")(machine)
    assert grub.default_entry(machine.host) == before
    setting(machine)
    after = grub.default_entry(machine.host)
    assert after.options == before.options
    assert after.command_line != before.command_line


def test_a_trial_does_not_save_itself_as_the_default(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path, configuration="saved.cfg", variables=f"saved_entry={SIMPLE}")
    assert "savedefault" in (tmp_path / CFG).read_text()
    assert "savedefault" not in grub.trial(machine.host, machine.request).text


def test_who_may_boot_the_default_may_boot_the_trial(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    edit("--class os $menu", "--class os --unrestricted --users 'a b' $menu")(machine)
    head = grub.trial(machine.host, machine.request).text.splitlines()[1]
    assert f"--class os --unrestricted --users 'a b' --id 'initadvisor-{OWNER}-trial'" in head


def test_microcode_is_loaded_before_the_candidate(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    write(tmp_path, "/boot/intel-ucode.img", "microcode")
    edit("initrd\t/", "initrd\t/intel-ucode.img /")(machine)
    plan = grub.trial(machine.host, machine.request)
    assert "\tinitrd\t/intel-ucode.img /initadvisor/trial.img\n" in plan.text


def test_boot_may_be_on_the_root_file_system(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    write(tmp_path, "/proc/self/mountinfo", "20 1 8:2 / / rw - ext4 /dev/sda2 rw\n")
    for command in ("linux", "initrd"):
        edit(f"{command}\t/", f"{command}\t/boot/")(machine)
    plan = grub.trial(machine.host, machine.request)
    assert plan.default.kernel.path == "/boot/vmlinuz-6.1.0-50-amd64"
    assert "\tinitrd\t/boot/initadvisor/trial.img\n" in plan.text


def test_what_is_for_init_stays_behind_our_words(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    edit("ro console=ttyS0 quiet", 'ro "dyndbg=file a +p" $vt_handoff -- single')(machine)
    plan = grub.trial(machine.host, machine.request)
    assert (
        'ro "dyndbg=file a +p" $vt_handoff initadvisor.trial=t1 panic=30 -- single\n' in plan.text
    )


@pytest.mark.parametrize(
    ("spoil", "kind", "words"),
    [
        (_no_programs, RefusalKind.MISSING_PROGRAM, "grub-editenv is not installed"),
        (_no_menu, RefusalKind.UNKNOWN_LOADER, "there is no grub.cfg"),
        (_two_menus, RefusalKind.UNKNOWN_LOADER, "which one GRUB reads"),
        (_signed, RefusalKind.SIGNED_CONFIGURATION, "is signed"),
        (
            edit("### BEGIN /etc/grub.d/10_linux ###", "set check_signatures=enforce"),
            RefusalKind.SIGNED_CONFIGURATION,
            "check signatures",
        ),
        (_no_block, RefusalKind.NO_ONE_SHOT, "remembers nothing"),
        (_damaged_block, RefusalKind.UNREADABLE, "invalid environment block"),
        (probe("abstraction", "lvm \n"), RefusalKind.NO_ONE_SHOT, "is on lvm"),
        (mapped("LVM-0123"), RefusalKind.NO_ONE_SHOT, "is on lvm"),
        (mapped("CRYPT-LUKS1-0123-boot", "LVM-0123"), RefusalKind.NO_ONE_SHOT, "is on lvm"),
        (probe("abstraction", "diskfilter mdraid1x\n"), RefusalKind.NO_ONE_SHOT, "diskfilter"),
        (probe("fs", "btrfs\n"), RefusalKind.NO_ONE_SHOT, "is on btrfs"),
        (probe("fs", "zfs\n"), RefusalKind.NO_ONE_SHOT, "is on zfs"),
        (probe("fs", "\n"), RefusalKind.UNREADABLE, "does not tell"),
        (
            edit("### BEGIN /etc/grub.d/10_linux ###", "insmod blscfg\nblscfg"),
            RefusalKind.UNCLEAR_DEFAULT,
            "/boot/loader/entries is not there",
        ),
        (edit("save_env next_entry", "true"), RefusalKind.NO_ONE_SHOT, "forget next_entry"),
        (edit("/custom.cfg", "/other.cfg"), RefusalKind.NO_ONE_SHOT, "does not read custom.cfg"),
        (variables("next_entry=1>2"), RefusalKind.PENDING_ONE_SHOT, "1>2 was selected"),
        (variables("prev_saved_entry=0"), RefusalKind.PENDING_ONE_SHOT, "prev_saved_entry"),
        (default_is("${saved_entry}"), RefusalKind.NO_DEFAULT, "none is saved"),
        (default_is(""), RefusalKind.NO_DEFAULT, "not known before"),
        (default_is("${mine}"), RefusalKind.NO_DEFAULT, "not known before"),
        (default_is("9"), RefusalKind.UNCLEAR_DEFAULT, "not so many entries"),
        (default_is("6.1 kernel"), RefusalKind.UNCLEAR_DEFAULT, "not so many entries"),
        (default_is("9" * 5000), RefusalKind.UNCLEAR_DEFAULT, "not so many entries"),
        (default_is("0x"), RefusalKind.UNCLEAR_DEFAULT, "no such entry"),
        (default_is("-0"), RefusalKind.UNCLEAR_DEFAULT, "no such entry"),
        (default_is("\u0661"), RefusalKind.UNCLEAR_DEFAULT, "no such entry"),
        (default_is("1>"), RefusalKind.UNCLEAR_DEFAULT, "no such entry"),
        (
            default_is_of("1 old", "menuentry '1 old' "),
            RefusalKind.UNCLEAR_DEFAULT,
            "GRUB and Fedora's GRUB take that for different entries",
        ),
        (
            default_is_of(ADVANCED, f"menuentry {ADVANCED} "),
            RefusalKind.UNCLEAR_DEFAULT,
            "GRUB and Fedora's GRUB take that for different entries",
        ),
        (
            default_is_of("A", 'menuentry "$b" {\ntrue\n}\nmenuentry A '),
            RefusalKind.UNCLEAR_DEFAULT,
            "what an entry before it is called",
        ),
        (default_is("1"), RefusalKind.UNCLEAR_DEFAULT, "a submenu"),
        (default_is("0>1"), RefusalKind.UNCLEAR_DEFAULT, "past an entry"),
        (default_is("1>nothing"), RefusalKind.UNCLEAR_DEFAULT, "no such entry"),
        (
            edit("menuentry 'Debian GNU/Linux' ", "if true; then\nmenuentry 'A' {\ntrue\n}\nfi\n#"),
            RefusalKind.UNCLEAR_DEFAULT,
            "is not understood",
        ),
        (
            edit(
                "menuentry 'Debian GNU/Linux' ",
                "if true; then\nmenuentry 'A' {\ntrue\n}\nfi\nmenuentry 'Debian GNU/Linux' ",
            ),
            RefusalKind.UNCLEAR_DEFAULT,
            "depends on what GRUB finds",
        ),
        (
            edit(
                'if [ x"${feature_menuentry_id}"', 'set default=1\nif [ x"${feature_menuentry_id}"'
            ),
            RefusalKind.UNCLEAR_DEFAULT,
            "depends on more",
        ),
        (edit("\tload_video\n", "\tchainloader +1\n"), RefusalKind.UNCLEAR_DEFAULT, "chainloader"),
        (edit("\tlinux\t", "\tmultiboot2\t"), RefusalKind.UNCLEAR_DEFAULT, "multiboot2"),
        (edit("\tlinux\t", "\tlinux\t$dir"), RefusalKind.UNCLEAR_DEFAULT, "is not found below"),
        (
            edit("\tinitrd\t", "\tif true; then\ninitrd\t/a\nfi\ntrue "),
            RefusalKind.UNCLEAR_DEFAULT,
            "depends on a condition",
        ),
        (
            edit("\tload_video\n", "\tif true; then savedefault; fi\n"),
            RefusalKind.UNCLEAR_DEFAULT,
            "saves itself",
        ),
        (_no_kernel, RefusalKind.UNCLEAR_DEFAULT, "is not found below /boot"),
        (custom("set default=2\n"), RefusalKind.UNCLEAR_DEFAULT, "itself decides"),
        (custom("if true; then\nunset next_entry\nfi\n"), RefusalKind.UNCLEAR_DEFAULT, "itself"),
        (custom("menuentry 'x\n"), RefusalKind.UNCLEAR_DEFAULT, "is not understood"),
        (
            custom(f"menuentry a --id initadvisor-{OWNER}-trial {{\ntrue\n}}\n"),
            RefusalKind.FOREIGN_ENTRY,
            "not ours",
        ),
        (
            custom(f"menuentry a --id initadvisor-{OWNER}-previous {{\ntrue\n}}\n"),
            RefusalKind.FOREIGN_ENTRY,
            "not ours",
        ),
        (
            custom(f"### BEGIN initadvisor-{OWNER}-trial\n"),
            RefusalKind.FOREIGN_ENTRY,
            "was changed",
        ),
        (
            custom(f"### END initadvisor-{OWNER}-previous ###\n"),
            RefusalKind.FOREIGN_ENTRY,
            "was changed",
        ),
    ],
)
def test_every_reason_is_told_with_what_to_do_and_nothing_is_armed(
    tmp_path: Path, spoil: Callable[[Machine], object], kind: RefusalKind, words: str
) -> None:
    machine = grub_machine(tmp_path)
    plan = grub.trial(machine.host, machine.request)
    spoil(machine)
    before = machine.tree()
    found = [
        refusal
        for refusal in grub.refusals(machine.host)
        if refusal.kind is kind and words in refusal.reason
    ]
    assert found
    assert all(refusal.remedy for refusal in found)
    with pytest.raises(RefusedError):
        grub.arm(machine.host, plan)
    assert machine.tree() == before


def test_a_grub_that_forgets_nothing_is_found_out_and_can_be_disarmed(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    armed_machine(grub, machine)
    now = grub.armed(machine.host)  # there was a boot, but GRUB could not write
    assert one_shot_outcome(now, armed_in_boot="a", boot="b") is OneShotOutcome.STUCK
    assert grub.disarm(machine.host)
    assert machine.reboots() is None


def test_somebody_elses_selection_is_left_alone(tmp_path: Path) -> None:
    machine = grub_machine(tmp_path)
    armed_machine(grub, machine)
    variables("next_entry=1")(machine)
    assert grub.armed(machine.host).state is OneShotState.OTHERS
    assert not grub.disarm(machine.host)
    assert grub.remove(machine.host)
    assert grub.armed(machine.host).identifier == "1"


@pytest.mark.parametrize("how", ["symbolic link", "hard link"])
def test_a_custom_cfg_that_others_share_is_not_replaced(tmp_path: Path, how: str) -> None:
    machine = grub_machine(tmp_path)
    shared, path = tmp_path / "boot/shared.cfg", tmp_path / "boot/grub/custom.cfg"
    shared.write_text("# mine\n")
    if how == "hard link":
        path.hardlink_to(shared)
    else:
        path.symlink_to(shared)
    with pytest.raises(UnsafeError, match=how):
        grub.write(machine.host, grub.trial(machine.host, machine.request))
    assert shared.read_text() == "# mine\n"


FOREIGN = st.none() | st.text(alphabet=st.sampled_from("#a{}\n '\r\udcff"), max_size=12)


@given(
    foreign=FOREIGN,
    kind=st.sampled_from(EntryKind),
    first=st.sampled_from(["a\n", "a\n\nb\n"]),
    second=st.just("c\n"),
)
def test_a_block_comes_and_goes_without_a_trace(
    foreign: str | None, kind: EntryKind, first: str, second: str
) -> None:
    content = grub_custom.joined(foreign, first, OWNER, kind)
    assert grub_custom.split(content, OWNER, kind) == grub_custom.Custom(rest=foreign, block=first)
    again = grub_custom.joined(grub_custom.split(content, OWNER, kind).rest, second, OWNER, kind)
    assert grub_custom.split(again, OWNER, kind) == grub_custom.Custom(rest=foreign, block=second)


@given(
    foreign=FOREIGN,
    steps=st.lists(
        st.tuples(st.sampled_from(EntryKind), st.sampled_from([None, "a\n", "b\nc\n"])), max_size=6
    ),
)
def test_blocks_of_both_kinds_come_and_go_in_any_order(
    foreign: str | None, steps: list[tuple[EntryKind, str | None]]
) -> None:
    """Whatever is written or removed, each block is its own and the rest is as it was."""
    content = foreign
    expected: dict[EntryKind, str | None] = dict.fromkeys(EntryKind)
    for kind, text in [*steps, *((kind, None) for kind in EntryKind)]:
        rest = grub_custom.split(content, OWNER, kind).rest
        content = rest if text is None else grub_custom.joined(rest, text, OWNER, kind)
        expected[kind] = text
        assert {
            each: grub_custom.split(content, OWNER, each).block for each in EntryKind
        } == expected
        assert grub_custom.without_ours(content, OWNER) == foreign
    assert content == foreign


@given(
    foreign=FOREIGN,
    kinds=st.permutations(list(EntryKind)),
    before=st.sampled_from(["", "# x\n"]),
    after=st.sampled_from(["", "# y\n"]),
)
def test_what_others_wrote_around_the_blocks_stays(
    foreign: str | None, kinds: list[EntryKind], before: str, after: str
) -> None:
    """A line that had no end keeps the one it got where a line was added behind it."""
    content = foreign
    for kind in kinds:
        content = grub_custom.joined(content, "a\n", OWNER, kind)
    left = grub_custom.without_ours(f"{before}{content}{after}", OWNER)
    ended = "\n" if foreign and not foreign.endswith("\n") and after else ""
    assert (left or "") == before + (foreign or "") + ended + after


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        ('"a \\"b\\" \\$c"', 'a "b" $c'),
        ("a\\ b", "a b"),
        ("'it'\\''s'", "it's"),
        ("'$x'", "$x"),
        ("$x", None),
        ('"${x}"', None),
        ("a'b'\"c\"", "abc"),
    ],
)
def test_quotes_are_read_as_grub_reads_them(text: str, literal: str | None) -> None:
    words = statements(f"linux {text}\n")[0].words
    assert len(words) == 2
    assert words[1].literal == literal


@pytest.mark.parametrize("text", ["menuentry 'x' {\n", "}\n", "echo 'x\n", 'echo "x\n'])
def test_a_script_that_is_none_is_not_guessed_at(text: str) -> None:
    with pytest.raises(ScriptError):
        statements(text)


def test_statements_know_where_they_are() -> None:
    found = statements(
        "if a; then b; else c\nfi\nmenuentry x {\n d;e # f\n if g; then\n h\n fi; i \\\n j\n}\nk\n"
    )
    assert [(each.command, len(each.blocks), each.conditional) for each in found] == [
        ("a", 0, True),
        ("b", 0, True),
        ("c", 0, True),
        ("menuentry", 0, False),
        ("d", 1, False),
        ("e", 1, False),
        ("g", 1, True),
        ("h", 1, True),
        ("i", 1, False),
        ("k", 0, False),
    ]
    assert [word.raw for word in found[8].words] == ["i", "j"]


@pytest.mark.parametrize("opening", ["menuentry x {\n", "submenu x { ", "a { b; c { "])
@pytest.mark.parametrize("count", [200, 5_000, 100_000])
def test_blocks_inside_of_too_many_others_are_refused(opening: str, count: int) -> None:
    with pytest.raises(ScriptError, match="more than 100 blocks inside of one another"):
        statements(opening * count + "}\n" * (opening.count("{") * count))


def test_a_hundred_blocks_inside_of_one_another_are_read() -> None:
    found = statements("a {\n" * 100 + "b\n" + "}\n" * 100)
    assert len(found) == 101
    assert len(found[-1].blocks) == 100
    assert found[0].body == (3, len("a {\n" * 100 + "b\n" + "}\n" * 100) - 2)


@pytest.mark.parametrize(
    "piece", ["a { b; }\n", "if a; then\n", "a ${b\n", "# {\n", "a '{' \"}\"\n"]
)
def test_a_script_is_read_in_work_that_grows_with_it(piece: str) -> None:
    def work(count: int) -> Callable[[], object]:
        return lambda: statements(piece * count)

    assert grows_in_proportion(work, few=200)


@pytest.mark.parametrize("kind", EntryKind)
@pytest.mark.parametrize("mark", ["BEGIN", "END", "both"])
def test_a_file_full_of_our_marks_is_refused_before_blocks_are_looked_for(
    kind: EntryKind, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind each beginning an end would be looked for: 4,000 times in up to 4,000 lines."""
    whole = grub_custom.joined(None, "", OWNER, kind)
    begin, end = whole.splitlines(keepends=True)
    content = {"BEGIN": begin, "END": end, "both": whole}[mark] * 4_000
    looked_at: list[str] = []
    monkeypatch.setattr(grub_custom, "blocks", looked_at.append)
    with pytest.raises(RefusedError, match="was changed by somebody else"):
        grub_custom.split(content, OWNER, kind)
    assert looked_at == []


def test_blocks_of_many_systems_are_read_in_work_that_grows_with_them() -> None:
    def work(count: int) -> Callable[[], object]:
        owners = [f"{number:08x}" for number in range(count)]
        blocks = [grub_custom.joined(None, "a\n", owner, EntryKind.TRIAL) for owner in owners]
        return lambda: grub_custom.joined("".join(blocks), "b\n", OWNER, EntryKind.TRIAL)

    assert grows_in_proportion(work, few=50)


class Counted(str):
    """A text that counts the characters that are copied out of it and of what comes of it."""

    __slots__ = ()
    copied: ClassVar[int]

    def __getitem__(self, key: SupportsIndex | slice) -> Counted:
        return self._count(super().__getitem__(key))

    def __add__(self, other: str) -> Counted:
        return self._count(super().__add__(other))

    def removesuffix(self, suffix: str) -> Counted:
        return self._count(super().removesuffix(suffix))

    @classmethod
    def _count(cls, text: str) -> Counted:
        cls.copied += len(text)
        return cls(text)


@pytest.mark.parametrize("foreign", ["", "# somebody's", "# somebody's\n"])
def test_of_blocks_of_many_systems_is_copied_what_is_there(foreign: str) -> None:
    def copied(count: int) -> int:
        content: str | None = foreign
        for number in range(count):
            content = grub_custom.joined(content, "a\n", f"{number:08x}", EntryKind.TRIAL)
        Counted.copied = 0
        grub_custom.joined(Counted(content), "b\n", OWNER, EntryKind.TRIAL)
        return Counted.copied

    assert copied(200) < 5 * copied(50)
