"""Whether the process that writes a run still lives is read off the machine, not waited for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from evaluatorq.model.runs import RunManifest
from evaluatorq.store.manifests import is_alive

LONG_AGO = timedelta(seconds=61)
JUST_NOW = timedelta(0)


def manifest(pid: int, *, host: str | None = None, silent: timedelta = JUST_NOW) -> RunManifest:
    now = datetime.now(UTC)
    times = {"started_at": now, "updated_at": now, "heartbeat_at": now - silent}
    return RunManifest(run_id="a" * 32, run_name="n", pid=pid, host=host or socket.gethostname(), **times)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says of a process that it is dead")
def test_a_process_that_was_killed_is_dead_before_its_parent_asks_after_it():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert is_alive(manifest(process.pid))
        process.kill()
        deadline = time.monotonic() + 30
        while is_alive(manifest(process.pid)) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, 0)  # it can still be sent signals: nobody has asked after it
        assert not is_alive(manifest(process.pid))
    finally:
        process.kill()
        process.wait()


def test_elsewhere_the_heartbeat_tells():
    assert is_alive(manifest(1, host="another-machine"))
    assert not is_alive(manifest(1, host="another-machine", silent=LONG_AGO))
    assert not is_alive(manifest(os.getpid(), silent=LONG_AGO))
