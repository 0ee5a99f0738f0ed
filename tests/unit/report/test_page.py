"""The page is one file that loads nothing, shows hostile names as text, and needs no script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from initadvisor.core.config import Objective
from initadvisor.core.serialisation import to_plain
from initadvisor.decide.cost import Outcome
from initadvisor.report.bars import bars, choices, here
from initadvisor.report.page import page
from initadvisor.report.published import published_tables
from tests.fixtures.answers import decision, figure
from tests.fixtures.reports import known_answer, report_of, with_text

if TYPE_CHECKING:
    from initadvisor.host import Host
    from initadvisor.report.report import Report

MOST_BYTES = 1_500_000
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script><!--",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;\u202e\u2066\x1b[31m\x00\u2028",
    "x" * 10_000,
)


@dataclass
class Seen(HTMLParser):
    """The elements of a page in their order, with the names of their attributes, and its text."""

    elements: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def seen(text: str) -> Seen:
    """Return what a reader of HTML makes of a page."""
    found = Seen()
    found.feed(text)
    found.close()
    return found


def between(text: str, start: str, end: str) -> str:
    """Return the only text between two others."""
    [found] = re.findall(f"{re.escape(start)}(.*?){re.escape(end)}", text, re.DOTALL)
    return str(found)


def sha256(text: str) -> str:
    """Return a digest as a content security policy has it."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(host: Host, name: str) -> None:
    plain, hostile = (
        page(report_of(host, with_text(known_answer(Outcome.UNDECIDED), text)))
        for text in ("harmless words, not few", name)
    )
    assert seen(hostile).elements == seen(plain).elements
    shown = "".join(seen(hostile).texts)
    assert not re.search("[\u202e\u2066\x1b\x00\u2028]", hostile)
    if name.isprintable() and len(name) < 1000:
        assert name in shown
    assert len(hostile.encode()) < MOST_BYTES


def test_it_loads_nothing_and_allows_only_its_own_style_and_script(host: Host) -> None:
    text = page(report_of(host))
    policy = between(text, 'http-equiv="Content-Security-Policy" content="', '"')
    style, script = (between(text, f"<{one}>", f"</{one}>") for one in ("style", "script"))
    assert policy.replace("&#39;", "'").split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{sha256(style)}'",
        f"script-src 'sha256-{sha256(script)}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    names = {name for _, attributes in seen(text).elements for name in attributes}
    assert names & {"src", "srcset", "style", "onclick", "onload", "action"} == set()
    assert set(re.findall(r'href="(.)', text)) == {"#"}
    text = text.replace("http://www.w3.org/2000/svg", "")  # a name, which nobody looks up
    assert not re.search(r"https?:|url\(|@import|fetch\(|XMLHttpRequest", text)
    assert len(text.encode()) < 100_000


def test_all_that_is_known_is_in_it_as_data(host: Host) -> None:
    report = report_of(host)
    text = page(report)
    data = between(text, '<script type="application/json" id="data">', "</script>")
    assert json.loads(data) == to_plain(report)


def test_verdict_bars_and_tables_are_there(host: Host) -> None:
    report = report_of(host)
    text = page(report)
    assert report.verdict[0].startswith(between(text, "<h1>", " <span"))
    assert text.count('<td class="picture"><svg ') == 3
    for one in (*report.machine, *report.largest, *report.kinds):
        assert str(getattr(one, "text", getattr(one, "path", getattr(one, "kind", "")))) in text
    assert len(re.findall(r'<tr class="unfit">', text)) == 1  # the boot with a menu
    assert "the loader&#39;s menu was shown" in text
    assert re.search("zstd</a> <span class=.tag.>today", text)
    titles = re.findall(r"<(?:table|caption|th scope=.col.)\b", text)
    assert titles.count("<table") == titles.count("<caption") == 7


def test_the_sentence_says_why_the_verdict_has_another_figure(host: Host) -> None:
    def said(report: Report) -> str:
        return " ".join(between(page(report), 'id="why" class="note">', "</span>").split())

    reason = "also weighs how far off each may be."
    report = report_of(host)
    assert said(report) == (
        f"These are sums of the middle figures. The verdict (lz4 -9: 61 ms sooner) {reason}"
    )
    assert report.model is not None
    by_size = replace(report.model, rule=replace(report.model.rule, by_size=True))
    for other in (replace(report, model=by_size), replace(report, advised=report.today)):
        assert said(other) == f"These are sums of the middle figures. The verdict {reason}"


def test_intervals_stand_below_their_bars(host: Host) -> None:
    [bars_of, *_] = re.findall('<td class="picture">(.*?)</td>', page(report_of(host)), re.DOTALL)
    ends = [
        int(y) + int(height) for y, height in re.findall(r'y="(\d+)" .*height="(\d+)"', bars_of)
    ]
    [mark] = re.findall(r'y1="(\d+)" y2="\1"', bars_of)
    assert 0 < max(ends) < int(mark)


def test_the_verdict_is_told_as_a_headline_its_interval_and_sentences(host: Host) -> None:
    known = known_answer()
    little = replace(known, decision=decision(Outcome.SWITCH, saving=figure(40, -30, 90)))
    text = page(report_of(host, little))
    heading = re.sub("<[^>]*>", "", between(text, "<h1>", "</h1>")).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert heading == ("Switch to lz4 -9: boots 40 ms sooner 95 %: 30 ms later to 90 ms sooner")
    assert between(text, '<p class="lead">', "</p>") == (
        "That is little. No other is better. The image takes 15 MB more room on /boot."
    )


def test_without_boots_contents_and_model_the_rest_is_there(host: Host) -> None:
    of = replace(known_answer(Outcome.KEEP), overlap_ms=None, contents=None)
    text = page(report_of(host, of, records=()))
    assert "<svg" not in text
    assert "All figures" in text
    assert "Boots of this machine" not in text


def test_what_others_measured_is_told_by_speed() -> None:
    """Two boards of one mail contradict each other: the slower flash is below the crossing."""
    winners = {table.name: table.winners for table in published_tables()}
    assert "arch-cloud" not in winners
    assert winners["at91-nand-2012"] == (
        "xz up to 0.17 MB/s",
        "gzip up to 0.454 MB/s",
        "lzop up to 4.56 MB/s",
        "cat from 4.56 MB/s",
    )
    assert winners["arm-lzo-2010"][1:] == ("lzop up to 3.1 MB/s", "cat from 3.1 MB/s")
    assert winners["debian-programs-2021"][-1] == "cat from 320 MB/s"
    assert winners["guest-laptop"][1] == "zstd up to 329 MB/s"


def test_bars_are_the_model_s(host: Host) -> None:
    """Reading at the middle of the loader's speed, 60 ms of the unpacking hidden, and the build."""
    model = report_of(host, replace(known_answer(), objective=Objective.BALANCED)).model
    assert model is not None
    assert model.count_builds
    compared = choices(model, boots_per_upgrade=10, count_builds=True)
    lz4, zstd, _ = bars(model, compared, here(model))
    assert (str(lz4.setting), lz4.best, zstd.best) == ("lz4 -9", True, False)
    parts = (lz4.read_ms, lz4.hidden_ms, lz4.waited_ms, lz4.other_ms, lz4.build_ms)
    assert parts == pytest.approx((110, 60, 60, 0, 250))
    assert lz4.cost_ms.mean == pytest.approx(sum(parts))
    busy = replace(here(model), shadow_ms=500)
    found = {str(bar.setting): bar for bar in bars(model, model.choices, busy)}
    lz4, xz = found["lz4 -9"], found["xz"]
    assert (lz4.hidden_ms, lz4.waited_ms, lz4.other_ms) == pytest.approx((120, 0, 380))
    assert (xz.hidden_ms, xz.waited_ms, xz.other_ms) == pytest.approx((500, 400, 0))
