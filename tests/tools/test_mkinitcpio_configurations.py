"""What is read of a configuration is what the real mkinitcpio does, before and after a rewrite.

Each case is the files of a machine. mkinitcpio builds with compressors that write down how they
were called; what is read of the same files is the same, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import InitadvisorError
from initadvisor.core.settings import Setting
from initadvisor.generators import mkinitcpio
from initadvisor.host import Host
from initadvisor.host.run import SystemRunner
from tests.fixtures.mkinitcpio import RecordingMkinitcpio, mkinitcpio_system

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.tools

_CONF = "/etc/mkinitcpio.conf"
_PRESET = "/etc/mkinitcpio.d/linux.preset"
_SETTINGS = ("lz4 -9", "gzip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The text of mkinitcpio.conf (behind HOOKS), drop-ins by name, the preset file, other files.

    ``links`` lead from a path to another. ``preset`` is the one that is asked about. ``reading`` is
    not refused, and neither are the settings ``written``. ``warned``: another program runs than the
    setting's, and a warning says so.
    """

    conf: str = ""
    drop_ins: Mapping[str, str] = field(default_factory=dict)
    presets: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    preset: str = "default"
    reading: bool = True
    written: tuple[str, ...] = _SETTINGS
    warned: bool = False


def _conf(
    text: str, *, reading: bool = True, written: tuple[str, ...] = _SETTINGS, warned: bool = False
) -> Case:
    return Case(conf=text, reading=reading, written=written, warned=warned)


def _refused(conf: str = "", presets: str = "") -> Case:
    return Case(conf=conf, presets=presets, reading=False, written=())


def _drop_ins(
    texts: Mapping[str, str],
    conf: str = "COMPRESSION=gzip\n",
    written: tuple[str, ...] = _SETTINGS,
) -> Case:
    return Case(conf=conf, drop_ins=texts, written=written)


def _options(text: str, written: tuple[str, ...] = _SETTINGS) -> Case:
    conf = "COMPRESSION=xz\nCOMPRESSION_OPTIONS=(-6)\n"
    return Case(conf=conf, presets=f"default_options={text}\n", written=written)


_OTHER = {"/etc/other.conf": "HOOKS=(none)\nCOMPRESSION=lz4\n"}
_OPT = "COMPRESSION=xz\nCOMPRESSION_OPTIONS"
CASES = {
    "nothing": _conf(""),
    "a word": _conf("COMPRESSION=xz\n"),
    "double quotes": _conf('COMPRESSION="lzop"\n'),
    "single quotes": _conf("COMPRESSION='bzip2' # why\n"),
    "quotes inside": _conf("COMPRESSION=l\"z\"'4'\n"),
    "a comment": _conf('#COMPRESSION="xz"\n#COMPRESSION_OPTIONS=()\n'),
    "another kernel": _refused("KERNELVERSION=5.4.0\nCOMPRESSION=zstd\n"),
    "neighbours": _conf('#COMPRESSION="xz"\n#COMPRESSION_OPTIONS=()\nMODULES_DECOMPRESS="yes"\n'),
    "decompressed modules": _conf("MODULES_DECOMPRESS=yes\nCOMPRESSION=lzma\n"),
    "two lines": _conf("COMPRESSION=xz\nCOMPRESSION=lz4\n"),
    "one line": _conf("COMPRESSION=xz; COMPRESSION=lz4;\n"),
    "tabs": _conf("\tCOMPRESSION=xz\t\n\tCOMPRESSION_OPTIONS=(\t-9\t-e\t)\t# x\n"),
    "carriage returns": _conf("COMPRESSION=xz\r\nCOMPRESSION_OPTIONS=(-9)\r\n"),
    "no newline at the end": _conf("COMPRESSION=xz"),
    "continued": _conf("COMPRESSION=x\\\nz\n", written=()),
    "appended": _conf("COMPRESSION=lz\nCOMPRESSION+=ma\n"),
    "empty": _conf("COMPRESSION=\nCOMPRESSION_OPTIONS=(-9)\n"),
    "cat": _conf("COMPRESSION=cat\n"),
    "cat with options": _conf("COMPRESSION=cat\nCOMPRESSION_OPTIONS=(-9)\n"),
    "another cat": _conf("COMPRESSION=/usr/bin/cat\n"),
    "another cat with options": _conf(
        "COMPRESSION=/usr/bin/cat\nCOMPRESSION_OPTIONS=(-9)\n", reading=False
    ),
    "no program": _conf("COMPRESSION=none\nCOMPRESSION_OPTIONS=(-9)\n"),
    "two words": _conf('COMPRESSION="zstd -19"\n'),
    "a path": _conf("COMPRESSION=/mnt/usr/bin/lz4\nCOMPRESSION_OPTIONS=(-9)\n", warned=True),
    "an array's first": _conf("COMPRESSION=(lz4 xz)\n"),
    "an array without first": _conf("COMPRESSION=([1]=lz4)\n", written=()),
    "an element": _conf("COMPRESSION[0]=lz4\n", written=()),
    "exported": _conf("export COMPRESSION=xz COMPRESSION_OPTIONS=-9\n"),
    "readonly codec": _conf("readonly COMPRESSION=xz\n", written=()),
    "readonly options": _refused("readonly COMPRESSION_OPTIONS=(-9)\n"),
    "upper case": _conf("declare -u COMPRESSION=xz\n", written=()),
    "unset": _conf("COMPRESSION=xz\nunset COMPRESSION\n", written=()),
    "substituted": _conf("COMPRESSION=$(echo xz)\n", written=()),
    "a default": _conf(': "${COMPRESSION:=lz4}"\n', written=()),
    "evaluated": _conf("eval COMPRESSION=lz4\n", written=()),
    "conditional": _conf("if true; then COMPRESSION=xz; fi\n", written=()),
    "by kernel": _conf("case $KERNELVERSION in 6.*) COMPRESSION=xz ;; esac\n", written=()),
    **{
        f"by {what}": _refused(f"COMPRESSION=xz\n{test} && COMPRESSION=lz4\n:\n")
        for what, test in {
            "the preset": "[[ $MKINITCPIO_PROCESS_PRESET == *default ]]",
            "the kernel's image": "[[ ! -v KERNELIMAGE ]]",
            "the version": "((version >= 41))",
            "the user": "((!EUID))",
            "the script": "[[ $0 == */mkinitcpio ]]",
            "the file": "[[ ${BASH_SOURCE[0]} != /proc/* ]]",
            "a function": "declare -F add_module",
            "a function's kind": "[[ $(type -t add_module) == function ]]",
            "a function's work": "quiet x",
            "its variables": "set | grep -q ^_optquiet",
            "its traps": "[[ $(trap -p EXIT) ]]",
            "its callers": "caller",
            "write access": "[[ -w /mnt ]]",
            "limits": "[[ $(ulimit -v) == unlimited ]]",
            "a variable's name": "n=version; ((n > 40))",
            "a reference": "declare -n n=version; [[ $n ]]",
            "shell's options": "[[ $- != *c* ]]",
        }.items()
    },
    "another program's name": _refused("hash -p /mnt/usr/bin/lz4 xz\nCOMPRESSION=xz\n"),
    "a builtin that is off": _refused("enable -n read\nCOMPRESSION_OPTIONS='-9 -e'\n"),
    "stops at errors": _refused("set -e\nCOMPRESSION=xz\n"),
    "a trap": _refused("trap 'COMPRESSION=lz4' DEBUG\nCOMPRESSION=xz\n"),
    "returned": _conf("COMPRESSION=xz\nreturn 0\nCOMPRESSION=lz4\n", written=()),
    "fails": _refused("COMPRESSION=xz\n[ -e /nowhere ]\n"),
    "a relative path": _conf("COMPRESSION=./usr/bin/lz4\n", reading=False),
    "a directory of mkinitcpio's": _refused("BUILDROOT=/tmp/x\nCOMPRESSION=xz\n"),
    "a depth of functions": _refused("FUNCNEST=1\nCOMPRESSION=xz\n"),
    "commands to pass over": _refused("EXECIGNORE='*/xz'\nCOMPRESSION=xz\n"),
    "a function taken away": _refused("unset -f validate_compression\nCOMPRESSION=xz\n"),
    "options not set and readonly": _refused("COMPRESSION=xz\ndeclare -r COMPRESSION_OPTIONS\n"),
    "not closed": _refused("COMPRESSION='xz\n"),
    "a function": _refused("xz() { :; }\nCOMPRESSION=xz\n"),
    "a function for builtins": _refused("builtin() { :; }\nCOMPRESSION=xz\n"),
    "a function for find": _refused("find() { :; }\nCOMPRESSION=xz\n"),
    "a function of mkinitcpio's": _refused(
        "arrayize_config() { :; }\nCOMPRESSION_OPTIONS='-9 -e'\n"
    ),
    "POSIX mode": _refused("set -o posix\nCOMPRESSION=xz\n"),
    "a loop": _conf("for COMPRESSION in lz4 xz; do :; done\n", written=()),
    "a here-document": _conf("read -r COMPRESSION <<E\nxz\nE\n", written=()),
    "a search path": _refused("PATH=/usr/bin\nCOMPRESSION=xz\n"),
    "an option's variable": _refused("_optcompress=xz\n"),
    "options alone": _conf("COMPRESSION_OPTIONS=(-9)\n"),
    "array": _conf(f"{_OPT}=(-9 -e)\n"),
    "array with blanks": _conf(f"{_OPT}=(-9 'a b' \"\" c\\ d)\n"),
    "array of one empty": _conf(f"{_OPT}=('')\n"),
    "array over lines": _conf(f"{_OPT}=(\n  -9 # best\n\n  -e\n)\n"),
    "array braces": _conf(f"{_OPT}=(-{{9,e}})\n", written=()),
    "array glob": _conf(f"{_OPT}=(-*)\n", written=()),
    "array appended": _conf(f"{_OPT}=(-9)\nCOMPRESSION_OPTIONS+=(-e)\n"),
    "array appended only": _conf(f"{_OPT}+=(-9)\n"),
    "array with a string appended": _conf(f"{_OPT}=(-9 -v)\nCOMPRESSION_OPTIONS+=e\n"),
    "string with an array appended": _conf(f"{_OPT}='-9 -v'\nCOMPRESSION_OPTIONS+=(-e)\n"),
    "array of a blank": _conf(f"{_OPT}=( )\n"),
    "array with a closing comment": _conf(f"{_OPT}=(-9 # )\n -e)\n"),
    "array of a variable": _conf(f"more=-e\n{_OPT}=(-9 $more)\n", written=()),
    "array set after all": _conf(f"unset COMPRESSION_OPTIONS\n{_OPT}=(-9)\n"),
    "array empty": _conf(f"{_OPT}=()\n"),
    "array without first": _conf(f"{_OPT}=([1]=-9 [3]=-e)\n", written=()),
    "array closed oddly": _conf(f"{_OPT}=(-9)x\n", written=()),
    "array declared": _conf("declare -a COMPRESSION_OPTIONS\nCOMPRESSION=xz\n", written=()),
    "array declared with values": _conf(
        "declare -a COMPRESSION_OPTIONS=(-9)\nCOMPRESSION=xz\n", written=()
    ),
    "array of names": _refused("declare -A COMPRESSION_OPTIONS=([a]=-9)\n"),
    "numbers": _refused("declare -i COMPRESSION_OPTIONS=-9\nCOMPRESSION=xz\n"),
    "options unset": _conf(f"{_OPT}=(-9)\nunset COMPRESSION_OPTIONS\n", written=()),
    "string": _conf(f"{_OPT}='-9 -e'\n"),
    "string empty": _conf(f"{_OPT}=\n"),
    "string of blanks": _conf(f"{_OPT}='  -9   -e '\n"),
    "string with tabs": _conf(f"{_OPT}='-9\t-e -v'\n"),
    "string with quotes": _conf(f"{_OPT}='-9 \"-e -v\"'\n"),
    "string with a backslash": _conf(f"{_OPT}='-9\\ -e'\n"),
    "string over lines": _conf(f"{_OPT}='-9\n-e'\n"),
    "string that starts with a newline": _conf(f"{_OPT}='\n-9'\n"),
    "string with escapes": _conf(f"{_OPT}=$'-9\\n-e'\n", written=()),
    "string with a glob": _conf(f"{_OPT}='-9 /mnt/*'\n"),
    "string appended": _conf(f"{_OPT}=-9\nCOMPRESSION_OPTIONS+=' -e'\n"),
    "string and another IFS": _conf(f"IFS=,\n{_OPT}='-9,-e -v'\n"),
    "versions": _drop_ins({"10-b.conf": "COMPRESSION=lz4\n", "9-a.conf": "COMPRESSION=xz\n"}),
    "dotted versions": _drop_ins(
        {"a-1.10.conf": "COMPRESSION=lz4\n", "a-1.2.conf": "COMPRESSION=xz\n"}
    ),
    "tilde and case": _drop_ins(
        {
            "a~.conf": "COMPRESSION=lz4\n",
            "a.conf": "COMPRESSION=xz\n",
            "B.conf": "COMPRESSION=bzip2\n",
        }
    ),
    "same numbers": _drop_ins(
        {"1-a.conf": "COMPRESSION=lz4\n", "01-a.conf": "COMPRESSION=xz\n"}, written=()
    ),
    "no name": _drop_ins({".conf": "COMPRESSION=xz\n"}),
    "hidden": _drop_ins({".a.conf": "COMPRESSION=xz\n", "conf": "COMPRESSION=lz4\n"}),
    "blanks in names": _drop_ins({"a b.conf": "COMPRESSION=xz\n", "a\nb.conf": "FILES=()\n"}),
    "appended by a drop-in": _drop_ins({"a.conf": "COMPRESSION_OPTIONS+=(-e)\n"}, f"{_OPT}=(-9)\n"),
    "unset by a drop-in": _drop_ins({"a.conf": "unset COMPRESSION\n"}, written=()),
    "joined lines": _drop_ins({"a.conf": "ma\n"}, "COMPRESSION=lz", written=()),
    "joined comment": _drop_ins({"a.conf": "COMPRESSION=lz4\nFILES=()"}, "COMPRESSION=xz\n#"),
    "linked": Case(
        files={"/etc/there": "COMPRESSION=xz\n"},
        links={
            f"{_CONF}.d/a.conf": "../there",
            f"{_CONF}.d/b.conf": "/dev/null",
            f"{_CONF}.d/c.conf": "nowhere",
            f"{_CONF}.d/d.conf": "../mkinitcpio.d",
        },
    ),
    "a preset that is not the first": Case(
        presets="PRESETS=(fallback default)\nfallback_image=/boot/fallback\n"
        "fallback_options='-z gzip'\n"
    ),
    "the fallback": Case(
        presets="PRESETS=(fallback)\nfallback_image=/boot/fallback\n", preset="fallback"
    ),
    "config of all": Case(
        presets="ALL_config=/etc/other.conf\n",
        files=_OTHER,
        drop_ins={"a.conf": "COMPRESSION=xz\n"},
    ),
    "config of one": Case(
        presets="ALL_config=/etc/none.conf\ndefault_config=/etc/other.conf\n", files=_OTHER
    ),
    "config that is the usual one": Case(
        presets=f"ALL_config={_CONF}\n", drop_ins={"a.conf": "COMPRESSION=xz\n"}
    ),
    "config that is missing": Case(
        presets="ALL_config=/etc/none.conf\n", reading=False, written=()
    ),
    "a preset file that fails": _refused(presets="[ -e /nowhere ]\n"),
    "a preset file for the environment": _refused(presets="export MKINITCPIO_CONF=/etc/none\n"),
    **{
        f"a preset file with {text.strip()}": _refused("COMPRESSION=xz\n", text)
        for text in (
            *("export XZ_OPT=-0\n", "PATH=/nowhere\n", "set -u\n", "mapfile() { :; }\n"),
            "[[ $preset ]] && default_options='-z lz4'\n",
            *("readonly p=x\n", "readonly ret=0\n", "readonly preset_cmd=x\n"),
            *("OPTREST=(-z lz4)\n", "preset_mkopts=(-z lz4)\n", "BASH_ARGV0=/bin/true\n"),
        )
    },
    "a directory that is missing": _refused(presets="default_options='-d /nowhere'\n"),
    "a splash image that is missing": _refused(presets="default_splash=/nowhere\n"),
    "a command line that is missing": _refused(presets="default_options='--cmdl=/nowhere'\n"),
    "config in an option": Case(
        presets=f"ALL_config={_CONF}\ndefault_options='-vc /etc/other.conf'\n", files=_OTHER
    ),
    "config in an option, another missing": Case(
        presets="ALL_config=/etc/none.conf\ndefault_options='-vc /etc/other.conf'\n",
        files=_OTHER,
        reading=False,
        written=(),
    ),
    "config of the second": Case(
        presets="PRESETS=(fallback default)\nfallback_image=/boot/fallback\n"
        "fallback_config=/etc/none.conf\ndefault_config=/etc/other.conf\n",
        files=_OTHER,
    ),
    "presets in a string": Case(conf="COMPRESSION=xz\n", presets="PRESETS=default\n"),
    "a preset that stops the others": Case(
        conf="COMPRESSION=xz\n",
        presets="PRESETS=(default 6-1 fallback)\nfallback_image=/boot/fallback\n",
    ),
    "a unified image": Case(
        conf="COMPRESSION=xz\n", presets="default_image=\ndefault_uki=/boot/default.efi\n"
    ),
    "an old name of a unified image": Case(
        conf="COMPRESSION=xz\n",
        presets="unset default_image\ndefault_efi_image=/boot/default.efi\n",
    ),
    "an image and a unified one": Case(
        conf="COMPRESSION=lz4\n", presets="default_uki=/boot/default.efi\n"
    ),
    "no kernel": Case(conf="COMPRESSION=lz4\n", presets="default_kver=none\n"),
    "no kernel, nothing set": Case(presets="default_kver=none\n"),
    "option": _options("'-z lz4'", ("lz4 -9",)),
    "option, joined": _options("-zlz4", ("lz4 -9",)),
    "option in a bundle": _options("-vzlz4", ("lz4 -9",)),
    "option, long": _options("--compress=lz4", ("lz4 -9",)),
    "option, cut": _options("'--comp lz4'", ("lz4 -9",)),
    "option, cut, joined": _options("'--comp=lz4'", ("lz4 -9",)),
    "option, ambiguous": _refused(presets="default_options='--co lz4'\n"),
    "option that is none": _refused(presets="default_options=-xzlz4\n"),
    "option without a value": _refused(presets="default_options='-v -z'\n"),
    "option with a path": Case(
        conf="COMPRESSION=xz\n",
        presets="default_options='-z /mnt/usr/bin/lz4'\n",
        written=(),
        warned=True,
    ),
    "option twice": _options("'-z lz4 --compress=gzip'", ("gzip",)),
    "option behind the end": _options("'-v -- -z lz4'"),
    "option as a value": _options("'-S -z lz4'"),
    "option after two blanks": _options("'-v  -z lz4 '", ("lz4 -9",)),
    "option and two blanks": _refused(presets="default_options='-z  lz4'\n"),
    "option and a tab": _options("$'-z\\tlz4'", ()),
    "options in an array": _options("(-z lz4 -S 'a b')", ("lz4 -9",)),
    "option that ends with =": _options("'--compress=lz4='", ("lz4 -9",)),
    "option over lines": _options("$'--compress=lz4\\nx'", ("lz4 -9",)),
    "option cat": _options("'-z cat'", ()),
    "option none": _options("'-z none'", ()),
    "options declared": _options("\ndeclare -a default_options=(-z lz4)", ("lz4 -9",)),
    "options empty": _options("''"),
    "option for the version": _refused(presets="default_options=-V\n"),
    "same as the option": _options("'-z xz'", ()),
}


@pytest.fixture
def machine(tmp_path: Path) -> RecordingMkinitcpio:
    return RecordingMkinitcpio.make(mkinitcpio_system(), tmp_path)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_mkinitcpio_does_what_is_read_and_what_was_written(
    machine: RecordingMkinitcpio, case: Case
) -> None:
    host = Host(root=machine.root, runner=SystemRunner())
    release = _write(machine, case)
    made = machine.compressors().get(case.preset)
    try:
        found = mkinitcpio.configured(host, release)
    except InitadvisorError:
        found = None
    assert (found is not None) is case.reading
    if found:
        command = mkinitcpio.compressor(host, found.setting)
        assert (command == made) is not case.warned
        assert found.warnings or not case.warned
    written: list[str] = []
    for setting in map(Setting.parse, _SETTINGS):
        try:
            edits = mkinitcpio.rewritten(host, release, setting)
        except InitadvisorError:
            continue
        written.append(str(setting))
        for edit in edits:
            Path(edit.path).write_text(edit.after, newline="")
        assert machine.compressors()[case.preset] == mkinitcpio.compressor(host, setting)
    assert tuple(written) == case.written


def _write(machine: RecordingMkinitcpio, case: Case) -> str:
    """Write the files; return what the kernel of the preset in question is called."""
    presets = (
        f"PRESETS=(default)\nALL_kver={machine.tree.release}\n"
        f"default_image=/boot/default\n{case.presets}"
    )
    files = {
        _CONF: f"HOOKS=(none)\n{case.conf}",
        _PRESET: presets,
        **{f"{_CONF}.d/{name}": text for name, text in case.drop_ins.items()},
        **case.files,
    }
    for path, text in files.items():
        (machine.root / path.lstrip("/")).write_text(text, newline="")
    for path, target in case.links.items():
        (machine.root / path.lstrip("/")).symlink_to(target)
    return "none" if "kver=none" in case.presets else machine.tree.release
