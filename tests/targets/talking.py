"""What the tests of targets share: a seat, a small world, and an HTTP server whose answers a test writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pydantic import JsonValue

from evaluatorq.environments.toolbox import Toolbox
from evaluatorq.errors import CallError
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.messages import Message, user
from evaluatorq.ports import Environment, Seat, Target, TargetReply

ANYBODY = Persona.model_validate({
    "name": "p", "patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5,
    "communication_style": "casual", "background": "b",
})  # fmt: skip


def seat(environment: Environment | None = None, thread_id: str = "run:0") -> Seat:
    datapoint = SimulationDatapoint(id="d", persona=ANYBODY, scenario=Scenario(name="s", goal="g"))
    return Seat(datapoint, thread_id, seed=1, max_turns=5, environment=environment)


async def ask(target: Target, *messages: Message | str, thread_id: str = "run:0") -> TargetReply:
    rows = tuple(user(message) if isinstance(message, str) else message for message in messages)
    return await target.respond(rows, thread_id=thread_id)


async def failure(target: Target, *messages: Message | str) -> CallError:
    try:
        reply = await ask(target, *(messages or ("hello",)))
    except CallError as error:
        return error
    raise AssertionError(f"the target answered {reply}")


# ---------------------------------------------------------------- a world


def refund(state: dict[str, JsonValue], order: str) -> str:
    """Pays an order back."""
    refunds = state["refunds"]
    assert isinstance(refunds, list)
    refunds.append(order)
    return f"refunded {order}"


def look(state: dict[str, JsonValue], order: str) -> dict[str, JsonValue]:
    """Looks an order up."""
    return {"order": order, "status": "delivered"}


def shop() -> Toolbox[dict[str, JsonValue]]:
    return Toolbox({"refunds": []}, [refund, look])


# ---------------------------------------------------------------- an endpoint


@dataclass
class Answered:
    """One HTTP answer as a test writes it."""

    body: bytes | str | JsonValue = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut_at: int | None = None

    def encoded(self) -> tuple[bytes, str]:
        if isinstance(self.body, bytes):
            return self.body, "application/octet-stream"
        if isinstance(self.body, str):
            return self.body.encode(), "text/plain; charset=utf-8"
        return json.dumps(self.body).encode(), "application/json"


@dataclass
class Asked:
    """One request as the endpoint saw it."""

    path: str
    headers: dict[str, str]
    body: JsonValue


@dataclass
class Endpoint:
    url: str
    seen: list[Asked]


@contextmanager
def endpoint(answer: Callable[[Asked], Answered] | Answered) -> Iterator[Endpoint]:
    """A server on the loopback interface; ``answer`` decides on each request."""
    seen: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.path, headers, json.loads(raw) if raw else None)
            seen.append(asked)
            told = answer if isinstance(answer, Answered) else answer(asked)
            body, kind = told.encoded()
            self.send_response(told.status)
            for name, value in {"content-type": kind, "content-length": str(len(body)), **told.headers}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body if told.cut_at is None else body[: told.cut_at])
            if told.cut_at is not None:
                self.close_connection = True

        do_GET = do_POST  # noqa: N815  named by the library

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  named by the library
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Endpoint(f"http://127.0.0.1:{server.server_port}", seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
