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


def test_a_reader_finds_every_part(browser: Chrome, pages: dict[str, str]) -> None:
    shown_as(browser, 1400)
    browser.get(pages["every"])
    headings = browser.execute_script("return [...document.querySelectorAll('h2')].map(one => one.innerText)")
    assert headings == [
        "Verdicts", "Look at first", "Personas and scenarios", "Criteria", "Quality and length", "Errors",
        "Tokens and cost", "Recommendations", "Conversations, worst first", "Configuration",
    ]  # fmt: skip
    pictures = browser.execute_script("return [...document.querySelectorAll('svg')].map(one => one.ariaLabel)")
    assert [picture.partition(";")[0] for picture in pictures] == [
        "Judge's scores turn by turn", "Conversations by goal completion score", "Conversations by number of turns",
    ]  # fmt: skip
    browser.get(pages["flawed"])
    run_in(browser, OPEN_ALL)
    talk = browser.execute_script("return document.querySelector('#c4').innerText")
    assert "expected: forbidden_tool [refund_order]" in talk
    assert "turn 1: refund_order accepted; events: refunded_late:G7007" in talk
    assert "Offline: users and checks were simulated" in browser.execute_script("return document.body.innerText")


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


def test_the_table_of_rates_is_whole_on_a_phone(browser: Chrome, pages: dict[str, str]) -> None:
    shown_as(browser, 420)
    browser.get(pages["flawed"])
    sizes = "const one = document.querySelector('[aria-label=Rates]'); return [one.scrollWidth, one.clientWidth]"
    needed, given = browser.execute_script(sizes)
    assert needed <= given


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
