"""``evaluatorq`` commands from one process that has imported everything: each is a fork of it, so it costs no start-up.

What a command prints, imports, changes in its environment or leaves in memory ends with its fork.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

SERVER = """
import importlib, json, os, pkgutil, sys, warnings
import evaluatorq.cli
from evaluatorq.cli.app import run
for module in pkgutil.iter_modules(evaluatorq.cli.__path__):
    importlib.import_module("evaluatorq.cli." + module.name)
import evaluatorq.simulation.api, evaluatorq.simulation.entry, rich.padding, rich.table, yaml
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(job["folder"])
        os.environ.clear()
        os.environ.update(job["env"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for stream in (1, 2):
            os.dup2(os.open(job["into"], os.O_WRONLY | os.O_APPEND), stream)
        code = run(job["words"])
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class WarmCommands:
    """The process. ``run`` carries a command out as a person would, with nothing on its standard input."""

    def __enter__(self) -> Self:
        words = [sys.executable, "-c", SERVER]
        self._server = subprocess.Popen(words, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate(timeout=30)

    def run(self, words: Sequence[str], folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
        """The exit code, and everything printed, in order."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        with tempfile.NamedTemporaryFile() as into:
            job = {"words": list(words), "folder": str(folder), "env": dict(env), "into": into.name}
            self._server.stdin.write(json.dumps(job) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            return code, Path(into.name).read_text(encoding="utf-8")
