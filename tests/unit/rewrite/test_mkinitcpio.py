"""mkinitcpio.conf and its drop-ins: what is edited, and what is left to be changed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from initadvisor.core.errors import RefusedRewriteError
from initadvisor.core.settings import Setting
from initadvisor.rewrite.expressions import may_set_any
from initadvisor.rewrite.files import ConfigFile, FileEdit
from initadvisor.rewrite.syntax import Command, Shell
from initadvisor.rewrite.variables import mkinitcpio_edits
from tests.fixtures.operations import grows_in_proportion
from tests.fixtures.rewritten_texts import with_mkinitcpio
from tests.fixtures.shells import values_of

if TYPE_CHECKING:
    from collections.abc import Callable

_DEFAULT = """# vim:set ft=sh:
# Modules that are loaded before any hook runs:
#     MODULES=(usbhid xhci_hcd)
MODULES=()

# The order of the hooks is important.
HOOKS=(base udev autodetect
       block filesystems fsck)

# COMPRESSION
# zstd if nothing is chosen; 'cat' makes an image that isn't compressed.
#COMPRESSION="zstd"
#COMPRESSION="xz"
#COMPRESSION="lz4"

# COMPRESSION_OPTIONS
# What the compressor is told besides
#COMPRESSION_OPTIONS=()

# Switch (yes/no).
#MODULES_DECOMPRESS="no"
"""


def test_the_default_file_gets_a_line_below_each_commented_default() -> None:
    rewritten = with_mkinitcpio(_DEFAULT, Setting.parse("zstd -19 -T2"))
    before = _DEFAULT.split("\n")
    assert rewritten.text.split("\n") == [
        *before[:14],
        'COMPRESSION="zstd"',
        *before[14:18],
        "COMPRESSION_OPTIONS=(-19 -T2)",
        *before[18:],
    ]
    assert rewritten.changed_lines == (15, 20)


def test_a_setting_without_options_adds_no_line_for_them() -> None:
    rewritten = with_mkinitcpio(_DEFAULT, Setting.parse("lz4"))
    assert rewritten.changed_lines == (15,)
    assert with_mkinitcpio(rewritten.text, Setting.parse("lz4")).changed_lines == ()


@pytest.mark.parametrize(
    ("setting", "before", "after"),
    [
        ("lz4", 'COMPRESSION="zstd"\n', 'COMPRESSION="lz4"\n'),
        ("lz4", "COMPRESSION='zstd' # why\n", "COMPRESSION='lz4' # why\n"),
        ("lz4", "\t COMPRESSION=zstd;\n", "\t COMPRESSION=lz4;\n"),
        ("lz4", "COMPRESSION=zstd", "COMPRESSION=lz4"),
        ("lz4", "COMPRESSION=\n", "COMPRESSION=lz4\n"),
        ("lz4", "export COMPRESSION=zstd\n", "export COMPRESSION=lz4\n"),
        ("lz4", "declare COMPRESSION=zstd\n", "declare COMPRESSION=lz4\n"),
        ("lz4", "COMPRESSION=xz\nCOMPRESSION=zstd\n", "COMPRESSION=xz\nCOMPRESSION=lz4\n"),
        ("lz4", "COMPRESSION=l\nCOMPRESSION+=zo\n", "COMPRESSION=l\nCOMPRESSION=lz4\n"),
        ("lz4", "COMPRESSION=(zstd)\n", 'COMPRESSION="lz4"\n'),
        ("lz4", "COMPRESSION=zstd\r\nFILES=()\r\n", "COMPRESSION=lz4\nFILES=()\r\n"),
        ("lz4", "COMPRESSION=zstd # a\r\n", "COMPRESSION=lz4 # a\r\n"),
        ("lz4", "HOOKS=(base)", 'HOOKS=(base)\nCOMPRESSION="lz4"\n'),
        ("lz4", "", 'COMPRESSION="lz4"\n'),
        ("lz4", "X='\udce4' # \udcff\nCOMPRESSION=xz\n", "X='\udce4' # \udcff\nCOMPRESSION=lz4\n"),
        ("lz4", "X=$COMPRESSION COMPRESSION=xz; Y=1\n", "X=$COMPRESSION COMPRESSION=lz4; Y=1\n"),
        ("lz4", "# x\n  #  COMPRESSION=()\n#y", '# x\n  #  COMPRESSION=()\nCOMPRESSION="lz4"\n#y'),
        ("lz4", "X='\nCOMPRESSION=xz'\n", "X='\nCOMPRESSION=xz'\nCOMPRESSION=\"lz4\"\n"),
        ("lz4", "cat <<E\nCOMPRESSION=xz\nE\n", 'cat <<E\nCOMPRESSION=xz\nE\nCOMPRESSION="lz4"\n'),
        ("lz4", ". /etc/more\nCOMPRESSION=xz\n", ". /etc/more\nCOMPRESSION=lz4\n"),
        ("lz4", "if a; then\nX=1\nfi\nCOMPRESSION=xz\n", "if a; then\nX=1\nfi\nCOMPRESSION=lz4\n"),
        ("lz4", "unset COMPRESSION\nCOMPRESSION=xz\n", "unset COMPRESSION\nCOMPRESSION=lz4\n"),
        ("lz4 -9", "COMPRESSION=xz\nX=1\n", "COMPRESSION=lz4\nCOMPRESSION_OPTIONS=(-9)\nX=1\n"),
        ("lz4 -9", "COMPRESSION=xz; X=1\n", "COMPRESSION=lz4; X=1\nCOMPRESSION_OPTIONS=(-9)\n"),
        ("lz4 -9", "COMPRESSION=lz4", "COMPRESSION=lz4\nCOMPRESSION_OPTIONS=(-9)\n"),
        ("lz4 -9", "COMPRESSION=", "COMPRESSION=lz4\nCOMPRESSION_OPTIONS=(-9)\n"),
        ("lz4 -9", "COMPRESSION_OPTIONS=", 'COMPRESSION_OPTIONS=-9\nCOMPRESSION="lz4"\n'),
    ],
)
def test_only_the_value_that_takes_effect_changes(setting: str, before: str, after: str) -> None:
    assert with_mkinitcpio(before, Setting.parse(setting)).text == after


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        ("-3", "(-19)", "(-3)"),
        ("-3", "( '-19'  )", "( '-3'  )"),
        ("-3 -T1", '("-19")', '("-3" "-T1")'),
        ("-3", "(-19 --long=27)", "(-3)"),
        ("", "(-19 --long=27)", "()"),
        ("", "(\n  -19\n)", "()"),
        ("-3", "(\n  -19\n)", "(\n  -3\n)"),
        ("-3 -T1", "(\n  -19\n  --long # far\n)", "(\n  -3\n  -T1 # far\n)"),
        ("-3", "(\n  -19 # slow\n  --long\n  # -T1\n)", "(\n  -3 # slow\n  # -T1\n)"),
        ("-3", "(# none\n)", "(-3 # none\n)"),
        ("-3 -T1", "(\n  -19 # slow\n)", "(\n  -3 -T1 # slow\n)"),
        ("-3", "()", "(-3)"),
        ("-3", "-19", "-3"),
        ("-3 -T1", "'-19'", "'-3 -T1'"),
        ("", "'-19'", "''"),
        ("-3", "(-19)\r", "(-3)"),
        ("-3", "(\r\n-19\r\n)\r", "(-3)"),
        ("'--a=x y' -b*", "-19", '("--a=x y" "-b*")'),
        ("-3", "(-1)\nCOMPRESSION_OPTIONS+=(-T2)", "(-1)\nCOMPRESSION_OPTIONS=(-3)"),
        ("-3", "(-1 -2)\nCOMPRESSION_OPTIONS=-T2", "(-1 -2)\nCOMPRESSION_OPTIONS=(-3)"),
        ("-1 -T2", "(-1)\nCOMPRESSION_OPTIONS+=(-T2)", "(-1)\nCOMPRESSION_OPTIONS+=(-T2)"),
    ],
)
def test_options_keep_the_form_they_were_written_in(options: str, before: str, after: str) -> None:
    setting = Setting.parse(f"zstd {options}")
    text = f"COMPRESSION=zstd\n  COMPRESSION_OPTIONS={before}\nX=1\n"
    rewritten = with_mkinitcpio(text, setting).text
    assert rewritten == f"COMPRESSION=zstd\n  COMPRESSION_OPTIONS={after}\nX=1\n"
    read = values_of([rewritten], ("COMPRESSION_OPTIONS", "X"), shell=Shell.BASH)
    assert read.words("COMPRESSION_OPTIONS") == setting.options
    assert read.text("X") == "1"


@pytest.mark.parametrize(
    "text",
    [
        "COMPRESSION=x export A=1",
        "COMPRESSION=x export COMPRESSION",
        "builtin declare COMPRESSION=5",
        "command -- declare COMPRESSION=5",
        "command -p declare COMPRESSION=5",
        "declare COMPR''ESSION=5",
        'export "COMPRESSION=5"',
        "printf -v COMPR''ESSION 5",
        'A=COMPRESSION; declare "$A=5"',
        'A=COMPRESSION; read "$A" <<<5',
        "declare -i A; A=COMPR''ESSION=5",
        "a[COMPRESSION=5]=1",
        "a=([COMPRESSION=5]=1)",
        "declare a[COMPRESSION=5]=1",
        'declare "a[COMPRESSION=5]=1"',
        "unset 'a[COMPRESSION=5]'",
        "A=${a[COMPRESSION=5]}",
        "A=${#a[COMPRESSION=5]}",
        "a[$A]=1",
        "A=$((COMPRESSION=5))",
        'A="$(( (1) + (COMPRESSION=5) ))"',
        "A=$((\\\n COMPRESSION=5))",
        "A=$(($B))$(($(echo COMPR''ESSION=5)))",
        "A=$[COMPRESSION=5]",
        "A=$[$(date +%s)]",
        "A=${B:COMPRESSION=5}",
        'A="${B:0:COMPRESSION=5}"',
        "A=${B:$C}",
        "A=${B[0]:COMPRESSION=5}",
        "B=COMPR''ESSION=5; A=${C:B}",
        "B=COMPR''ESSION=5; ((B))",
        "B=COMPR''ESSION=5; a[B]=1",
        "B=COMPR''ESSION=5; A=$((1 + ${B}))",
        "B=COMPR''ESSION=5; [[ B -gt 1 ]]",
        "B=COMPR''ESSION=5; let B",
        "for B in COMPR''ESSION=5; do ((B)); done",
        "read B <<<COMPR''ESSION=5; ((B))",
        "A=${!B}",
        "A=${B@P}",
        "A=${ COMPR''ESSION=5; }",
        "B=COMPR''ESSION=5; printf -v 'A[B]' 1",
        "B=COMPR''ESSION=5; declare 'A[B]=1'",
        "B=COMPR''ESSION=5; A=${?:B}",
        "B=COMPR''ESSION=5; A=${-:B}",
        "B=COMPR''ESSION=5; A=${#:B}",
        "B=COMPR''ESSION=5; A=${$:B}",
        "RANDOM=COMPR''ESSION=5",
        "mapfile -C \"eval COMPR''ESSION=5;:\" -c 1 A <<<x",
        "readarray -c1 -C \"eval COMPR''ESSION=5;:\" A <<<x",
        "compgen -W $'$\\x28(COMPR\\x45SSION=5))'",
        "jobs -x eval COMPR''ESSION=5",
        "time -p eval COMPR''ESSION=5",
        "set -k; declare COMPRESSION=5",
        "[[ -v a[COMPRESSION=5] ]]",
        "[ -v 'a[COMPRESSION=5]' ]",
        "COMPRESSION=zstd A=$((COMPRESSION=5))",
        "export COMPRESSION=zstd A=${COMPRESSION[0]:=5}",
        "echo {COMPRESSION}>/dev/null",
        ": <<E\n$((COMPRESSION=5))\nE",
        "case a in $((COMPRESSION=5))) ;; esac",
        "{ :; } >/tmp/$((COMPRESSION=5))",
        "export() { COMPRESSION=5; }; export A",
        "function : { eval A=1; }; :",
    ],
)
def test_what_may_change_the_variable_by_the_way_is_refused(text: str) -> None:
    with pytest.raises(RefusedRewriteError):
        with_mkinitcpio(f"COMPRESSION=xz\n{text}\n", Setting.parse("zstd"))


@pytest.mark.parametrize(
    "text", ["trap \"COMPR''ESSION=5\" DEBUG", "alias export=false", "set -n", "set -k"]
)
def test_what_changes_all_later_commands_is_refused_before_the_variable_is_set(text: str) -> None:
    with pytest.raises(RefusedRewriteError):
        with_mkinitcpio(f"{text}\nCOMPRESSION=xz\n", Setting.parse("zstd"))


@pytest.mark.parametrize(
    "text",
    [
        "set -- a b; set -f; printf '%s[x]' 1; time -p true",
        "RANDOM=1; a=(); unset 'a[0]'; A=${?:-x}",
        "A=$((1 << 2)) B=$((A + 1))",
        "for ((i = 0; i < 2; i++)); do A=${B:1:2}; done",
        "A=4; ((A > 2)) && B=$((A / 2))",
        "A=${B:-x}${C:+y}${#B}${a[0]}${a[@]}${B: -1}",
        "[[ -n $A && ${#a[@]} -gt 0 ]]",
        "a[0]=1 a+=([1]=2)",
        "declare -A T=([x]=1); export A=1 B",
        "cat <<E >/dev/null\nCOMPRESSION $A\nE",
    ],
)
def test_what_computes_but_cannot_change_the_variable_is_no_obstacle(text: str) -> None:
    after = with_mkinitcpio(f"COMPRESSION=xz\n{text}\n", Setting.parse("zstd")).text
    assert after == f"COMPRESSION=zstd\n{text}\n"


@pytest.mark.parametrize("opening", ["${", "((", "$[", "${a[", "[(", "a[", "${a:", "{a["])
def test_expressions_are_looked_for_in_work_that_grows_with_the_text(opening: str) -> None:
    def work(count: int) -> Callable[[], object]:
        command = Command(start=0, end=count * len(opening), words=())
        return lambda: may_set_any(command, opening * count, ())

    assert grows_in_proportion(work, few=500)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("X=1\nCOMPRESSION=$X\n", 2, "computed"),
        ("COMPRESSION=`echo lz4`\n", 1, "computed"),
        ('COMPRESSION="${X:-lz4}"\n', 1, "computed"),
        ("COMPRESSION=$X\nCOMPRESSION+=x\n", 2, "computed"),
        ("COMPRESSION_OPTIONS=(-T$(nproc))\n", 1, "computed"),
        ("COMPRESSION_OPTIONS=(-{1,2})\n", 1, "computed"),
        ("COMPRESSION=xz\n. /etc/more\n", 2, "another file"),
        ("source ./more\n", 1, "another file"),
        ("COMPRESSION=xz\nif a; then . b; fi\n", 2, "another file"),
        ("if true; then\n  COMPRESSION=xz\nfi\n", 2, "depends on a condition"),
        ("COMPRESSION=xz\n[[ $X ]] && COMPRESSION=lz4\n", 2, "depends on a condition"),
        ("for x in a; do COMPRESSION=$x; done\n", 1, "depends on a condition"),
        ("case x in\nx) COMPRESSION=xz ;;\nesac\n", 2, "depends on a condition"),
        ("while true; do COMPRESSION=xz; break; done\n", 1, "depends on a condition"),
        ("( COMPRESSION=xz )\n", 1, "depends on a condition"),
        ("f() {\n  COMPRESSION=xz\n}\nCOMPRESSION=lz4\nf\n", 2, "inside a function"),
        ("f() { . x; }\nCOMPRESSION=lz4\nf\n", 1, "another file"),
        ("COMPRESSION=\\\nxz\n", 1, "goes on"),
        ("COMPRESSION=xz \\\n  X=1\n", 1, "goes on"),
        ("eval COMPRESSION=xz\n", 1, "given the name"),
        ("COMPRESSION=xz\neval $X\n", 2, "eval may set anything"),
        ("COMPRESSION=xz\nunset COMPRESSION\n", 2, "given the name"),
        ("COMPRESSION=xz\nread COMPRESSION <<<lz4\n", 2, "given the name"),
        ("COMPRESSION=xz\nprintf -v COMPRESSION lz4\n", 2, "given the name"),
        ("for COMPRESSION in a b; do :; done\n", 1, "given the name"),
        ("COMPRESSION=xz\n$X\n", 2, "computed"),
        ("readonly COMPRESSION=xz\n", 1, "readonly with options or for good"),
        ("declare -u COMPRESSION=xz\n", 1, "declare with options"),
        ("declare -n ref=COMPRESSION\nCOMPRESSION=xz\nref=lz4\n", 1, "given the name"),
        ("COMPRESSION=xz make\n", 1, "for one command only"),
        ("COMPRESSION[0]=xz\n", 1, "to one element"),
        ("COMPRESSION_OPTIONS=(a)b\n", 1, "no array after all"),
        ("X=1 || return\nCOMPRESSION=xz\n", 1, "may end here"),
        ("COMPRESSION=xz\nexit\n", 2, "may end here"),
        (": ${COMPRESSION:=xz}\n", 1, "in an expression"),
        ("((COMPRESSION = 1))\n", 1, "may be set|given the name"),
        ("X='\n", 1, "not closed"),
        ("COMPRESSION=xz\nif x; then y; fiif a; then b; fi\n", 2, "an unexpected 'then'"),
        ("COMPRESSION=xz\nif x; then fi\n", 2, "an unexpected 'fi'"),
        ("COMPRESSION=xz\n; X=1\n", 2, "an unexpected ';'"),
        ("COMPRESSION=xz\nX=1 &&\n", 1, "not closed"),
        ("f() X=1\nCOMPRESSION=xz\n", 1, "an unexpected 'X'"),
        ("HOOKS=(base\n", 1, "not closed"),
        ("cat <<E\nCOMPRESSION=xz\n", 1, "here-document"),
        ("if x; then\r\nCOMPRESSION=xz\r\nfi\r\n", 1, "not closed"),
        ("COMPRESSION=xz\0\n", 1, "NUL"),
    ],
)
def test_what_is_not_certain_is_refused_with_its_line(text: str, line: int, reason: str) -> None:
    with pytest.raises(RefusedRewriteError, match=reason) as raised:
        with_mkinitcpio(text, Setting.parse("zstd -19"))
    assert raised.value.exit_code == 3
    assert raised.value.line_number == line
    assert raised.value.line == text.split("\n")[line - 1].removesuffix("\r")
    assert raised.value.hint


def _edits(setting: str, *texts: str) -> tuple[FileEdit, ...]:
    files = [ConfigFile(path=f"/etc/{i}", text=text) for i, text in enumerate(texts)]
    return mkinitcpio_edits(files, Setting.parse(setting))


def _after(edits: tuple[FileEdit, ...]) -> dict[str, str]:
    return {edit.path: edit.after for edit in edits}


def test_a_drop_in_that_overrides_the_main_file_is_the_one_that_is_edited() -> None:
    edits = _edits("lz4", "COMPRESSION=xz\n", "COMPRESSION=gzip\n", "HOOKS+=(a)\n")
    assert _after(edits) == {"/etc/1": "COMPRESSION=lz4\n"}


def test_codec_and_options_are_edited_where_each_of_them_stands() -> None:
    edits = _edits("lz4 -9", "COMPRESSION=xz\nCOMPRESSION_OPTIONS=(-1)\n", "COMPRESSION=gzip\n")
    assert _after(edits) == {
        "/etc/0": "COMPRESSION=xz\nCOMPRESSION_OPTIONS=(-9)\n",
        "/etc/1": "COMPRESSION=lz4\n",
    }


def test_options_that_are_set_nowhere_go_beside_the_codec() -> None:
    edits = _edits("lz4 -9", "#COMPRESSION_OPTIONS=()\n", "COMPRESSION=gzip\n# end\n")
    assert _after(edits) == {"/etc/1": "COMPRESSION=lz4\nCOMPRESSION_OPTIONS=(-9)\n# end\n"}


def test_a_file_that_says_it_already_is_not_touched() -> None:
    assert _edits("lz4 -9", "COMPRESSION=xz\n", "COMPRESSION=lz4 COMPRESSION_OPTIONS='-9'\n") == ()


def test_a_main_file_that_runs_into_a_drop_in_is_refused() -> None:
    with pytest.raises(RefusedRewriteError, match="runs into the next one") as raised:
        _edits("lz4", "X=1\nCOMPRESSION=zstd", "MODULES=\n")
    assert (raised.value.path, raised.value.line_number) == ("/etc/0", 2)
    with pytest.raises(RefusedRewriteError, match="runs into the next one"):
        _edits("lz4", "X=1\nY=2", "MODULES=\n")


def test_a_missing_newline_that_does_no_harm_stays_missing() -> None:
    edits = _edits("lz4", "COMPRESSION=zstd", "\nMODULES=")
    assert _after(edits) == {"/etc/0": "COMPRESSION=lz4"}


def test_the_refusal_names_the_drop_in_and_its_own_line() -> None:
    with pytest.raises(RefusedRewriteError, match=r"^/etc/1, line 2: ") as raised:
        _edits("lz4", "COMPRESSION=xz\n", "# a\nsource /x\n")
    assert raised.value.line == "source /x"
    assert raised.value.message.endswith(": source /x")


def test_the_refusal_shows_no_line_that_could_command_a_terminal() -> None:
    with pytest.raises(RefusedRewriteError) as raised:
        with_mkinitcpio("  COMPRESSION=$'\x1b[2J\udcff'\n", Setting.parse("zstd"))
    assert raised.value.message.endswith(r": COMPRESSION=$'\x1b[2J\xff'")


def test_the_diff_tells_of_newlines_and_splits_at_nothing_else() -> None:
    (edit,) = _edits("lz4", "X=a\x0cb\u2028c\r\nCOMPRESSION=zstd")
    assert edit.diff == (
        "--- /etc/0\n+++ /etc/0\n@@ -1,2 +1,2 @@\n X=a\x0cb\u2028c\r\n"
        "-COMPRESSION=zstd\n\\ No newline at end of file\n"
        "+COMPRESSION=lz4\n\\ No newline at end of file\n"
    )
