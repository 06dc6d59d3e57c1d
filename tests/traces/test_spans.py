"""Conversations that run at once are separate trees of spans, agents over HTTP see theirs, and words stay inside."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from trace_samples import PAID, SAYS, call, shop

from evaluatorq.errors import CallError
from evaluatorq.model.runs import Limits, RunPlan
from evaluatorq.otel import OpenTelemetrySink
from evaluatorq.ports import TargetReply, UserReply
from evaluatorq.run.crew import Crew
from evaluatorq.run.engine import RunOptions, run_plan
from evaluatorq.testing import a_datapoint, a_plan, a_scenario, crew_of, verdict

SECRET = "the words that were said"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


def plan(count: int = 2) -> RunPlan:
    points = [a_datapoint(a_scenario(criteria=[SAYS]), id=f"dp_{n}") for n in range(count)]
    return a_plan(*points, limits=Limits(max_turns=2), target="agent", models={"judge": "judge-1"})


def crew(**fields: object) -> Crew:
    lines = [
        TargetReply((call("look_up", 1, order="A1"),), usage=PAID, model="agent-1"),
        f"{SECRET} one",
        f"{SECRET} two",
    ]
    user = [UserReply(SECRET, usage=PAID, model="user-1"), "more"]
    judge = [
        CallError("bad_verdict", SECRET, retryable=True),
        verdict({0: False}, usage=PAID),
        verdict({0: False}, stop=True),
    ]
    return crew_of(**{"target": lines, "user": user, "judge": judge, "environment": shop, **fields})


async def spans_of(
    sink: OpenTelemetrySink, exporter: InMemorySpanExporter, who: Crew, count: int = 2
) -> Sequence[ReadableSpan]:
    await run_plan(plan(count), who, RunOptions(save=False, journal=False, parallelism=2), [sink])
    return exporter.get_finished_spans()


def tree(spans: Sequence[ReadableSpan]) -> dict[str | None, list[str]]:
    """The names of the spans by the name of their parent."""
    names = {span.context.span_id: span.name for span in spans}
    found: dict[str | None, list[str]] = {}
    for span in sorted(spans, key=lambda span: (span.start_time, span.context.span_id)):
        parent = None if span.parent is None else names[span.parent.span_id]
        found.setdefault(parent, []).append(span.name)
    return {parent: sorted(children) for parent, children in found.items()}


async def test_two_conversations_at_once_are_two_separate_trees(
    exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    spans = await spans_of(OpenTelemetrySink(provider), exporter, crew())
    by_trace: dict[int, list[ReadableSpan]] = {}
    for span in spans:
        by_trace.setdefault(span.context.trace_id, []).append(span)
    assert len(by_trace) == 2
    for found in by_trace.values():
        levels = tree(found)
        assert levels[None] == ["run test"]
        assert levels["run test"] == ["conversation"]
        assert levels["conversation"] == ["turn 1", "turn 2"]
        assert levels["turn 1"] == [
            "chat judge-1",
            "chat judge-1",
            "chat user-1",
            "execute_tool look_up",
            "invoke_agent agent",
            "invoke_agent agent",
        ]
        ids = {
            span.attributes["gen_ai.conversation.id"] for span in found if "gen_ai.conversation.id" in span.attributes
        }
        assert len(ids) == 1
    everything = [span for found in by_trace.values() for span in found]
    assert {span.attributes.get("evaluatorq.datapoint.id") for span in everything} == {None, "dp_0", "dp_1"}


async def test_a_child_lies_within_its_parents_time(exporter: InMemorySpanExporter, provider: TracerProvider) -> None:
    spans = await spans_of(OpenTelemetrySink(provider), exporter, crew())
    by_id = {span.context.span_id: span for span in spans}
    for span in spans:
        if span.parent is not None:
            parent = by_id[span.parent.span_id]
            assert parent.start_time - 1_000_000 <= span.start_time <= span.end_time <= parent.end_time + 1_000_000


async def test_calls_carry_the_names_of_the_conventions(
    exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    spans = await spans_of(OpenTelemetrySink(provider), exporter, crew(), count=1)
    user = next(span for span in spans if span.name == "chat user-1")
    assert dict(user.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "evaluatorq",
        "gen_ai.request.model": "user-1",
        "gen_ai.response.model": "user-1",
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 5,
        "evaluatorq.usage.cost_usd": 0.002,
        "evaluatorq.role": "user_simulator",
    }
    tool = next(span for span in spans if span.name == "execute_tool look_up")
    assert (tool.attributes["gen_ai.tool.name"], tool.attributes["gen_ai.tool.call.id"]) == ("look_up", "call_1")
    failed = next(span for span in spans if span.status.status_code is StatusCode.ERROR)
    assert (failed.name, failed.attributes["error.type"]) == ("chat judge-1", "bad_verdict")
    judged = next(span for span in spans if span.name == "chat judge-1" and span.events)
    assert judged.events[0].name == "gen_ai.evaluation.result"


@pytest.mark.parametrize("capture", [False, True])
async def test_what_was_said_leaves_only_when_asked_for(
    exporter: InMemorySpanExporter, provider: TracerProvider, capture: bool
) -> None:
    spans = await spans_of(OpenTelemetrySink(provider, capture_content=capture), exporter, crew(), count=1)
    told = "".join(span.to_json() for span in spans)
    assert (SECRET in told) is capture
    assert ("gen_ai.tool.call.arguments" in told) is capture


async def test_a_conversation_that_broke_is_an_error_with_its_type(
    exporter: InMemorySpanExporter, provider: TracerProvider
) -> None:
    spans = await spans_of(OpenTelemetrySink(provider), exporter, crew(target=[CallError("auth", "no")]), count=1)
    talk = next(span for span in spans if span.name == "conversation")
    assert talk.status.status_code is StatusCode.ERROR
    assert (talk.attributes["error.type"], talk.attributes["evaluatorq.failed_component"]) == ("auth", "target")


async def test_without_a_provider_nothing_is_recorded_and_nothing_breaks(exporter: InMemorySpanExporter) -> None:
    assert await spans_of(OpenTelemetrySink(), exporter, crew()) == ()


@pytest.fixture
def agent() -> Iterator[tuple[str, list[str | None]]]:
    """An agent over HTTP that notes the trace context of its requests."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            seen.append(self.headers.get("traceparent"))
            body = json.dumps({"text": f"answer {len(seen)}"}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", seen
    server.shutdown()
    server.server_close()
    thread.join()


async def test_an_agent_over_http_is_given_the_context_of_its_turn(
    exporter: InMemorySpanExporter, provider: TracerProvider, agent: tuple[str, list[str | None]]
) -> None:
    from evaluatorq.targets.resolve import resolve_target

    url, seen = agent
    resolved = resolve_target(url, parallelism=2)
    from dataclasses import replace

    who = replace(crew(), target=resolved.factory)
    spans = await spans_of(OpenTelemetrySink(provider), exporter, who)
    await resolved.factory.aclose()
    turns = {
        f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}" for span in spans if span.name.startswith("turn")
    }
    assert len(seen) == 4
    assert {str(context)[:-3] for context in seen} == turns


async def test_without_spans_an_agent_over_http_is_given_no_context(agent: tuple[str, list[str | None]]) -> None:
    from dataclasses import replace

    from evaluatorq.targets.resolve import resolve_target

    url, seen = agent
    resolved = resolve_target(url, parallelism=1)
    await run_plan(plan(1), replace(crew(), target=resolved.factory), RunOptions(save=False, journal=False))
    await resolved.factory.aclose()
    assert seen == [None, None]


async def test_spans_go_to_the_endpoint_that_the_environment_names(
    agent: tuple[str, list[str | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluatorq.otel import provider_from_environment

    assert provider_from_environment() is None
    url, seen = agent
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    provider = provider_from_environment()
    assert isinstance(provider, TracerProvider)
    await run_plan(plan(1), crew(), RunOptions(save=False, journal=False), [OpenTelemetrySink(provider)])
    assert provider.force_flush()
    provider.shutdown()
    assert len(seen) == 1


def test_a_run_is_asked_for_spans_by_an_option_and_warns_where_nobody_gets_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from evaluatorq.simulation.config import SimulationConfig
    from evaluatorq.simulation.telemetry import with_telemetry

    config = SimulationConfig.parse({"target": "demo", "offline": True, "otel": True})
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with pytest.warns(UserWarning, match="otel has no effect: this process has no OpenTelemetry provider, and OTEL_"):
        assert [type(sink).__name__ for sink in with_telemetry(config, [])] == ["OpenTelemetrySink"]
    assert with_telemetry(SimulationConfig.parse({"target": "demo", "offline": True}), []) == []
