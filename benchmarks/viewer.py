"""What it costs to look at a run of 10,000 conversations: times of requests, as shares of reading the file once.

``python benchmarks/viewer.py`` makes the run, serves it and asks as a browser does; ``--count`` makes another size.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
from stored import load_s, write_big_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="conversations (default: 10000)")
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        path = write_big_run(Path(folder), count)
        whole_s = wall_s(path)
        print(f"{count:,} conversations, {path.stat().st_size / 1e6:.0f} MB; the file read whole: {whole_s:.2f} s = 1")
        with served(path.parent) as (process, url), httpx.Client(base_url=url, timeout=600) as client:
            home = f"/runs/{path.stem}"
            for what, address in (
                ("the list of runs", "/"),
                ("the first page, first time (reads the file once)", home),
                ("the first page again", home),
                ("the last page", f"{home}?sort=number&page={-(-count // 50)}"),
                ("filtered and sorted", f"{home}?outcome=failed&sort=turns"),
                ("one conversation", f"{home}/{count - 1}"),
                ("a frequent word", f"{home}?q=order"),
                ("a word that nobody said (reads the file)", f"{home}?q=zebra"),
                ("the overview", f"{home}/overview"),
            ):
                print(f"{ask_s(client, address) / whole_s:7.3f}  {what}")
            print(f"{peak_mib(process.pid):7.0f}  MiB, the most that the viewer ever held")


def wall_s(path: Path) -> float:
    before = time.perf_counter()
    load_s(path)
    return time.perf_counter() - before


def ask_s(client: httpx.Client, address: str) -> float:
    """Seconds until the page itself comes, waiting pages included."""
    before = time.perf_counter()
    while "Reading the run" in client.get(address).raise_for_status().text:
        pass
    return time.perf_counter() - before


def peak_mib(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


class served:  # noqa: N801  read as a verb where it is used
    """A viewer in a process of its own."""

    def __init__(self, folder: Path) -> None:
        words = [sys.executable, "-m", "evaluatorq", "view", str(folder), "--port", "0"]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=dict(os.environ))

    def __enter__(self) -> tuple[subprocess.Popen[str], str]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"http://\S+", line):
                return self.process, found[0]
        raise SystemExit("the viewer did not start")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.communicate()


if __name__ == "__main__":
    main()
