"""How large an HTML report of many conversations is, and how long Chromium takes to open, scroll and search it.

    python benchmarks/report_size.py [--conversations 1000]

The conversations are the flawed demo agent's, the bundled cases as often as needed. Times are medians of five.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from evaluatorq.simulation import simulate_sync
from evaluatorq.simulation.reports import export_html

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsing import chromium_started, shown_as

MEASURED = ("parsed", "open", "slowest frame of scrolling", "a transcript opens")
OPENED = "const is = performance.getEntriesByType('navigation')[0]; return [is.loadEventEnd, is.domInteractive]"
SCROLL = """
const done = arguments[0], steps = 40, tall = document.documentElement.scrollHeight, frames = []
let last = performance.now(), step = 0
function next(now) {
  frames.push(now - last); last = now
  window.scrollTo(0, tall * ++step / steps)
  step < steps ? requestAnimationFrame(next) : done(Math.max(...frames.slice(1)))
}
requestAnimationFrame(next)
"""
OPEN_ONE = """
const one = document.querySelector('details.talk:not([open])'), begun = performance.now()
one.open = true; one.getBoundingClientRect(); return performance.now() - begun
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=1000)
    wanted = parser.parse_args().conversations
    samples = -(-wanted // 48)
    run = simulate_sync(target="demo:flawed", offline=True, journal=False, samples=samples).run
    began = time.perf_counter()
    text = export_html(run.model_copy(update={"results": run.results[:wanted]}))
    drawn = time.perf_counter() - began
    print(f"{wanted} conversations: {len(text.encode()) / 1e6:.2f} MB, drawn in {drawn:.1f} s")
    with tempfile.TemporaryDirectory() as folder, chromium_started() as browser:
        page = Path(folder) / "report.html"
        page.write_text(text, encoding="utf-8")
        shown_as(browser, 1200)
        rows = []
        for _ in range(5):
            browser.get(page.as_uri())
            loaded, parsed = browser.execute_script(OPENED)
            rows.append((parsed, loaded, browser.execute_async_script(SCROLL), browser.execute_script(OPEN_ONE)))
    for name, values in zip(
        ("parsed", "open", "slowest frame of scrolling", "a transcript opens"), zip(*rows, strict=True), strict=True
    ):
        print(f"{name:<28}{statistics.median(values):7.0f} ms")


if __name__ == "__main__":
    main()
