"""No planted secret survives anywhere: not in a file, a page, an export, a span, a log line or a message.

Everybody who is asked repeats every credential in every spelling, whole and where texts are cut, and so do the cases.
Then all that the run left and all that is made of it later is searched for halves of each of them, as letters and as
base64. The middle of a credential is letters and digits, which stand the same in JSON, in a URL and in HTML.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evaluatorq.cli import main
from evaluatorq.model.events import Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.otel import OpenTelemetrySink
from evaluatorq.ports import Sink
from evaluatorq.simulation.api import run_simulation
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.simulation.hook_stream import HookStream
from mock_server.serve import Mock, connection
from mock_server.shell import write_cases
from viewer.viewing import Viewer, serving
from writing_models import persona, scenario

MODEL_KEY, HEADER, VARIABLE = 'mk+Qz7Rw4Tn9Xb2Lk5/"x', 'h\\"Jd8Fs3Gp6Vc1Hm4&=', "v<Pk2Wz9Ej5Ut7Oy3>%"
WORD = "Opensesame-for-models"
PASSWORD, QUERY = "p Gb6Nx1Rd8Sl4Qf9/é", "q=Yh5Tm2Kv9Zc7Wj4+"
HELD = {
    "a model's key": (MODEL_KEY, "Qz7Rw4Tn9Xb2Lk5"),
    "a header": (HEADER, "Jd8Fs3Gp6Vc1Hm4"),
    "a variable": (VARIABLE, "Pk2Wz9Ej5Ut7Oy3"),
    "a password in a URL": (PASSWORD, "Gb6Nx1Rd8Sl4Qf9"),
    "a password without a digit": (WORD, "Opensesame-for-models"),
    "a parameter of a URL": (QUERY, "Yh5Tm2Kv9Zc7Wj4"),
    "basic authentication": (b64encode(f"pat:{PASSWORD}".encode()).decode(), "Gb6Nx1Rd8Sl4Qf9"),
}
NAMED = {
    "a token in a header": ("Bearer Rt5Yb8Nm2Kc7Vx4Ld", "Rt5Yb8Nm2Kc7Vx4Ld"),
    "a password in words": ("password=Uw3Ij6Hg9Zq1Bn4Ef", "Uw3Ij6Hg9Zq1Bn4Ef"),
    "an account in a URL": ("https://svc:Ak7Sm2Pd5Xt8Yc3Wr@db.example/x", "Ak7Sm2Pd5Xt8Yc3Wr"),
    "a known kind of key": ("sk-proj-Lz4Ko9Vu1Fe6Gj3Td", "Lz4Ko9Vu1Fe6Gj3Td"),
}
PRIVATE = {
    "an address": ("jane.q4w8e2@example.org", "jane.q4w8e2"),
    "a card": ("4111 1111 1111 1111", "4111 1111"),
    "the user's own rule": ("TCK-90817263", "90817263"),
}
ARGUMENT = "Db6Hy1Mx8Cz3Qv5Nk"
CREDENTIALS = {name: core for name, (_, core) in {**HELD, **NAMED}.items()} | {"an argument": ARGUMENT}
RULES = ("email", "card", r"ticket=TCK-\d{8}")


def spellings(secret: str) -> tuple[str, ...]:
    quoted = json.dumps(secret)
    return secret, quoted, json.dumps(quoted), quote(secret, safe=""), quote_plus(secret), quote(quote(secret))


TOLD = " ; ".join(
    [spelling for secret, _ in HELD.values() for spelling in spellings(secret)]
    + [text for text, _ in (*NAMED.values(), *PRIVATE.values())]
)
CRAMMED = " ".join([secret for secret, _ in HELD.values()] * 60)
"""Wherever this is cut, a credential is cut."""
CASE_TEXT = " ; ".join(text for text, _ in (*NAMED.values(), *PRIVATE.values(), *HELD.values()))
MADE = " ; ".join(
    [spelling for secret in (MODEL_KEY, WORD, QUERY) for spelling in spellings(secret)]
    + [text for text, _ in NAMED.values()]
)
"""What whoever makes cases may write: who asks for cases alone knows of no agent and no rules."""
NOTE = f"{MODEL_KEY} ; " + " ; ".join(text for text, _ in (*NAMED.values(), *PRIVATE.values()))
"""What whoever labels may write; the viewer does not know what agents were asked with."""
CASES = 11
SIMULATE = (
    "sim simulate --yes --config ../options.json -i ../cases.jsonl --sim-model mock-user --judge-model mock-judge"
)
LATER = {
    "run": f"{SIMULATE} -vv --max-turns 1 --name second --results r.jsonl --report-html r.html --report-md r.md",
    "run as JSON": f"{SIMULATE} --json --max-turns 1 --name third --only *0000",
    "made cases": "sim generate --yes --config ../making.json -d made.jsonl",
    "making that stops": "sim generate --yes --config ../making.json --agent-description STOP -d never.jsonl",
    "run of made cases": "sim run --yes --config ../running.json --judge-model mock-judge --max-turns 1 --name made",
    "show": "sim show planted --full",
    "one": "sim show planted 0 --full",
    "as JSON": "sim show planted 0 --json",
    "runs": "sim runs --json",
    "export": "sim export -i planted -o e.jsonl",
    "html": "sim export -i planted -o e.html --format html",
    "md": "sim export -i planted -o e.md --format md",
    "artifact": "sim export -i planted -o e.artifact --format artifact",
    "training": "sim export -i planted -o e.training --format training --style chat",
    "tagged": "sim export -i planted -o e.tagged --format training --style tagged",
    "traces": "sim traces export planted -o t.jsonl",
    "traces in a database": "sim traces export planted -o sqlite:///t.db",
    "found traces": "sim traces query sqlite:///t.db --json",
    "gate": "sim gate planted --min-pass-rate 0.1 --junit j.xml --markdown g.md",
    "compare": "sim compare planted second",
    "rescore": "sim rescore planted --evaluator turn_efficiency",
    "rebuild": "sim rebuild second",
    "samples": "sim samples planted",
    "metrics": "sim metrics planted",
    "replay": "sim replay planted --verify",
}
FAILING = {
    ("target", 1): (400, "text/plain", TOLD),
    ("target", 2): (400, "application/json", json.dumps({"error": {"message": CRAMMED, "code": "x"}})),
    ("user", 3): (400, "application/json", json.dumps({"error": {"message": TOLD, "type": "invalid"}})),
    ("judge", 4): (400, "text/plain", CRAMMED),
    ("judge", 5): (200, "application/json", json.dumps({"choices": [{"message": {"content": CRAMMED}}]})),
    ("user", 6): (200, "application/json", json.dumps({"choices": [{"message": {"refusal": CRAMMED}}]})),
    ("target", 7): (200, "application/json", '{"content": "' + CRAMMED),
    ("target", 8): (200, "application/json", json.dumps({"error": {"message": CRAMMED}})),
    ("target", 9): (200, "application/json", json.dumps({"content": "Yes.", "tool_calls": [CRAMMED]})),
    ("judge", 10): (200, "application/json", CRAMMED),
}


def wanted_of(doc):
    """The name of the object that a model is asked for."""
    return doc["tools"][0]["function"]["name"] if doc.get("tools") else None


class Parrot(Mock):
    """The mock, repeating all that is planted in what each role says and refuses."""

    def answer(self, path, headers, body):
        text = body.decode()
        role = "target" if path == "/agent" else next(r for r in ("user", "judge") if r in json.loads(text)["model"])
        number = int((text.split("CASE-")[1:] or ["0000"])[0][:4])
        if "STOP" in text and wanted_of(json.loads(text)) == "scenarios":
            return 401, {}, TOLD.encode(), "whole", lambda: None
        if (role, number) in FAILING:
            status, kind, said = FAILING[role, number]
            return status, {"content-type": kind, "x-trace-id": HEADER}, said.encode(), "whole", lambda: None
        status, more, data, how, read = super().answer(path, headers, body)
        if role == "target":
            doc = json.loads(data)
            arguments = json.dumps({"password": ARGUMENT, "note": TOLD, "inner": json.dumps({"a": HEADER, "b": TOLD})})
            call = {"id": "c1", "type": "function", "function": {"name": "log", "arguments": arguments}}
            report = {"understanding": {"heard": TOLD}, "events": [TOLD], "blocks": [HEADER]}
            doc = {"content": doc["reply"], "tool_calls": [call], "model": HEADER, "response_id": VARIABLE,
                   "report": report, "held": {"value": 1, "rationale": TOLD}}  # fmt: skip
            data, more = json.dumps(doc).encode(), {"x-trace-id": HEADER}
        return status, more, data, how, read

    def user(self, doc, text, case):
        if wanted_of(doc) == "personas":
            return {"personas": [{**persona("Pat Doe"), "background": MADE}]}
        if wanted_of(doc) == "scenarios":
            return {"scenarios": [{**scenario("A broken kettle"), "context": MADE}]}
        return {**super().user(doc, text, case), "reply": f"{case} here. {TOLD if 'CASE-' in text else MADE}"}

    def target(self, doc, text, case):
        return f"{super().target(doc, text, case)}. {TOLD}"

    def judge(self, doc, text, case):
        if wanted_of(doc) == "suggestions":
            return {"suggestions": [TOLD]}
        found = super().judge(doc, text, case)
        for verdict in found["criteria_verdicts"]:
            verdict["evidence"] += f". {TOLD}"
        return {**found, "reason": TOLD}


@contextmanager
def parrot() -> Iterator[int]:
    """Serves on a port of this machine, in a thread of its own."""
    ready, ports = threading.Event(), []

    async def serve() -> None:
        mock = Parrot(streams=True, finish_turn=2)
        server = await asyncio.start_server(lambda r, w: connection(mock, r, w), "127.0.0.1", 0, limit=2**24)
        ports.append((server.sockets[0].getsockname()[1], asyncio.get_running_loop(), asyncio.current_task()))
        ready.set()
        await server.serve_forever()

    def work() -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(serve())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    port, loop, task = ports[0]
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()


def needles(core: str) -> Iterator[bytes]:
    """Both halves, and what base64 has of the whole wherever it stands in what is encoded."""
    middle = len(core) // 2
    yield from (core[:middle].encode(), core[middle:].encode())
    for before in range(3):
        yield b64encode(b"\0" * before + core.encode())[before + 1 : -4]


NEEDLES = [(name, needle) for name, core in CREDENTIALS.items() for needle in needles(core)]
NEEDLES += [(name, core.encode()) for name, (_, core) in PRIVATE.items()]


def leaks_in(data: bytes) -> list[str]:
    """What of the planted stands there, with its surroundings."""
    found = {name: data.find(needle) for name, needle in NEEDLES if needle in data}
    return [f"{name}: {data[max(0, at - 60) : at + 40]!r}" for name, at in found.items()]


class Kept(logging.Handler):
    """All that is logged, whole."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name} {record.getMessage()} {record.exc_text or ''}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place to run in, apart from the cases and options that hold what is planted."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("EVALUATORQ_DIR", str(place / ".evaluatorq"))
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    with parrot() as port:
        account = f"pat:{quote(PASSWORD, safe='')}@127.0.0.1:{port}"
        models = f"pat:{WORD}@127.0.0.1:{port}"
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{models}/v1?api-key={quote(QUERY, safe='')}")
        monkeypatch.setenv("OPENAI_API_KEY", MODEL_KEY)
        monkeypatch.setenv("PLANTED_THING", VARIABLE)
        target = {
            "url": f"http://{account}/agent?token={quote(QUERY, safe='')}",
            "headers": {"x-functions-key": HEADER, "x-thing": "${PLANTED_THING}"},
            "report": "report",
            "assessment": "held",
        }
        options = {"target": target, "redact": RULES, "llm_config": {"stream": True}}
        (tmp_path / "options.json").write_text(json.dumps(options))
        making = {"agent_description": f"A shop. {CASE_TEXT}", "num_personas": 1, "num_scenarios": 1}
        (tmp_path / "making.json").write_text(json.dumps({**making, "sim_model": "mock-user"}))
        (tmp_path / "running.json").write_text(json.dumps({**making, **options, "sim_model": "mock-user"}))
        truth = {"password": ARGUMENT, "told": CASE_TEXT}
        write_cases(tmp_path / "cases.jsonl", CASES, criteria=2, context=CASE_TEXT, truth=truth, hidden=["/password"])
        yield place


def viewed(viewer: Viewer) -> dict[str, bytes]:
    """Every page and answer of the viewer, with a label whose note holds what is planted."""
    key = viewer.key("planted")
    assert viewer.label("planted", 0, note=NOTE).status_code == 303
    pages = ["/", f"/compare?a={key}&b={viewer.key('second')}"]
    pages += [f"/runs/{key}{page}" for page in ("", "/overview", "/live", "/labels", "/labels.jsonl", "?q=password")]
    pages += [f"/runs/{key}/{n}{page}" for n in range(CASES) for page in ("", "/events", "/record.json")]
    return {page: viewer.get(page).encode() for page in pages}


class Looked:
    """A sink that reads all files of the store, and those without a name, while conversations run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, bytes] = {}

    def append(self, thread_id: str, event: Event) -> None:
        """Nothing to see."""

    def finished(self, result: SimulationResult) -> None:
        if result.row == CASES // 2:
            self.files = {f"meanwhile {name}": data for name, data in files_in(self.folder).items()}
            for handle in Path("/proc/self/fd").iterdir():
                with suppress(FileNotFoundError):  # the handle that lists them
                    if str(handle.readlink()).endswith(" (deleted)"):
                        self.files[f"spool {handle.name}"] = handle.read_bytes()


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def watched(config: SimulationConfig, sinks: list[Sink]) -> None:
    hooks = HookStream(config.hooks, 1)
    async with hooks.around():
        outcome = await run_simulation(config, sinks=[hooks, *sinks])
    assert outcome.path is not None


def simulated(folder: Path) -> dict[str, bytes]:
    """Runs the cases; what is on disk meanwhile, and the spans and logs of all libraries."""
    options = json.loads((folder.parent / "options.json").read_text())
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    config = SimulationConfig(
        **options, input=folder.parent / "cases.jsonl", sim_model="mock-user", judge_model="mock-judge",
        max_turns=2, run_name="planted", save=True, max_target_retries=0, raise_on_execution_failure=False,
        recommendations=True, executive_summary=True,
    )  # fmt: skip
    kept, looked, root = Kept(), Looked(folder), logging.getLogger()
    level = root.level
    root.addHandler(kept)
    root.setLevel(logging.DEBUG)
    try:
        asyncio.run(watched(config, [looked, OpenTelemetrySink(provider)]))
    finally:
        root.setLevel(level)
        root.removeHandler(kept)
    spans = "\n".join(span.to_json() for span in exporter.get_finished_spans())
    return {**looked.files, "spans": spans.encode(), "logs": "\n".join(kept.lines).encode()}


def test_no_planted_secret_survives_anywhere(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    made = simulated(folder)
    for name, words in LATER.items():
        code = main(words.split())
        said = capfdbinary.readouterr()
        made[name] = said.out + said.err
        assert code in (0, 1, 3), (name, made[name])
    with serving(folder / ".evaluatorq" / "sim-runs") as viewer:
        made |= viewed(viewer)
    made |= files_in(folder)
    assert any("drafts" in name for name in made)
    found = {where: leaks for where, data in made.items() if (leaks := leaks_in(data))}
    assert not found, "\n".join(f"{where}\n  " + "\n  ".join(leaks) for where, leaks in found.items())
