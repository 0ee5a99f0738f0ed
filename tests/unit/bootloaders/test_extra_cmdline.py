"""What a trial adds to the command line, and where."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from initadvisor.bootloaders.extra_cmdline import (
    extra_cmdline,
    may_be_guarded,
    new_parameters,
    with_parameters,
)
from initadvisor.core.errors import UnsafeError, UsageError
from initadvisor.records.boot_class import command_line_words, comparable_command_line

if TYPE_CHECKING:
    from pathlib import Path

TAG = "initadvisor.trial=t1"


def test_a_trial_restarts_by_itself_whichever_generator_made_it() -> None:
    assert extra_cmdline("t1", generator="mkinitcpio") == (TAG, "panic=30")
    assert extra_cmdline("t1", generator="dracut") == (
        *(TAG, "panic=30"),
        *("rd.shell=0", "rd.emergency=reboot"),
    )


@pytest.mark.parametrize(
    ("options", "may_be"),
    [
        ("root=/dev/sda1 ro", True),
        ("root=/dev/sda1 init=/bin/bash", True),
        ("root=/dev/sda1 rdinit=/mine", False),
        ("root=/dev/sda1 -- single", False),
        ("root=/dev/sda1 --", False),
        ('root=/dev/sda1 x="a -- b"', True),
        ('root=/dev/sda1 "a -- b"', False),
        ("root=/dev/sda1 ro quiet systemd.show_status", True),
        ("root=/dev/sda1 ro quiet splash", False),
        ("root=/dev/sda1 single", False),
    ],
)
def test_a_guard_takes_nobody_elses_place(options: str, may_be: bool) -> None:
    assert may_be_guarded(options) is may_be


def test_a_guard_is_started_by_the_shell_and_becomes_init() -> None:
    *_, shell, dashes, option, script = extra_cmdline("t1", generator="dracut", guarded=True)
    assert (shell, dashes, option) == ("rdinit=/bin/sh", "--", "-c")
    assert command_line_words(script) == (script,)
    assert script.endswith(')& exec /init"')
    assert not set("$\\*?['=") & set(script), "to GRUB, to the kernel or to a shell it is special"


@pytest.mark.parametrize("has_init", [True, False])
def test_a_guard_acts_in_the_initramfs_only(tmp_path: Path, has_init: bool) -> None:
    """The script, with the places it names below a directory."""
    script = extra_cmdline("t1", generator="dracut", guarded=True)[-1].strip('"')
    for place in ("/dev", "/proc"):
        (tmp_path / place[1:]).mkdir()
        script = script.replace(place, f"{tmp_path}{place}")
    script = script.replace("mount -t proc proc", "true").replace("sleep 600", "sleep 0")
    init = tmp_path / "init"
    if has_init:
        init.write_text("#!/bin/sh\n")
    script = script.replace("exec /init", "wait").replace("/init", str(init))
    subprocess.run(["/bin/sh", "-c", script], check=True, timeout=300)
    asked = tmp_path / "proc/sysrq-trigger"
    assert asked.read_text() == "b\n" if has_init else not asked.exists()


def test_a_watchdog_is_only_there_where_it_is_asked_for() -> None:
    assert extra_cmdline("t1", generator="mkinitcpio", watchdog_s=120)[2:] == (
        "systemd.watchdog_sec=120",
        "watchdog.open_timeout=120",
    )
    with pytest.raises(UsageError, match="too short"):
        extra_cmdline("t1", generator="mkinitcpio", watchdog_s=5)


@pytest.mark.parametrize("trial", ["", "a b", "A", "-a", "a\n", "a" * 41, "a=b", "ä"])
def test_a_name_that_would_break_the_command_line_is_refused(trial: str) -> None:
    with pytest.raises(UsageError, match="no name for a trial"):
        extra_cmdline(trial, generator="dracut")


@pytest.mark.parametrize(
    ("options", "result"),
    [
        ("", "W"),
        ("root=x quiet", "root=x quiet W"),
        ("root=x -- single", "root=x W -- single"),
        ("root=x --", "root=x W --"),
        ("-- single", "W -- single"),
        ("a --b c-- d", "a --b c-- d W"),
        ('a="x -- y" b', 'a="x -- y" b W'),
        ('a="x -- y" -- b', 'a="x -- y" W -- b'),
        ("root=x  quiet ", "root=x  quiet W"),
    ],
)
def test_words_come_last_but_before_those_for_init(options: str, result: str) -> None:
    assert with_parameters(options, ["W"]) == result


@pytest.mark.parametrize(
    ("options", "added"),
    [
        ("root=x", (TAG, "panic=30")),
        ("root=x panic=30", (TAG,)),
        ("root=x panic=30 panic=0", (TAG, "panic=30")),
        ("root=x panic=0", (TAG, "panic=30")),
        ("root=x -- panic=30", (TAG, "panic=30")),
    ],
)
def test_what_takes_effect_already_is_not_added(options: str, added: tuple[str, ...]) -> None:
    assert new_parameters(options, (TAG, "panic=30")) == added


def test_a_trial_of_a_trial_is_refused() -> None:
    with pytest.raises(UnsafeError, match="trial of a trial"):
        with_parameters(f"root=x {TAG}", [TAG])


def test_a_command_line_that_would_be_cut_off_is_refused() -> None:
    assert len(with_parameters("x" * 2045, ["y"])) == 2047
    with pytest.raises(UnsafeError, match="longer than 2047"):
        with_parameters("x" * 2046, ["y"])


@given(
    st.lists(
        st.sampled_from(
            ["root=x", "quiet", "panic=30", "panic=5", 'a="b -- c"', "--", "rd.shell=0"]
        )
    )
)
def test_without_our_words_the_command_line_is_the_defaults(words: list[str]) -> None:
    options = " ".join(words)
    added = new_parameters(options, extra_cmdline("t1", generator="dracut"))
    options_of_trial = with_parameters(options, added)
    kept = [word for word in command_line_words(options_of_trial) if word not in added]
    assert kept == [word for word in words if word not in added]
    if not set(added) & set(words):
        assert comparable_command_line(options_of_trial, extra_cmdline=added) == (
            comparable_command_line(options)
        )
