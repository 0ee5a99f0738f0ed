"""A setting is put where the generator reads it, tried out before, or not put anywhere."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import (
    InitadvisorError,
    NeedsRootError,
    RefusedRewriteError,
    UnsafeError,
)
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut, initramfs_tools, mkinitcpio, unknown
from initadvisor.generators.rewriting import drop_in_read_last
from tests.fixtures.cache import cache_dir
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from initadvisor.generators import Generator
    from initadvisor.host import Host
    from tests.fixtures.hosts import Install, Write

_MKINITCPIO = "/etc/mkinitcpio.conf"
_PRESET = "/etc/mkinitcpio.d/linux.preset"
_DRACUT = "/etc/dracut.conf.d"
_DRACUT_VENDOR = "/usr/lib/dracut/dracut.conf.d"
_INITRAMFS = "/etc/initramfs-tools"
_SHARE = "/usr/share/initramfs-tools"

_ZSTD_19 = Setting.parse("zstd -19")
_SETTINGS = [Setting.parse(text) for text in ("zstd", "zstd -19", "lz4 -9", "xz -9", "gzip", "cat")]


@pytest.fixture(autouse=True)
def _machine(write: Write, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put all three generators with the usual compressors on the machine."""
    monkeypatch.delenv("INITRD_COMPRESS", raising=False)
    install("bzip2", "cat", "dracut", "gzip", "lz4", "lzma", "lzop", "xz", "zstd")
    write("/usr/bin/mkinitcpio", "#!/bin/bash\ndeclare -r version='41'\n").chmod(0o755)
    write(_MKINITCPIO, 'HOOKS=(base)\n#COMPRESSION="lz4"\n#COMPRESSION_OPTIONS=()\n')
    write("/usr/lib/dracut/dracut-version.sh", "DRACUT_VERSION=111\n")
    write("/etc/dracut.conf", "# PUT YOUR CONFIG IN separate files\n")
    write(f"{_INITRAMFS}/initramfs.conf", "MODULES=most\nCOMPRESS=zstd\n# COMPRESSLEVEL=3\n")


def _tree(host: Host) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(host.root.rglob("*")) if p.is_file()}


def _apply(generator: Generator, host: Host, setting: Setting) -> list[str]:
    """Do what an edit says, and return which files it was about."""
    before = _tree(host)
    edits = generator.rewritten(host, RELEASE, setting)
    assert _tree(host) == before
    for edit in edits:
        file = Path(edit.path)
        assert file.exists() == (edit.before is not None)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(edit.after.encode(errors="surrogateescape"))
    return [str(Path(edit.path).relative_to(host.root)) for edit in edits]


def _assert_refused(
    generator: Generator, host: Host, setting: Setting, reason: str
) -> InitadvisorError:
    before = _tree(host)
    with pytest.raises(UnsafeError, match=reason) as raised:
        generator.rewritten(host, RELEASE, setting)
    assert _tree(host) == before
    return raised.value


@pytest.mark.parametrize("generator", [mkinitcpio, dracut, initramfs_tools], ids=lambda g: g.NAME)
@pytest.mark.parametrize("setting", _SETTINGS, ids=str)
def test_the_generator_reads_what_was_wanted_and_nothing_is_left_to_change(
    host: Host, generator: Generator, setting: Setting
) -> None:
    if generator.unusable(host, setting):
        _assert_refused(generator, host, setting, "cannot be configured")
        return
    for step in (_ZSTD_19, setting):
        _apply(generator, host, step)
        found = generator.configured(host, RELEASE).setting
        assert generator.compressor(host, found) == generator.compressor(host, step)
        assert generator.rewritten(host, RELEASE, step) == ()


def test_bytes_that_are_no_text_survive(host: Host) -> None:
    old = b"# \xfc\xff\r\nHOOKS=('\xe4')\nCOMPRESSION=xz # \x0c\x85\r\n"
    host.path(_MKINITCPIO).write_bytes(old)
    assert _apply(mkinitcpio, host, Setting(Codec.LZ4)) == [_MKINITCPIO[1:]]
    assert host.path(_MKINITCPIO).read_bytes() == old.replace(b"=xz", b"=lz4")


def test_mkinitcpios_last_drop_in_is_the_one_that_counts(host: Host, write: Write) -> None:
    write(f"{_MKINITCPIO}.d/9.conf", "COMPRESSION=gzip\n")
    write(f"{_MKINITCPIO}.d/10.conf", "COMPRESSION=xz\n")
    assert _apply(mkinitcpio, host, _ZSTD_19) == ["etc/mkinitcpio.conf.d/10.conf"]
    assert mkinitcpio.configured(host, RELEASE).setting == _ZSTD_19


def test_a_presets_own_configuration_is_the_one_that_counts(host: Host, write: Write) -> None:
    write(f"{_MKINITCPIO}.d/a.conf", "COMPRESSION=xz\n")
    write("/etc/other.conf", "COMPRESSION=gzip\n")
    write(
        _PRESET,
        f"PRESETS=(default)\nALL_kver={RELEASE}\nALL_config=/etc/other.conf\ndefault_image=/boot/i\n",
    )
    assert _apply(mkinitcpio, host, _ZSTD_19) == ["etc/other.conf"]


def test_a_presets_configuration_that_is_no_file_of_etc_is_refused(
    host: Host, write: Write
) -> None:
    write("/usr/share/other.conf", "COMPRESSION=gzip\n")
    write(
        _PRESET,
        f"PRESETS=(default)\nALL_kver={RELEASE}\nALL_config=/usr/share/other.conf\n"
        "default_image=/boot/i\n",
    )
    error = _assert_refused(mkinitcpio, host, _ZSTD_19, "no file that is yours is read after it")
    assert isinstance(error, RefusedRewriteError)
    assert error.line == "COMPRESSION=gzip"


def test_an_option_of_the_preset_that_wins_all_the_same_is_named(host: Host, write: Write) -> None:
    write(
        _PRESET,
        f"PRESETS=(default)\nALL_kver={RELEASE}\ndefault_image=/boot/i\ndefault_options='-z lz4'\n",
    )
    _assert_refused(mkinitcpio, host, _ZSTD_19, r"would use lz4 -19 .*option -z in .*linux\.preset")
    _apply(mkinitcpio, host, Setting.parse("lz4 -9"))


def test_a_path_as_option_of_the_preset_is_not_rewritten(host: Host, write: Write) -> None:
    write(
        _PRESET,
        f"PRESETS=(default)\nALL_kver={RELEASE}\ndefault_image=/boot/i\n"
        "default_options='-z /usr/bin/lz4'\n",
    )
    _assert_refused(mkinitcpio, host, Setting.parse("lz4 -9"), "has the path /usr/bin/lz4")


def test_a_link_is_followed_by_nobody_who_edits_it(host: Host, write: Write) -> None:
    target = write("/home/me/dotfiles/mkinitcpio.conf", "HOOKS=(base)\nCOMPRESSION=xz\n")
    host.path(_MKINITCPIO).unlink()
    host.path(_MKINITCPIO).symlink_to(target)
    assert _apply(mkinitcpio, host, _ZSTD_19) == ["etc/mkinitcpio.conf.d/90-initadvisor.conf"]
    write("/usr/bin/mkinitcpio", "declare -r version=35\n").chmod(0o755)
    _assert_refused(mkinitcpio, host, _ZSTD_19, "no file that is yours")


def test_a_compressor_that_is_missing_is_noticed_before_anything_is_written(host: Host) -> None:
    host.path("/usr/bin/lzop").unlink()
    for generator in (mkinitcpio, dracut, initramfs_tools):
        error = _assert_refused(generator, host, Setting(Codec.LZOP), "all the same")
        assert "not installed" in (error.hint or "")


def test_a_kernel_that_cannot_unpack_it_is_noticed_before_anything_is_written(
    host: Host, write: Write
) -> None:
    write(f"/boot/config-{RELEASE}", "# CONFIG_RD_LZ4 is not set\nCONFIG_RD_GZIP=y\n")
    _assert_refused(dracut, host, Setting(Codec.LZ4), "all the same")
    _assert_refused(initramfs_tools, host, Setting(Codec.LZ4), "would use gzip")


def test_what_another_file_sets_to_something_else_is_noticed(host: Host, write: Write) -> None:
    with tempfile.NamedTemporaryFile("w", dir=cache_dir()) as more:  # where a sandbox shows it
        more.write("COMPRESSION_OPTIONS=(-1)\n")
        more.flush()
        write(_MKINITCPIO, f". {more.name}\nCOMPRESSION=xz\n")
        _assert_refused(mkinitcpio, host, Setting(Codec.ZSTD), r"would use zstd -1 all the same")


def test_a_broken_configuration_is_refused(host: Host, write: Write) -> None:
    write(_MKINITCPIO, "HOOKS=(base\n")
    error = _assert_refused(mkinitcpio, host, _ZSTD_19, "not closed")
    assert error.message.startswith(f"{host.path(_MKINITCPIO)}, line 1: ")


def test_dracut_gets_a_file_of_its_own_that_is_edited_from_then_on(
    host: Host, write: Write
) -> None:
    write(f"{_DRACUT_VENDOR}/50-vendor.conf", 'compress="xz"\n')
    assert _apply(dracut, host, _ZSTD_19) == ["etc/dracut.conf.d/90-initadvisor.conf"]
    assert dracut.configured(host, RELEASE).setting == _ZSTD_19
    assert _apply(dracut, host, Setting(Codec.LZ4)) == ["etc/dracut.conf.d/90-initadvisor.conf"]
    write(f"{_DRACUT_VENDOR}/99-vendor.conf", 'compress="xz"\n')
    assert _apply(dracut, host, _ZSTD_19) == ["etc/dracut.conf.d/zz-initadvisor.conf"]


def test_a_masked_vendor_file_of_dracut_does_not_count(host: Host, write: Write) -> None:
    write(f"{_DRACUT_VENDOR}/50-vendor.conf", "source /x\n")
    write(f"{_DRACUT}/10-mine.conf", "compress=xz\n")
    host.path(f"{_DRACUT}/50-vendor.conf").symlink_to("/dev/null")
    assert _apply(dracut, host, _ZSTD_19) == ["etc/dracut.conf.d/10-mine.conf"]


def test_dracut_with_3cpio_gets_the_level_in_its_own_variable(
    host: Host, write: Write, install: Install
) -> None:
    install("3cpio")
    mine = write(f"{_DRACUT}/10-mine.conf", 'compress="xz"\n')
    _apply(dracut, host, _ZSTD_19)
    assert mine.read_text() == 'compress="zstd"\ncompress_level_zstd="19"\n'
    assert dracut.configured(host, RELEASE).setting == _ZSTD_19
    _assert_refused(dracut, host, Setting.parse("zstd --long=27"), "no other options")
    _assert_refused(dracut, host, Setting.parse("zstd -22"), "no level above 19")


def test_a_squash_module_that_forces_cat_is_named(host: Host, write: Write) -> None:
    write(f"{_DRACUT}/10-mine.conf", 'add_dracutmodules+=" squash "\ncompress=xz\n')
    error = _assert_refused(dracut, host, _ZSTD_19, "would use cat all the same")
    assert "squash" in (error.hint or "")


def test_a_variable_of_the_configuration_that_replaces_compress_is_emptied(
    host: Host, write: Write
) -> None:
    mine = write("/etc/dracut.conf", "compress=lz4\nINITRD_COMPRESS=xz\n")
    _apply(dracut, host, _ZSTD_19)
    assert mine.read_text() == 'compress="zstd -19 -q -T0"\nINITRD_COMPRESS=\n'


def test_initramfs_tools_shared_drop_in_is_overruled(host: Host, write: Write) -> None:
    write(f"{_SHARE}/conf.d/50-a", "COMPRESS=lz4\n")
    write(f"{_SHARE}/conf-hooks.d/cryptsetup", "KEYMAP=y\n")
    write(f"{_INITRAMFS}/conf.d/resume", "RESUME=none\n")
    assert _apply(initramfs_tools, host, _ZSTD_19) == ["etc/initramfs-tools/conf.d/zz-initadvisor"]
    assert initramfs_tools.configured(host, RELEASE).setting == _ZSTD_19


def test_initramfs_tools_hook_of_a_package_that_decides_is_refused(
    host: Host, write: Write
) -> None:
    hook = write(f"{_SHARE}/conf-hooks.d/x", "if true; then\n\tCOMPRESS=gzip\nfi\n")
    error = _assert_refused(initramfs_tools, host, _ZSTD_19, "no file that is yours")
    assert isinstance(error, RefusedRewriteError)
    assert (error.path, error.line_number, error.line) == (str(hook), 2, "\tCOMPRESS=gzip")


def test_without_a_generator_there_is_nothing_to_configure(host: Host) -> None:
    _assert_refused(unknown, host, _ZSTD_19, "no generator on this machine can be configured")


def test_a_huge_file_is_refused(host: Host) -> None:
    host.path(_MKINITCPIO).write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(InitadvisorError, match="larger than 1048576 bytes"):
        mkinitcpio.rewritten(host, RELEASE, _ZSTD_19)


@pytest.mark.usefixtures("ordinary_user")
def test_a_file_for_root_only_needs_root(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(NeedsRootError, match="only root may"):
        mkinitcpio.rewritten(host, RELEASE, _ZSTD_19)


def test_the_name_that_is_read_last_is_the_first_that_is() -> None:
    def path_beside(names: list[str], suffix: str = "") -> str | None:
        found = drop_in_read_last(Path("/d"), names, sorted, position=2, suffix=suffix)
        return found.path if found else None

    assert path_beside([]) == "/d/90-initadvisor"
    assert path_beside(["90-initadvisor", "9-a"]) == "/d/zz-initadvisor"
    assert path_beside(["a.conf"], ".conf") == "/d/zz-initadvisor.conf"
    assert path_beside(["zzz"]) == "/d/zzz-initadvisor"
    assert path_beside(["{"]) is None
