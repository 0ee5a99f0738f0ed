"""Configuration files of many pieces, plain ones and odd ones, for hypothesis."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hypothesis import strategies as st

from initadvisor.model.shell import Shell


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a file. ``value`` is what may be changed in them, None where nothing may."""

    head: str
    value: str | None = None
    tail: str = ""

    @property
    def text(self) -> str:
        """The lines."""
        return self.head + (self.value or "") + self.tail

    @property
    def pattern(self) -> str:
        """What the lines match before and after they were rewritten."""
        middle = "" if self.value is None else r"[^\n]*(?:\n[^\n]*)*?"
        return re.escape(self.head.removesuffix("+")) + middle + re.escape(self.tail)


_COMMON = (
    "",
    "\t \n",
    "# a comment that isn't closed \" ` $( \\\n",
    "# b\\xfchse \udcfc\udce4 in latin-1\n",
    "#\r\n",
    "FILES='two\nlines # and {N}=no comment\n'\n",
    'OTHER="{N}=xz" # {N}=lzop\n',
    'DOUBLE="a \\" {N}=xz\n$(echo "b) c" # ) \n)"\n',
    "cat <<EOF\n{N}=xz\n'\nEOF\n",
    "cat <<-'E F' >/dev/null; OTHER=1\n\t{N}=$(\n\tE F\n",
    "if [ -e /nowhere ]; then\n  OTHER=2\nelse OTHER=3; fi\n",
    "for x in a b; do OTHER=$x; done\n",
    "while false; do :; done >/dev/null\n",
    "case $OTHER in\n  a|b) OTHER=4 ;;\n  (c*) : ;;\n  *) OTHER=5\nesac\n",
    "helper() {{ OTHER=6; }}; helper\n",
    "( cd / && OTHER=7 )\n",
    "true && OTHER=8 || OTHER=9\n",
    "echo hello | cat >/dev/null 2>&1 &\n",
    "OTHER=${{OTHER:-x}} MORE=`echo y`\n",
    'echo "{N} is ${N}"\n',
    "OTHER=a\\\nb\n",
    "   NAME_{N}=1; {N}_NAME=2\n",
    ": $((1 << 2)) ${{#OTHER}}\n",
    "! false\n",
)
_BASH_ONLY = (
    "HOOKS=(base 'u dev' # {N}=no\n  \"block\"\n)\n",
    "HOOKS+=(fsck)\n",
    "[[ $OTHER == a* && ! ( x < y ) ]] && OTHER=10\n",
    "((OTHER2 = 1 << 3, OTHER2 > 2))\n",
    "read -r OTHER <<<'A=(xz'\n",
    "function more {{\n  local x=1\n}}\n",
    "MODULES=($'it\\'s' @(a|b) <(echo '{N}=xz'))\n",
    "for ((i = 0; i < 2; i++)); do :; done\n",
    "declare -A TABLE=([a]=1 [b]='2 )')\n",
)


def neutral(shell: Shell, name: str) -> st.SearchStrategy[Piece]:
    """Return lines that have nothing to do with a variable, though they may spell its name."""
    texts = _COMMON + (_BASH_ONLY if shell is Shell.BASH else ())
    formatted = st.sampled_from([text.format(N=name) for text in texts])
    return formatted.map(Piece)


def commented(name: str) -> st.SearchStrategy[Piece]:
    """Return defaults that are commented out."""
    return st.sampled_from(
        [f"#{name}=zstd\n", f'# {name}="lz4"\r\n', f"  ##\t{name}=()\n", f"# {name}: a codec\n"]
    ).map(Piece)


_TAILS = st.sampled_from(["\n", " # why\n", "\t\n", ";\n", " # é\udcff \\\n", "; OTHER=11\n"])
_HEADS = st.sampled_from(["", "  ", "\t", "export ", "OTHER=12; ", "OTHER=13 MORE='a b' "])
_SCALARS = st.sampled_from(["zstd", "'xz'", '"lz4"', "", '""', "l'zo'p", "gz\\ip", "cat\r", "a#b"])
_ARRAYS = st.sampled_from(
    ["()", "(-9)", "( -9  '-e' )", '("-19"\n  --long\n)', "(\n  -9 # best\n  # no: -1\n  -e\n)",
     "(-1)\r", "-9", "'-19  --long'", '""', "(# none\n)", "('')"]
)  # fmt: skip


@st.composite
def assignment(draw: st.DrawFn, name: str, *, array: bool = False, append: bool = False) -> Piece:
    """Return lines that set a variable for certain."""
    head = draw(_HEADS)
    operator = "+=" if append and draw(st.integers(0, 3)) == 0 else "="
    value = draw(_ARRAYS if array else _SCALARS)
    return Piece(f"{head}{name}{operator[:-1]}", f"={value}", draw(_TAILS))


def doubtful(shell: Shell, name: str) -> st.SearchStrategy[Piece]:
    """Return lines that leave a doubt about what a variable will be."""
    texts = [
        "if true; then {N}=zstd; fi\n",
        "[ -e / ] && {N}=xz\n",
        "{N}=$OTHER\n",
        "{N}=`echo lz4`\n",
        '{N}="$(echo lzop)"\n',
        ". /dev/null\n",
        "eval '{N}=lz4'\n",
        "unset {N}\n",
        "set_it() {{ {N}=lz4; }}\nset_it\n",
        "{N}=zs\\\ntd\n",
        "{N}=lz4 true\n",
        "{N}=gzip | cat\n",
        "for {N} in a b; do :; done\n",
        ": ${{{N}:=bzip2}}\n",
        "command eval '{N}=lz4'\n",
        "readonly {N}=lzma\n",
        "return 0\n",
    ]
    if shell is Shell.BASH:
        texts += [
            "read -r {N} <<<gzip\n",
            "printf -v {N} xz\n",
            "{N}[0]=lz4\n",
            "{N}=(a)b\n",
            "declare -r {N}=lz4\n",
            "function set_it {{ {N}=gzip; }}\nset_it\n",
            "{N}=$'lz4'\n",
            "source /dev/null\n",
            "{{ {N}=lzma; }}\n",
        ]
    return st.sampled_from([text.format(N=name) for text in texts]).map(Piece)


def pieces(
    shell: Shell, main: str, other: str, *, arrays: bool, doubts: bool = False
) -> st.SearchStrategy[list[Piece]]:
    """Return the pieces of a file that may set two variables."""
    append = shell is Shell.BASH
    kinds = [
        neutral(shell, main),
        neutral(shell, other),
        commented(main),
        commented(other),
        assignment(main, append=append),
        assignment(other, array=arrays, append=append),
    ]
    if doubts:
        kinds += [doubtful(shell, main), doubtful(shell, other)]
    return st.lists(st.one_of(kinds), max_size=7)


def whole(parts: list[Piece], *, newline: bool) -> str:
    """Return the file, without the newline at its end if it is not to have one."""
    text = "".join(piece.text for piece in parts)
    return text if newline else text.removesuffix("\n")


def expected(parts: list[Piece], *, newline: bool, names: tuple[str, str]) -> re.Pattern[str]:
    """Return what a rewritten file matches: nothing but values changed, and whole lines added."""
    added = rf"(?:(?:{'|'.join(names)})=[^\n]*\n)*"
    patterns = [piece.pattern for piece in parts if piece.text]
    if patterns and not newline:
        patterns[-1] = patterns[-1].removesuffix("\\\n") + r"(?:\n)?"
    return re.compile(added + added.join(patterns) + added)
