"""A report as one page: it loads nothing, and is all there without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from initadvisor.advise.whatif import DISKS
from initadvisor.core.serialisation import to_plain
from initadvisor.decide.whatif import at_speed
from initadvisor.report.bars import bars, choices, here, reach_ms
from initadvisor.report.figures import in_ms, in_s, interval_ms, interval_s, megabytes
from initadvisor.report.history import HEIGHT, panels
from initadvisor.report.report import Lane
from initadvisor.report.time_line import WAITING, ticks
from initadvisor.report.trade_offs import HEIGHT as TRADE_OFF_HEIGHT
from initadvisor.report.trade_offs import LEFT, trade_offs
from initadvisor.report.treemap import areas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from initadvisor.report.bars import Bar
    from initadvisor.report.report import Model, OneBoot, Report


_HERE = Path(__file__).parent
_SLIDERS = (
    ("speed", "The boot loader reads"),
    ("cpu", "The processor takes"),
    ("overlap", "The kernel has other work for"),
    ("boots", "The image is rebuilt every"),
)
_ASSUMED = "assumed: what loaders get from such a disk differs by a factor of 10"
PRESETS = sorted(
    (
        *DISKS,
        at_speed(30, name="USB stick", source=_ASSUMED),
        at_speed(100, name="hard disk", source=_ASSUMED),
    ),
    key=lambda disk: disk.read_mb_s.mean,
)
"""Disks to put in the place of this machine's, the slowest first."""

_ASPECT = 3.0
"""How many times as wide as high the picture of the image is taken to be."""

_SHORT = 24
"""A source that is no longer stands beside its figure, others below the table."""

_UNSAFE = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}
"""What could end the element that data is in, or an old script's line."""


def page(report: Report) -> str:
    """Return the page; whatever text is in the report, it is shown and nothing else."""
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    environment = jinja2.Environment(
        autoescape=True,
        loader=jinja2.FileSystemLoader(_HERE),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ms": in_ms,
        "interval": interval_ms,
        "mb": megabytes,
        "s": in_s,
        "interval_s": interval_s,
    }
    headline, bounds, lead = _headline(report.verdict)
    return environment.get_template("page.html").render(
        report=report,
        headline=headline,
        bounds=bounds,
        lead=lead,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        policy=f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        data=_data(report),
        rows={one.setting: number for number, one in enumerate(report.settings, 1)},
        sources=_numbered_sources(report),
        presets=PRESETS,
        sliders=_SLIDERS,
        panels=panels(report.boots),
        panel_height=HEIGHT,
        time_line=_time_line(report.one_boot) if report.one_boot else None,
        areas=areas(report, aspect=_ASPECT) if report.kinds else (),
        trade_offs=trade_offs(report),
        trade_off_height=TRADE_OFF_HEIGHT,
        trade_off_left=LEFT,
        busiest=max((one.busy_part for one in report.swept), default=0.0),
        picture=_picture(report.model) if report.model else None,
    )


def _headline(verdict: Sequence[str]) -> tuple[str, str, str]:
    """Return the first sentence without its interval, the interval, and what else is said."""
    said, found, after = verdict[0].partition(" (95 %: ")
    bounds, _, more = after.partition(").")
    lead = " ".join(filter(None, [more.strip(), *verdict[1:]]))
    return said, f"95\N{NO-BREAK SPACE}%: {bounds}" if found else "", lead


def _hash(text: str) -> str:
    """Return how a content security policy names text that is allowed."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _time_line(boot: OneBoot) -> Mapping[str, object]:
    """Return where the stages of a boot are, in percent of its length, and its axis."""
    low = min(stage.from_ms for stage in boot.stages)
    high = max(stage.to_ms for stage in boot.stages)
    length = high - low
    return {
        "low": low,
        "high": high,
        "waited_ms": next(
            (one.to_ms - one.from_ms for one in boot.stages if one.name == WAITING), None
        ),
        "lanes": [
            (
                lane,
                [
                    (
                        number,
                        stage,
                        100 * (stage.from_ms - low) / length,
                        100 * (stage.to_ms - stage.from_ms) / length,
                    )
                    for number, stage in enumerate(boot.stages)
                    if stage.lane is lane
                ],
            )
            for lane in Lane
        ],
        "ticks": [(one, 100 * (one - low) / length) for one in ticks(low, high)],
    }


def _numbered_sources(report: Report) -> Mapping[str, int | None]:
    """Return the sources, those that stand below the table with a number."""
    figures = (f for one in report.settings for f in (one.read_ms, one.unpack_ms, one.saving_ms))
    names = dict.fromkeys(figure.source for figure in figures)
    numbers = itertools.count(1)
    return {name: next(numbers) if len(name) > _SHORT else None for name in names}


def _data(report: Report) -> Markup:
    text = json.dumps(to_plain(report), allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_UNSAFE))  # noqa: S704 - nothing in it can end the element


def _picture(model: Model) -> Mapping[str, object]:
    compared = choices(
        model, boots_per_upgrade=model.boots_per_upgrade, count_builds=model.count_builds
    )
    if not compared:
        compared = model.choices
    shown = bars(model, compared, here(model))
    reach = reach_ms(shown)
    return {"bars": [(bar, _places(bar, reach)) for bar in shown], "here": here(model)}


def _places(bar: Bar, reach: float) -> Mapping[str, object]:
    """Return where the parts of a bar are, in percent of the picture's width."""
    parts, start = [], 0.0
    for name in ("read", "hidden", "waited", "other", "build"):
        width = getattr(bar, f"{name}_ms")
        end = min(start + width, reach)
        if end > start:
            parts.append((name, 100 * start / reach, 100 * (end - start) / reach))
        start += width
    low, high = (min(max(one, 0.0), reach) for one in (bar.cost_ms.low, bar.cost_ms.high))
    return {"parts": parts, "low": 100 * low / reach, "high": 100 * high / reach}
