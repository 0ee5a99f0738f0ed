"""initramfs-tools' setting is what would take effect, and its command lines are mkinitramfs'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import InstalledImage, initramfs_tools
from initadvisor.generators.files import with_stream_size
from tests.fixtures.hosts import RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.host import Host
    from tests.fixtures.hosts import Install, Write

_CONF = "/etc/initramfs-tools/initramfs.conf"
_LOCAL = "/etc/initramfs-tools/conf.d"
_SHARED = "/usr/share/initramfs-tools/conf.d"


@pytest.fixture(autouse=True)
def _debian(write: Write, install: Install) -> None:
    """Put initramfs-tools with the usual compressors on the machine."""
    install("bzip2", "gzip", "lz4", "lzma", "lzop", "xz", "zstd", "cat")
    install("update-initramfs", "mkinitramfs", directory="/usr/sbin")
    write(_CONF, "MODULES=most\nCOMPRESS=zstd\n")


def _configured(host: Host) -> tuple[str, str, tuple[str, ...]]:
    found = initramfs_tools.configured(host, RELEASE)
    return str(found.setting), found.source, found.warnings


def test_it_is_detected_by_update_initramfs(host: Host) -> None:
    assert initramfs_tools.detect(host)
    host.path("/usr/sbin/update-initramfs").unlink()
    assert not initramfs_tools.detect(host)


def test_the_version_is_the_installed_packages(host: Host, write: Write) -> None:
    write(
        "/var/lib/dpkg/status",
        "Package: initramfs-tools-core\nStatus: install ok installed\nVersion: 0.142+deb12u3\n\n"
        "Package: dracut\nStatus: deinstall ok config-files\nVersion: 1\n",
    )
    assert initramfs_tools.version(host) == "0.142+deb12u3"


def test_the_configuration_names_codec_and_level(host: Host, write: Write) -> None:
    assert _configured(host) == ("zstd", str(host.path(_CONF)), ())
    write(_CONF, "COMPRESS=xz\nCOMPRESSLEVEL=9\n")
    assert _configured(host)[0] == "xz -9"


def test_drop_ins_follow_and_etc_masks_others_of_the_same_name(host: Host, write: Write) -> None:
    write(f"{_SHARED}/50-a", "COMPRESS=lzop\n")
    write(f"{_LOCAL}/50-a", ":\n")
    write(f"{_SHARED}/90-b", "COMPRESS=xz\n")
    last = write(f"{_LOCAL}/10-c", "COMPRESS=lz4\n")
    write(f"{_LOCAL}/99-d.dpkg-old", "COMPRESS=gzip\n")
    write(f"{_LOCAL}/.hidden", "COMPRESS=gzip\n")
    assert _configured(host) == ("lz4", str(last), ())


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("a\\b", "lz4"),
        ("a\nb c", "lz4"),
        ("a.dpkg-old\nb", "lz4"),
        ("a b", "zstd"),
        ("a\u00e9 ", "zstd"),
    ],
)
def test_names_of_drop_ins_are_those_that_grep_finds(
    host: Host, write: Write, name: str, setting: str
) -> None:
    write(f"{_LOCAL}/{name}", "COMPRESS=lz4\n")
    assert _configured(host)[0] == setting


def test_a_name_that_the_locale_decides_on_is_refused(host: Host, write: Write) -> None:
    write(f"{_SHARED}/gr\u00f6\u00dfe", "COMPRESS=lz4\n")
    with pytest.raises(InitadvisorError, match="its locale decides"):
        initramfs_tools.configured(host, RELEASE)


def test_package_hooks_have_the_last_word(host: Host, write: Write) -> None:
    hook = write("/usr/share/initramfs-tools/conf-hooks.d/x", "COMPRESS=gzip\n")
    assert _configured(host)[:2] == ("gzip", str(hook))


@pytest.mark.parametrize("value", ["zstd -19", "lz5", "lz4\r"])
def test_what_is_no_program_means_gzip(host: Host, write: Write, value: str) -> None:
    write(_CONF, f"COMPRESS='{value}'\n")
    setting, _, warnings = _configured(host)
    assert setting == "gzip"
    assert "mkinitramfs uses gzip" in warnings[0]
    assert "\r" not in warnings[0]


def test_cat_means_gzip_where_the_kernel_tells_its_formats(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESS=cat\n")
    with pytest.raises(InitadvisorError, match="does not know how to run COMPRESS='cat'"):
        initramfs_tools.configured(host, RELEASE)
    write(f"/boot/config-{RELEASE}", "CONFIG_RD_GZIP=y\n")
    setting, _, warnings = _configured(host)
    assert setting == "gzip"
    assert "'cat' is unknown to mkinitramfs" in warnings[0]
    assert "COMPRESS=cat" in (initramfs_tools.unusable(host, Setting(Codec.CAT)) or "")


def test_a_level_survives_the_fall_back(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESS=lz5\nCOMPRESSLEVEL=19\n")
    setting, _, warnings = _configured(host)
    assert setting == "gzip -9"
    assert "gzip makes gzip -9 of gzip -19" in warnings[1]


@pytest.mark.parametrize(
    ("text", "plain", "through_3cpio"),
    [
        ("COMPRESSLEVEL=-9", None, "zstd -1"),
        ("COMPRESSLEVEL=22", "zstd -19", "zstd -19"),
        ("COMPRESSLEVEL=", "zstd", "zstd"),
        ("COMPRESSLEVEL='12 --long'", "zstd -12 --long", "zstd -12"),
        ("COMPRESS=lz4 COMPRESSLEVEL=16", "lz4 -12", "lz4 -12"),
        ("COMPRESS=gzip COMPRESSLEVEL=10", None, "gzip -9"),
        ("COMPRESS=gzip COMPRESSLEVEL=\uff13", None, "gzip -6"),
        ("COMPRESS=xz COMPRESSLEVEL=9e", "xz -9e", "xz -6"),
    ],
)
def test_a_level_is_what_comes_of_it_behind_a_dash(
    host: Host, write: Write, install: Install, text: str, plain: str | None, through_3cpio: str
) -> None:
    conf = write(_CONF, "COMPRESS=zstd\n")
    more = write(f"{_LOCAL}/more", f"{text}\n")
    if plain is None:
        with pytest.raises(InitadvisorError, match="what comes of COMPRESSLEVEL="):
            initramfs_tools.configured(host, RELEASE)
    else:
        assert _configured(host)[0] == plain
    install("3cpio")
    write("/usr/sbin/mkinitramfs", "3cpio --create -C x\n").chmod(0o755)
    setting, source, _ = _configured(host)
    assert setting == through_3cpio
    if "COMPRESS=" in text:
        assert source == str(more)
    elif not text.endswith("="):
        assert source == f"{conf}, COMPRESSLEVEL in {more}"


def test_the_last_file_that_sets_it_is_named_be_it_to_the_same(host: Host, write: Write) -> None:
    write(f"{_LOCAL}/a", "COMPRESS=zstd\n")
    last = write(f"{_LOCAL}/b", "OTHER=1\nCOMPRESS='zstd'\n")
    write(f"{_LOCAL}/c", "# COMPRESS=zstd\nif false; then COMPRESS=xz; fi\n")
    assert _configured(host)[1] == str(last)


def test_3cpio_has_command_lines_of_its_own(host: Host, write: Write, install: Install) -> None:
    install("3cpio")
    assert " ".join(initramfs_tools.compressor(host, Setting(Codec.ZSTD))) == "zstd -q -9 -T0 -c"
    write("/usr/sbin/mkinitramfs", "3cpio --create -C x\n").chmod(0o755)
    argv = initramfs_tools.compressor(host, Setting(Codec.ZSTD))
    assert with_stream_size(argv, 7) == ("zstd", "-q", "-9", "-T0", "--stream-size=7")
    assert initramfs_tools.compressor(host, Setting(Codec.GZIP)) == ("gzip", "-n")
    assert "no level above 19" in (initramfs_tools.unusable(host, Setting.parse("zstd -22")) or "")


@pytest.mark.parametrize(
    "path", [f"/boot/config-{RELEASE}", f"/lib/modules/{RELEASE}/config-{RELEASE}"]
)
def test_a_kernel_without_the_format_gets_gzip(host: Host, write: Write, path: str) -> None:
    write(path, "# CONFIG_RD_ZSTD is not set\nCONFIG_RD_GZIP=y\n")
    setting, _, warnings = _configured(host)
    assert setting == "gzip"
    assert "does not unpack zstd" in warnings[0]


@pytest.mark.parametrize("config", ["", "# CONFIG_RD_ZSTD is not set\n"])
def test_a_kernel_without_gzip_either_stops_mkinitramfs(
    host: Host, write: Write, config: str
) -> None:
    write(f"/boot/config-{RELEASE}", config)
    with pytest.raises(InitadvisorError, match="does not unpack gzip"):
        initramfs_tools.configured(host, RELEASE)


def test_a_variable_of_its_own_that_is_set_is_refused(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESS=zstd\ncompresslevel=3\n")
    with pytest.raises(InitadvisorError, match=r"initramfs\.conf sets its own variable compressl"):
        initramfs_tools.configured(host, RELEASE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CONFDIR=/etc/other\n", "changes CONFDIR"),
        ("PATH=/opt\n", "changes PATH"),
        ("IFS=-\n", "changes IFS"),
        ("set -e\n", "changes sh's options"),
        ("alias case=:\n", "changes sh's options, traps, aliases or commands"),
        ('case "$1" in *) COMPRESS=lz4 ;; esac\n', r"looks at \$1$"),
        ("command() { :; }\n", r"changes command\(\)"),
        ("zstd() { cat; }\n", r"changes zstd\(\)"),
        ("export SOURCE_DATE_EPOCH=1\n", "changes SOURCE_DATE_EPOCH"),
        ("export ZSTD_NBTHREADS=1\n", "changes ZSTD_NBTHREADS"),
        ("readonly COMPRESS=lz4\n", "keeps it from telling"),
    ],
)
def test_what_mkinitramfs_goes_on_to_use_is_refused(
    host: Host, write: Write, text: str, reason: str
) -> None:
    write(f"{_LOCAL}/a", text)
    with pytest.raises(InitadvisorError, match=reason):
        initramfs_tools.configured(host, RELEASE)


def test_no_compress_at_all_stops_mkinitramfs(host: Host, write: Write) -> None:
    write(_CONF, "MODULES=most\n")
    with pytest.raises(InitadvisorError, match="sets COMPRESS"):
        initramfs_tools.configured(host, RELEASE)


def test_a_syntax_error_ends_the_shell_like_it_ends_mkinitramfs(host: Host, write: Write) -> None:
    write(f"{_LOCAL}/a", "if then\n")
    with pytest.raises(InitadvisorError, match="ends the shell") as raised:
        initramfs_tools.configured(host, RELEASE)
    assert "yntax error" in (raised.value.hint or "")


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("cat", "cat"),
        ("gzip", "gzip -c"),
        ("gzip -9", "gzip -9 -c"),
        ("bzip2", "bzip2 -c"),
        ("lzma -9", "lzma -9 -c"),
        ("lzop", "lzop -c"),
        ("lz4", "lz4 -9 -l -c"),
        ("lz4 -1", "lz4 -1 -l -c"),
        ("xz", "xz --check=crc32 --threads=0 -c"),
        ("xz -0", "xz -0 --check=crc32 --threads=0 -c"),
        ("zstd", "zstd -q -9 -T0 -c"),
        ("zstd -19", "zstd -q -19 -T0 -c"),
    ],
)
def test_the_command_line_is_mkinitramfs(host: Host, text: str, argv: str) -> None:
    assert " ".join(initramfs_tools.compressor(host, Setting.parse(text))) == argv


def test_pigz_takes_the_place_of_gzip(host: Host, install: Install) -> None:
    install("pigz")
    assert initramfs_tools.compressor(host, Setting(Codec.GZIP)) == ("pigz", "-c")


def test_a_distributions_own_default_level_is_read_from_the_script(
    host: Host, write: Write
) -> None:
    assert initramfs_tools.default_level(host, Setting(Codec.ZSTD)) == 9
    write("/usr/sbin/mkinitramfs", 'zstd)\tcompresslevel="-${compresslevel:-1}" ;;\n')
    assert initramfs_tools.default_level(host, Setting(Codec.ZSTD)) == 1
    assert initramfs_tools.compressor(host, Setting(Codec.ZSTD))[2] == "-1"


def test_nothing_but_a_level_can_be_configured(host: Host) -> None:
    assert initramfs_tools.unusable(host, Setting.parse("zstd -19")) is None
    assert initramfs_tools.unusable(host, Setting.parse("zstd --long=27"))
    assert initramfs_tools.unusable(host, Setting.parse("zstd --ultra -22"))


def test_images_are_those_of_boot_without_backups(host: Host, write: Write) -> None:
    for name in (f"initrd.img-{RELEASE}", "initrd.img-6.12.1", "initrd.img-6.2.0", "initrd.img"):
        write(f"/boot/{name}", "x")
    write(f"/boot/initrd.img-{RELEASE}.bak", "x")
    write("/boot/initrd.img-6.2.0.dpkg-bak", "x")
    assert [i.kernel_release for i in initramfs_tools.images(host)] == [RELEASE, "6.12.1", "6.2.0"]


def test_it_builds_nothing_uncompressed(host: Host, tmp_path: Path) -> None:
    image = InstalledImage(path=tmp_path / "i", kernel_release=RELEASE)
    with pytest.raises(UnsafeError):
        initramfs_tools.build_uncompressed(host, image, tmp_path / "t")


@pytest.mark.parametrize(
    ("modules", "words"), [("dep", "small image"), ("list", "listed"), ("most", "many machines")]
)
def test_the_context_tells_of_modules(host: Host, write: Write, modules: str, words: str) -> None:
    write(_CONF, f"MODULES={modules}\nCOMPRESS=zstd\n")
    assert words in initramfs_tools.context(host)[0]


@pytest.mark.parametrize("word", ["case", "cd", "test"])
def test_a_word_of_the_shell_is_taken_for_a_program(host: Host, write: Write, word: str) -> None:
    write(_CONF, f"COMPRESS={word}\n")
    with pytest.raises(InitadvisorError, match="it does not know how to run"):
        initramfs_tools.configured(host, RELEASE)


def test_a_kernels_configuration_that_cannot_be_looked_at_is_an_error(host: Host) -> None:
    host.path("/boot").mkdir(parents=True)
    with pytest.raises(InitadvisorError, match=r"cannot look at .*config-xxx"):
        initramfs_tools.configured(host, "x" * 300)


def test_a_directory_for_a_kernels_configuration_stops_it(host: Host) -> None:
    host.path(f"/boot/config-{RELEASE}").mkdir(parents=True)
    with pytest.raises(InitadvisorError, match="is a directory"):
        initramfs_tools.configured(host, RELEASE)
