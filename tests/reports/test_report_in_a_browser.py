"""The HTML report in a browser: accessible in light and dark, as wide as the window, whole on paper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver import Chrome
from test_reading_reports import a_run, hostile

from browsing import WIDTHS, axe_violations, chromium_started, shown_as
from evaluatorq.model.runs import SimulationRecommendation
from evaluatorq.simulation import simulate_sync
from evaluatorq.simulation.reports import export_html

ADVICE = SimulationRecommendation(
    result_index=1, persona="Bo", scenario="Late parcel", suggestions=["Do this", "Do that"]
)
OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true })"
CLOSED_WORDS = "[...document.querySelectorAll('details:not([open]) .words')]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium_started() as started:
        yield started


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """URLs of a report with everything in it, of one full of hostile words, and of the flawed demo agent's."""
    folder = tmp_path_factory.mktemp("reports")
    flawed = simulate_sync(target="demo:flawed", offline=True, journal=False).run
    every = {
        "every": a_run(recommendations=[ADVICE], applied_suggestions=["Do this"]),
        "hostile": hostile(),
        "flawed": flawed,
    }
    for name, run in every.items():
        (folder / f"{name}.html").write_text(export_html(run), encoding="utf-8", errors="replace")
    return {name: (folder / f"{name}.html").as_uri() for name in every}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["every", "hostile", "flawed"])
def test_axe_finds_nothing(name: str, dark: bool, browser: Chrome, pages: dict[str, str]) -> None:
    shown_as(browser, WIDTHS[-1], dark=dark)
    browser.get(pages[name])
    run_in(browser, OPEN_ALL)
    assert axe_violations(browser) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["hostile", "flawed"])
def test_no_page_is_wider_than_its_window(name: str, width: int, browser: Chrome, pages: dict[str, str]) -> None:
    shown_as(browser, width)
    browser.get(pages[name])
    run_in(browser, OPEN_ALL)
    assert browser.execute_script("return document.documentElement.scrollWidth") == width


def test_closed_transcripts_are_printed_in_black_on_white(browser: Chrome, pages: dict[str, str]) -> None:
    shown_as(browser, 800, dark=True)
    browser.get(pages["flawed"])
    visible = f"return {CLOSED_WORDS}.map(one => one.checkVisibility())"
    assert not any(browser.execute_script(visible))
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [dark]})
    assert len(browser.execute_script(visible)) > 100
    assert all(browser.execute_script(visible))
    colours = "const is = getComputedStyle(document.body); return [is.color, is.backgroundColor]"
    assert browser.execute_script(colours) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


def test_the_words_that_decided_are_marked_in_the_excerpt(browser: Chrome, pages: dict[str, str]) -> None:
    shown_as(browser, 1400)
    browser.get(pages["flawed"])
    excerpts = browser.execute_script(
        "return [...document.querySelectorAll('#findings ~ ul > li')].map(one => one.innerText)"
    )
    (refund,) = [text for text in excerpts if "Refund after the window closed" in text]
    assert "happened but must not: The agent refunds the order" in refund
    assert "My order number is G7007." in refund
    assert "I have refunded order G7007" in refund


def run_in(browser: Chrome, script: str) -> None:
    """Runs a script that the page's own policy would refuse."""
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
