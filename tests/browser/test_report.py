"""What a report does in a browser: sliders, keyboard, hostile names, screen readers, paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

from initadvisor.decide.cost import Factor, Outcome
from initadvisor.decide.whatif import best_along, best_settings, changed
from initadvisor.decide.whatif_values import Span
from initadvisor.report.bars import here
from initadvisor.report.page import PRESETS, page
from tests.fixtures.browser import chromium, opened
from tests.fixtures.hosts import Machine
from tests.fixtures.reports import SWEPT, known_answer, report_of, with_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

    from initadvisor.report.report import Model, Report

pytestmark = pytest.mark.browser

PICTURES = Path(__file__).parents[2] / "build/browser"
SPANS = {
    "speed": (Factor.LOADER, Span(low=1, high=8000)),
    "cpu": (Factor.CPU, Span(low=0.125, high=8)),
    "overlap": (Factor.SHADOW, Span(low=0, high=2000)),
}
HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> \" onfocus='alert(1)' "
    "\u202e\u2066 javascript:alert(1) " + "x" * 10_000
)

NAMES_OVER_BARS = """
[...document.querySelectorAll("#time-line .step")].filter((step) => {
  const bar = step.querySelector("rect").getBoundingClientRect();
  const names = [step.querySelector("text:not(.within)"), step.previousElementSibling]
    .filter((name) => name && name.textContent.trim() && !name.classList.contains("step"))
    .map((name) => name.getBoundingClientRect()).filter((name) => name.width > 0);
  return names.length !== 1 || names.some((name) => name.left < bar.right
    && bar.left < name.right && name.top < bar.bottom && bar.top < name.bottom);
}).map((step) => step.getAttribute("aria-label"))
"""
"""The rows of the time line that do not show their name once, beside or above their bar."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's chromium."""
    with chromium() as started:
        yield started


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    """A report of a made-up machine."""
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    return replace(report_of(Machine(root=tmp_path), known_answer()), swept=SWEPT)


@pytest.fixture
def path(report: Report, tmp_path: Path) -> Path:
    """Return where the page of the report is."""
    return written(tmp_path, report)


def written(directory: Path, report: Report) -> Path:
    """Write the page of a report."""
    path = directory / "report.html"
    path.write_text(page(report), encoding="utf-8")
    return path


def model_of(report: Report) -> Model:
    """Return the model, which this report has."""
    assert report.model is not None
    return report.model


def put(page: Page, slider: str, value: float) -> str:
    """Put a slider where it stands for a value, and return who wins there."""
    part = page.evaluate("([name, value]) => partAt(SLIDERS[name], value)", [slider, value])
    page.fill(f"#{slider}", f"{part:.3f}")
    return page.inner_text("#winner")


@pytest.mark.parametrize("slider", SPANS)
def test_the_winner_changes_where_the_model_says(
    browser: Browser, report: Report, path: Path, slider: str
) -> None:
    model, (factor, span) = model_of(report), SPANS[slider]
    ranges = best_along(model.choices, here(model), factor, span, model.rule)
    with opened(browser, path) as found:
        for one in ranges:
            low, high = max(one.low, span.low), min(one.high, span.high)
            for value in (low * 1.02 + 1e-9, high * 0.98):
                assert put(found.page, slider, value) == str(one.setting)
        assert found.wrong == []
    assert len(ranges) > 1 or slider == "overlap"


def test_presets_stand_for_disks_and_this_machine(
    browser: Browser, report: Report, path: Path
) -> None:
    model = model_of(report)
    with opened(browser, path) as found:
        page = found.page
        before = page.inner_text(".bars tbody")
        assert "60 ms more." in page.inner_text("#sentence")
        assert "61 ms sooner" in page.inner_text("#why")
        winners = set()
        for disk in PRESETS:
            page.click(f"button:text-is('{disk.name}')")
            assert page.inner_text("#speed-value") == f"{disk.read_mb_s.mean:.0f} MB/s"
            assert not page.is_visible("#why")
            at = changed(here(model), Factor.LOADER, disk.read_mb_s.mean)
            expected = str(best_settings(model.choices, at, model.rule)[0])
            assert page.inner_text("#winner") == expected
            assert page.inner_text("#now").startswith(f"{expected} costs a boot least: ")
            assert page.inner_text(".bars .best th a") == expected
            winners.add(expected)
        assert len(winners) > 1
        page.check("[name=count]")
        assert "costs" in page.inner_text("#sentence")
        page.click("button:text-is('This machine')")
        assert page.is_visible("#why")
        put(page, "cpu", 2)
        assert not page.is_visible("#why")
        page.click("button:text-is('This machine')")
        assert page.inner_text(".bars tbody") == before
        assert found.wrong == []


def test_what_others_measured_is_compared_by_the_same_sliders(
    browser: Browser, report: Report, path: Path
) -> None:
    model = model_of(report)
    rule = replace(model.rule, today=None)
    with opened(browser, path) as found:
        page = found.page
        before = page.inner_text(".bars tbody")
        for table in report.published:
            page.select_option("#table", label=table.name)
            assert page.locator(".bars tbody tr").count() == len(table.choices)
            assert not page.is_visible("#why")
            for speed in (1.0, 3.0, 100.0, 4000.0):
                at = replace(here(model), read_mb_s=speed, shadow_ms=0.0)
                assert put(page, "speed", speed) == str(best_settings(table.choices, at, rule)[0])
        page.select_option("#table", label="this machine")
        assert page.inner_text(".bars tbody") == before
        assert page.is_visible("#why")
        assert found.wrong == []


def test_it_is_used_by_keyboard(browser: Browser, path: Path) -> None:
    with opened(browser, path) as found:
        page = found.page
        page.focus("#speed")
        before = page.inner_text("#speed-value")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#speed-value") != before
        assert page.get_attribute("#speed", "aria-valuetext") == page.inner_text("#speed-value")
        page.focus(".bars tbody tr:nth-child(2) a")
        name = page.inner_text(".bars tbody tr:nth-child(2) a")
        assert page.inner_text("#detail").startswith(f"{name}: reading ")
        page.keyboard.press("Enter")
        assert page.evaluate("location.hash").startswith("#of-")
        assert found.wrong == []


def test_one_boot_is_zoomed_and_moved(browser: Browser, path: Path) -> None:
    with opened(browser, path) as found:
        page = found.page

        def shown() -> tuple[str, str]:
            return page.inner_html("#time-line .axis"), page.inner_html("#time-line .lane")

        def pressed(name: str) -> tuple[str, str]:
            page.focus(f"button:text-is('{name}')")
            page.keyboard.press("Enter")
            return shown()

        texts = page.locator("#time-line .axis text").all_text_contents()
        whole = pressed("Whole boot")
        assert page.locator("#time-line .axis text").all_text_contents() == texts
        assert pressed("Zoom in") != whole
        assert pressed("Earlier") != pressed("Later")
        pressed("Zoom out")
        assert pressed("Zoom out") == whole
        assert pressed("Unpacking") != whole
        [width] = page.locator("#time-line [data-stage]").evaluate_all(
            "all => all.filter(one => one.textContent.trim().startsWith('unpacking:'))"
            ".map(one => one.getAttribute('width'))"
        )
        assert width == "66.667%"
        assert found.wrong == []


def test_without_javascript_all_is_there_but_the_sliders(browser: Browser, path: Path) -> None:
    with opened(browser, path, java_script_enabled=False) as found:
        page = found.page
        assert page.locator("h1").is_visible()
        assert page.locator(".bars svg rect.read").count() == 3
        assert page.locator(".bars svg").first.is_visible()
        assert page.locator("table").count() == 8
        assert not page.locator("#controls").is_visible()


def test_hostile_names_do_nothing(browser: Browser, tmp_path: Path, report: Report) -> None:
    del report  # its store is there
    of = with_text(known_answer(Outcome.UNDECIDED), HOSTILE)
    path = written(tmp_path, report_of(Machine(root=tmp_path), of))
    for width in (400, 1280):
        with opened(browser, path, width=width) as found:
            page = found.page
            assert page.locator("script, img").count() == 2
            put(page, "speed", 3)
            page.hover(".bars tbody tr:nth-child(2)")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert found.wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_it_is_fit_for_screen_readers_and_every_width(
    browser: Browser, path: Path, width: int, scheme: str
) -> None:
    with opened(browser, path, width=width, color_scheme=scheme) as found:
        PICTURES.mkdir(parents=True, exist_ok=True)
        found.page.screenshot(path=PICTURES / f"report-{width}-{scheme}.png", full_page=True)
        assert found.page.evaluate("document.documentElement.scrollWidth") == width
        assert found.page.evaluate(NAMES_OVER_BARS) == []
        axe = Axe()
        results = axe.run(found.page, options={"resultTypes": ["violations"]})
    bad = [one for one in results.response["violations"] if one["impact"] != "minor"]
    assert bad == []


def test_on_paper_nothing_is_left_out_but_the_sliders(browser: Browser, path: Path) -> None:
    with opened(browser, path) as found:
        page = found.page
        page.emulate_media(media="print")
        assert not page.locator("#controls").is_visible()
        page.set_viewport_size({"width": 718, "height": 1047})  # A4, with a browser's margins
        cut = page.locator(".scroll").evaluate_all(
            "all => all.filter(x => x.scrollHeight > x.clientHeight"
            " || x.scrollWidth > x.clientWidth)"
            ".map(x => [x.ariaLabel, x.scrollWidth, x.clientWidth])"
        )
        assert cut == []
        assert len(page.pdf()) > 10_000
