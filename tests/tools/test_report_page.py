"""A report opens in a browser, and its own arithmetic is the model's."""

from __future__ import annotations

import random
from math import exp
from typing import TYPE_CHECKING, Any

import pytest

from initadvisor.core.codecs import Codec
from initadvisor.core.estimates import Estimate
from initadvisor.core.serialisation import to_plain
from initadvisor.core.settings import Setting
from initadvisor.decide.whatif_values import Conditions, Rule, SettingFigures
from initadvisor.report.bars import bars, choices, reach_ms
from initadvisor.report.figures import in_ms, interval_ms
from initadvisor.report.page import page
from initadvisor.report.report import Model
from tests.fixtures.browser import chromium, opened
from tests.fixtures.hosts import Machine
from tests.fixtures.reports import known_answer, report_of

if TYPE_CHECKING:
    from pathlib import Path

    from initadvisor.report.bars import Bar

pytestmark = [pytest.mark.tools, pytest.mark.browser]

POINTS = 1000
COMPUTE = """points => points.map(({model, conditions, boots, count}) => {
    const compared = comparedSettings(model, boots, count);
    const ranks = rankSettings(compared, conditions, model.loader_mb_s, model.rule);
    const found = ranks.map((rank, number) => [
        rank.setting, rank.best, rank.as_good,
        [rank.cost_ms.mean, rank.cost_ms.low, rank.cost_ms.high],
        Object.values(partsOf(compared[number], conditions)),
        [inMs(rank.cost_ms.mean), intervalMs(rank.cost_ms)],
    ]);
    return [found, reachMs(ranks.map(rank => rank.cost_ms.mean))];
})"""


def test_it_opens_and_computes_what_the_model_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 1,000 random points, as whatif and the bars without JavaScript do."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    path = tmp_path / "report.html"
    path.write_text(page(report_of(Machine(root=tmp_path), known_answer())))
    points = [point(random.Random(number)) for number in range(POINTS)]
    asked = [
        {"model": to_plain(model), "conditions": to_plain(at), "boots": boots, "count": count}
        for model, at, boots, count in points
    ]
    with chromium() as browser, opened(browser, path) as found:
        assert found.page.inner_text("#winner") == "lz4 -9"
        computed = found.page.evaluate(COMPUTE, asked)
        assert found.wrong == []
    winners = set()
    for (model, at, boots, count), (ranks, reach) in zip(points, computed, strict=True):
        compared = choices(model, boots_per_upgrade=boots, count_builds=count)
        expected = bars(model, compared, at)
        assert reach == pytest.approx(reach_ms(expected), rel=1e-12)
        by_setting = {str(bar.setting): bar for bar in expected}
        assert [name for name, *_ in ranks] == [str(choice.setting) for choice in compared]
        for name, *rank in ranks:
            require_same(rank, by_setting[name])
            winners |= {name for best in rank[:1] if best}
    assert len(winners) > 4


def require_same(rank: list[Any], bar: Bar) -> None:
    """Hold what the page computed against a bar."""
    best, as_good, cost, parts, words = rank
    assert (best, as_good) == (bar.best, bar.as_good)
    assert cost == pytest.approx([bar.cost_ms.mean, bar.cost_ms.low, bar.cost_ms.high], rel=1e-9)
    own = [bar.read_ms, bar.hidden_ms, bar.waited_ms, bar.other_ms, bar.build_ms]
    assert parts == pytest.approx(own, rel=1e-9, abs=1e-9)
    assert words == [in_ms(bar.cost_ms.mean), interval_ms(bar.cost_ms)]


def point(draw: random.Random) -> tuple[Model, Conditions, float, bool]:
    """Return settings of any size and time, a rule, and conditions."""
    settings = draw.sample([Setting(codec) for codec in Codec], draw.randint(2, len(Codec)))
    builds = [draw.choice([None, 0.0, draw.uniform(0.1, 60)]) for _ in settings]
    builds[0] = draw.uniform(0.1, 60)  # one at least can be compared, whatever counts
    speed = figure(draw, 1, 8000)
    model = Model(
        choices=tuple(
            SettingFigures(
                setting=one, size_mb=figure(draw, 5, 200), unpack_ms=figure(draw, 5, 2000)
            )
            for one in settings
        ),
        build_cpu_s=tuple(builds),
        rule=Rule(
            tolerance_ms=draw.choice([0.0, 5.0, 50.0]),
            tolerance_fraction=draw.choice([0.0, 0.02, 0.5]),
            today=draw.choice([None, *settings]),
            by_size=draw.random() < 0.2,
        ),
        loader_mb_s=speed,
        overlap_ms=figure(draw, 1, 2000),
        boots_per_upgrade=draw.uniform(1, 100),
        count_builds=draw.random() < 0.5,
    )
    conditions = Conditions(
        read_mb_s=draw.choice([speed.mean, log_uniform(draw, 1, 8000)]),
        cpu_scale=draw.choice([1.0, log_uniform(draw, 0.125, 8)]),
        shadow_ms=draw.choice([0.0, draw.uniform(0, 2000)]),
    )
    return model, conditions, draw.uniform(1, 100), draw.random() < 0.5


def figure(draw: random.Random, low: float, high: float) -> Estimate:
    """Return a figure with an interval, which may have no width."""
    mean, spread = log_uniform(draw, low, high), exp(draw.choice([0.0, draw.random()]))
    return Estimate(mean=mean, low=mean / spread, high=mean * spread, source="a test")


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    """Return a number between two others, as likely in each decade."""
    return float(low * (high / low) ** draw.random())
