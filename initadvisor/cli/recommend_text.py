"""The answer of ``recommend`` on one screen: the verdict, what it rests on, what to do next.

All figures and the rest of the evidence are printed by ``explain_text``.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from initadvisor.advise.recommendation import LIKE_TODAY, build_cpu_s, unknown_build
from initadvisor.cli.explain_text import print_evidence, row_of
from initadvisor.cli.rendering.text import WIDTH, boots, listed, rounded, short
from initadvisor.core.codecs import Codec
from initadvisor.core.config import Objective
from initadvisor.core.estimates import Evidence
from initadvisor.core.text import shown
from initadvisor.decide.boot_evidence import Parameter
from initadvisor.decide.cost import Factor, Outcome
from initadvisor.decide.next_boot import Purpose
from initadvisor.host.configuration import CONFIG_PATH
from initadvisor.image.contents import Verdict
from initadvisor.target.kernel_room import FEW

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from initadvisor.advise.recommendation import Recommendation, Row
    from initadvisor.core.estimates import Estimate
    from initadvisor.core.settings import Setting


_LITTLE_MS = 50
"""A person hardly notices less: half of what takes a tenth of a second."""

_MOST_LINES = 20
"""What fits one screen, with the command that was typed and the next prompt."""

_MOST_ROWS = 7
_MOST_WARNINGS = 2
_MOST_WIDTH = 100
_GAP = "  "
_LEAST_BAR = 12
_LEAST_NAME = 12
_HEADING = " sooner than today, ms"
_MOST_BAR = 30
_CLIPPED = 4.0
"""No bar reaches further than so many times the largest difference that is expected."""

_INTERVAL = " (95 %: "
"""How the interval begins that ends a sentence."""

_COLOURS = {
    Outcome.SWITCH: "green",
    Outcome.KEEP: "green",
    Outcome.EVEN: "green",
    Outcome.UNDECIDED: "yellow",
}
_UNPACKING = {
    Evidence.BENCH: "Predicted: unpacking.",
    Evidence.LAB: "Measured in virtual machines: unpacking.",
    Evidence.BOOTS: "Measured in boots: unpacking.",
}
_ASSUMED = {Parameter.LOADER: "loader speed", Parameter.SHADOW: "overlap"}
_GIVEN = {Parameter.LOADER: "read speed", Parameter.SHADOW: "overlap"}
_TO_BE_KNOWN = {
    Factor.LOADER: ("loader speed", "MB/s", "--read-speed MB/S"),
    Factor.SHADOW: ("overlap", "ms", "--overlap MS"),
}
"""What a user may know that decides: its name as among what is assumed, unit and option."""


def print_recommendation(answer: Recommendation, *, evidence: bool) -> None:
    """Print the answer to stdout, on one screen; with ``evidence`` all figures after it."""
    _print_screen(answer, all_rows=evidence)
    if evidence:
        click.echo()
        print_evidence(answer)


def _print_screen(answer: Recommendation, *, all_rows: bool) -> None:
    sentence, *others = verdict(answer)
    first = _broken_before_interval(sentence)
    above = [*first, *_packed(others)]
    if answer.sample:
        click.echo("SAMPLE: not an initramfs of this machine; sizes and times are of a sample.")
    colour = _COLOURS[answer.decision.outcome]
    for number, line in enumerate(above):
        click.echo(click.style(line, bold=True, fg=colour) if number < len(first) else line)
    click.echo()
    excess = (answer.excess,) if answer.excess else ()
    last = (
        *excess,
        *_sources(answer),
        *_hidden(answer),
        *_warnings(answer),
        *_next(answer),
    )
    below = [line for sentence in last for line in _lines(sentence)]
    others_than_rows = answer.sample + len(above) + len(("", "titles", "--all")) + len(below)
    kept, left_out = _shown_rows(
        answer, most=None if all_rows else min(_MOST_ROWS, _MOST_LINES - others_than_rows)
    )
    for line in _table(answer, kept):
        click.echo(line)
    if left_out:
        slower = all(row.saving_ms.middle < 0 for row in left_out)
        by_size = answer.objective is Objective.SIZE
        more = f"{len(left_out)} {'slower ' if slower and not by_size else 'more '}setting"
        click.echo(f"({more}{'s' if len(left_out) > 1 else ''}: --all)")
    for line in below:
        click.echo(line)


def _lines(text: str) -> list[str]:
    """Return a sentence as the lines that it takes."""
    return textwrap.wrap(text, _width(), break_long_words=False, break_on_hyphens=False)


def _broken_before_interval(sentence: str) -> list[str]:
    """Return a sentence as the lines that it takes: an interval that is too much on its own."""
    said, bracket, interval = sentence.partition(_INTERVAL)
    if len(sentence) <= _width() or not bracket:
        return _lines(sentence)
    return [*_lines(said), *_lines(f"{_INTERVAL.lstrip()}{interval}")]


def _packed(sentences: Sequence[str]) -> list[str]:
    """Return sentences as lines, each with as many whole ones as fit."""
    lines: list[str] = []
    for sentence in sentences:
        if lines and len(lines[-1]) + len(f" {sentence}") <= _width():
            lines[-1] += f" {sentence}"
        else:
            lines += _broken_before_interval(sentence)
    return lines


def _width() -> int:
    """Return how wide a line may be: that of the terminal, within reason."""
    if not sys.stdout.isatty():
        return WIDTH
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, WIDTH), _MOST_WIDTH)


def verdict(answer: Recommendation) -> Iterator[str]:
    """Yield the recommendation in one sentence, then what else follows from it."""
    decision = answer.decision
    match decision.outcome:
        case Outcome.SWITCH:
            yield f"Switch to {_told(decision.setting)}: {_gain(answer)}."
            if answer.objective is Objective.SIZE:
                return
            yield from _little(decision.saving_ms)
            if decision.saving_ms.middle < decision.tolerance_ms:
                yield f"On average it saves {_time(decision.saving_ms.mean)}, which decides."
            yield from _rank(answer)
            yield from _room(answer, decision.setting)
        case Outcome.EVEN:
            yield (
                f"Keep {_told(decision.setting)}: there is no difference worth having, about "
                f"{_time(decision.loss_ms)} to the best."
            )
        case Outcome.KEEP if not _others(answer):
            yield f"Keep {_told(decision.setting)}: {_none_usable(answer)}."
        case Outcome.KEEP if answer.objective is Objective.SIZE:
            yield (
                f"Keep {_told(decision.setting)}: {_none(answer, 'is')} smaller by enough to "
                "matter."
            )
        case Outcome.KEEP:
            yield (
                f"Keep {_told(decision.setting)}: {_none(answer, 'saves')} more than "
                f"{_time(decision.tolerance_ms)}, the least that matters."
            )
        case Outcome.UNDECIDED:
            yield from _undecided(answer)


_NOT = {"is": "is not", "saves": "does not save"}


def _none(answer: Recommendation, verb: str) -> str:
    """Return that nothing else does something: nothing at all, or nothing of what was asked for."""
    others = _others(answer)
    if not answer.only_asked:
        noun = "image" if answer.objective is Objective.SIZE else "setting"
        return f"no other {noun} {verb}"
    if len(others) == 1:
        return f"{others[0].setting} {_NOT[verb]}"
    usable = " that can be used here" if len(others) < len(answer.rows) - 1 else ""
    return f"none of the {len(others)} asked for{usable} {verb}"


def _others(answer: Recommendation) -> list[Row]:
    """Return what may replace today's setting."""
    return [row for row in answer.rows if row.setting != answer.baseline and row.unfit is None]


def _none_usable(answer: Recommendation) -> str:
    """Return why nothing may replace today's setting."""
    others = [row for row in answer.rows if row.setting != answer.baseline]
    if not answer.only_asked:
        return "no other setting can be used here"
    if len(others) == 1:
        return f"{others[0].setting} cannot be used here, {_why_not(answer, others[0])}"
    return f"none of the {len(others)} asked for can be used here"


def _told(setting: Setting) -> str:
    """Return a setting for a sentence; not everybody knows what cat stands for."""
    return f"{setting} (no compression)" if setting.codec is Codec.CAT else str(setting)


def _gain(answer: Recommendation) -> str:
    """Return what a switch brings, and what it costs where sizes decide."""
    decision = answer.decision
    sooner = f"{_boots(answer)} {_sooner(decision.saving_ms)}"
    if answer.objective is not Objective.SIZE:
        return sooner
    but = "but " if decision.saving_ms.middle < 0 else ""
    return f"the image is {-_larger_mb(answer, decision.setting):.1f} MB smaller, {but}{sooner}"


def _size_mb(answer: Recommendation, row: Row) -> str:
    """Return a size as it is shown, in 10^6 bytes."""
    decimals = 1 if answer.objective is Objective.SIZE or row.size_bytes < 1e7 else 0
    return f"{row.size_bytes / 1e6:.{decimals}f}"


def _larger_mb(answer: Recommendation, setting: Setting) -> float:
    """Return how much larger an image is than today's, by the sizes that are shown."""
    todays, others = (row_of(answer, one) for one in (answer.baseline, setting))
    return float(_size_mb(answer, others)) - float(_size_mb(answer, todays))


def _undecided(answer: Recommendation) -> Iterator[str]:
    """Yield why today's is kept for now, and the best guess."""
    decision = answer.decision
    keep, saving = f"Keep {_told(decision.setting)} for now", decision.leader_saving_ms
    if answer.hinges_on_build:
        yield f"{keep}: the best depends on what building today's image takes."
        yield from _open_build(answer)
        return
    if answer.objective is Objective.SIZE:
        yield f"{keep}: {_none(answer, 'is')} certain to be smaller."
        return
    if saving.mean <= 0 and not _first(answer, answer.baseline):
        yield f"{keep}: {_none(answer, 'is')} expected to save time, but one may."
    else:
        yield f"{keep}: {_none(answer, 'is')} certain to be better."
        if min(saving.mean, round(saving.middle)) > 0:  # else it may save only on some machines
            yield f"Best guess: {_told(decision.leader)}, {_boots(answer)} {_sooner(saving)}."
            yield from _little(saving)
            yield from _room(answer, decision.leader)
    yield from _risk(answer)
    yield from _depends(answer)


def _first(answer: Recommendation, beside: Setting) -> Row | None:
    """Return the row that shows most, where that is more than the row of ``beside`` does."""
    row, than = _shows_most(answer), row_of(answer, beside).saving_ms
    return row if round(row.saving_ms.middle) > max(round(than.middle), 0) else None


def _shows_most(answer: Recommendation) -> Row:
    """Return the row of what may be used with the largest median, or else today's."""
    return max(
        (row_of(answer, answer.baseline), *_others(answer)), key=lambda row: row.saving_ms.middle
    )


def _rank(answer: Recommendation) -> Iterator[str]:
    """Say whether nothing is better than what to switch to, although a row may show more."""
    decision = answer.decision
    first = _first(answer, decision.setting)
    if decision.best:
        among = " of those asked for" if answer.only_asked else ""
        most = f" by more than {_time(decision.tolerance_ms)}" if first else ""
        yield f"No other{among} is better{most}."
    elif first:
        yield f"{first.setting} may save more, but is less certain to."
    else:
        yield "Another setting may be better still."


def _risk(answer: Recommendation) -> Iterator[str]:
    """Say why the best guess is not what the medians of the table show: means decide."""
    decision = answer.decision
    saving = decision.leader_saving_ms
    if saving.mean > 0 and round(saving.middle) < 0 and round(saving.mean) > 0:
        yield (
            f"{decision.leader} probably costs {_time(-saving.middle)}, but may save "
            f"{_time(saving.high)}; on average it saves {_time(saving.mean)}."
        )
    guess = decision.leader if decision.leader_saving_ms.mean > 0 else answer.baseline
    first = _first(answer, guess)
    if first and first.saving_ms.low < row_of(answer, guess).saving_ms.low:
        saving, mean_ms = first.saving_ms, round(first.saving_ms.mean)
        average = f"{'saves' if mean_ms > 0 else 'costs'} {_time(abs(mean_ms))}"
        yield (
            f"{first.setting} probably saves {_time(saving.middle)}, but may cost "
            f"{_time(-saving.low)}; on average it {average if mean_ms else 'saves nothing'}."
        )


def _depends(answer: Recommendation) -> Iterator[str]:
    """Say what is best at both ends of what decides, where the user may know that."""
    fact = answer.deciding
    if fact is None or fact.factor not in _TO_BE_KNOWN or len(fact.ranges) == 1:
        return
    first, last = fact.ranges[0], fact.ranges[-1]
    what, unit, _ = _TO_BE_KNOWN[fact.factor]
    yield (
        f"It depends {'' if fact.decides else 'most '}on the {what}: "
        f"{first.setting} below {rounded(first.high)} {unit}, "
        f"{last.setting} above {rounded(last.low)} {unit}."
    )


def _open_build(answer: Recommendation) -> Iterator[str]:
    """Say what building today's image adds to a boot, of which only bounds are known."""
    spread = unknown_build(row_of(answer, answer.baseline), answer.rows)
    if spread is None:
        yield "Nothing tells what that is; the table counts nothing for it."
        return
    a_boot = 1000 / answer.pace.boots
    least, most = spread.least_s * a_boot, spread.most_s * a_boot
    middle = _time(spread.middle_s * a_boot)
    yield f"That is {_span(least, most)} a boot, as its level is not known; {middle} is counted."


def _boots(answer: Recommendation) -> str:
    return "boots, their share of the build included," if _balanced(answer) else "boots"


def _balanced(answer: Recommendation) -> bool:
    return answer.objective is Objective.BALANCED


def _sooner(saving: Estimate) -> str:
    """Return a saving and its interval in words."""
    word = "sooner" if saving.middle >= 0 else "later"
    return f"{_time(abs(saving.middle))} {word}{_INTERVAL}{_range(saving)})"


def _range(saving: Estimate) -> str:
    low, high = round(saving.low), round(saving.high)
    if low < 0 < high:
        return f"{_time(-low)} later to {_time(high)} sooner"
    return f"{_span(*sorted((abs(low), abs(high))))} {'sooner' if high > 0 else 'later'}"


def _span(low_ms: float, high_ms: float) -> str:
    """Return two times, the unit said once where it is the same."""
    (low, unit), high = _time(low_ms).split(), _time(high_ms)
    return f"{low} to {high}" if high.endswith(f" {unit}") else f"{low} {unit} to {high}"


def _time(ms: float) -> str:
    """Return a time in milliseconds, from a second on in seconds."""
    if round(ms) < 1000:
        return f"{round(ms)} ms"
    return f"{ms / 1000:.{1 if ms < 99_950 else 0}f} s"


def _little(saving: Estimate) -> Iterator[str]:
    if 0 <= saving.middle < _LITTLE_MS:
        yield "That is little."


def _room(answer: Recommendation, setting: Setting) -> Iterator[str]:
    """Say what becomes of the room for images."""
    more = _larger_mb(answer, setting)
    where = f" room on {shown(answer.storage.room_on)}" if answer.storage.room_on else ""
    if abs(more) >= 0.5:
        amount = f"{abs(more):.1f}".removesuffix(".0")
        yield f"The image takes {amount} MB {'more' if more > 0 else 'less'}{where}."
    room, after = answer.room, row_of(answer, setting).more_kernels
    if room and after is not None and after != room.today and min(room.today, after) <= FEW:
        kernels = f"{after} more kernel{'' if after == 1 else 's'}"
        yield f"{shown(room.mount_point)} then has room for {kernels}, now for {room.today}."


def _why_not(answer: Recommendation, row: Row) -> str | None:
    """Return why a setting cannot be applied here, in few words; None where it can."""
    if row.setting == answer.baseline:
        return None
    if row.lint.verdict is Verdict.REFUSED:
        return "the kernel refuses it"
    if row.unusable:
        return "like today's" if row.unusable == LIKE_TODAY else "not usable here"
    return None if row.fits is not False else "does not fit"


def _shown_rows(
    answer: Recommendation, *, most: int | None
) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Return at most so many rows, in the order of the answer, and those left out."""
    if most is None:
        return answer.rows, ()
    today = row_of(answer, answer.baseline)
    decision, plan = answer.decision, answer.plan
    named = [answer.baseline, decision.setting, decision.leader, _shows_most(answer).setting]
    named += [answer.rival.setting] if answer.rival else []
    named += [plan.following] if plan else []
    shown_settings = list(dict.fromkeys(named))[:most]
    by_size = answer.objective is Objective.SIZE
    for row in answer.rows:
        better = row.size_bytes < today.size_bytes if by_size else row.saving_ms.high > 0
        may_be_better = better and _why_not(answer, row) is None
        if may_be_better and len(shown_settings) < most and row.setting not in shown_settings:
            shown_settings.append(row.setting)
    kept = tuple(row for row in answer.rows if row.setting in shown_settings)
    return kept, tuple(row for row in answer.rows if row not in kept)


def _table(answer: Recommendation, rows: Sequence[Row]) -> Iterator[str]:
    balanced = _balanced(answer)
    titles = ["", "size", "read", "unpack", *(["build"] if balanced else []), ""]
    cells = [list(_cells(answer, row, balanced=balanced)) for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    ends = [_ends(answer, row) for row in rows]
    end_width = max(map(len, ends))
    used = sum(widths) + len(_GAP) * (len(widths) + 1) + end_width
    heading = sum(widths) + len(_GAP) * (len(widths) - 1) + len(_HEADING)
    if (excess := max(used, heading) - _width()) > 0:  # --explain has all of a long name
        widths[0] = max(widths[0] - excess, _LEAST_NAME)
        for line in cells:
            if len(line[0]) > widths[0]:
                line[0] = f"{line[0][: widths[0] - 3]}..."
        used -= excess
    usable = [row for row in rows if _why_not(answer, row) is None]
    scale = _Scale.of(
        [row.saving_ms for row in usable or rows],
        least_ms=answer.decision.tolerance_ms,
        width=_width() - used,
    )
    *others, last = _aligned(titles, widths)
    yield f"{_GAP.join([*others, ' ' * len(last)])}{_HEADING}"
    for row, line, end in zip(rows, cells, ends, strict=True):
        today = row.setting == answer.baseline
        bar = scale.blank if today else scale.bar(row.saving_ms)
        text = _GAP.join([*_aligned(line, widths), bar, end.rjust(end_width)]).rstrip()
        yield click.style(
            text,
            bold=row.setting == answer.decision.setting,
            dim=_why_not(answer, row) is not None,
        )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return cells as wide as their columns: the first stands on the left, figures on the right."""
    first, *others = zip(cells, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]


def _cells(answer: Recommendation, row: Row, *, balanced: bool) -> Iterator[str]:
    yield str(row.setting)
    yield f"{_size_mb(answer, row)} MB"
    yield f"{short(row.read_ms.middle)} ms"
    yield f"{short(row.unpack_ms.middle)} ms"
    if balanced:
        yield _build(answer, row)
    yield "today" if row.setting == answer.baseline else _signed(row.saving_ms.middle)


def _build(answer: Recommendation, row: Row) -> str:
    """Return what a build adds to a boot; with ~ the middle of what it may be."""
    cpu_s = build_cpu_s(row, answer.rows)
    middle = "~" if unknown_build(row, answer.rows) else ""
    return "?" if cpu_s is None else f"{middle}{short(1000 * cpu_s / answer.pace.boots)} ms"


def _ends(answer: Recommendation, row: Row) -> str:
    if reason := _why_not(answer, row):
        return reason
    if row.setting == answer.baseline:
        return ""
    return f"{_signed(row.saving_ms.low)} .. {_signed(row.saving_ms.high)}"


def _signed(value: float) -> str:
    text = short(value)
    return text if text.startswith(("-", "0")) else f"+{text}"


@dataclass(frozen=True, slots=True)
class _Scale:
    """The axis that all bars share, in ms, with 0 on it, and the characters to draw with."""

    low: float
    high: float
    width: int
    characters: str

    @classmethod
    def of(cls, savings: Sequence[Estimate], *, least_ms: float, width: int) -> _Scale:
        """Return the one of these savings; it shows ``least_ms``, the least that matters, too."""
        reach = _CLIPPED * max((abs(saving.middle) for saving in savings), default=0.0) or 1.0
        low = max(min(0.0, *(saving.low for saving in savings)), -reach)
        high = max(min(max(0.0, *(saving.high for saving in savings)), reach), least_ms)
        drawn = 0 if width < _LEAST_BAR else min(width, _MOST_BAR)
        return cls(low, high, drawn, "─●┼" if _can_draw() else "-o|")

    @property
    def blank(self) -> str:
        return " " * self.width

    def bar(self, saving: Estimate) -> str:
        """Return the interval as a line, with what is expected and 0 marked on it."""
        if not self.width:
            return ""
        line, middle, zero = tuple(self.characters)
        first, last = self._place(saving.low), self._place(saving.high)
        drawn = [line if first <= place <= last else " " for place in range(self.width)]
        drawn[self._place(0.0)] = zero
        drawn[self._place(saving.middle)] = middle
        return "".join(drawn)

    def _place(self, value: float) -> int:
        part = (min(max(value, self.low), self.high) - self.low) / max(self.high - self.low, 1e-9)
        return round(part * (self.width - 1))


def _can_draw() -> bool:
    try:
        "─●┼".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _sources(answer: Recommendation) -> Iterator[str]:
    """Say where the figures come from, in few words."""
    sampled = any(row.size_log_sd for row in answer.rows)
    told = {one.about for one in answer.assumptions if one.boots}
    known = told | {one.about for one in answer.assumptions if one.certain}
    assumed = {one.about for one in answer.assumptions} & set(_ASSUMED) - known
    words = ["Sampled: size." if sampled else "Built: size.", _UNPACKING[answer.evidence]]
    known_here = [f"Given: {listed(answer.given)}{_kept(answer)}."] if answer.given else []
    given = {one for one, words in _GIVEN.items() if any(words in said for said in answer.given)}
    if learnt := (told & set(_ASSUMED)) - given:
        known_here.append(f"Learnt from boots: {_names(learnt)}.")
    if len(whole := " ".join((*words, *known_here))) <= _width():
        yield whole
    else:
        yield from (" ".join(words), " ".join(known_here))
    if assumed:
        meaning = "how long unpacking costs nothing; " if Parameter.SHADOW in assumed else ""
        yield f"Assumed: {_names(assumed)} ({meaning}--explain)."


def _kept(answer: Recommendation) -> str:
    """Say how other commands learn what was given with an option."""
    with_option = [one for one in answer.given if str(CONFIG_PATH) not in one]
    return " (config set keeps that)" if with_option and answer.installed else ""


def _hidden(answer: Recommendation) -> Iterator[str]:
    """Say why to unpack sooner saves nothing, where nothing waits for today's unpacking."""
    overlap = answer.overlap_ms
    if overlap and row_of(answer, answer.baseline).unpack_ms.high < overlap.low:
        yield f"Unpacking within {_time(overlap.low)} costs nothing: the kernel is busy that long."


def _names(about: set[Parameter | None]) -> str:
    return listed([words for one, words in _ASSUMED.items() if one in about])


def _warnings(answer: Recommendation) -> Iterator[str]:
    width = _width() - len("Warning: ")
    for warning in answer.warnings[:_MOST_WARNINGS]:
        more = "... (--explain)"
        short_enough = warning
        if len(warning) > width:
            begins = textwrap.shorten(warning, width - len(more), placeholder="")
            short_enough = f"{begins.rstrip(',;:')}{more}"
        yield f"Warning: {short_enough}"
    others = [line for line in answer.context if line != answer.excess]
    if answer.warnings[_MOST_WARNINGS:] or others:
        left = len(answer.warnings[_MOST_WARNINGS:])
        parts = [f"{left} more warning{'s' if left > 1 else ''}"] if left else []
        parts += ["what may matter more than the compression"] if others else []
        yield f"See --explain for {listed(parts)}."


def _next(answer: Recommendation) -> Iterator[str]:
    """Say what to do now, in one line; nothing where nothing is to be done."""
    decision = answer.decision
    plain = answer.installed and not answer.given
    again = "initadvisor recommend" if plain else "this command with"
    if answer.hinges_on_build:
        yield f"Next: {again} --objective boot   leaves out what builds take"
    elif decision.outcome is Outcome.SWITCH and answer.installed:
        command = shlex.join(["apply", str(decision.setting), "--confirm"])
        yield f"Next: sudo initadvisor {command}   switches, after a trial boot"
    elif decision.outcome is Outcome.SWITCH and not answer.sample:
        yield "Next: ask on the machine that boots this image; only there it can be applied"
    elif decision.outcome is Outcome.UNDECIDED:
        yield from _next_to_decide(answer, again)


def _next_to_decide(answer: Recommendation, again: str) -> Iterator[str]:
    """Say what would decide it."""
    plan, fact = answer.plan, answer.deciding
    if fact and not fact.decides:
        fact = None
    if fact and plan is None and not answer.installed and fact.factor in _TO_BE_KNOWN:
        what, _, option = _TO_BE_KNOWN[fact.factor]
        yield f"Next: this command with {option}, if you know the {what} there"
    elif answer.unbuilt and plan is None:
        count = len(answer.unbuilt)
        what = f"the {count} settings that" if count > 1 else f"{answer.unbuilt[0]}, which"
        yield f"Next: {again} --build   builds {what} may be best"
    elif plan and plan.purpose is Purpose.TODAY:
        tells = "more" if any(_little(answer.decision.leader_saving_ms)) else "most"
        yield f"Next: sudo initadvisor measure   records this boot, which tells {tells}"
    elif plan and plan.enough:
        yield (
            f"Next: sudo initadvisor trial start   decides it in about {boots(plan.count)} "
            "of candidates"
        )
    elif plan and not plan.loader_seen and not _knows(answer, Parameter.LOADER):
        yield "Next: if you know how fast the boot loader reads, say so with --read-speed"
    elif plan:
        yield "Nothing to do: the best settings are nearly alike, and today's is fine"
    elif fact:
        yield f"Next: {again} --explain   says which fact would decide it"
    elif not answer.installed and not answer.sample:
        yield "Next: ask on the machine that boots this image; its boots tell more"


def _knows(answer: Recommendation, what: Parameter) -> bool:
    """Tell whether nothing about it is assumed: the user says it, or there is no doubt."""
    return any(one.about is what and one.certain for one in answer.assumptions)
