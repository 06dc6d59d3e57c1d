"""An OpenAI-compatible endpoint on loopback, in a thread of its own, that answers as a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Body = dict[str, object]


@dataclass
class Served:
    """One HTTP answer. ``cut`` promises more than it sends; ``hang`` sends nothing; ``drop`` closes the connection;
    ``slow`` sends the first half of its body and no more.
    """

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False
    drop: bool = False
    slow: bool = False


@dataclass
class Seen:
    """One request as the endpoint got it."""

    path: str
    headers: dict[str, str]
    body: Body


def completion(message: Body | None = None, *, finish: str = "stop", **more: object) -> Served:
    """A whole chat completion."""
    doc = {
        "id": "chatcmpl-1",
        "model": "served-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", **(message or {"content": "Hello."})},
                "finish_reason": finish,
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        **more,
    }
    return Served(json.dumps(doc).encode())


def tool_answer(name: str, arguments: str) -> Served:
    """A completion that calls one tool."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return completion({"content": None, "tool_calls": [call]}, finish="tool_calls")


def refusal(param: str | None, code: str | None = "unsupported_parameter", status: int = 400) -> Served:
    """An error in OpenAI's shape."""
    error = {"message": f"Unsupported: {param}", "type": "invalid_request_error", "param": param, "code": code}
    return Served(json.dumps({"error": error}).encode(), status)


class FakeEndpoint:
    """``answer`` is called with each request; ``seen`` holds all of them in order, the counters what was at once."""

    def __init__(self) -> None:
        self.answer: Callable[[Seen], Served] = lambda seen: completion()
        self.seen: list[Seen] = []
        self.over = threading.Event()
        self.connections = self.at_once = self.most_at_once = 0
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.base_url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def answers(self, *served: Served) -> None:
        """Gives these answers in turn, the last one for ever."""
        waiting = list(served)
        self.answer = lambda seen: waiting.pop(0) if len(waiting) > 1 else waiting[0]

    @property
    def bodies(self) -> list[Body]:
        """The request bodies in order."""
        return [seen.body for seen in self.seen]

    def handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536

            def setup(self) -> None:
                fake.connections += 1
                super().setup()

            def do_POST(self) -> None:
                with fake.lock:
                    fake.at_once += 1
                    fake.most_at_once = max(fake.most_at_once, fake.at_once)
                try:
                    self.serve()
                finally:
                    with fake.lock:
                        fake.at_once -= 1

            def serve(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length", 0)))
                seen = Seen(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(data or b"{}"))
                fake.seen.append(seen)
                served = fake.answer(seen)
                if served.hang:
                    fake.over.wait()
                if served.hang or served.drop:
                    self.close_connection = True
                    return
                self.send_response(served.status)
                for name, value in {"content-type": "application/json", **served.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(served.body) + 100 * served.cut))
                self.end_headers()
                if served.slow:
                    self.wfile.write(served.body[: len(served.body) // 2])
                    self.wfile.flush()
                    fake.over.wait()
                    self.close_connection = True
                    return
                self.wfile.write(served.body)
                self.close_connection = self.close_connection or served.cut

            def log_message(self, *args: object) -> None:
                pass

        return Handler


@contextmanager
def serving() -> Iterator[FakeEndpoint]:
    """The endpoint, until the block ends."""
    endpoint = FakeEndpoint()
    thread = threading.Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.over.set()
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join()
