"""What made-up machines are like: those of tables, or the machine at hand as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING

from initadvisor.model.codec import Codec
from initadvisor.model.cost import Objective
from initadvisor.model.errors import UsageError
from initadvisor.model.truth_table import TruthRow, TruthTable
from initadvisor.model.whatif import Span
from initadvisor.stats.simulated_machine import CONTENT_LOG_SD, OWN_TIME_LOG_SD, PROCESSOR_LOG_SD
from initadvisor.workflow.configuration import load_config
from initadvisor.workflow.simulate import Ground, measured_tables
from initadvisor.workflow.truth_tables import truth_table
from initadvisor.workflow.whatif_choices import of_machine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from initadvisor.host import Host
    from initadvisor.model.setting import Setting
    from initadvisor.model.whatif import Choice, Place
    from initadvisor.workflow.recommend import Observer

_Z95 = 1.96
_LONGEST_SOURCE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Where machines are drawn from, and in words what that means.

    ``read_mb_s``: the loader's speed where something is known of it.
    """

    ground: Ground
    read_mb_s: Span | None
    said: tuple[str, ...]


def like_tables(names: Sequence[str], today: Setting | None) -> Likeness:
    """Return machines like those of tables, by default the built-in ones that were measured.

    Raises ``UsageError`` for what is no table, and where ``today`` is in none of them.
    """
    tables = tuple(truth_table(name) for name in dict.fromkeys(names)) or measured_tables()
    kept = tuple(table for table in tables if today is None or _has(table, today))
    if not kept:
        known = dict.fromkeys(str(row.setting) for table in tables for row in table.rows)
        msg = f"no table has the setting {today}"
        raise UsageError(msg, hint=f"one of: {', '.join(known)}")
    names = ", ".join(table.name for table in kept)
    lacking = [table.name for table in tables if table not in kept]
    said = [
        f"sizes and times to unpack are those of {names}, varied: "
        "in each machine the content is another (within a factor of "
        f"{exp(_Z95 * CONTENT_LOG_SD):.1f} either way), so is the processor "
        f"({exp(_Z95 * PROCESSOR_LOG_SD):.1f}), and what that does to single settings "
        f"({exp(_Z95 * OWN_TIME_LOG_SD):.1f})"
    ]
    if lacking:
        said.append(f"left out, as they do not have {today}: {', '.join(lacking)}")
    return Likeness(ground=Ground(tables=kept, today=today), read_mb_s=None, said=tuple(said))


def like_this_machine(
    host: Host, image: Path | None, today: Setting | None, *, observer: Observer
) -> Likeness:
    """Return machines with the images and the loader of this one, as ``recommend`` knows them.

    ``image``: another image, of whatever machine, in the place of its own. Raises whatever
    ``recommend`` raises, and ``UsageError`` where today's setting, or what is given in its place,
    cannot be compared.
    """
    from initadvisor.workflow.recommend import Request, recommend  # takes long; tables need it not

    answer = recommend(host, Request(image=image), observer=observer)
    subject = of_machine(answer, load_config(host), Objective.BOOT)
    table = _table(subject.choices, source=subject.source)
    first = today or answer.baseline
    if not _has(table, first):
        known = ", ".join(str(row.setting) for row in table.rows)
        msg = f"cannot simulate with the setting {first}: it is not among those of {answer.image}"
        raise UsageError(msg, hint=f"one of: {known}")
    return Likeness(
        ground=Ground(tables=(table,), today=first, like_table=True),
        read_mb_s=_speed(subject.loader),
        said=(
            f"sizes and times to unpack are those of {answer.image} and its candidates as "
            f"recommend knows them (evidence: {answer.evidence}): the same in every machine, and "
            "taken to be right",
            "campaigns begin without any boot, also where boots of this machine are recorded",
        ),
    )


def _table(choices: Sequence[Choice], *, source: str) -> TruthTable:
    """Turn what is known of candidates into a table; what U of the plain image is, is P."""
    unpack_ms = [choice.unpack_ms.mean for choice in choices]
    plain = [c.unpack_ms.mean for c in choices if c.setting.codec is Codec.CAT]
    return TruthTable(
        name="this machine",
        source=source[:_LONGEST_SOURCE],
        populate_ms=min([*plain, *unpack_ms]) if plain else 0.0,
        rows=tuple(
            TruthRow(
                setting=choice.setting,
                size_mb=choice.size_mb.mean,
                unpack_ms=choice.unpack_ms.mean,
            )
            for choice in choices
        ),
    )


def _speed(loader: Place | None) -> Span | None:
    if loader is None or loader.read_mb_s.low >= loader.read_mb_s.high:
        return None
    return Span(low=loader.read_mb_s.low, high=loader.read_mb_s.high)


def _has(table: TruthTable, setting: Setting) -> bool:
    return any(row.setting == setting for row in table.rows)
