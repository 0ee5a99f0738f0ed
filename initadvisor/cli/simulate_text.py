"""The answer of ``simulate`` for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from initadvisor.cli.paragraphs import print_item, print_paragraph
from initadvisor.cli.tables import Table, print_table

if TYPE_CHECKING:
    from initadvisor.model.simulation import (
        Believed,
        BootCount,
        Figures,
        Mean,
        SettingUse,
        Share,
        Simulation,
    )

_RARE = 0.02
"""Settings that were best, chosen and booted on fewer machines are not shown one by one."""


def print_simulation(answer: Simulation) -> None:
    """Print the whole answer to stdout."""
    figures = answer.figures
    print_paragraph(_headline(answer))
    click.echo()
    rows = [("all", figures), *((str(strain), own) for strain, own in answer.by_strain)]
    print_table(
        Table(
            titles=("machines", "", "boots", "90 % within", "right %", "regret ms"),
            rows=(
                *(_row(name, own) for name, own in rows),
                *(_fixed_row(name, own) for name, own in rows[:1]),
            ),
            text=0,
        )
    )
    print_paragraph(_legend(answer))
    click.echo()
    click.echo("How often a decision was right that was said to be right with about")
    for one in figures.calibration:
        print_item(_believed(one))
    if not figures.calibration:
        print_item("none was settled")
    click.echo()
    _print_settings(answer)
    click.echo("All of this is made up; what was assumed:")
    for said in answer.assumptions:
        print_item(said)


def _headline(answer: Simulation) -> str:
    figures = answer.figures
    median, most = figures.boots_median, figures.boots_90
    if median.boots is None:
        found = f"less than half of the campaigns are settled within {answer.most_boots} boots"
    else:
        found = f"half of the campaigns are settled after {median.boots} boots{_bounds(median)}, "
        found += (
            f"90 % after {most.boots}{_bounds(most)}"
            if most.boots is not None
            else f"but not 90 % within {answer.most_boots}"
        )
    right = figures.right
    return (
        f"On {figures.machines} made-up machines (seed {answer.seed}), {found}; "
        f"{_percent(right.part)} ({_percent(right.low)} to {_percent(right.high)}) end settled "
        f"on a setting that is within the tolerance of the best. The classic comparison takes "
        f"{figures.fixed.boots} boots for {_percent(figures.fixed.right.part)}."
    )


def _row(name: str, figures: Figures) -> tuple[str, ...]:
    return (
        name,
        str(figures.machines),
        _boots(figures.boots_median),
        _boots(figures.boots_90),
        _share(figures.right),
        _mean(figures.regret_ms),
    )


def _fixed_row(name: str, figures: Figures) -> tuple[str, ...]:
    fixed = figures.fixed
    return (
        f"{name}, classic",
        str(figures.machines),
        str(fixed.boots),
        str(fixed.boots),
        _share(fixed.right),
        _mean(fixed.regret_ms),
    )


def _legend(answer: Simulation) -> str:
    fraction = f"{answer.tolerance_fraction * 100:.3g} %"
    return (
        "boots: after how many the median campaign is settled. right: settled, with a setting that "
        f"costs at most {answer.tolerance_ms:g} ms or {fraction} of today's total more than the "
        "best. regret: what a boot costs more than with the best; of it, "
        f"{_mean(answer.figures.beyond_ms)} ms are beyond that. Intervals hold what more such "
        f"machines would show, with 95 %; - is more than {answer.most_boots} boots."
    )


def _believed(one: Believed) -> str:
    right = one.right
    return f"{one.stated * 100:.1f} %: {right.count} of {right.of}, {_share(right)} %"


def _print_settings(answer: Simulation) -> None:
    shown = [use for use in answer.settings if _matters(use)]
    print_table(
        Table(
            titles=("setting", "best %", "chosen %", "booted %", "boots", "classic %"),
            rows=tuple(
                (
                    str(use.setting),
                    _share(use.best),
                    _share(use.chosen),
                    _share(use.booted),
                    _mean(use.boots, digits=2),
                    _share(use.fixed_chosen),
                )
                for use in shown
            ),
            text=0,
        )
    )
    rare = [str(use.setting) for use in answer.settings if not _matters(use)]
    if rare:
        print_paragraph(f"Less than {_RARE * 100:.0f} % each: {', '.join(rare)}.")
        click.echo()


def _matters(use: SettingUse) -> bool:
    parts = (use.best.part, use.chosen.part, use.booted.part, use.fixed_chosen.part)
    return max(parts) >= _RARE


def _boots(count: BootCount) -> str:
    return f"{_one(count.boots)} {_one(count.low)}..{_one(count.high)}"


def _bounds(count: BootCount) -> str:
    if count.low == count.high:
        return ""
    return f" ({_one(count.low)} to {count.high if count.high is not None else 'more'})"


def _one(boots: int | None) -> str:
    return "-" if boots is None else str(boots)


def _share(share: Share) -> str:
    return f"{share.part * 100:.0f} {share.low * 100:.0f}..{share.high * 100:.0f}"


def _percent(part: float) -> str:
    return f"{part * 100:.0f} %"


def _mean(mean: Mean, *, digits: int = 1) -> str:
    text = f"{mean.mean:.{digits}f}"
    if mean.low is None or mean.high is None:
        return text
    return f"{text} {mean.low:.{digits}f}..{mean.high:.{digits}f}"
