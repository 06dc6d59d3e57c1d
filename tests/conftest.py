"""For every test: a store of its own, no credentials from outside, and in CI no skips."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

# A job that a script starts in the background is born deaf to these, and so would be every process that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("unhurried", deadline=None)  # how long an example takes says more of the machine than of it
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATORQ_DIR", str(tmp_path / ".evaluatorq"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "EVALUATORQ_FAST_MODEL", "EVALUATORQ_SMART_MODEL", "EQ_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """One browser for all tests of a process; see ``browsing`` for what helps to drive it."""
    from browsing import chromium_started

    with chromium_started() as browser:
        yield browser


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> object:
    """In CI a skip is a failure: there everything that tests need is installed."""
    report = yield
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
