"""What people do with the viewer, in Debian's Chromium over real pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import staleness_of
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait
from viewing import Viewer

from browsing import WIDTHS, axe_violations, shown_as
from evaluatorq.model.runs import RunManifest
from evaluatorq.store.journal import Journal, JournalReader
from evaluatorq.store.labels import LabelFile


@pytest.fixture
def browser(chromium: Chrome) -> Iterator[Chrome]:
    """The browser on a wide light page; whatever a page complains about fails the test."""
    shown_as(chromium, 1400)
    chromium.get_log("browser")
    yield chromium
    assert chromium.get_log("browser") == []
    chromium.get("about:blank")


def follow(browser: Chrome, element: WebElement, *keys: str) -> None:
    """Clicks, or sends keys, and waits for the page that comes of it."""
    page = browser.find_element(By.TAG_NAME, "html")
    if keys:
        element.send_keys(*keys)
    else:
        element.click()
    WebDriverWait(browser, 60).until(staleness_of(page))
    WebDriverWait(browser, 60).until(lambda new: new.execute_script("return document.readyState") == "complete")


def soon(browser: Chrome, holds: Callable[[Chrome], bool]) -> None:
    """Waits until a page that changes by itself is as it should be."""
    WebDriverWait(browser, 60, ignored_exceptions=[StaleElementReferenceException]).until(holds)


def text_of(browser: Chrome) -> str:
    return browser.find_element(By.TAG_NAME, "main").text


def test_from_the_list_to_a_broken_promise_and_a_label_on_it(browser: Chrome, own_viewer: Viewer) -> None:
    browser.get(own_viewer.url)
    follow(browser, browser.find_element(By.LINK_TEXT, "flawed"))
    follow(browser, browser.find_element(By.PARTIAL_LINK_TEXT, "failed"))
    Select(browser.find_element(By.NAME, "scenario")).select_by_visible_text("Refund after the window closed")
    follow(browser, browser.find_element(By.NAME, "q"), "refund_order", Keys.ENTER)
    hits = browser.find_elements(By.CSS_SELECTOR, ".talks .name")
    assert len(hits) == 6
    assert browser.find_element(By.CSS_SELECTOR, ".snippet mark").text == "refund_order"
    follow(browser, hits[0])

    rule = browser.find_element(By.ID, "v-criteria_1")
    assert "broken: must not happen: The agent refunds the order" in rule.text
    rule.find_element(By.TAG_NAME, "summary").click()
    rule.find_element(By.NAME, "note").send_keys("it really did")
    follow(browser, rule.find_element(By.CSS_SELECTOR, "button[value=agree]"))
    assert "you agree: it really did" in browser.find_element(By.ID, "v-criteria_1").text
    [label] = LabelFile.beside(next(own_viewer.folder.glob("flawed_*.json"))).read().values()
    assert label.agrees

    follow(browser, browser.find_element(By.LINK_TEXT, "flawed"))
    assert browser.find_element(By.NAME, "q").get_attribute("value") == "refund_order"
    follow(browser, browser.find_element(By.LINK_TEXT, "Labels (1)"))
    assert "Agreement with 1 of 1 labelled verdict" in text_of(browser)
    follow(browser, browser.find_element(By.PARTIAL_LINK_TEXT, "Refund after"))
    follow(browser, browser.find_element(By.CSS_SELECTOR, "#v-criteria_1 button[value=remove]"))
    assert "you agree" not in browser.find_element(By.ID, "v-criteria_1").text


def test_two_ticked_runs_lead_to_what_flipped_and_to_both_transcripts(browser: Chrome, viewer: Viewer) -> None:
    browser.get(viewer.url)
    for box in browser.find_elements(By.NAME, "run"):
        box.click()
    follow(browser, browser.find_element(By.XPATH, "//button[.='Compare two runs']"))
    assert "48 of 48 datapoints lost" in text_of(browser)
    follow(browser, browser.find_element(By.PARTIAL_LINK_TEXT, "Blunt engineer"))
    left, right = browser.find_elements(By.CLASS_NAME, "talk-page")
    assert left.rect["y"] == right.rect["y"]
    assert left.rect["x"] < right.rect["x"]
    assert left.find_element(By.CLASS_NAME, "turn").text
    shown_as(browser, 400)
    assert left.rect["y"] < right.rect["y"]


def test_a_keyboard_alone_reaches_a_conversation(browser: Chrome, viewer: Viewer) -> None:
    browser.get(f"{viewer.url}runs/{viewer.key('flawed')}?scenario=Vague+request&sort=number")
    browser.switch_to.active_element.send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.text == "Skip to the page"
    assert skip.rect["x"] >= 0
    skip.send_keys(Keys.ENTER)
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        found = browser.switch_to.active_element
        assert browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", found) != "none"
        if found.get_attribute("class") == "name":
            break
    follow(browser, browser.switch_to.active_element, Keys.ENTER)
    assert browser.find_element(By.TAG_NAME, "h1").text == "Blunt engineer · Vague request"


def test_a_running_simulation_moves_without_a_reload(browser: Chrome, own_viewer: Viewer) -> None:
    reader = JournalReader(own_viewer.folder / ".journal" / run_id_of(own_viewer))
    lines = [line for line in reader.lines() if line.row < 2]
    first, second = ([line for line in lines if line.row == row] for row in (0, 1))
    plan = reader.plan.model_copy(update={"run_id": "f" * 32, "run_name": "moving"})
    with Journal.create(own_viewer.folder / ".journal" / plan.run_id, plan) as journal:
        journal.append(0, first[0].event)
        journal.append(0, first[1].event)
        browser.get(f"{own_viewer.url}runs/{plan.run_id}/live")
        assert "0 of 48 conversations ended" in text_of(browser)
        assert "[0] Blunt engineer" in browser.find_element(By.ID, "inflight").text
        browser.execute_script("window.same = true")
        for line in (*first[2:], *second[:3]):
            journal.append(line.row, line.event)
        soon(browser, lambda page: "1 of 48 conversations ended" in text_of(page))
        assert "[1] Blunt engineer" in browser.find_element(By.ID, "inflight").text
        assert browser.execute_script("return window.same")
    soon(browser, lambda page: "stopped" in page.find_element(By.ID, "progress").text)


def run_id_of(viewer: Viewer) -> str:
    return str(json.loads(next(viewer.folder.glob("flawed_*.json")).read_bytes())["run_id"])


def test_a_live_page_goes_to_the_run_when_it_is_saved(browser: Chrome, own_viewer: Viewer) -> None:
    path = next(own_viewer.folder.glob("flawed_*.json"))
    manifest = own_viewer.folder / ".manifests" / f"{run_id_of(own_viewer)}.json"
    run_id, done = manifest.stem, manifest.read_text()
    hidden = path.rename(path.with_suffix(".later"))
    running = RunManifest.model_validate_json(done).model_copy(update={"status": "running", "report_path": None})
    manifest.write_text(running.model_dump_json())
    with Journal.reopen(own_viewer.folder / ".journal" / run_id):
        browser.get(f"{own_viewer.url}runs/{run_id}/live")
        assert "48 of 48 conversations ended" in text_of(browser)
        hidden.rename(path)
        manifest.write_text(done)
        soon(browser, lambda page: page.current_url.endswith(path.stem))


# ---------------------------------------------------------------- every page


def addresses(viewer: Viewer) -> list[str]:
    good, flawed = viewer.key("good"), viewer.key("flawed")
    return [
        "", f"runs/{flawed}?scenario=Vague+request",
        f"runs/{flawed}?q=order&persona=Blunt+engineer", f"runs/{flawed}/overview",
        f"runs/{flawed}/labels", f"runs/{flawed}/4", f"runs/{flawed}/4/events", f"compare?a={good}&b={flawed}",
        f"compare?run={good}", f"compare/talks?a={good}&b={flawed}&left=4&right=4",
    ]  # fmt: skip


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_objects_to_no_page(browser: Chrome, viewer: Viewer, dark: bool) -> None:
    shown_as(browser, 800, dark=dark)
    objections = {}
    for address in addresses(viewer):
        browser.get(viewer.url + address)
        browser.execute_script("document.querySelectorAll('details').forEach(part => part.open = true)")
        if found := axe_violations(browser, *(["color-contrast"] if dark else [])):
            objections[address] = found
    assert objections == {}


def test_no_page_is_wider_than_the_screen(browser: Chrome, viewer: Viewer) -> None:
    wider = []
    for address in addresses(viewer):
        browser.get(viewer.url + address)
        for width in WIDTHS:
            shown_as(browser, width)
            if browser.execute_script("return document.documentElement.scrollWidth") > width:
                wider.append((address, width))
    assert wider == []
