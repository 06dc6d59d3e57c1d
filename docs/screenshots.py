"""Makes the pictures of the documentation: ``python docs/screenshots.py`` (extra ``dev``, Chromium and its driver)."""

from __future__ import annotations

import base64
import os
import sys
import tempfile
from pathlib import Path

from selenium.webdriver import Chrome

from evaluatorq.simulation import simulate_sync
from evaluatorq.simulation.reports import export_html

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tests" / "viewer")]

from viewing import serving  # noqa: E402  a module of the tests

from browsing import chromium_started, shown_as  # noqa: E402  a module of the tests

WIDTH, HEIGHT = 1000, 1250


def main() -> None:
    """Writes the pictures beside this file."""
    with tempfile.TemporaryDirectory() as folder, chromium_started() as browser:
        os.chdir(folder)
        run = simulate_sync(target="demo:flawed", offline=True, save=True, run_name="flawed").run
        shown_as(browser, WIDTH, HEIGHT)
        page = Path(folder) / "report.html"
        page.write_text(export_html(run), encoding="utf-8")
        browser.get(page.as_uri())
        keep(browser, "report")
        with serving(Path(".evaluatorq/sim-runs")) as viewer:
            browser.get(f"{viewer.url.rstrip('/')}/runs/{viewer.key('flawed')}/4")
            keep(browser, "viewer")


def keep(browser: Chrome, name: str) -> None:
    """Writes what is in the window as a picture."""
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70})
    (HERE / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
