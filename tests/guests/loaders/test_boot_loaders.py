"""Real loaders in real guests: an entry boots once, a trial that panics costs one boot, and what
was there before is there again, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.bootloaders.extra_cmdline import extra_cmdline
from initadvisor.records.boot_class import command_line_words, comparable_command_line
from tests.fixtures.owners import OWNER
from tests.vm.boot import End
from tests.vm.loader_boots import WAYS, Image, Images, Step, Told, booted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.vm.loader_boots import Way

pytestmark = pytest.mark.vm

_TRY_AND_TAKE_BACK = (
    "look\nwrite trial {installed} {new} t0\narm\nlook\ndisarm\nremove trial\nlook\n"
)
_WRITE_PREVIOUS = "write previous {installed} {old} {label}\n"
_TRY = "write trial {installed} {new} t2\narm\nlook\n"
_TRY_CORRUPT_NEXT = "look\nwrite trial {installed} {corrupt} t1\narm\nlook\n"
"""In the boot of the other trial, whose selection has to be gone by then."""
_REMOVE_BOTH = "look\nremove trial\nremove previous\nlook\n"
_OWN_WORDS = extra_cmdline("t2", generator="initramfs-tools", guarded=True)
_GRUB_ENVIRONMENT = "/boot/grub/grubenv"
_OURS = {f"a-initadvisor-{OWNER}-trial.conf", f"a-initadvisor-{OWNER}-previous.conf"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The boots of a guest in their order, ``defaults`` those that nobody selected anything for."""

    way: Way
    images: Images
    boots: Sequence[Told]
    defaults: tuple[Told, ...]
    trial: Told

    @property
    def looks(self) -> tuple[dict[str, Any], ...]:
        """Everything that was looked at; the first time before anything was done, last after it."""
        return tuple(look for each in self.boots for look in each.looks)


@pytest.mark.shows("trial boot, trial that panics", "systemd-boot", "GRUB on UEFI")
@pytest.mark.parametrize("name", ["systemd-boot", "grub"])
def test_a_trial_that_panics_costs_one_boot_and_one_that_does_not_is_booted_once(
    name: str, tmp_path: Path
) -> None:
    way = WAYS[name]
    steps = (
        Step(words=_TRY_AND_TAKE_BACK + _WRITE_PREVIOUS + _TRY, after=way.clean_up),
        Step(words=_TRY_CORRUPT_NEXT, after=way.forget_default),
        Step(),
        Step(before=way.remember_default, words="look\n", after=way.select),
        Step(words=_REMOVE_BOTH),
    )
    images, told = booted(way, steps, tmp_path)
    first, trial, corrupt, after_panic, previous = told

    _assert_panicked(images, corrupt)
    assert after_panic.looks[0]["armed"]["state"] == "none"
    defaults = (first, after_panic)
    outcome = Outcome(way=way, images=images, boots=told, defaults=defaults, trial=trial)
    _assert_all(outcome, previous)
    _assert_cleaned_up_without_harm(outcome)


@pytest.mark.shows("trial boot", "systemd-boot, unified kernel image", "EFI stub (BootNext)")
@pytest.mark.parametrize("name", ["systemd-boot-uki", "efi-stub"])
def test_a_trial_and_the_previous_image_boot_when_selected(name: str, tmp_path: Path) -> None:
    way = WAYS[name]
    steps = (
        Step(words=_TRY_AND_TAKE_BACK + _WRITE_PREVIOUS + _TRY),
        Step(words="look\n", after=way.select),
        Step(words=_REMOVE_BOTH),
    )
    images, told = booted(way, steps, tmp_path)
    default, trial, previous = told
    outcome = Outcome(way=way, images=images, boots=told, defaults=(default,), trial=trial)
    _assert_all(outcome, previous)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            "grub-bios",
            marks=pytest.mark.shows("trial boot, trial that panics", "GRUB on BIOS"),
        ),
        pytest.param(
            "grub-blscfg",
            marks=pytest.mark.shows(
                "trial boot, trial that panics",
                "GRUB with blscfg",
                system="Debian 13, GRUB 2.14 of sid",
            ),
        ),
    ],
)
def test_grub_on_bios_and_with_entries_in_files_boots_a_trial_once_too(
    name: str, tmp_path: Path
) -> None:
    """What is the same as on EFI, with entries in grub.cfg, is not done again."""
    way = WAYS[name]
    steps = (
        Step(words=f"look\n{_TRY}"),
        Step(words=_TRY_CORRUPT_NEXT),
        Step(),
        Step(words="look\nremove trial\nlook\n"),
    )
    images, told = booted(way, steps, tmp_path)
    first, trial, corrupt, last = told

    _assert_panicked(images, corrupt)
    outcome = Outcome(way=way, images=images, boots=told, defaults=(first, last), trial=trial)
    _assert_throughout(outcome)
    _assert_tried_once(outcome)
    _assert_nothing_is_left(outcome)
    assert last.looks[0]["armed"]["state"] == "none"
    files = [path for look in outcome.looks for path in look["state"]]
    if name == "grub-bios":
        assert all(path.startswith("/") for path in files), "not BIOS"
    else:
        release = images.paths[Image.INSTALLED].removeprefix("/boot/initrd.img-")
        source = f"/boot/loader/entries/debian-{release}.conf"
        assert outcome.looks[0]["default"]["source"] == source


def _assert_all(outcome: Outcome, previous: Told) -> None:
    _assert_throughout(outcome)
    _assert_taken_back(outcome)
    _assert_tried_once(outcome)
    _assert_previous_booted(previous)
    _assert_nothing_is_left(outcome)


def _assert_throughout(outcome: Outcome) -> None:
    for look in outcome.looks:
        assert look["loader"] == outcome.way.name
        assert look["refusals"] == []
    _assert_default_stays(outcome)
    _assert_no_other_entries(outcome)


def _assert_panicked(images: Images, corrupt: Told) -> None:
    """The console is the only witness."""
    assert corrupt.used is Image.CORRUPT
    assert corrupt.boot.end is End.PANIC
    assert corrupt.boot.find(r"Command line: .*\binitadvisor\.trial=t1 panic=30")
    assert corrupt.boot.find(r"Rebooting in 30 seconds")
    assert corrupt.looks == ()
    assert images.sizes_kib[Image.CORRUPT] not in {
        size for image, size in images.sizes_kib.items() if image is not Image.CORRUPT
    }


def _assert_default_stays(outcome: Outcome) -> None:
    default = outcome.looks[0]["default"]
    images = [default["kernel"]] if default["is_uki"] else default["initrds"]
    assert [image["path"] for image in images] == [outcome.images.paths[Image.INSTALLED]]
    for look in outcome.looks:
        assert look["default"] == default
    for told in outcome.defaults:
        assert told.used is Image.INSTALLED
        assert told.boot.end is End.RESTART
        command_line = told.looks[0]["command_line"]
        assert "initadvisor" not in command_line
        assert _same(command_line, default["options"])


def _assert_taken_back(outcome: Outcome) -> None:
    before, armed, after, both = outcome.defaults[0].looks
    paths = outcome.images.paths
    assert before["armed"]["state"] == "none"
    assert (armed["armed"]["state"], armed["armed"]["selects"]) == ("ours", "trial")
    assert armed["entries"] == {"trial": paths[Image.NEW], "previous": None}
    assert armed["state"] != before["state"]
    assert after == before
    assert both["entries"]["previous"] == paths[Image.OLD]


def _assert_tried_once(outcome: Outcome) -> None:
    look = outcome.trial.looks[0]
    assert outcome.trial.used is Image.NEW
    assert outcome.trial.boot.end is End.RESTART
    assert set(_OWN_WORDS) <= set(command_line_words(look["command_line"]))
    assert _same(look["command_line"], look["default"]["options"], _OWN_WORDS)
    assert look["armed"]["state"] == "none"


def _assert_previous_booted(previous: Told) -> None:
    look, _ = previous.looks
    assert previous.used is Image.OLD
    assert previous.boot.end is End.RESTART
    assert "initadvisor.trial" not in look["command_line"]
    assert _same(look["command_line"], look["default"]["options"])
    assert look["armed"]["state"] == "none"


def _assert_nothing_is_left(outcome: Outcome) -> None:
    """But what GRUB does for anybody: it forgets a selection by emptying it."""
    before, after = (dict(outcome.looks[number]["state"]) for number in (0, -1))
    variables = [set(state.pop(_GRUB_ENVIRONMENT, "").splitlines()) for state in (before, after)]
    assert after == before
    assert variables[1] - {"next_entry="} == variables[0]
    assert outcome.looks[-1]["entries"] == {"trial": None, "previous": None}


def _assert_no_other_entries(outcome: Outcome) -> None:
    """In the menus that systemd-boot itself, the firmware and grub-mkconfig make of what is there.

    The images lay beside the installed one from the beginning.
    """
    first = outcome.looks[0]["menu"]
    assert first
    assert not [each for each in first if "initadvisor" in each]
    for look in outcome.looks:
        assert [each for each in look["menu"] if each not in _OURS] == first
        assert look["menu"][0] == first[0]


def _assert_cleaned_up_without_harm(outcome: Outcome) -> None:
    """bootctl(1) would remove what no entry names, and spares what ours do."""
    said = "\n".join(line for line in outcome.defaults[0].boot.output if line[:1] != "{")
    names = {image: path.rpartition("/")[2] for image, path in outcome.images.paths.items()}
    removable = {image for image, name in names.items() if name in said}
    assert removable == ({Image.CORRUPT} if outcome.way.name == "systemd-boot" else set())


def _same(command_line: str, options: str, extra_cmdline: tuple[str, ...] = ()) -> bool:
    """Tell whether a boot had these options, but for what loaders and trials add."""
    had = comparable_command_line(command_line, extra_cmdline=extra_cmdline)
    return had == comparable_command_line(options)
