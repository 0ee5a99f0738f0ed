"""initramfs.conf as Debian installs it, drop-ins, and hooks of packages that come last."""

from __future__ import annotations

import pytest

from initadvisor.core.errors import RefusedRewriteError
from initadvisor.core.settings import Setting
from initadvisor.rewrite.files import ConfigFile, DropIn
from initadvisor.rewrite.variables import initramfs_tools_edits
from tests.fixtures.rewritten_texts import with_initramfs_tools

_DEBIAN = """#
# initramfs.conf
# Settings in conf.d come after these.

#
# MODULES: [ most | netboot | dep | list ]
#

MODULES=most

#
# COMPRESS: [ gzip | bzip2 | lz4 | lzma | lzop | xz | zstd ]
#

COMPRESS=zstd

#
# COMPRESSLEVEL: ...
#
# 0 - 19 for zstd
#
# COMPRESSLEVEL=3

DEVICE=
RUNSIZE=10%
"""


def test_debians_file_gets_the_codec_in_place_and_a_level_below_its_default() -> None:
    rewritten = with_initramfs_tools(_DEBIAN, Setting.parse("xz -9"))
    assert rewritten.text == _DEBIAN.replace("COMPRESS=zstd", "COMPRESS=xz").replace(
        "# COMPRESSLEVEL=3\n", "# COMPRESSLEVEL=3\nCOMPRESSLEVEL=9\n"
    )
    assert rewritten.changed_lines == (15, 23)
    back = with_initramfs_tools(rewritten.text, Setting.parse("zstd")).text
    assert back == _DEBIAN.replace("=3\n", "=3\nCOMPRESSLEVEL=\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("COMPRESS=gzip COMPRESSLEVEL=\"1\"\n", 'COMPRESS=zstd COMPRESSLEVEL="19"\n'),
        ("export COMPRESS='gzip'\n", "export COMPRESS='zstd'\nCOMPRESSLEVEL=19\n"),
        ("COMPRESS=gzip\r\n", "COMPRESS=zstd\nCOMPRESSLEVEL=19\n"),
        ("MODULES=dep", "MODULES=dep\nCOMPRESS=zstd\nCOMPRESSLEVEL=19\n"),
        ("COMPRESSLEVEL=", "COMPRESSLEVEL=19\nCOMPRESS=zstd\n"),
        ("X=\"COMPRESS=xz\nCOMPRESS=lz4\"\n", "X=\"COMPRESS=xz\nCOMPRESS=lz4\"\n"
         "COMPRESS=zstd\nCOMPRESSLEVEL=19\n"),
    ],
)  # fmt: skip
def test_what_takes_effect_is_edited(before: str, after: str) -> None:
    assert with_initramfs_tools(before, Setting.parse("zstd -19")).text == after


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("COMPRESS=gzip\nCOMPRESS+=x\n", "given the name"),
        ("COMPRESS=(gzip)\n", "does not know"),
        ("COMPRESS=${X:-gzip}\n", "computed"),
        ("COMPRESS=gzip\n[ -x /bin/zstd ] && COMPRESS=zstd\n", "condition"),
        ("COMPRESS=gzip\n. /etc/default/x\n", "another file"),
        ("X=$'a\\'b'\n", "not every sh"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RefusedRewriteError, match=reason) as raised:
        with_initramfs_tools(text, Setting.parse("zstd -19"))
    assert raised.value.line


@pytest.mark.parametrize("setting", ["cat", "zstd --long=27", "zstd --ultra -22"])
def test_what_initramfs_tools_cannot_be_told_is_refused(setting: str) -> None:
    with pytest.raises(RefusedRewriteError, match="cannot be configured"):
        with_initramfs_tools(_DEBIAN, Setting.parse(setting))


_MAIN = ConfigFile(path="/etc/initramfs-tools/initramfs.conf", text=_DEBIAN)
_SHARED = "/usr/share/initramfs-tools/conf.d/50-a"
_HOOK = "/usr/share/initramfs-tools/conf-hooks.d/b"
_NEW = "/etc/initramfs-tools/conf.d/initadvisor"


def test_a_packages_drop_in_is_overruled_by_one_of_our_own() -> None:
    files = [
        _MAIN,
        ConfigFile(path=_SHARED, text="COMPRESS=xz\n", editable=False),
        ConfigFile(path=_HOOK, text="KEYMAP=y\nUMASK=0077\n", editable=False),
    ]
    drop_in = DropIn(path=_NEW, position=2)
    (edit,) = initramfs_tools_edits(files, Setting.parse("zstd -19"), drop_in)
    assert edit.path == _NEW
    assert edit.after.endswith("takes it back.\nCOMPRESS=zstd\nCOMPRESSLEVEL=19\n")


def test_a_packages_hook_has_the_last_word_and_is_named() -> None:
    files = [_MAIN, ConfigFile(path=_HOOK, text="KEYMAP=y\nCOMPRESS=gzip\n", editable=False)]
    with pytest.raises(RefusedRewriteError, match="COMPRESS and COMPRESSLEVEL") as raised:
        initramfs_tools_edits(files, Setting.parse("zstd"), DropIn(path=_NEW, position=1))
    assert (raised.value.path, raised.value.line) == (_HOOK, "COMPRESS=gzip")
