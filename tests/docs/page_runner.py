"""Runs a page of the documentation from top to bottom in a folder of its own, and says where it is wrong.

``bash`` blocks are commands; ``console`` blocks are commands (``$ ``) with what they print. A command exits with 0
unless a comment says ``# exit code N``; one that ends in ``&`` stays until the page is over. ``python`` blocks share
one interpreter, and a ``text`` block after one is what it printed. A block of any language that begins with
``# name.ext`` is a file. ``…`` stands for any text, on a line of its own for any lines. Ids, times and dates need not
be equal, and ports 8000 to 8009 are free ones. A line ``*Not run: reason.*`` above a block excuses it; a block without
a language is a figure.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warm_commands import WarmCommands

FENCE = re.compile(r"^```(\w*|\{\w+\})\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r"\*Not run: (.+)\.\*\n+\Z")
FILE = re.compile(r"# ([\w./-]+\.\w+)\n")
CODE = re.compile(r"# exit code (\d+)")
SHELL = re.compile(r"[|&;<>$`(]")
VOLATILE = (
    (re.compile(r"(?<!\d)\d{8}-\d{6}(_\d{3})?(?!\w)"), "STAMP"),
    (re.compile(r"(?<![\w.])(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b"), "ID"),
    (re.compile(r"\b\d+\.\d+ s\b"), "N s"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?"), "DATE"),
    (re.compile(r"\s+(?=\n|\Z)"), ""),
)
INTERPRETER = """
import ast, asyncio, contextlib, inspect, io, json, os, sys, traceback
names = {"__name__": "page"}
sys.path.insert(0, "")
for line in sys.stdin:
    job = json.loads(line)
    os.chdir(job["folder"])
    out, error = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        try:
            ran = eval(compile(job["code"], job["place"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            if inspect.iscoroutine(ran):
                asyncio.run(ran)
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps({"out": out.getvalue(), "error": error}), file=sys.__stdout__, flush=True)
"""


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, its language and text, and why it is not run, if it is not."""

    place: str
    language: str
    text: str
    excuse: str | None

    @property
    def file(self) -> str | None:
        """The file that it is, if it is one."""
        found = FILE.match(self.text)
        return found[1] if found else None


def blocks_of(path: Path) -> list[Block]:
    """The fenced blocks of a page in order."""
    text = path.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        excuse = NOT_RUN.search(text[: match.start()])
        place = f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}"
        found.append(Block(place, match[1], match[2], excuse[1] if excuse else None))
    return found


def steps_of(block: Block) -> Iterator[tuple[str, str | None]]:
    """The commands of a block, each with the text that it must print (``None`` where the page shows none)."""
    if block.language == "bash":
        joined = block.text.replace("\\\n", " ")
        yield from ((line, None) for line in joined.splitlines() if line.strip() and not line.startswith("#"))
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        last = next(index for index, line in enumerate(lines) if not line.endswith("\\\n"))
        shown = "".join(lines[last + 1 :])
        yield "".join(lines[: last + 1]).replace("\\\n", " ").strip(), shown if shown.strip() else None


def without_volatile(text: str) -> str:
    """The text with what differs from run to run replaced."""
    for pattern, name in VOLATILE:
        text = pattern.sub(name, text)
    return text.strip("\n") + "\n"


def difference(shown: str, printed: str) -> str | None:
    """Where a page and the program part, in words; ``None`` when the page is right."""
    wanted, got = without_volatile(shown), without_volatile(printed)
    parts: list[str] = []
    for line in wanted.splitlines(keepends=True):
        if line.strip() == "…":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*".join(re.escape(piece) for piece in line.split("…")))
        if not re.match("".join(parts), got):
            return f"the page shows\n{line}which is not where the program printed\n{printed}"
    return None if re.fullmatch("".join(parts), got) else f"the program prints more than the page shows:\n{printed}"


@dataclass
class Page:
    """A page being read: its folder, its environment, and the processes that it started."""

    folder: Path
    env: dict[str, str]
    warm: WarmCommands
    here: Path = field(init=False)
    ports: dict[str, int] = field(default_factory=dict)
    started: list[subprocess.Popen[str]] = field(default_factory=list)
    python: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        self.here = self.folder

    def read(self, blocks: list[Block]) -> int:
        """Does what the blocks say and returns how many were excused. ``AssertionError`` says what is wrong."""
        printed: str | None = None
        for block in blocks:
            if not block.language or block.language.startswith("{") or block.excuse:
                continue
            text = re.sub(r"\b800\d\b", self.port, block.text)
            if block.file:
                path = self.here / block.file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif block.language == "python":
                printed = self.interpret(text, block.place)
            elif block.language == "text":
                assert printed is not None, f"{block.place}: no python block printed this"
                self.compare(block.text, printed, block.place)
                printed = None
            else:
                assert block.language in ("bash", "console"), f"{block.place}: neither run nor a file"
                for command, shown in steps_of(Block(block.place, block.language, text, None)):
                    self.command(command, shown, block.place)
        return sum(block.excuse is not None for block in blocks)

    def port(self, shown: re.Match[str]) -> str:
        """A free port for the one that the page shows."""
        if shown[0] not in self.ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.ports[shown[0]] = probe.getsockname()[1]
        return str(self.ports[shown[0]])

    def compare(self, shown: str, printed: str, place: str) -> None:
        """Holds the page to what was printed."""
        for name, port in self.ports.items():
            printed = printed.replace(f":{port}", f":{name}")
        wrong = difference(shown, printed)
        assert wrong is None, f"{place}: {wrong}"

    def command(self, command: str, shown: str | None, place: str) -> None:
        """Runs a command as a person would."""
        if command.endswith("&"):
            self.start(command)
            return
        if command.startswith("evaluatorq ") and not SHELL.search(command):
            status, printed = self.warm.run(shlex.split(command, comments=True)[1:], self.here, self.env)
        else:
            status, printed = self.bash(command)
        code = CODE.search(command)
        assert status == (int(code[1]) if code else 0), f"{place}: {command}: {status}\n{printed}"
        if shown is not None:
            self.compare(shown, printed, f"{place}: {command}")

    def bash(self, command: str) -> tuple[int, str]:
        """Exit code and output of a shell, whose folder is then the page's."""
        script = f"trap 'pwd > {self.folder}/.here' EXIT\n{command}"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.here, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=90,
            check=False,
        )  # fmt: skip
        self.here = Path((self.folder / ".here").read_text().strip())
        (self.folder / ".here").unlink()
        return done.returncode, done.stdout

    def start(self, command: str) -> None:
        """Starts a server and waits until it listens."""
        words = ["bash", "-c", f"exec {command.removesuffix('&')}"]
        process = subprocess.Popen(words, cwd=self.here, env=self.env, text=True, stderr=subprocess.DEVNULL)
        self.started.append(process)
        for _ in range(500):
            assert process.poll() is None, f"{command} ended at once"
            if sum(map(_listens, self.ports.values())) == len(self.started):
                return
            time.sleep(0.02)
        raise AssertionError(f"{command} does not listen")

    def interpret(self, code: str, place: str) -> str:
        """Runs Python and returns what it printed."""
        if self.python is None:
            words = [sys.executable, "-W", "error", "-c", INTERPRETER]
            self.python = subprocess.Popen(
                words, cwd=self.here, env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self.python.stdin is not None
        assert self.python.stdout is not None
        job = {"code": code, "place": place, "folder": str(self.here)}
        self.python.stdin.write(json.dumps(job) + "\n")
        self.python.stdin.flush()
        answer: dict[str, str | None] = json.loads(self.python.stdout.readline())
        assert answer["error"] is None, f"{place}: {answer['error']}\n{answer['out']}"
        return answer["out"] or ""

    def close(self) -> None:
        """Ends what the page started."""
        if self.python is not None and self.python.stdin is not None:
            self.python.stdin.close()
            self.python.wait(timeout=30)
            assert self.python.stdout is not None
            self.python.stdout.close()
        for process in self.started:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def environment(base_url: str, home: Path) -> dict[str, str]:
    """A reader's environment: this evaluatorq on the path, a key, and a model's endpoint on loopback."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    assert shutil.which("evaluatorq", path=path)
    return {
        "PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "COLUMNS": "80", "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "sk-of-nobody-000000",
    }  # fmt: skip
