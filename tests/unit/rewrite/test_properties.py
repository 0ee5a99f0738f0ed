"""Whatever a file looks like: the setting takes effect in a real shell, and nothing else changes.

Or it is refused. A file without anything doubtful in it never is.
"""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from initadvisor.core.errors import RefusedRewriteError
from initadvisor.core.settings import Setting
from initadvisor.rewrite import variables
from initadvisor.rewrite.files import ConfigFile
from initadvisor.rewrite.parser import parse
from initadvisor.rewrite.syntax import Shell, UnreadableError
from tests.fixtures.configurations import Piece, expected, pieces, whole
from tests.fixtures.rewritten_texts import (
    DRACUT_LEVEL,
    with_dracut,
    with_initramfs_tools,
    with_mkinitcpio,
)
from tests.fixtures.shells import is_readable, values_of

_MKINITCPIO = ("COMPRESSION", "COMPRESSION_OPTIONS")
_INITRAMFS = ("COMPRESS", "COMPRESSLEVEL")
_DRACUT = ("compress", "compress_level_zstd")
_BYSTANDERS = ("OTHER", "MORE", "FILES", "HOOKS", "DOUBLE", "TABLE", "MODULES")

SETTINGS = st.sampled_from(
    ["zstd", "zstd -19", "zstd --ultra -22 -T1", "lz4 -9", "xz --lzma2=preset=9,dict=1MiB", "cat"]
).map(Setting.parse)
LEVELS = st.sampled_from(["zstd", "zstd -19", "gzip -1", "lz4", "xz -9"]).map(Setting.parse)


def _assert_same_for_others(before: str, after: str, shell: Shell) -> None:
    names = _BYSTANDERS if shell is Shell.BASH else _BYSTANDERS[:3]
    assert values_of([after], names, shell=shell) == values_of([before], names, shell=shell)


@settings(max_examples=5 * settings().max_examples)
@given(parts=pieces(Shell.BASH, *_MKINITCPIO, arrays=True), newline=st.booleans(), setting=SETTINGS)
def test_mkinitcpio_reads_the_setting_and_all_else_as_before(
    parts: list[Piece], newline: bool, setting: Setting
) -> None:
    text = whole(parts, newline=newline)
    rewritten = with_mkinitcpio(text, setting)
    found = values_of([rewritten.text], _MKINITCPIO, shell=Shell.BASH)
    assert found.text("COMPRESSION") == setting.codec
    assert found.words("COMPRESSION_OPTIONS") == setting.options
    assert with_mkinitcpio(rewritten.text, setting).text == rewritten.text
    assert expected(parts, newline=newline, names=_MKINITCPIO).fullmatch(rewritten.text)
    _assert_same_for_others(text, rewritten.text, Shell.BASH)


@settings(max_examples=5 * settings().max_examples)
@given(parts=pieces(Shell.SH, *_INITRAMFS, arrays=False), newline=st.booleans(), setting=LEVELS)
def test_initramfs_tools_reads_the_setting_and_all_else_as_before(
    parts: list[Piece], newline: bool, setting: Setting
) -> None:
    text = whole(parts, newline=newline)
    rewritten = with_initramfs_tools(text, setting)
    found = values_of([rewritten.text], _INITRAMFS, shell=Shell.SH)
    assert found.text("COMPRESS") == setting.codec
    assert found.text("COMPRESSLEVEL") == str(setting.level or "")
    assert with_initramfs_tools(rewritten.text, setting).text == rewritten.text
    assert expected(parts, newline=newline, names=_INITRAMFS).fullmatch(rewritten.text)
    _assert_same_for_others(text, rewritten.text, Shell.SH)


@settings(max_examples=5 * settings().max_examples)
@given(
    parts=pieces(Shell.BASH, *_DRACUT, arrays=False),
    newline=st.booleans(),
    setting=LEVELS,
    with_command=st.booleans(),
)
def test_dracut_reads_the_setting_and_all_else_as_before(
    parts: list[Piece], newline: bool, setting: Setting, with_command: bool
) -> None:
    text = whole(parts, newline=newline)
    command = (setting.codec, *setting.options, "-q", "-T0") if with_command else None
    rewritten = with_dracut(text, setting, command)
    level = f"compress_level_{setting.codec}"
    found = values_of([rewritten.text], ("compress", level, "INITRD_COMPRESS"), shell=Shell.BASH)
    as_command = command if command and setting.options else (setting.codec,)
    assert found.text("compress") == " ".join(as_command)
    if not (command and setting.options):  # or its level is in the command line
        own = f"${{{level}-{DRACUT_LEVEL}}}"
        used = values_of([f"{rewritten.text}\n{level}={own}\n"], (level,), shell=Shell.BASH)
        assert used.text(level) == str(setting.level or DRACUT_LEVEL)
    assert found.text("INITRD_COMPRESS") == ""
    assert with_dracut(rewritten.text, setting, command).text == rewritten.text
    names = ("compress", level)
    assert expected(parts, newline=newline, names=names).fullmatch(rewritten.text)
    _assert_same_for_others(text, rewritten.text, Shell.BASH)


@settings(max_examples=8 * settings().max_examples)
@given(
    parts=pieces(Shell.BASH, *_MKINITCPIO, arrays=True, doubts=True),
    newline=st.booleans(),
    setting=SETTINGS,
)
def test_what_is_doubtful_in_bash_is_right_or_refused(
    parts: list[Piece], newline: bool, setting: Setting
) -> None:
    text = whole(parts, newline=newline)
    rewritten, refused = _rewritten_or_refused(text, setting)
    if refused:
        assert text.split("\n")[(refused.line_number or 0) - 1].removesuffix("\r") == refused.line
        return
    found = values_of([rewritten], _MKINITCPIO, shell=Shell.BASH)
    assert found.text("COMPRESSION") == setting.codec
    assert found.words("COMPRESSION_OPTIONS") == setting.options
    assert with_mkinitcpio(rewritten, setting).text == rewritten


def _rewritten_or_refused(text: str, setting: Setting) -> tuple[str, RefusedRewriteError | None]:
    try:
        return with_mkinitcpio(text, setting).text, None
    except RefusedRewriteError as err:
        return text, err


@settings(max_examples=8 * settings().max_examples)
@given(parts=pieces(Shell.SH, *_INITRAMFS, arrays=False, doubts=True), setting=LEVELS)
def test_what_is_doubtful_in_sh_is_right_or_refused(parts: list[Piece], setting: Setting) -> None:
    text = whole(parts, newline=True)
    with contextlib.suppress(RefusedRewriteError):
        rewritten = with_initramfs_tools(text, setting).text
        found = values_of([rewritten], _INITRAMFS, shell=Shell.SH)
        assert found.text("COMPRESS") == setting.codec
        assert found.text("COMPRESSLEVEL") == str(setting.level or "")


@settings(max_examples=5 * settings().max_examples)
@given(
    files=st.lists(
        st.tuples(pieces(Shell.BASH, *_MKINITCPIO, arrays=True, doubts=True), st.booleans()),
        min_size=1,
        max_size=3,
    ),
    setting=SETTINGS,
)
def test_files_read_as_one_text_are_edited_where_it_takes_effect_or_refused(
    files: list[tuple[list[Piece], bool]], setting: Setting
) -> None:
    texts = [whole(parts, newline=newline) for parts, newline in files]
    given_files = [ConfigFile(path=f"/{i}", text=text) for i, text in enumerate(texts)]
    with contextlib.suppress(RefusedRewriteError):
        edits = {edit.path: edit for edit in variables.mkinitcpio_edits(given_files, setting)}
        after = [edits[f.path].after if f.path in edits else f.text for f in given_files]
        found = values_of(["".join(after)], _MKINITCPIO, shell=Shell.BASH)
        assert found.text("COMPRESSION") == setting.codec
        assert found.words("COMPRESSION_OPTIONS") == setting.options


_FRAGMENTS = (
    *"\n;&|()<>'\"\\$`#{}[]=! \t\r",
    *("if", "then", "fi", "case", "in", "esac", "for", "do", "done", "<<E", "\nE\n", "${", "$("),
    *("((", "[[", "]]", "function", "A=", "A+=(", "x", "COMPRESSION=", "&&", ";;"),
)


@settings(max_examples=24 * settings().max_examples)
@given(
    text=st.lists(st.sampled_from(_FRAGMENTS), max_size=14).map("".join),
    shell=st.sampled_from(Shell),
)
def test_any_text_is_parsed_or_refused(text: str, shell: Shell) -> None:
    with contextlib.suppress(UnreadableError):
        script = parse(text, shell)
        assert all(0 <= c.start <= c.end <= len(text) for c in script.commands)


_PARTS = (
    *("if", "then", "elif", "else", "fi", "while", "do", "done", "for i in a", "for i", "f()"),
    *("case a in a)", ";;", "esac", "{", "}", "(", ")", "x", "A=1", "# c\n", "\n", ";", "&&", "|"),
    *("&", "if x; then x; fi", "while x; do x; done", "for i in a; do x; done", "{ x; }"),
    *("case a in a) x ;; esac", "f() { x; }"),
)


@settings(max_examples=8 * settings().max_examples)
@given(
    text=st.lists(st.sampled_from(_PARTS), max_size=8).map(" ".join),
    shell=st.sampled_from(Shell),
)
def test_what_a_shell_cannot_read_is_refused(text: str, shell: Shell) -> None:
    with contextlib.suppress(UnreadableError):
        parse(text, shell)
        assert is_readable(text, shell=shell), "a shell would stop there, with nothing set"


@pytest.mark.parametrize("opening", ["(", "$(", "${", "! ", "if ", "f() ", '"$(', "case a in a) "])
def test_what_is_nested_too_deeply_is_refused(opening: str) -> None:
    with pytest.raises(RefusedRewriteError, match="line 1"):
        with_mkinitcpio(opening * 50_000, Setting.parse("zstd"))
