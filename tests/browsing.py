"""Debian's Chromium for tests: started once, driven over real pages, and axe-core asked what it thinks of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

WIDTHS = (400, 800, 1400)
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars")


@contextmanager
def chromium_started() -> Iterator[Chrome]:
    """A browser; skips by name where the machine has none."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("no Chromium with its driver is installed (Debian: apt-get install chromium chromium-driver)")
    options = ChromeOptions()
    options.binary_location = browser
    for flag in _FLAGS:
        options.add_argument(flag)
    started = Chrome(options=options, service=Service(driver))
    started.set_script_timeout(100)
    try:
        yield started
    finally:
        started.quit()


def shown_as(browser: Chrome, width: int, height: int = 900, *, dark: bool = False) -> None:
    """Makes the page ``width`` pixels wide, light or dark; holds for the pages that follow as well."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def axe_violations(browser: Chrome, *rules: str) -> list[str]:
    """What axe-core objects to on the page that is open, by ``rules`` or by all: rule, what it asks for, elements."""
    found = find_spec("axe_core_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is not installed (pip install axe-core-python)")
    script = Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": script})
    ask = "const [rules, told] = arguments; axe.run(rules.length ? {runOnly: rules} : {}).then(x => told(x.violations))"
    violations = browser.execute_async_script(ask, rules)
    return [f"{v['id']}: {v['help']}: {[node['target'] for node in v['nodes'][:3]]}" for v in violations]
