"""mkinitcpio's setting is what would take effect, not what is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.errors import InitadvisorError, NeedsRootError, UnsafeError
from initadvisor.core.settings import Setting
from initadvisor.generators import InstalledImage, mkinitcpio
from initadvisor.generators.mkinitcpio_config import kernel_image_release
from initadvisor.host import Host
from tests.fakes.runner import FakeRunner
from tests.fixtures.hosts import RELEASE
from tests.fixtures.kernels import bzimage
from tests.fixtures.loader_machines import efi_stub_machine, grub_machine

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.hosts import Install, Write
    from tests.fixtures.loader_machines import Machine

_CONF = "/etc/mkinitcpio.conf"
_PRESET = "/etc/mkinitcpio.d/linux.preset"


@pytest.fixture(autouse=True)
def _arch(write: Write, install: Install) -> None:
    """Put mkinitcpio 41 with the usual compressors on the machine."""
    install("bzip2", "cat", "gzip", "lz4", "lzma", "lzop", "xz", "zstd")
    write("/usr/bin/mkinitcpio", "#!/bin/bash\ndeclare -r version='41'\n").chmod(0o755)
    write(_CONF, "HOOKS=(base autodetect)\n")


def _configured(host: Host) -> tuple[str, str, tuple[str, ...]]:
    found = mkinitcpio.configured(host, RELEASE)
    return str(found.setting), found.source, found.warnings


def test_it_is_detected_and_tells_its_version(host: Host) -> None:
    assert mkinitcpio.detect(host)
    assert mkinitcpio.version(host) == "41"


def test_without_a_setting_it_is_zstd(host: Host) -> None:
    assert _configured(host) == ("zstd", "default of mkinitcpio 41", ())


def test_a_kernel_before_zstd_gets_gzip(host: Host, write: Write) -> None:
    assert mkinitcpio.configured(host, "5.4.1-lts").setting == Setting(Codec.GZIP)
    write(_CONF, 'COMPRESSION="zstd"\nCOMPRESSION_OPTIONS=(-19)\n')
    found = mkinitcpio.configured(host, "5.4.1-lts")
    assert found.setting == Setting(Codec.GZIP)
    assert "does not unpack zstd" in found.warnings[0]


def test_the_configuration_names_codec_and_options(host: Host, write: Write) -> None:
    file = write(_CONF, 'COMPRESSION="xz"\nCOMPRESSION_OPTIONS=(-9 -e)\n')
    assert _configured(host) == ("xz -9 -e", str(file), ())


def test_options_may_be_words_in_a_string(host: Host, write: Write) -> None:
    write(_CONF, 'COMPRESSION="zstd"\nCOMPRESSION_OPTIONS="-19 --long=27"\n')
    assert _configured(host)[0] == "zstd -19 --long=27"


def test_a_string_of_options_is_split_at_spaces_in_its_first_line(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=zstd\nCOMPRESSION_OPTIONS=$' -19  -v\\t-q \\n-T1'\n")
    assert mkinitcpio.configured(host, RELEASE).setting.options == ("-19", "-v\t-q")
    write(_CONF, "COMPRESSION=zstd\nCOMPRESSION_OPTIONS=$'\\n-19'\n")
    assert _configured(host)[0] == "zstd"


def test_an_array_counts_as_its_first_element_which_may_be_unset(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=(xz lz4)\n")
    assert _configured(host)[0] == "xz"
    write(_CONF, "COMPRESSION=([1]=lz4)\nCOMPRESSION_OPTIONS=([1]=-9)\n")
    assert _configured(host)[0] == "zstd -9"


def test_drop_ins_follow_in_version_order_and_the_last_wins(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=xz\n")
    last = write(f"{_CONF}.d/10-last.conf", "COMPRESSION=lz4\nCOMPRESSION_OPTIONS+=(-9)\n")
    write(f"{_CONF}.d/9-first.conf", "COMPRESSION=gzip\nCOMPRESSION_OPTIONS=(-v)\n")
    write(f"{_CONF}.d/zz-not-read", "COMPRESSION=lzop\n")
    assert _configured(host) == ("lz4 -v -9", str(last), ())


def test_a_drop_in_may_have_no_name_but_its_suffix(host: Host, write: Write) -> None:
    write(f"{_CONF}.d/.conf", "COMPRESSION=lz4\n")
    assert _configured(host)[0] == "lz4"
    write(f"{_CONF}.d/.hidden.conf", "COMPRESSION=xz\n")
    write(f"{_CONF}.d/conf", "COMPRESSION=lzop\n")
    assert _configured(host)[0] == "xz"


def test_of_drop_ins_whose_names_count_as_the_same_one_is_read(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=gzip\n")
    for name, codec in (("1-a", "xz"), ("01-a", "lz4"), ("001-a", "lzop")):
        write(f"{_CONF}.d/{name}.conf", f"COMPRESSION={codec}\n")
    first = next(host.path(f"{_CONF}.d").iterdir())
    setting, source, warnings = _configured(host)
    assert (f"COMPRESSION={setting}\n", source) == (first.read_text(), str(first))
    assert "mkinitcpio reads one, whichever is first" in warnings[0]
    with pytest.raises(UnsafeError, match="whichever is first"):
        mkinitcpio.rewritten(host, RELEASE, Setting(Codec.ZSTD))


def test_a_drop_in_is_not_added_with_a_name_that_counts_as_another(
    host: Host, write: Write
) -> None:
    host.path(_CONF).unlink()
    host.path(_CONF).symlink_to(write("/usr/share/mkinitcpio.conf", "COMPRESSION=xz\n"))
    write(f"{_CONF}.d/090-initadvisor.conf", "MODULES=()\n")
    (edit,) = mkinitcpio.rewritten(host, RELEASE, Setting(Codec.LZ4))
    assert edit.path == str(host.path(f"{_CONF}.d/zz-initadvisor.conf"))


def test_drop_ins_are_not_looked_for_behind_a_link(host: Host, write: Write) -> None:
    write("/etc/other.d/a.conf", "COMPRESSION=lz4\n")
    host.path(f"{_CONF}.d").symlink_to(host.path("/etc/other.d"))
    assert _configured(host)[0] == "zstd"


def test_versions_before_36_know_no_drop_ins(host: Host, write: Write) -> None:
    write("/usr/bin/mkinitcpio", "declare -r version=35.2\n").chmod(0o755)
    write(f"{_CONF}.d/a.conf", "COMPRESSION=lz4\n")
    assert _configured(host)[0] == "zstd"


def test_a_file_without_a_last_newline_runs_into_the_next(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=lz4")
    write(f"{_CONF}.d/a.conf", "COMPRESSION_OPTIONS=(-9)\n")
    with pytest.raises(InitadvisorError, match="would refuse its configuration") as raised:
        mkinitcpio.configured(host, RELEASE)
    assert "newline" in (raised.value.hint or "")


def test_a_missing_last_newline_can_silently_change_the_value(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=lz4")
    write(f"{_CONF}.d/a.conf", "MODULES=\n")
    setting, _, warnings = _configured(host)
    assert setting == "cat"
    assert "'lz4MODULES='" in warnings[0]


@pytest.mark.parametrize("value", ["zstd -19", "lz5", "lz4\r"])
def test_what_is_no_program_means_an_uncompressed_image(
    host: Host, write: Write, value: str
) -> None:
    write(_CONF, f"COMPRESSION='{value}'\n")
    setting, _, warnings = _configured(host)
    assert setting == "cat"
    assert "silently builds uncompressed images" in warnings[0]
    assert "\r" not in warnings[0]


def test_a_program_that_is_not_installed_means_an_uncompressed_image(
    host: Host, write: Write
) -> None:
    host.path("/usr/bin/lzop").unlink()
    write(_CONF, "COMPRESSION=lzop\n")
    assert _configured(host)[0] == "cat"


def test_a_path_loses_the_flags_that_the_kernel_needs(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=/usr/bin/lz4\n")
    setting, _, warnings = _configured(host)
    assert setting == "lz4"
    assert "leaves out -l" in warnings[0]


def test_a_program_of_another_format_is_an_error(
    host: Host, write: Write, install: Install
) -> None:
    install("lzip")
    write(_CONF, "COMPRESSION=lzip\n")
    with pytest.raises(InitadvisorError, match="no format that a kernel unpacks"):
        mkinitcpio.configured(host, RELEASE)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("xz() { :; }\nCOMPRESSION=lz4\n", r"mkinitcpio\.conf changes xz\(\)"),
        ("create_image() { :; }\n", r"mkinitcpio\.conf changes create_image\(\)"),
        ("POSIXLY_CORRECT=1\n", "changes bash's options"),
        ("PATH=/opt:$PATH\n", "changes PATH"),
        ("unset KERNELVERSION\n", "changes KERNELVERSION"),
        ("_optcompress=xz\n", "changes _optcompress"),
        ("set -e\n", "changes bash's options"),
        ("declare -A COMPRESSION_OPTIONS=([a]=-9)\n", "declared with -A"),
        ("readonly COMPRESSION_OPTIONS=-9\n", "declared with -r"),
        ("COMPRESSION_OPTIONS=(-9)\r\n", r"holds the character '\\r'"),
        ("export XZ_OPT=-0\n", "changes XZ_OPT"),
        ("COMPRESSION=/usr/bin/cat\nCOMPRESSION_OPTIONS=(-v)\n", "no format that a kernel"),
    ],
)
def test_what_changes_mkinitcpio_itself_is_an_error(
    host: Host, write: Write, text: str, said: str
) -> None:
    write(_CONF, text)
    with pytest.raises(InitadvisorError, match=said):
        mkinitcpio.configured(host, RELEASE)


def test_an_image_for_no_kernel_gets_gzip(host: Host) -> None:
    assert mkinitcpio.configured(host, "none").setting == Setting(Codec.GZIP)


def test_options_without_a_codec_are_pointed_out(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION_OPTIONS=(-19)\n")
    assert _configured(host)[0] == "zstd -19"
    assert "without COMPRESSION" in _configured(host)[2][0]


def test_an_uncompressed_image_has_no_options(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=cat\nCOMPRESSION_OPTIONS=(-19)\n")
    assert _configured(host)[0] == "cat"


def test_a_presets_config_switches_the_drop_ins_off(host: Host, write: Write) -> None:
    write(f"{_CONF}.d/a.conf", "COMPRESSION=xz\n")
    write("/etc/other.conf", "COMPRESSION=gzip\n")
    write(
        _PRESET,
        f"PRESETS=(default)\nALL_kver={RELEASE}\nALL_config=/etc/other.conf\ndefault_image=/boot/i\n",
    )
    assert _configured(host)[0] == "gzip"


def test_each_image_is_asked_about_with_its_own_preset(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=gzip\n")
    write("/etc/mkinitcpio-fallback.conf", "COMPRESSION=xz\n")
    write(
        "/etc/mkinitcpio.d/linux.preset",
        f"PRESETS=(default fallback)\nALL_kver={RELEASE}\ndefault_image=/boot/linux.img\n"
        "fallback_image=/boot/rescue.img\nfallback_config=/etc/mkinitcpio-fallback.conf\n",
    )
    rescue = InstalledImage(path=host.path("/boot/rescue.img"), kernel_release=RELEASE)
    assert mkinitcpio.configured(host, RELEASE).setting == Setting(Codec.GZIP)
    assert mkinitcpio.configured(host, RELEASE, image=rescue).setting == Setting(Codec.XZ)
    (edit,) = mkinitcpio.rewritten(host, RELEASE, Setting(Codec.LZ4), image=rescue)
    assert edit.path == str(host.path("/etc/mkinitcpio-fallback.conf"))
    texts = {host.path(_CONF): "COMPRESSION=lz4\n"}
    assert mkinitcpio.rewritten(host, RELEASE, Setting(Codec.LZ4), texts=texts) == ()


def test_a_presets_compress_option_wins_but_keeps_the_options(host: Host, write: Write) -> None:
    write(_CONF, "COMPRESSION=zstd\nCOMPRESSION_OPTIONS=(-9)\n")
    preset = write(
        _PRESET,
        f"PRESETS=(default)\nALL_kver={RELEASE}\ndefault_image=/boot/i\n"
        "default_options='-S autodetect --compress=gzip -z lz4'\n",
    )
    assert _configured(host) == ("lz4 -9", f"option -z in {preset}", ())


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ("'--comp lz4'", "lz4"),
        ("'--comp=lz4'", "lz4"),
        ("'--compress lz4 --com=xz'", "xz"),
        ("'-vzlz4'", "lz4"),
        ("'-nsz lz4'", "lz4"),
        ("'-S -z --compress=lz4'", "lz4"),
        ("'-S -zxz'", "zstd"),
        ("'x --verbose= -zlz4 -- -zxz'", "lz4"),
        ("' -v  -zlz4 '", "lz4"),
        ("(-z lz4 '-S a b')", "lz4"),
        ("'--compress=lz4='", "lz4"),
        ("'-c /etc/other.conf'", "gzip"),
        ("'--conf=/etc/other.conf'", "gzip"),
        ("'-vc/etc/other.conf -zlz4'", "lz4"),
    ],
)
def test_options_of_a_preset_are_read_as_parseopts_does(
    host: Host, write: Write, options: str, setting: str
) -> None:
    write("/etc/other.conf", "COMPRESSION=gzip\n")
    write(
        _PRESET,
        f"PRESETS=(a)\nALL_kver={RELEASE}\na_image=/boot/i\na_options={options}\n",
    )
    assert _configured(host)[0] == setting


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--co lz4", "option '--co' is ambiguous"),
        ("--squash", "option '--squash' is not known"),
        ("-vx", "invalid option -- 'x'"),
        ("-S autodetect -z", "option '-z' requires an argument"),
        ("--compress=", "option '--compress' requires an argument"),
        ("--verbose=1", "option '--verbose' doesn't allow an argument"),
        ("-zlz4 -P", "with -P it makes no image"),
    ],
)
def test_options_that_stop_mkinitcpio_are_an_error_that_names_the_preset(
    host: Host, write: Write, options: str, said: str
) -> None:
    file = write(
        _PRESET,
        f"PRESETS=(a)\nALL_kver={RELEASE}\na_image=/boot/i\na_options='{options}'\n",
    )
    write("/boot/i", "x")
    with pytest.raises(InitadvisorError) as raised:
        mkinitcpio.configured(host, RELEASE)
    assert raised.value.message == f"the preset a in {file} stops mkinitcpio: {said}"
    assert len(mkinitcpio.images(host)) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("false\n", "sourcing it returns 1"),
        ("export MKINITCPIO_CONF=/etc/x\n", "it sets MKINITCPIO_CONF, which mkinitcpio itself"),
        ("export XZ_OPT=-0\n", "it sets XZ_OPT, which mkinitcpio itself"),
        ("PATH=/nowhere\n", "it sets PATH, which mkinitcpio itself"),
        ("set -u\n", "it sets bash's options, traps, aliases or commands, which mkinitcpio itself"),
        ("mapfile() { :; }\n", r"it sets mapfile\(\), which mkinitcpio itself"),
        ("OPTREST=(-z lz4)\n", "it sets OPTREST, which mkinitcpio itself"),
        ("preset_mkopts=(-z lz4)\n", "it sets preset_mkopts, which mkinitcpio itself"),
        ("readonly p=x\n", "it sets p, which mkinitcpio itself"),
        ("[[ $preset ]] && a_options=-zlz4\n", r"it looks at \$preset, which may be another"),
        ("BASH_ARGV0=/bin/true\n", "it sets BASH_ARGV0, which mkinitcpio itself"),
        ("export BASH_ENV=/etc/x\n", "it sets BASH_ENV, which mkinitcpio itself"),
        ("a_options='-d /etc/x'\n", "there is no /etc/x"),
        ("a_options=--builddir=/etc/x\n", "there is no /etc/x"),
        ("a_config=/etc/x\n", "there is no /etc/x"),
        ("ALL_splash=/etc/x\n", "there is no /etc/x"),
        ("a_options=--osr=/etc/x\n", "there is no /etc/x"),
    ],
)
def test_a_preset_that_mkinitcpio_stops_at_is_an_error(
    host: Host, write: Write, text: str, said: str
) -> None:
    write(_PRESET, f"PRESETS=(a)\nALL_kver={RELEASE}\na_image=/boot/i\n{text}")
    with pytest.raises(InitadvisorError, match=said):
        mkinitcpio.configured(host, RELEASE)


def test_functions_of_mkinitcpio_are_not_asked_for(host: Host, write: Write) -> None:
    write("/usr/lib/initcpio/functions", "quiet() {\n}\n\nfunction msg2() { :; }\n")
    for asked in ("[[ $(type -t quiet) ]]", "msg2 x"):
        write("/etc/mkinitcpio.conf", f"COMPRESSION=xz\n{asked} && COMPRESSION=lz4\n:\n")
        with pytest.raises(InitadvisorError, match=r"looks at (quiet|msg2)$"):
            mkinitcpio.configured(host, RELEASE)


def test_options_may_say_what_a_preset_is_made_of(host: Host, write: Write, tmp_path: Path) -> None:
    image = InstalledImage(path=write("/boot/j", "x"), kernel_release="6.9.1")
    write(
        _PRESET,
        f"PRESETS=(a)\nALL_kver={RELEASE}\na_image=/boot/i\na_uki=\na_efi_image=/efi/old.efi\n"
        "a_options='-k6.9.1 --generate=/boot/j -Sautodetect -- -g/boot/k'\n",
    )
    assert mkinitcpio.images(host) == (image,)
    assert mkinitcpio.uncompressed_command(host, image, tmp_path / "t") == (
        *("mkinitcpio", "-k", "6.9.1", "-S", "autodetect"),
        *("-z", "cat", "-g", str(tmp_path / "t"), "--nopost"),
    )


def test_bash_reads_no_preset_behind_one_whose_name_no_variable_has(
    host: Host, write: Write
) -> None:
    write(_PRESET, f"PRESETS=(a b-c d)\nALL_kver={RELEASE}\na_image=/boot/a\nd_image=/boot/d\n")
    write("/boot/a", "x")
    write("/boot/d", "x")
    assert [found.path.name for found in mkinitcpio.images(host)] == ["a"]


def test_no_configuration_is_an_error_that_names_the_file(host: Host) -> None:
    host.path(_CONF).unlink()
    with pytest.raises(InitadvisorError, match=r"there is no .*/etc/mkinitcpio\.conf"):
        mkinitcpio.configured(host, RELEASE)


@pytest.mark.parametrize(
    ("text", "argv"),
    [
        ("cat", "cat"),
        ("gzip -9", "gzip -9"),
        ("bzip2", "bzip2"),
        ("lzma", "lzma"),
        ("lzop -9", "lzop -9"),
        ("xz -9", "xz --check=crc32 -9"),
        ("lz4 -9", "lz4 -l -9"),
        ("zstd -19", "zstd -T0 -19"),
    ],
)
def test_the_command_line_is_the_one_of_build_image(host: Host, text: str, argv: str) -> None:
    assert " ".join(mkinitcpio.compressor(host, Setting.parse(text))) == argv


@pytest.mark.parametrize(
    ("version", "threads"), [("34", False), ("35", True), ("39.2", True), ("40", False)]
)
def test_versions_35_to_39_ran_xz_with_threads(
    host: Host, write: Write, version: str, threads: bool
) -> None:
    write("/usr/bin/mkinitcpio", f"declare -r version={version}\n")
    assert ("-T0" in mkinitcpio.compressor(host, Setting(Codec.XZ))) is threads
    assert mkinitcpio.needs_own_uncompressed(host) is (float(version) >= 39)


@pytest.mark.parametrize("codec", Codec)
def test_the_default_level_is_the_compressors_own(host: Host, codec: Codec) -> None:
    assert mkinitcpio.default_level(host, Setting(codec)) == codec.spec.level
    if codec is not Codec.CAT:
        assert mkinitcpio.default_level(host, Setting(codec, ("-2",))) == 2
        assert mkinitcpio.default_level(host, Setting(codec, ("--fast",))) is None


def test_a_kernel_tells_its_release() -> None:
    assert kernel_image_release(bzimage("6.9.1-arch1-1")) == "6.9.1-arch1-1"
    assert kernel_image_release(b"\0" * 0x400) is None
    assert kernel_image_release(b"") is None
    assert kernel_image_release(bzimage("6.9.1")[:0x210]) is None


def test_the_running_kernels_default_image_comes_first(host: Host, write: Write) -> None:
    write("/boot/vmlinuz-linux", bzimage(RELEASE).decode())
    write("/boot/vmlinuz-linux-zen", bzimage("6.99.0-zen").decode())
    for name in ("linux", "linux-zen"):
        write(
            f"/etc/mkinitcpio.d/{name}.preset",
            f"PRESETS=('default' 'fallback')\nALL_kver='/boot/vmlinuz-{name}'\n"
            f"default_image='/boot/initramfs-{name}.img'\ndefault_uki=/efi/EFI/Linux/{name}.efi\n"
            f"fallback_image='/boot/initramfs-{name}-fallback.img'\n",
        )
        for suffix in ("", "-fallback"):
            write(f"/boot/initramfs-{name}{suffix}.img", "x")
    write("/efi/EFI/Linux/linux.efi", "x")
    found = mkinitcpio.images(host)
    assert [(i.path.name, i.kernel_release, i.uki, i.fallback) for i in found] == [
        ("initramfs-linux.img", RELEASE, False, False),
        ("linux.efi", RELEASE, True, False),
        ("initramfs-linux-zen.img", "6.99.0-zen", False, False),
        ("initramfs-linux-fallback.img", RELEASE, False, True),
        ("initramfs-linux-zen-fallback.img", "6.99.0-zen", False, True),
    ]


@pytest.mark.parametrize("machine", [grub_machine, efi_stub_machine])
def test_the_default_boot_entry_says_which_preset_makes_what_boots(
    host: Host, write: Write, machine: Callable[[Path], Machine]
) -> None:
    installed = machine(host.root).installed
    host.path("/boot").mkdir(exist_ok=True)
    write("/boot/rescue.img", "x")
    write("/etc/other.conf", "COMPRESSION=xz\n")
    for presets in ("rescue fallback mine", "mine fallback rescue"):
        write(
            _PRESET,
            f"PRESETS=({presets})\nALL_kver={RELEASE}\nrescue_image=/boot/rescue.img\n"
            f"fallback_image={installed}.link\nfallback_config=/etc/other.conf\n"
            f"mine_image={installed}.none\n",
        )
        host.path(f"{installed}.link").unlink(missing_ok=True)
        host.path(f"{installed}.link").symlink_to(host.path(installed))
        found = mkinitcpio.images(host)
        assert [(i.path.name, i.fallback) for i in found] == [
            (f"{Path(installed).name}.link", False),
            ("rescue.img", True),
        ]
        assert _configured(host)[0] == "xz"


@pytest.mark.parametrize("presets", ["fallback default", "default fallback"])
def test_where_no_entry_tells_what_boots_it_is_not_the_fallback(
    host: Host, write: Write, presets: str
) -> None:
    write(
        _PRESET,
        f"PRESETS=({presets})\nALL_kver={RELEASE}\ndefault_image=/boot/d\n"
        "fallback_image=/boot/f\nfallback_options='-z lz4'\n",
    )
    write("/boot/d", "x")
    write("/boot/f", "x")
    found = mkinitcpio.images(host)
    assert [(i.path.name, i.fallback) for i in found] == [("d", False), ("f", True)]
    assert _configured(host)[0] == "zstd"
    write(_PRESET, f"PRESETS=(fallback)\nALL_kver={RELEASE}\nfallback_image=/boot/f\n")
    assert [(i.path.name, i.fallback) for i in mkinitcpio.images(host)] == [("f", False)]


def test_an_image_is_that_of_the_preset_that_writes_it_last(host: Host, write: Write) -> None:
    image = InstalledImage(path=write("/boot/i", "x"), kernel_release=RELEASE)
    other = InstalledImage(path=write("/old/boot/i", "x"), kernel_release=RELEASE)
    write(
        _PRESET,
        f"PRESETS=(a b)\nALL_kver={RELEASE}\na_image=/boot/i\na_options=-zxz\n"
        "b_image=/boot//i\nb_options=-zlz4\n",
    )
    assert mkinitcpio.configured(host, RELEASE, image=image).setting == Setting(Codec.LZ4)
    assert mkinitcpio.configured(host, RELEASE, image=other).setting == Setting(Codec.ZSTD)
    assert [found.path for found in mkinitcpio.images(host)] == [image.path]


def test_a_kernel_that_may_not_be_read_is_found_by_its_package(host: Host, write: Write) -> None:
    write(_PRESET, "PRESETS=(default)\nALL_kver=/boot/vmlinuz-linux\ndefault_image=/boot/i\n")
    write("/boot/i", "x")
    write("/usr/lib/modules/6.7.8-arch1/pkgbase", "linux\n")
    (found,) = mkinitcpio.images(host)
    assert found.kernel_release == "6.7.8-arch1"
    os.mkfifo(host.path("/boot/vmlinuz-linux"))  # nor is a pipe waited for
    assert mkinitcpio.images(host) == (found,)


def test_presets_without_image_or_kernel_are_skipped(host: Host, write: Write) -> None:
    write(
        _PRESET, f"PRESETS=(a b c)\na_image=/boot/a\nb_kver={RELEASE}\nc_kver=6\nc_image=/boot/c\n"
    )
    write("/boot/a", "x")
    assert mkinitcpio.images(host) == ()


@pytest.mark.usefixtures("ordinary_user")
def test_a_boot_directory_for_root_only_needs_root(
    host: Host, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(_PRESET, f"PRESETS=(default)\nALL_kver={RELEASE}\ndefault_image=/boot/i\n")
    real = Path.stat

    def stat(self: Path, **kwargs: bool) -> object:
        if "/boot" in str(self):
            raise PermissionError(13, "Permission denied")
        return real(self, **kwargs)

    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(NeedsRootError, match="/boot/i: only root may"):
        mkinitcpio.images(host)


def test_an_uncompressed_build_follows_the_preset(host: Host, write: Write, tmp_path: Path) -> None:
    image = InstalledImage(path=write("/boot/f.img", "x"), kernel_release=RELEASE, fallback=True)
    write(
        _PRESET,
        f"PRESETS=(default fallback)\nALL_kver={RELEASE}\ndefault_image=/boot/d.img\n"
        "fallback_image=/boot/f.img\nfallback_config=/etc/f.conf\n"
        "fallback_options='-S autodetect'\n",
    )
    assert mkinitcpio.uncompressed_command(host, image, tmp_path / "t") == (
        *("mkinitcpio", "-k", RELEASE, "-c", "/etc/f.conf", "-S", "autodetect"),
        *("-z", "cat", "-g", str(tmp_path / "t"), "--nopost"),
    )


def test_nothing_is_built_in_a_container(
    host: Host, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "is_root", True)
    write("/run/.containerenv", "")
    runner = FakeRunner()
    contained = Host(root=host.root, runner=runner)
    image = InstalledImage(path=tmp_path / "i", kernel_release=RELEASE)
    with pytest.raises(UnsafeError, match="a container"):
        mkinitcpio.build_uncompressed(contained, image, tmp_path / "t")
    assert runner.calls == []


def test_nothing_is_built_without_root(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "is_root", False)
    image = InstalledImage(path=tmp_path / "i", kernel_release=RELEASE)
    with pytest.raises(NeedsRootError):
        mkinitcpio.build_uncompressed(host, image, tmp_path / "t")


def test_the_context_tells_where_compressed_modules_go(host: Host, write: Write) -> None:
    assert "uncompressed part in front" in mkinitcpio.context(host)[0]
    write(_CONF, "MODULES_DECOMPRESS=yes\nHOOKS=(base)\n")
    assert "stored decompressed" in mkinitcpio.context(host)[0]
