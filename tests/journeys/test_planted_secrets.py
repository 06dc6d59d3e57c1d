"""A credential of the agent's endpoint that the agent gives back is in no file, no report, no export and no message."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from mock_server.shell import evaluatorq, write_cases

SECRET = 'pa\\ssWord"quoteXYZ'
FUNCTIONS_KEY, PASSWORD = "planted-functions-key", "pw"
BASIC = b64encode(f"user:{PASSWORD}".encode()).decode()
PLANTED = (SECRET, json.dumps(SECRET)[1:-1], "quoteXYZ", FUNCTIONS_KEY, BASIC, BASIC.rstrip("="))


class Echo(BaseHTTPRequestHandler):
    """Gives the credentials back: in a tool's arguments, in what it says, or in an error."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        mine = self.headers["x-mine"]
        told = f"I was sent {self.headers['authorization']} {self.headers['x-functions-key']} {mine} {json.dumps(mine)}"
        arguments = json.dumps({"inner": json.dumps({"a": mine, "b": told})})
        call = {"id": "c1", "type": "function", "function": {"name": "log", "arguments": arguments}}
        fails = self.path == "/fails"
        body = told if fails else json.dumps({"content": told, "tool_calls": [call], "model": mine})
        self.send_response(400 if fails else 200)
        self.send_header("content-type", "text/plain" if fails else "application/json")
        self.send_header("x-trace-id", mine)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the library's
        """Says nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"user:{PASSWORD}@127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("path", ["echoes", "fails"])
def test_what_an_agent_repeats_of_its_credentials_is_written_nowhere(address: str, path: str, tmp_path: Path) -> None:
    write_cases(tmp_path / "cases.jsonl", 1, criteria=1)
    target = {
        "url": f"http://{address}/{path}",
        "headers": {"x-functions-key": FUNCTIONS_KEY, "x-mine": "${MINE}"},
    }
    (tmp_path / "options.json").write_text(json.dumps({"target": target}))
    ran = evaluatorq(
        tmp_path, "sim", "simulate", "-vv", "--offline", "-i", "cases.jsonl", "--config", "options.json",
        "--max-turns", "1", "--name", "planted", "--report-html", "r.html", "--report-md", "r.md", "--results",
        "r.jsonl", "--max-target-retries", "0",
        MINE=SECRET, EQ_DEBUG="1",
    )  # fmt: skip
    assert ran.returncode == (1 if path == "fails" else 0), ran.stderr
    later = [
        evaluatorq(tmp_path, *words.split(), MINE=SECRET)
        for words in ("sim show planted 0 --full", "sim runs --json", "sim show planted 0 --json")
    ]
    for done in later:
        assert done.returncode in {0, 1}, done.stderr
    files = [file for file in tmp_path.rglob("*") if file.is_file() and file.name != "options.json"]
    assert any(file.suffix == ".html" for file in files)
    texts = {str(file): file.read_bytes().decode("utf-8", "replace") for file in files}
    texts |= {str(index): str(done) for index, done in enumerate((ran, *later))}
    for where, text in texts.items():
        assert not [secret for secret in PLANTED if secret in text], (where, text[:2000])
