"""Generators that write what a test wants, where their command line says.

Shells and OpenSSL are real.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from initadvisor.core.errors import ProgramError
from initadvisor.host.run import Completed, Priority, SystemRunner
from tests.fakes.runner import FakeRunner
from tests.fakes.scripts import SHELLS, run_shell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_OUTPUT = {"mkinitcpio": ("-g", "-U"), "mkinitramfs": ("-o",)}
_UKIFY = "/usr/lib/kernel/install.d/60-ukify.install"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """What a generator was told: its words, the image to write, the texts of its configuration.

    ``config`` is by the names in the private directory.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    image: Path
    config: Mapping[str, str]

    @property
    def words(self) -> tuple[str, ...]:
        """The command line with the private directory as ``@``."""
        return tuple(word.replace(str(self.image.parent), "@") for word in self.argv)


@dataclass(slots=True)
class FakeGenerators(FakeRunner):
    """Runs shells and openssl, and has ``make`` do what a generator would.

    It may write, raise or do nothing.

    Other programs are answered from the table. A generator leaves litter in TMPDIR, as real ones do
    when they are killed.
    """

    make: Callable[[Ordered], None] = lambda _order: None
    orders: list[Ordered] = field(default_factory=list)
    refuses_openssl: bool = False

    def which(self, program: str) -> Path | None:
        if program in {*SHELLS, "sort"}:
            return SystemRunner().which(program)
        return FakeRunner.which(self, program)

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        timeout_s: float,
        check: bool = True,
        stdin: IO[bytes] | None = None,
        stdout: IO[bytes] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> Completed:
        words = tuple(str(word) for word in argv)
        if words[0] == "openssl" and self.refuses_openssl:
            msg = "cannot run openssl: not installed"
            raise ProgramError(msg)
        if words[0] in {*SHELLS, "openssl"}:
            return run_shell(words, timeout_s=timeout_s, check=check, stdin=stdin, env=env, cwd=cwd)
        if words[0] not in {*_OUTPUT, "dracut", _UKIFY}:
            return FakeRunner.run(
                self, words, timeout_s=timeout_s, check=check, stdin=stdin, stdout=stdout, env=env
            )
        assert 60 <= timeout_s < 24 * 3600
        assert priority is Priority.IDLE
        order = _order(words, env or {})
        self.orders.append(order)
        (Path(order.env["TMPDIR"]) / f"{Path(words[0]).name}.Xy12").mkdir()
        self.make(order)
        return Completed(argv=words, returncode=0)


def _order(words: tuple[str, ...], env: Mapping[str, str]) -> Ordered:
    options = _OUTPUT.get(words[0])
    if options:
        image = next(Path(words[words.index(name) + 1]) for name in options if name in words)
    elif words[0] == _UKIFY:
        image = Path(env["KERNEL_INSTALL_STAGING_AREA"]) / "uki.efi"
    else:
        image = Path(words[-1])
    place = image.parent
    return Ordered(
        argv=words,
        env=env,
        image=image,
        config={
            str(path.relative_to(place)): path.read_text(errors="surrogateescape")
            for path in sorted(place.rglob("*"))
            if path.is_file()
        },
    )
