"""Makes the pictures of the documentation: ``python docs/screenshots.py`` (extra ``dev``, Chromium and its driver)."""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path

from evaluatorq.simulation import simulate_sync
from evaluatorq.simulation.reports import export_html

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browsing import chromium_started, shown_as  # noqa: E402  a module of the tests

WIDTH, HEIGHT = 1000, 1250


def main() -> None:
    """Writes the pictures beside this file."""
    with tempfile.TemporaryDirectory() as folder, chromium_started() as browser:
        page = Path(folder) / "report.html"
        run = simulate_sync(target="demo:flawed", offline=True, journal=False, run_name="flawed").run
        page.write_text(export_html(run), encoding="utf-8")
        shown_as(browser, WIDTH, HEIGHT)
        browser.get(page.as_uri())
        taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70})
        (HERE / "report.webp").write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    main()
