"""dracut's setting is what would take effect, and its command lines are those it completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import InstalledImage, dracut, mkinitcpio
from initadvisor.generators.files import with_stream_size
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.hosts import Install, Write

_CONF = "/etc/dracut.conf"
_ETC, _USR, _RUN = (
    "/etc/dracut.conf.d",
    "/usr/lib/dracut/dracut.conf.d",
    "/run/initramfs/dracut.conf.d",
)


@pytest.fixture(autouse=True)
def _fedora(write: Write, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put dracut 111 with the usual compressors on the machine."""
    monkeypatch.delenv("INITRD_COMPRESS", raising=False)
    install("bzip2", "cat", "dracut", "gzip", "lz4", "lzma", "lzop", "xz", "zstd")
    _version(write, "111")


def _version(write: Write, text: str) -> None:
    write("/usr/lib/dracut/dracut-version.sh", f"#!/bin/sh\nDRACUT_VERSION={text}\n")


def _configured(host: Host) -> tuple[str, str, tuple[str, ...]]:
    found = dracut.configured(host, RELEASE)
    return str(found.setting), found.source, found.warnings


def test_it_is_detected_and_tells_its_version(host: Host, write: Write) -> None:
    assert dracut.detect(host)
    _version(write, "059-4")
    assert dracut.version(host) == "059-4"
    host.path("/usr/lib/dracut/dracut-version.sh").unlink()
    assert dracut.version(host) is None
    write("/usr/bin/dracut", '#!/bin/bash\n\nDRACUT_VERSION="112-7"\n').chmod(0o755)
    assert dracut.version(host) == "112-7"


@pytest.mark.parametrize(
    ("version", "programs", "chosen"),
    [
        ("111", (), "zstd"),
        ("103", ("pigz",), "zstd"),
        ("059-4", ("pigz",), "gzip"),
        ("059-4", (), "gzip"),
        ("102", (), "gzip"),
    ],
)
def test_the_default_depends_on_the_version(
    host: Host, write: Write, install: Install, version: str, programs: tuple[str], chosen: str
) -> None:
    install(*programs)
    _version(write, version)
    assert _configured(host) == (chosen, f"default of dracut {version}", ())


def test_without_any_compressor_it_is_cat(host: Host) -> None:
    for program in ("bzip2", "gzip", "lz4", "lzma", "lzop", "xz", "zstd"):
        host.path(f"/usr/bin/{program}").unlink()
    assert _configured(host)[0] == "cat"


def test_drop_ins_are_sorted_by_name_and_etc_hides_others(host: Host, write: Write) -> None:
    write(_CONF, "compress=lz4\n")
    write(f"{_ETC}/10-mine.conf", "compress=xz\n")
    write(f"{_USR}/10-mine.conf", "compress=lzop\n")
    last = write(f"{_USR}/20-vendor.conf", "compress=gzip\n")
    assert _configured(host) == ("gzip", str(last), ())


def test_a_directory_like_a_drop_in_hides_others_and_gives_nothing(
    host: Host, write: Write
) -> None:
    main = write(_CONF, "compress=lz4\n")
    write(f"{_ETC}/x.conf/inside", "compress=xz\n")
    write(f"{_USR}/x.conf", "compress=gzip\n")
    write(f"{_USR}/y.conf/inside", "compress=gzip\n")
    assert _configured(host) == ("lz4", str(main), ())


@pytest.mark.parametrize("name", ["*.conf", "a?.conf", "[a].conf", "a\\b.conf"])
def test_a_name_that_the_shell_takes_for_a_pattern_is_refused(
    host: Host, write: Write, name: str
) -> None:
    write(f"{_ETC}/{name}", "compress=lz4\n")
    with pytest.raises(InitadvisorError, match="for a pattern"):
        dracut.configured(host, RELEASE)


@pytest.mark.parametrize(
    ("name", "setting"),
    [("a\u00a0b.conf", "lz4"), ("two words.conf", "zstd"), ("a.conf\n", "zstd")],
)
def test_names_are_words_as_the_shell_splits_them(
    host: Host, write: Write, name: str, setting: str
) -> None:
    write(f"{_ETC}/{name}", "compress=lz4\n")
    assert _configured(host)[0] == setting


def test_the_directory_in_run_counts_since_109(host: Host, write: Write) -> None:
    write(f"{_RUN}/a.conf", "compress=lz4\n")
    assert _configured(host)[0] == "lz4"
    _version(write, "108")
    assert _configured(host)[0] == "zstd"


def test_a_variable_of_the_configuration_can_replace_compress(host: Host, write: Write) -> None:
    write(_CONF, "compress=lz4\nINITRD_COMPRESS=xz\n")
    assert _configured(host)[0] == "xz"


def test_a_variable_of_the_environment_is_pointed_out(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INITRD_COMPRESS", "xz")
    setting, _, warnings = _configured(host)
    assert setting == "zstd"
    assert "INITRD_COMPRESS=xz" in warnings[0]


@pytest.mark.parametrize(
    ("written", "setting"),
    [
        ("zstd -19", "zstd -19"),
        ("zstd -19 -q -T0", "zstd -19"),
        ("zstd -T0", "zstd -3"),
        ("/usr/bin/zstd", "zstd -3"),
        ("zstd --ultra -22 -q -T0", "zstd --ultra -22"),
        ("lz4 -l -9", "lz4 -9"),
        ("xz --check=crc32 --lzma2=preset=0,dict=1MiB -T0", "xz -0"),
        ("gzip -1 -n --rsyncable", "gzip -1"),
        ("cat", "cat"),
    ],
)
def test_a_command_line_is_taken_as_it_is(
    host: Host, write: Write, written: str, setting: str
) -> None:
    write(_CONF, f'compress="{written}"\n')
    found, source, warnings = _configured(host)
    assert found == setting
    assert source == str(host.path(_CONF))
    assert warnings == ()


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.CAT])
@pytest.mark.parametrize("level", [None, 1])
def test_what_compressor_returns_configures_the_same_setting(
    host: Host, write: Write, codec: Codec, level: int | None
) -> None:
    setting = Setting(codec) if level is None else Setting.at_level(codec, level)
    write(_CONF, f'compress="{" ".join(dracut.compressor(host, setting))}"\n')
    found = dracut.configured(host, RELEASE).setting
    assert dracut.default_level(host, found) == dracut.default_level(host, setting)
    assert dracut.compressor(host, found) == dracut.compressor(host, setting)


@pytest.mark.parametrize(("written", "flag"), [("lz4 -9", "-l"), ("xz -9", "--check=crc32")])
def test_a_command_line_the_kernel_cannot_follow_is_pointed_out(
    host: Host, write: Write, written: str, flag: str
) -> None:
    write(_CONF, f'compress="{written}"\n')
    assert f"without {flag}" in _configured(host)[2][0]


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("gzip -n -5 --rsyncable", "pigz -5 -n -T -R"),
        ("/bin/bzip2 -3", "lbzip2 -3"),
    ],
)
def test_a_command_line_of_another_program_than_dracuts_is_pointed_out(
    host: Host, write: Write, install: Install, written: str, line: str
) -> None:
    install("bzip2", directory="/bin")
    write(_CONF, f'compress="{written}"\n')
    assert _configured(host)[2] == ()
    install("pigz", "lbzip2")
    assert line in _configured(host)[2][0]


@pytest.mark.parametrize("written", ['zstd \\"-19\\"', "zstd '-19'", "zstd -*", "zstd -[1]"])
def test_a_command_line_that_is_not_only_split_is_refused(
    host: Host, write: Write, written: str
) -> None:
    write(_CONF, f'compress="{written}"\n')
    with pytest.raises(InitadvisorError, match="cannot tell what comes of compress="):
        dracut.configured(host, RELEASE)


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("xz -9 --check=crc32", "xz --check=crc32 --lzma2=preset=9,dict=1MiB -T0"),
        ("gzip -9", "gzip -n -9 --rsyncable"),
    ],
)
def test_a_command_line_with_other_flags_than_dracuts_is_pointed_out(
    host: Host, write: Write, written: str, line: str
) -> None:
    write(_CONF, f'compress="{written}"\n')
    assert f"of today's setting is of {line}" in _configured(host)[2][0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("DRACUT_COMPRESS_ZSTD=pzstd\n", "sets DRACUT_COMPRESS_ZSTD"),
        ("confdir=/etc/other\n", "dracut.conf changes confdir"),
        ("compress_l=xz\n", "changes compress_l"),
        ("PATH=/opt\n", "changes PATH"),
        ("IFS=,\n", "changes IFS"),
        ("set -u\n", "changes bash's options"),
        ("trap 'compress=xz' DEBUG\n", "changes bash's options, traps"),
        ("shopt -s nullglob\n", "changes BASHOPTS"),
        ("FUNCNEST=1\n", "changes FUNCNEST"),
        ("declare -r compress\n", "declared with -r"),
        ("compress=usr/bin/lz4\n", "it is no absolute path"),
        ("hash -p /usr/bin/lz4 zstd\n", "changes bash's options"),
        ("enable -n read\n", "changes bash's options"),
        ("[[ $kernel == 6* ]] && compress=lz4\n", r"looks at \$kernel$"),
        ("compress_level_zstd=$level\n", r"looks at \$level$"),
        ("export SOURCE_DATE_EPOCH=1\n", "changes SOURCE_DATE_EPOCH"),
        ("zstd() { cat; }\n", r"changes zstd\(\)"),
        ("builtin() { :; }\n", r"changes builtin\(\)"),
        ("set -e\nbuiltin() { cat; }\ncompress=lz4\n", r"changes (-|bash's options|builtin)"),
        ("export XZ_OPT=-0\n", "changes XZ_OPT"),
        ("readonly compress=lz4\n", "declared with -r"),
        ('compress="gzip -3\r"\n', r"holds the character '\\r'"),
        ('compress="cat /etc/motd"\n', "does not read the image"),
    ],
)
def test_what_is_not_followed_is_refused(host: Host, write: Write, text: str, reason: str) -> None:
    write(_CONF, text)
    with pytest.raises(InitadvisorError, match=reason):
        dracut.configured(host, RELEASE)


def test_a_program_of_another_format_is_an_error(
    host: Host, write: Write, install: Install
) -> None:
    install("lzip")
    write(_CONF, "compress=lzip\n")
    with pytest.raises(InitadvisorError, match="no format that a kernel unpacks"):
        dracut.configured(host, RELEASE)


def test_a_missing_program_falls_back_to_the_default(host: Host, write: Write) -> None:
    host.path("/usr/bin/lzop").unlink()
    write(_CONF, "compress=lzop\n")
    setting, source, warnings = _configured(host)
    assert (setting, source) == ("zstd", "fallback of dracut 111")
    assert "lzop is not installed" in warnings[0]


def test_a_format_the_kernel_lacks_falls_back(host: Host, write: Write) -> None:
    write(_CONF, "compress=lz4\n")
    write(f"/boot/config-{RELEASE}", "# CONFIG_RD_ZSTD is not set\nCONFIG_RD_GZIP=y\n")
    setting, _, warnings = _configured(host)
    assert setting == "gzip"
    assert "does not unpack it" in warnings[0]


def test_until_103_the_kernel_was_asked_about_zstd_only(host: Host, write: Write) -> None:
    _version(write, "059")
    write(f"/boot/config-{RELEASE}", "CONFIG_RD_GZIP=y\n")
    write(_CONF, "compress=lz4\n")
    assert _configured(host)[0] == "lz4"
    write(_CONF, "compress=zstd\n")
    assert _configured(host)[0] == "gzip"


def test_levels_are_known_since_109_and_do_nothing_to_xz(host: Host, write: Write) -> None:
    write(_CONF, "compress=zstd\ncompress_level_zstd=19\n")
    assert _configured(host)[0] == "zstd -19"
    write(_CONF, "compress=xz\ncompress_level_xz=0\n")
    setting, _, warnings = _configured(host)
    assert setting == "xz"
    assert "ignore it" in warnings[0]
    write(_CONF, "compress=zstd\ncompress_level_zstd=19\n")
    _version(write, "108")
    setting, _, warnings = _configured(host)
    assert setting == "zstd"
    assert "not known before dracut 109" in warnings[0]


@pytest.mark.parametrize(
    ("level", "plain", "through_3cpio"),
    [
        ("", "zstd -3", "zstd -3"),
        ("22", "zstd -19", "zstd -19"),
        ("1 -9", "zstd -1 -9", "zstd -9"),
        ("9 --long=27", "zstd -9 --long=27", "zstd -9"),
        ("-9", None, "zstd -1"),
        ("fast", None, "zstd -3"),
        ("0", None, "zstd -1"),
    ],
)
def test_an_odd_level_is_what_the_program_makes_of_it(
    host: Host, write: Write, install: Install, level: str, plain: str | None, through_3cpio: str
) -> None:
    write(_CONF, f'compress=zstd\ncompress_level_zstd="{level}"\n')
    if plain is None:
        with pytest.raises(InitadvisorError, match=f"what comes of .*={level}: "):
            dracut.configured(host, RELEASE)
    else:
        assert _configured(host)[0] == plain
    install("3cpio")
    setting, _, warnings = _configured(host)
    assert setting == through_3cpio
    assert len(warnings) == 1


def test_a_squash_module_forces_cat(host: Host, write: Write) -> None:
    write(_CONF, 'compress=zstd\nadd_dracutmodules+=" squash-erofs "\n')
    setting, _, warnings = _configured(host)
    assert setting == "cat"
    assert "squash" in warnings[0]
    assert "file system compressed on its own" in dracut.context(host)[0]
    write(f"{_ETC}/z.conf", 'omit_dracutmodules+=" squash-erofs "\n')
    assert _configured(host)[0] == "zstd"


def test_a_broken_file_is_passed_over_like_dracut_does(host: Host, write: Write) -> None:
    write(f"{_ETC}/a.conf", "compress=lz4\nif then\n")
    write(f"{_ETC}/b.conf", "hostonly=yes\n")
    assert _configured(host)[0] == "lz4"


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("cat", "cat"),
        ("bzip2", "bzip2 -9"),
        ("gzip", "gzip -n -9 --rsyncable"),
        ("lz4", "lz4 -l -9"),
        ("lz4 -1", "lz4 -l -1"),
        ("lzma", "lzma -9 -T0"),
        ("lzop", "lzop -9"),
        ("xz", "xz --check=crc32 --lzma2=dict=1MiB -T0"),
        ("xz -9e", "xz --check=crc32 --lzma2=preset=9e,dict=1MiB -T0"),
        ("zstd", "zstd -15 -q -T0"),
        ("zstd -19", "zstd -19 -q -T0"),
        ("zstd --long=27", "zstd -15 --long=27 -q -T0"),
    ],
)
def test_the_command_line_is_the_one_dracut_completes(host: Host, text: str, argv: str) -> None:
    assert " ".join(dracut.compressor(host, Setting.parse(text))) == argv


def test_parallel_programs_are_used_where_installed(host: Host, install: Install) -> None:
    install("pigz", "lbzip2")
    assert dracut.compressor(host, Setting(Codec.GZIP)) == ("pigz", "-9", "-n", "-T", "-R")
    assert dracut.compressor(host, Setting(Codec.BZIP2)) == ("lbzip2", "-9")


def test_3cpio_has_command_lines_of_its_own_since_109(
    host: Host, write: Write, install: Install
) -> None:
    install("3cpio", "pigz")
    zstd = dracut.compressor(host, Setting(Codec.ZSTD))
    assert with_stream_size(zstd, 77) == ("zstd", "-q", "-15", "-T0", "--stream-size=77")
    assert dracut.compressor(host, Setting(Codec.XZ)) == ("xz", "--check=crc32", "-T0")
    assert dracut.compressor(host, Setting(Codec.LZMA)) == ("lzma", "-9", "-T0")
    assert dracut.compressor(host, Setting(Codec.GZIP)) == ("pigz", "-9")
    write(_CONF, "reproducible=yes\n")
    assert dracut.compressor(host, Setting(Codec.XZ)) == ("xz", "--check=crc32", "-T1")
    assert dracut.compressor(host, Setting(Codec.GZIP)) == ("gzip", "-n", "-9")
    assert "no other options" in (dracut.unusable(host, Setting.parse("zstd --long=27")) or "")
    assert "19" in (dracut.unusable(host, Setting.parse("zstd -22")) or "")
    assert dracut.unusable(host, Setting.parse("zstd -19")) is None
    write(_CONF, 'compress="zstd -19"\n')
    setting, _, warnings = _configured(host)
    assert setting == "zstd"
    assert "ignores the options" in warnings[0]
    _version(write, "108")
    assert dracut.compressor(host, Setting(Codec.ZSTD)) == ("zstd", "-15", "-q", "-T0")


@pytest.mark.parametrize(
    ("codec", "level"), [(Codec.ZSTD, 15), (Codec.LZ4, 9), (Codec.XZ, 6), (Codec.CAT, None)]
)
def test_the_default_level_is_dracuts(host: Host, codec: Codec, level: int | None) -> None:
    assert dracut.default_level(host, Setting(codec)) == level


def test_images_are_found_under_every_distributions_names(host: Host, write: Write) -> None:
    machine = "0123456789abcdef0123456789abcdef"
    write("/etc/machine-id", f"{machine}\n")
    for path in (
        f"/boot/initramfs-{RELEASE}.img",
        "/boot/initramfs-6.9.9-200.fc40.img",
        "/boot/initramfs-0-rescue-abc.img",
        f"/boot/initramfs-{RELEASE}kdump.img",
        "/boot/initrd.img-6.2.0-deb",
        "/boot/initrd-6.3.0-suse",
        "/boot/initrd.img-6.2.0-deb.bak",
        "/lib/modules/6.4.0/initrd",
        f"/efi/{machine}/6.5.0/initrd",
        f"/efi/EFI/Linux/linux-6.6.0-{machine}.efi",
        f"/efi/EFI/Linux/{machine}-6.7.0+3-1.efi",
        "/efi/EFI/Linux/foreign-6.8.0.efi",
    ):
        write(path, "x")
    found = [(i.kernel_release, i.uki, i.fallback) for i in dracut.images(host)]
    assert found == [
        (RELEASE, False, False),
        ("6.9.9-200.fc40", False, False),
        ("6.7.0", True, False),
        ("6.6.0", True, False),
        ("6.5.0", False, False),
        ("6.4.0", False, False),
        ("6.3.0-suse", False, False),
        ("6.2.0-deb", False, False),
        ("0-rescue-abc", False, True),
    ]


@pytest.mark.parametrize("link", ["efi", "boot/efi"])
def test_an_image_under_two_names_is_one(host: Host, write: Write, link: str) -> None:
    real = "mnt/esp"
    write("/etc/kernel/entry-token", "Default\n")
    write(f"/{real}/Default/{RELEASE}/initrd", "x")
    write("/boot/vmlinuz", "x")
    for name in {"efi", link}:
        host.path(f"/{name}").symlink_to(host.path(f"/{real}"))
    assert [image.path for image in dracut.images(host)] == [
        host.path(f"/{real}/Default/{RELEASE}/initrd")
    ]


def test_an_uncompressed_build_is_not_run_on_a_live_system(
    host: Host, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "is_root", True)
    write("/run/archiso/x", "")
    runner = FakeRunner()
    image = InstalledImage(path=tmp_path / "i", kernel_release=RELEASE)
    with pytest.raises(UnsafeError, match="a live system"):
        dracut.build_uncompressed(Host(root=host.root, runner=runner), image, tmp_path / "t")
    assert runner.calls == []


def test_the_context_tells_of_hostonly_and_compressed_modules(host: Host, write: Write) -> None:
    write(_CONF, "hostonly=yes\n")
    write(f"/lib/modules/{RELEASE}/modules.dep", "kernel/fs/fat/fat.ko.xz:\n")
    assert "only this machine's modules" in dracut.context(host)[0]
    assert ".ko.xz" in dracut.context(host)[1]


def test_extended_patterns_are_mkinitcpios_alone(host: Host, write: Write) -> None:
    """dracut turns them on after it has sourced its configuration."""
    text = "case a in @(a|b)) {}=lz4 ;; esac\n"
    write("/etc/dracut.conf", text.format("compress"))
    assert dracut.configured(host, RELEASE).setting.codec is not Codec.LZ4
    write("/usr/bin/mkinitcpio", "declare -r version='41'\n")
    write("/etc/mkinitcpio.conf", text.format("COMPRESSION"))
    assert mkinitcpio.configured(host, RELEASE).setting.codec is Codec.LZ4


def test_what_would_be_installed_at_once_is_not_built(host: Host, write: Write) -> None:
    """Debian's dracut runs these scripts with what it has made, and can be kept from it."""
    hooks = "run-parts /etc/initramfs/post-update.d"
    write("/usr/bin/dracut", f"#!/bin/sh\n{hooks}\n")
    image = InstalledImage(path=host.path("/boot/initrd.img-6.1.0"), kernel_release="6.1.0")
    words = r"runs the scripts of /etc/initramfs/post-update\.d"
    with pytest.raises(UnsafeError, match=words):
        dracut.build(host, image, host.path("/var/new"), {})
    with pytest.raises(UnsafeError, match=words):
        dracut.build_uncompressed(host, image, host.path("/var/new"))
