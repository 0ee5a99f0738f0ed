"""What is read of a configuration, and written into it, is what the real programs make of it.

The parts of dracut and mkinitramfs that source the files and choose the compressor are cut out of
the real scripts and run in the tree they come from, with its compressors and its 3cpio.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.codecs import Codec, codec_of_magic
from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.generators import dracut, initramfs_tools
from initadvisor.generators.files import with_stream_size
from initadvisor.host.run import SystemRunner
from initadvisor.image.decompressors.decompress import decompress
from tests.fixtures import trees
from tests.fixtures.debian import Suite, debian
from tests.fixtures.hosts import RELEASE, Machine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from initadvisor.generators import Generator
    from tests.fixtures.namespace import Tree

pytestmark = pytest.mark.tools

_PROGRAMS = (
    *("bzip2", "cat", "gzip", "lbzip2", "lz4", "lzma", "lzop", "pigz", "sort", "xz", "zstd"),
)
_TARGETS = [Setting.parse(text) for text in ("zstd", "lz4", "gzip -1")]
_STAMPED = {Codec.LZOP}

_D = "etc/dracut.conf"
_MINE, _USR = "etc/dracut.conf.d", "usr/lib/dracut/dracut.conf.d"

_DRACUT: dict[str, Mapping[str, str]] = {
    "nothing": {},
    "comment": {_D: "#compress=lz4\n # compress=xz\n"},
    **{codec.value: {_D: f"compress={codec}\n"} for codec in Codec},
    "double quotes": {_D: 'compress="lz4"\n'},
    "single quotes": {_D: "compress='lz4'\n"},
    "mixed quotes": {_D: "compress=l\"z\"'4'\n"},
    "carriage return": {_D: "compress=lz4\r\n"},
    "blank behind": {_D: 'compress="zstd "\n'},
    "blank before": {_D: 'compress=" zstd"\n'},
    "tab": {_D: 'compress="zstd\t-19"\n'},
    "empty": {_D: "compress=\n"},
    "unknown program": {_D: "compress=nothing\n"},
    "another program": {_D: "compress=sort\n"},
    "pigz": {_D: "compress=pigz\ncompress_level_gzip=1\n"},
    "lzo": {_D: "compress=lzo\n"},
    "arguments": {_D: 'compress="zstd -19"\n'},
    "path": {_D: 'compress="/usr/bin/zstd"\n'},
    "path and arguments": {_D: 'compress="/usr/bin/lz4 -l -9"\n'},
    "above the limit": {_D: 'compress="zstd -22 -T0"\n'},
    "ultra": {_D: 'compress="zstd --ultra -20 -T0 -q"\n'},
    "its own line": {_D: 'compress="zstd -15 -q -T0"\n'},
    "joined options": {_D: 'compress="zstd -qT0"\n'},
    "level in joined options": {_D: 'compress="zstd -q19"\n'},
    "fast": {_D: 'compress="zstd --fast=3"\n'},
    "xz like dracut": {_D: 'compress="xz --check=crc32 --lzma2=dict=1MiB -T0"\n'},
    "xz of its own": {_D: 'compress="xz -9 --check=crc32"\n'},
    "gzip of its own": {_D: 'compress="gzip -9"\n'},
    "gzip as dracut runs it": {_D: 'compress="gzip -n -5 --rsyncable"\n'},
    "bzip2 of its own": {_D: 'compress="bzip2 -3"\n'},
    "quotes in arguments": {_D: "compress='zstd \"-19\"'\n"},
    "pigz of its own": {_D: 'compress="pigz -9"\n'},
    "an argument that is a file": {_D: 'compress="cat /etc/passwd"\n'},
    "separate value": {_D: 'compress="xz --check=crc32 -T 1"\n'},
    "appended": {_D: 'compress="lz4"\n', f"{_MINE}/a.conf": 'compress+=" -l -9"\n'},
    "appended name": {_D: "compress=z\ncompress+=std\n"},
    "level": {_D: "compress=zstd\ncompress_level_zstd=7\n"},
    "level above the limit": {_D: "compress=zstd\ncompress_level_zstd=22\n"},
    "level of lz4 above the limit": {_D: "compress=lz4\ncompress_level_lz4=16\n"},
    "empty level of lz4": {_D: 'compress=lz4\ncompress_level_lz4=""\n'},
    "empty level of zstd": {_D: "compress=zstd\ncompress_level_zstd=\n"},
    "empty level of gzip": {_D: "compress=gzip\ncompress_level_gzip=\n"},
    "empty level of bzip2": {_D: "compress=bzip2\ncompress_level_bzip2=''\n"},
    "empty level of xz": {_D: "compress=xz\ncompress_level_xz=\n"},
    "empty level of lzma": {_D: "compress=lzma\ncompress_level_lzma=\n"},
    "empty level of lzop": {_D: "compress=lzop\ncompress_level_lzop=\n"},
    "blank level": {_D: 'compress=lz4\ncompress_level_lz4=" "\n'},
    "unset level": {_D: "compress_level_lz4=\nunset compress_level_lz4\ncompress=lz4\n"},
    "level of xz": {_D: "compress=xz\ncompress_level_xz=0\n"},
    "extreme level of xz": {_D: "compress=xz\ncompress_level_xz=9e\n"},
    "level with a dash": {_D: "compress=zstd\ncompress_level_zstd=-9\n"},
    "level with a plus": {_D: "compress=zstd\ncompress_level_zstd=+9\n"},
    "level that is a word": {_D: "compress=zstd\ncompress_level_zstd=best\n"},
    "level 0": {_D: "compress=zstd\ncompress_level_zstd=0\n"},
    "level of two digits for gzip": {_D: "compress=gzip\ncompress_level_gzip=19\n"},
    "level of two digits for bzip2": {_D: "compress=bzip2\ncompress_level_bzip2=19\n"},
    "level and an option": {_D: 'compress=zstd\ncompress_level_zstd="9 --long=27"\n'},
    "two levels": {_D: 'compress=zstd\ncompress_level_zstd="1 -9"\n'},
    "level of another codec": {_D: "compress=zstd\ncompress_level_lz4=\n"},
    "level and no codec": {_D: "compress_level_zstd=3\n"},
    "empty level behind a level": {
        _D: "compress=lz4\ncompress_level_lz4=9\n",
        f"{_MINE}/z.conf": "compress_level_lz4=\n",
    },
    "level in a drop-in": {
        _D: "compress=zstd\n",
        f"{_USR}/10.conf": "compress_level_zstd=3\n",
    },
    "INITRD_COMPRESS": {_D: "compress=lz4\nINITRD_COMPRESS=xz\n"},
    "empty INITRD_COMPRESS": {_D: "compress=lz4\nINITRD_COMPRESS=\n"},
    "several drop-ins": {
        f"{_MINE}/20.conf": "compress=lz4\n",
        f"{_MINE}/9.conf": "compress=xz\n",
        f"{_USR}/100.conf": "compress=gzip\n",
    },
    "same name": {
        f"{_MINE}/50.conf": "compress=lz4\n",
        f"{_USR}/50.conf": "compress=xz\n",
    },
    "same name but for a zero": {
        f"{_MINE}/a1.conf": "compress=lz4\n",
        f"{_USR}/a01.conf": "compress=xz\n",
    },
    "names that do not count": {
        _D: "compress=lz4\n",
        f"{_MINE}/a.conf.dpkg-old": "compress=xz\n",
        f"{_MINE}/a.conf~": "compress=xz\n",
        f"{_MINE}/.hidden.conf": "compress=xz\n",
        f"{_MINE}/.conf": "compress=xz\n",
        f"{_MINE}/two words.conf": "compress=xz\n",
    },
    "another program for a name": {_D: "DRACUT_COMPRESS_ZSTD=lz4\ncompress=zstd\n"},
    "reproducible": {_D: "compress=xz\nreproducible=yes\n"},
    "reproducible gzip": {_D: "compress=gzip\nreproducible=yes\n"},
    "reproducible zstd": {_D: "compress=zstd\nreproducible=yes\n"},
    "a condition": {_D: "[ -e /etc/passwd ] && compress=lz4\n"},
    "a broken file": {_D: "compress=lz4\n", f"{_MINE}/a.conf": "if then\ncompress=xz\n"},
    "a kernel without it": {
        _D: "compress=lz4\n",
        f"boot/config-{RELEASE}": "# CONFIG_RD_LZ4 is not set\nCONFIG_RD_GZIP=y\n",
    },
    "no newline": {_D: "compress=lz4"},
    "no newline and a level": {_D: "compress=lz4\ncompress_level_lz4="},
    "exported": {_D: "export compress=lz4\n"},
    "behind another": {_D: "hostonly=yes; compress=lz4 # why\n"},
    "an array": {_D: "compress=(lz4 -9)\n"},
    "drop-ins of another directory": {
        _D: "confdir=${dracutsysrootdir-}/etc/other\n",
        f"{_MINE}/a.conf": "compress=lz4\n",
        "etc/other/a.conf": "compress=xz\n",
    },
    "drop-ins of one more directory": {
        _D: "add_confdir=${dracutsysrootdir-}/etc/other\n",
        f"{_MINE}/a.conf": "compress=lz4\n",
        "etc/other/b.conf": "compress=xz\n",
    },
    "another base directory": {
        _D: "dracutbasedir=${dracutsysrootdir-}/etc/other\n",
        f"{_USR}/a.conf": "compress=lz4\n",
        "etc/other/dracut.conf.d/a.conf": "compress=xz\n",
    },
    "as if told on the command line": {_D: "compress=lz4\ncompress_l=xz\n"},
    "level as if told": {_D: "compress=lz4\ncompress_level_l=1\n"},
    "no compression as if told": {_D: "compress=lz4\n_no_compress_l=cat\n"},
    "a path": {_D: "PATH=/nowhere\ncompress=lz4\n"},
    "unset variables fail": {_D: "set -u\ncompress=lz4\n"},
    "words split elsewhere": {_D: "IFS=,\ncompress='lz4,-l,-9'\n"},
    "a function of dracut's": {
        _D: "dropindirs_sort() { :; }\ncompress=lz4\n",
        f"{_MINE}/a.conf": "compress=xz\n",
    },
    "a trap": {_D: "trap compress=xz DEBUG\ncompress=lz4\n"},
    "a function like a compressor": {_D: "zstd() { cat; }\ncompress=zstd\n"},
    "not to be changed": {_D: "readonly compress=lz4\n"},
    "xz's own variable": {_D: "export XZ_OPT=-0\ncompress=xz\n"},
    "zstd's own variable": {_D: "export ZSTD_CLEVEL=19\ncompress='zstd -q -T0'\n"},
    "what 3cpio is told": {_D: 'compress="zstd -19"\ncompress_3cpio="lz4 -1"\n'},
    "carriage return behind a level": {_D: "compress=gzip\ncompress_level_gzip=3\r\n"},
    "carriage return in arguments": {_D: 'compress="gzip -3\r"\n'},
    "form feed behind a level": {_D: "compress=zstd\ncompress_level_zstd=3\f\n"},
    "wide digit": {_D: "compress=zstd\ncompress_level_zstd=\uff13\n"},
    "no-break space": {_D: "compress=zstd\ncompress_level_zstd='3\u00a0'\n"},
    "level of a variable's name": {_D: "compress=gzip\ncompress_level_gzip='$x'\n"},
    "level below zero": {_D: "compress=zstd\ncompress_level_zstd=-22\n"},
    "a directory like a drop-in": {
        _D: "compress=lz4\n",
        f"{_MINE}/x.conf/inside": "compress=xz\n",
    },
    "a directory like a packaged drop-in": {
        f"{_MINE}/x.conf/inside": "compress=xz\n",
        f"{_USR}/x.conf": "compress=lz4\n",
    },
    "a name like a pattern": {
        f"{_MINE}/[a].conf": "compress=lz4\n",
        f"{_MINE}/a.conf": "compress=xz\n",
    },
    "a name with a no-break space": {
        _D: "compress=xz\n",
        f"{_MINE}/a\u00a0b.conf": "compress=lz4\n",
    },
}

_I = "etc/initramfs-tools/initramfs.conf"
_LOCAL, _SHARED = "etc/initramfs-tools/conf.d", "usr/share/initramfs-tools/conf.d"
_HOOKS = "usr/share/initramfs-tools/conf-hooks.d"

_INITRAMFS_TOOLS: dict[str, Mapping[str, str]] = {
    **{codec.value: {_I: f"COMPRESS={codec}\n"} for codec in Codec},
    "nothing": {_I: "MODULES=most\n"},
    "empty": {_I: "COMPRESS=\n"},
    "unknown": {_I: "COMPRESS=nothing\n"},
    "another program": {_I: "COMPRESS=sort\n"},
    "arguments": {_I: 'COMPRESS="zstd -19"\n'},
    "pigz": {_I: "COMPRESS=pigz\n"},
    "quotes": {_I: "COMPRESS=\"lz4\"\nCOMPRESSLEVEL='3'\n"},
    "carriage return": {_I: "COMPRESS=lz4\r\n"},
    **{
        f"level {level!r} of {codec}": {_I: f"COMPRESS={codec}\nCOMPRESSLEVEL='{level}'\n"}
        for codec, level in (
            *((Codec.ZSTD, level) for level in ("", " ", "3", "-9", "+9", "19", "22", "0", "09")),
            *((Codec.ZSTD, level) for level in ("-22", "$x", "best", "9 --long=27", "1 -9")),
            *((Codec.ZSTD, level) for level in ("9e", "--9")),
            *((Codec.LZ4, level) for level in ("", "-9", "1", "12", "16", "0")),
            *((Codec.GZIP, level) for level in ("", "-9", "1", "9", "10", "19", "9e", "0", "11")),
            *((Codec.XZ, level) for level in ("", "-9", "0", "9e", "19", "09")),
            *((Codec.LZMA, level) for level in ("-9", "1", "12")),
            *((Codec.BZIP2, level) for level in ("-9", "1", "19")),
            *((Codec.LZOP, level) for level in ("-9", "1", "19")),
        )
    },
    "level survives": {_I: "COMPRESS=nothing\nCOMPRESSLEVEL=7\n"},
    "several drop-ins": {
        _I: "COMPRESS=gzip\n",
        f"{_LOCAL}/9": "COMPRESS=lz4\n",
        f"{_LOCAL}/10": "COMPRESS=xz\nCOMPRESSLEVEL=1\n",
    },
    "same name": {
        _I: "COMPRESS=gzip\n",
        f"{_LOCAL}/a": "COMPRESSLEVEL=2\n",
        f"{_SHARED}/a": "COMPRESS=lz4\n",
        f"{_SHARED}/z": "COMPRESS=xz\n",
    },
    "names that do not count": {
        _I: "COMPRESS=lz4\n",
        f"{_LOCAL}/a.dpkg-old": "COMPRESS=xz\n",
        f"{_LOCAL}/a.dpkg-dist": "COMPRESS=xz\n",
        f"{_LOCAL}/a~": "COMPRESS=xz\n",
        f"{_LOCAL}/.a": "COMPRESS=xz\n",
        f"{_LOCAL}/_a": "COMPRESS=xz\n",
        f"{_LOCAL}/two words": "COMPRESS=xz\n",
        f"{_HOOKS}/.a": "COMPRESS=xz\n",
    },
    "a name with a dot": {_I: "COMPRESS=gzip\n", f"{_LOCAL}/a.conf": "COMPRESS=lz4\n"},
    "a directory like a drop-in": {
        _I: "COMPRESS=gzip\n",
        f"{_LOCAL}/x.conf/inside": "COMPRESS=xz\n",
        f"{_SHARED}/x.conf": "COMPRESS=lz4\n",
    },
    "a name with another letter": {
        _I: "COMPRESS=gzip\n",
        f"{_LOCAL}/gr\u00f6\u00dfe": "COMPRESS=lz4\n",
    },
    "a name with a backslash": {_I: "COMPRESS=gzip\n", f"{_LOCAL}/a\\b": "COMPRESS=lz4\n"},
    "a name over two lines": {_I: "COMPRESS=gzip\n", f"{_LOCAL}/a\nb c": "COMPRESS=lz4\n"},
    "a hook": {_I: "COMPRESS=gzip\n", f"{_HOOKS}/a.dpkg-old": "COMPRESS=lz4\n"},
    "appended": {_I: "COMPRESS=z\nCOMPRESS=${COMPRESS}std\n"},
    "plus": {_I: "COMPRESS=gzip\nCOMPRESS+=x || :\n"},
    "comment": {_I: "COMPRESS=lz4 # COMPRESS=xz\n#COMPRESSLEVEL=1\n"},
    "lower case": {_I: "COMPRESS=gzip\ncompress=lz4\n"},
    "lower case level": {_I: "COMPRESS=lz4\ncompresslevel=3\n"},
    "a kernel without it": {
        _I: "COMPRESS=lz4\n",
        f"boot/config-{RELEASE}": "# CONFIG_RD_LZ4 is not set\nCONFIG_RD_GZIP=y\n",
    },
    "no newline": {_I: "COMPRESS=lz4\nCOMPRESSLEVEL="},
    **{
        f"level {level!r} of {codec}": {_I: f"COMPRESS={codec}\nCOMPRESSLEVEL='{level}'\n"}
        for codec in (Codec.GZIP, Codec.ZSTD)
        for level in ("3\r", "3\f", "3\v", "3\u00a0", "\uff13", "3\x85", "3\n")
    },
    "in a function": {_I: "f() { COMPRESS=lz4; }\nf\n"},
    "in a case": {_I: "case $(uname -s) in Linux) COMPRESS=lz4;; esac\n"},
    "in a group": {_I: "{ COMPRESS=lz4; }\n"},
    "in a subshell": {_I: "COMPRESS=gzip\n(COMPRESS=lz4)\n"},
    "for one command": {_I: "COMPRESS=gzip\nCOMPRESS=lz4 true\n"},
    "level before the codec": {_I: "COMPRESSLEVEL=1\nCOMPRESS=lz4\n"},
    "here-document": {_I: "cat <<EOF >/dev/null\nCOMPRESS=xz\nEOF\nCOMPRESS=lz4\n"},
    "continued": {_I: "COMPRESS=\\\nlz4\n"},
    "not to be changed": {_I: "readonly COMPRESS=lz4\n"},
    "words split elsewhere": {_I: "IFS=-\nCOMPRESS=zstd\nCOMPRESSLEVEL=3\n"},
    "a function like a command": {_I: "command() { ! :; }\nCOMPRESS=lz4\n"},
    "a function like a compressor": {_I: "zstd() { cat; }\nCOMPRESS=zstd\n"},
    "a function of its own": {_I: "load() { :; }\nCOMPRESS=zstd\n"},
    "an alias": {_I: "alias unset=:\nCOMPRESS=zstd\n"},
    "a time to be reproducible": {_I: "SOURCE_DATE_EPOCH=1\nCOMPRESS=xz\n"},
    "a path": {_I: "PATH=/nowhere\nCOMPRESS=lz4\n"},
    "xz's own variable": {_I: "export XZ_OPT=-0\nCOMPRESS=xz\n"},
    "lzop's own variable": {_I: "export LZOP=-9\nCOMPRESS=lzop\n"},
    "drop-ins of another directory": {
        _I: "CONFDIR=/etc/other\nCOMPRESS=gzip\n",
        f"{_LOCAL}/a": "COMPRESS=lz4\n",
    },
    "carriage return behind a level": {_I: "COMPRESS=gzip\nCOMPRESSLEVEL=3\r\n"},
}


@dataclass(frozen=True, kw_only=True)
class _Real:
    """A generator of a tree, and directories in ``work`` that are machines it would run on."""

    generator: Generator
    tree: Tree
    work: Path

    def machine(self, case: str, files: Mapping[str, str]) -> Machine:
        """Return a machine with the tree's programs and these files."""
        host = Machine(root=self.work / case / "root", runner=SystemRunner())
        for name in (*_PROGRAMS, "3cpio"):
            if (self.tree.root / "usr/bin" / name).exists():
                trees.write(host.root, f"/usr/bin/{name}", "#!/bin/sh\n").chmod(0o755)
        for name in ("usr/bin/dracut", "usr/sbin/mkinitramfs"):
            text = (self.tree.root / name).read_text()
            trees.write(host.root, f"/{name}", text).chmod(0o755)
        for name in (_MINE, _LOCAL):
            host.path(f"/{name}").mkdir(parents=True)
        for name, text in files.items():
            trees.write(host.root, f"/{name}", text)
        return host

    def unlike(self, settings: Mapping[Machine, Setting]) -> list[str]:
        """Return of which machines the generator makes other bytes than their setting gives."""
        shell, script = "sh", _mkinitramfs(self.tree)
        if self.generator is dracut:
            shell, script = "bash", _dracut(self.tree)
        for host in settings:
            place = host.root.parent
            (place / "script").write_text(script.replace("/mnt", f"/mnt/{place.name}"))
        self._each(f'{shell} "$d"script')
        compressed = {host: setting for host, setting in settings.items() if self._unpack(host)}
        for host, setting in compressed.items():
            place = host.root.parent
            argv = self.generator.compressor(host, setting)
            argv = with_stream_size(argv, (place / "content").stat().st_size)
            (place / "command").write_text(shlex.join(argv))
        self._each('[ ! -e "$d"command ] || cat "$d"content | sh "$d"command >"$d"own')
        return [
            f"{host.root.parent.name}: not {setting}"
            for host, setting in settings.items()
            if host not in compressed or not self._is_alike(host, setting)
        ]

    def _each(self, command: str) -> None:
        script = f"for d in /mnt/*/; do {command}; done 2>/dev/null; :"
        self.tree.run(["sh", "-c", script], work=self.work)

    def _unpack(self, host: Machine) -> bool:
        """Unpack what was made; False where nothing was."""
        image, content = host.root.parent / "image", host.root.parent / "content"
        made = image.read_bytes() if image.exists() else b""
        codec = _codec(made)
        if codec:
            with image.open("rb") as file:
                content.write_bytes(b"".join(map(bytes, decompress(codec, file, 0, len(made)))))
        return codec is not None

    def _is_alike(self, host: Machine, setting: Setting) -> bool:
        made, own = ((host.root.parent / name).read_bytes() for name in ("image", "own"))
        if _codec(made) is not setting.codec:
            return False
        return len(made) == len(own) if setting.codec in _STAMPED else made == own


def _codec(made: bytes) -> Codec | None:
    return Codec.CAT if made[:6] == b"070701" else codec_of_magic(made[:2])


def _part(text: str, start: str, end: str) -> str:
    """Return the lines from one that matches up to one that does, without that."""
    found = re.search(rf"^{start}.*?(?=^{end})", text, re.MULTILINE | re.DOTALL)
    assert found, f"the script has no {start!r} up to {end!r} any more"
    return found[0]


def _function(text: str, name: str) -> str:
    return _part(text, rf"{name}\(\) \{{", r"\}") + "}\n"


def _dracut(tree: Tree) -> str:
    text = (tree.root / "usr/bin/dracut").read_text()
    functions = (tree.root / "usr/lib/dracut/dracut-functions").read_text()
    return "\n".join(
        (
            "derror() { :; }; dwarn() { :; }; dwarning() { :; }; dinfo() { :; }",
            f"kernel={RELEASE} dracutsysrootdir=/mnt/root dracutbasedir=/mnt/root/usr/lib/dracut",
            _function(text, "check_conf_file"),
            _function(text, "dropindirs_sort"),
            _function(functions, "check_kernel_config"),
            _part(text, "# if we were not passed a config file", "# regenerate_all shouldn't"),
            _part(text, r"\[\[ \$INITRD_COMPRESS", r"\[\[ \$squash_compress_l"),
            _part(text, "# handle compression options", r"check_kernel_compress_support"),
            _function(text, "check_kernel_compress_support"),
            _part(text, r"if \[\[ \$reproducible == yes", "fi") + "fi",
            _part(text, "CPIO=cpio", r"if \[\[ \$enhanced_cpio"),
            _part(text, r"if \[\[ \$compress && \$compress != cat", "create_cpio_with_dracut"),
            "cd /usr",
            "if [[ $CPIO == 3cpio ]]; then",
            '    { [[ $compress_3cpio ]] && echo "#cpio: $compress_3cpio" || echo "#cpio"; '
            "echo bin/dracut; } | 3cpio --create /mnt/image",
            "else",
            "    set -o pipefail",
            "    echo bin/dracut | cpio -o -H newc --quiet | $compress >/mnt/image",
            "fi",
        )
    ).replace("$dracutbasedir/dracut-functions.sh", "/usr/lib/dracut/dracut-functions")


def _mkinitramfs(tree: Tree) -> str:
    text = (tree.root / "usr/sbin/mkinitramfs").read_text()
    chosen = re.search(r'case "\$\{compress\}" in\n\s*gzip\)\s*# If.*?\n\s*esac\n', text, re.DOTALL)
    assert chosen, "mkinitramfs does not choose its compressor here any more"
    choose = _part(text, r'if \[ -z "\$\{compress:-\}"', r"unset COMPRESSLEVEL")
    through_3cpio = "3cpio --create" in text and (tree.root / "usr/bin/3cpio").exists()
    return "\n".join(
        (
            f"export PATH=/usr/bin:/sbin:/bin; CONFDIR=/mnt/root/etc/initramfs-tools "
            f"version={RELEASE}",
            _part(text, r'\. "\$\{CONFDIR\}/initramfs.conf"', "# Check busybox").replace(
                "/usr/share", "/mnt/root/usr/share"
            ),
            choose.replace("/lib/modules", "/mnt/root/lib/modules").replace(
                "/boot/", "/mnt/root/boot/"
            ),
            "unset COMPRESSLEVEL",
            "cd /usr || exit",
            'printf "%s\\n" "#cpio: ${compress%% *} ${compresslevel}" bin/dracut '
            "| 3cpio --create >/mnt/image || exit"
            if through_3cpio
            else chosen[0]
            + "echo bin/dracut | cpio -o -H newc --quiet | $compress -c >/mnt/image || exit",
        )
    )


@pytest.fixture(params=["dracut 3cpio", "dracut", "initramfs-tools 3cpio", "initramfs-tools"])
def real(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Real:
    """Return a generator that makes images itself, or has 3cpio make them."""
    monkeypatch.delenv("INITRD_COMPRESS", raising=False)
    name, _, through = request.param.partition(" ")
    generator: Generator = dracut if name == dracut.NAME else initramfs_tools
    if through:
        tree = debian(Suite.SID, also=(through,))
    else:
        tree = debian(Suite.SID if generator is dracut else Suite.TRIXIE)
    return _Real(generator=generator, tree=tree, work=tmp_path)


def _table(real: _Real) -> Mapping[str, Mapping[str, str]]:
    return _DRACUT if real.generator is dracut else _INITRAMFS_TOOLS


def test_what_is_read_is_what_the_program_makes_of_it_or_refused(real: _Real) -> None:
    settings = {}
    for number, files in enumerate(_table(real).values()):
        host = real.machine(str(number), files)
        with contextlib.suppress(InitadvisorError):
            found = real.generator.configured(host, RELEASE)
            if not any("is not the line that" in warning for warning in found.warnings):
                settings[host] = found.setting
    names = list(_table(real))
    wrong = [line.partition(":") for line in real.unlike(settings)]
    assert [names[int(number)] + what for number, _, what in wrong] == []
    assert len(settings) > len(names) / 2


@pytest.mark.parametrize("target", _TARGETS, ids=str)
def test_what_is_written_is_what_the_program_takes_or_refused(real: _Real, target: Setting) -> None:
    settings = {}
    for number, files in enumerate(_table(real).values()):
        host = real.machine(str(number), files)
        with contextlib.suppress(InitadvisorError):
            edits = real.generator.rewritten(host, RELEASE, target)
            for edit in edits:
                trees.write(host.root, edit.path.removeprefix(str(host.root)), edit.after)
            settings[host] = target
    names = list(_table(real))
    wrong = [line.partition(":") for line in real.unlike(settings)]
    assert [names[int(number)] + what for number, _, what in wrong] == []
    assert len(settings) > len(names) / 2
