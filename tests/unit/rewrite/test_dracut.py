"""dracut.conf and its drop-ins, of which packages have some of their own."""

from __future__ import annotations

import pytest

from initadvisor.core.errors import RefusedRewriteError
from initadvisor.core.settings import Setting
from initadvisor.rewrite.files import ConfigFile, DropIn, FileEdit
from initadvisor.rewrite.variables import dracut_edits
from tests.fixtures.rewritten_texts import with_dracut

_NEW = "/etc/dracut.conf.d/90-initadvisor.conf"
_HEADER = '# Written by "initadvisor apply"; "initadvisor rollback" takes it back.\n'
_ZSTD_19 = ("zstd", "-19", "-q", "-T0")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('compress="xz"\n', 'compress="zstd -19 -q -T0"\n'),
        ("compress=xz # x\n", 'compress="zstd -19 -q -T0" # x\n'),
        ("compress='lz4 -l -9'\n", "compress='zstd -19 -q -T0'\n"),
        ('compress="xz"\ncompress+=" -9"\n', 'compress="xz"\ncompress="zstd -19 -q -T0"\n'),
        ("hostonly=yes", 'hostonly=yes\ncompress="zstd -19 -q -T0"\n'),
        (
            "INITRD_COMPRESS=xz\ncompress_level_zstd='3'\n",
            "INITRD_COMPRESS=\ncompress=\"zstd -19 -q -T0\"\ncompress_level_zstd='3'\n",
        ),
        (
            'compress="zstd -19 -q -T0"\ncompress_level_xz=9\n',
            'compress="zstd -19 -q -T0"\ncompress_level_xz=9\n',
        ),
    ],
)
def test_compress_gets_the_whole_command_line(before: str, after: str) -> None:
    assert with_dracut(before, Setting.parse("zstd -19"), _ZSTD_19).text == after


def test_without_a_command_line_the_level_has_its_own_variable() -> None:
    text = 'compress="xz"\nhostonly=yes\n'
    rewritten = with_dracut(text, Setting.parse("zstd -19")).text
    assert rewritten == 'compress="zstd"\ncompress_level_zstd="19"\nhostonly=yes\n'
    plain = 'compress="zstd"\ncompress_level_zstd="15"\nhostonly=yes\n'
    assert with_dracut(rewritten, Setting.parse("zstd")).text == plain
    assert with_dracut(plain.replace("15", ""), Setting.parse("zstd")).text == plain
    assert with_dracut(text, Setting.parse("zstd")).text == 'compress="zstd"\nhostonly=yes\n'


@pytest.mark.parametrize(
    ("setting", "command"),
    [
        ("zstd --long", None),
        ("zstd -3 -9", None),
        ("zstd '--a=b c'", ("zstd", "--a=b c")),
    ],
)
def test_what_dracut_cannot_be_told_is_refused(
    setting: str, command: tuple[str, ...] | None
) -> None:
    with pytest.raises(RefusedRewriteError, match="cannot be configured"):
        with_dracut("", Setting.parse(setting), command)


def _edits(
    *files: tuple[str, str], position: int | None = None, drop_in: bool = True
) -> tuple[FileEdit, ...]:
    configuration = [
        ConfigFile(path=path, text=text, editable=path.startswith("/etc/")) for path, text in files
    ]
    new = DropIn(path=_NEW, position=len(files) if position is None else position)
    return dracut_edits(
        configuration,
        Setting.parse("zstd -19"),
        _ZSTD_19,
        new if drop_in else None,
        default_level=15,
    )


def test_a_machine_without_the_setting_gets_a_file_of_its_own() -> None:
    (edit,) = _edits(("/etc/dracut.conf", "# PUT YOUR CONFIG IN separate files\n"))
    assert edit == FileEdit(path=_NEW, before=None, after=_HEADER + 'compress="zstd -19 -q -T0"\n')
    assert edit.diff.startswith(f"--- /dev/null\n+++ {_NEW}\n@@ -0,0 +1,2 @@\n")


def test_the_administrators_drop_in_is_edited_where_it_takes_effect() -> None:
    (edit,) = _edits(
        ("/etc/dracut.conf", "compress=lz4\n"),
        ("/usr/lib/dracut/dracut.conf.d/10.conf", "compress=xz\n"),
        ("/etc/dracut.conf.d/20.conf", 'compress="gzip"\n'),
    )
    assert edit.path == "/etc/dracut.conf.d/20.conf"
    assert edit.after == 'compress="zstd -19 -q -T0"\n'


@pytest.mark.parametrize(
    "text",
    ["compress=xz\n", "[ -e /x ] && compress=xz\n", "source /x\n", "compress=$(x)\n", "fi\n"],
)
def test_a_packages_file_is_overruled_and_not_touched(text: str) -> None:
    (edit,) = _edits(
        ("/etc/dracut.conf", "compress=lz4\ncompress_level_zstd=3\n"),
        ("/usr/lib/dracut/dracut.conf.d/10.conf", text),
    )
    assert edit.path == _NEW
    assert edit.after == _HEADER + 'compress="zstd -19 -q -T0"\n'


def test_a_packages_file_that_is_read_last_of_all_is_refused() -> None:
    vendor = ("/usr/lib/dracut/dracut.conf.d/zz.conf", "\ncompress=xz\n")
    with pytest.raises(RefusedRewriteError, match="no file that is yours is read after it") as last:
        _edits(vendor, position=0)
    assert (last.value.path, last.value.line_number) == (vendor[0], 2)
    with pytest.raises(RefusedRewriteError, match="no file that is yours"):
        _edits(vendor, drop_in=False)
    with pytest.raises(RefusedRewriteError, match="there is none to set it in"):
        _edits(drop_in=False)


def test_a_packages_file_that_says_it_already_is_enough() -> None:
    assert _edits(("/usr/lib/dracut/dracut.conf.d/10.conf", 'compress="zstd -19 -q -T0"\n')) == ()


def test_a_doubt_in_the_administrators_file_is_refused_even_if_it_could_be_overruled() -> None:
    with pytest.raises(RefusedRewriteError, match=r"/etc/dracut.conf, line 1"):
        _edits(
            ("/etc/dracut.conf", "if x; then compress=lz4; fi\n"),
            ("/usr/lib/dracut/dracut.conf.d/10.conf", "hostonly=yes\n"),
        )
