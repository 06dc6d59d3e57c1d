"""Conversations as OpenTelemetry spans: run, conversation, turn, call, with the names of the GenAI conventions.

    from evaluatorq.otel import OpenTelemetrySink

    await run_simulation(config, sinks=[OpenTelemetrySink()])

Each conversation is a trace of its own, whose root names the run, so that a run of thousands is not one trace that
nobody can open. Spans are made from the events of the run, with their times; while a conversation waits for its agent
its turn is the current span, so HTTP targets pass it on (W3C trace context). What was said is left out unless it is
asked for. Without a configured provider nothing leaves the process.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass, field
from datetime import datetime

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from evaluatorq import __version__
from evaluatorq.conversation.machine import Conversation
from evaluatorq.model.events import (
    CallFailed,
    Ended,
    Event,
    Resumed,
    Scored,
    Started,
    TargetReplied,
    ToolsReturned,
    TurnJudged,
    UserSpoke,
)
from evaluatorq.model.messages import Message, ToolCall
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import RunPlan

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
Attribute = str | bool | int | float | Sequence[str]
_OPERATIONS = {"user_simulator": "chat", "judge": "chat", "target": "invoke_agent"}


@dataclass(slots=True)
class _Talk:
    """The open spans of one conversation."""

    run: Span
    conversation: Span
    turn: Span | None = None
    turns: int = 0
    ended: Ended | None = None
    scores: list[Scored] = field(default_factory=list)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    attached: Token[Context] | None = None

    @property
    def current(self) -> Span:
        """Whose child a call is."""
        return self.turn or self.conversation


class OpenTelemetrySink:
    """A sink (and attendant) of a run. ``provider`` is the process's own unless one is given; ``capture_content`` adds
    what was said, and is what the environment says (``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``) unless
    given.
    """

    def __init__(self, provider: TracerProvider | None = None, *, capture_content: bool | None = None) -> None:
        self._tracer: Tracer = trace.get_tracer("evaluatorq", __version__, provider)
        asked = os.environ.get(CAPTURE, "").strip().lower() == "true"
        self._capture = asked if capture_content is None else capture_content
        self._talks: dict[str, _Talk] = {}
        self._plan: RunPlan | None = None

    # ---------------------------------------------------------------- the stream

    async def opened(self, plan: RunPlan) -> None:
        """Notes which run the conversations belong to."""
        self._plan = plan

    async def followed(self, thread_id: str, conversation: Conversation) -> None:
        """Makes the present turn the current span of the task that drives the conversation."""
        del conversation
        talk = self._talks.get(thread_id)
        if talk is not None:
            _detach(talk)
            talk.attached = context.attach(trace.set_span_in_context(talk.current))

    async def closed(self, result: SimulationResult) -> None:
        """Ends the conversation's spans, with its scores."""
        talk = self._talks.pop(result.thread_id or "", None)
        if talk is not None:
            _detach(talk)
            self._close(talk, result)

    def append(self, thread_id: str, event: Event) -> None:
        """Turns one event into spans."""
        talk = self._talks.get(thread_id)
        if talk is None:
            if not isinstance(event, Started | Resumed):
                return
            talk = self._talks[thread_id] = self._begin(thread_id, event)
        match event:
            case UserSpoke():
                self._begin_turn(talk, event)
                self._call(talk, "user_simulator", event, (Message(role="user", content=event.text),))
            case TargetReplied():
                self._call(talk, "target", event, event.messages)
                self._tools(talk, event)
            case ToolsReturned():
                self._tools(talk, event)
            case TurnJudged():
                self._call(talk, "judge", event, ())
            case CallFailed():
                self._failed(talk, event)
            case Ended():
                talk.ended = event
            case Scored():
                talk.scores.append(event)

    def finished(self, result: SimulationResult) -> None:
        """Nothing more: a conversation's spans end when it is closed."""

    # ---------------------------------------------------------------- spans

    def _begin(self, thread_id: str, event: Started | Resumed) -> _Talk:
        plan, at = self._plan, _nanoseconds(event.at)
        names: dict[str, Attribute] = {"gen_ai.conversation.id": thread_id}
        if plan is not None:
            names |= {"evaluatorq.run.id": plan.run_id, "evaluatorq.run.name": plan.run_name}
        row = thread_id.rpartition(":")[2]
        if plan is not None and row.isdecimal() and int(row) < len(plan.datapoints):
            case = plan.datapoints[int(row)]
            names |= {
                "evaluatorq.datapoint.id": case.id,
                "evaluatorq.persona": case.persona.name,
                "evaluatorq.scenario": case.scenario.name,
            }
        root = Context()
        run = self._tracer.start_span(
            f"run {plan.run_name if plan else ''}".strip(), root, attributes=names, start_time=at
        )
        talk = self._tracer.start_span("conversation", _under(run), attributes=names, start_time=at)
        return _Talk(run, talk)

    def _begin_turn(self, talk: _Talk, event: UserSpoke) -> None:
        began = _nanoseconds(event.at, event.latency_ms)
        if talk.turn is not None:
            talk.turn.end(began)
        talk.turns += 1
        attributes: dict[str, Attribute] = {"evaluatorq.turn": talk.turns}
        talk.turn = self._tracer.start_span(
            f"turn {talk.turns}", _under(talk.conversation), attributes=attributes, start_time=began
        )

    def _call(
        self,
        talk: _Talk,
        role: str,
        event: UserSpoke | TargetReplied | TurnJudged,
        said: Sequence[Message],
    ) -> None:
        """A call that brought an answer. Fixed lines are nobody's call."""
        if isinstance(event, UserSpoke) and event.source != "simulated":
            return
        name = _name(self._plan, role, event.model)
        attributes = _operation(role, name)
        if event.model:
            attributes["gen_ai.response.model"] = event.model
        if event.usage is not None and event.usage.calls:
            attributes["gen_ai.usage.input_tokens"] = event.usage.input_tokens
            attributes["gen_ai.usage.output_tokens"] = event.usage.output_tokens
            if event.usage.total_cost is not None:
                attributes["evaluatorq.usage.cost_usd"] = event.usage.total_cost
        if isinstance(event, TargetReplied):
            attributes |= _given({"gen_ai.response.id": event.response_id})
            if event.finish_reason:
                attributes["gen_ai.response.finish_reasons"] = [event.finish_reason]
        if self._capture and said:
            rows = [row.model_dump(mode="json", exclude_none=True) for row in said]
            attributes["gen_ai.output.messages"] = json.dumps(rows, ensure_ascii=False)
        span = self._span(talk, f"{attributes['gen_ai.operation.name']} {name}", attributes, event.at, event.latency_ms)
        if isinstance(event, TurnJudged):
            self._verdict(span, event)
        span.end(_nanoseconds(event.at))

    def _tools(self, talk: _Talk, event: TargetReplied | ToolsReturned) -> None:
        """One span for each tool answer; how long each of several took is not known, so they share the round's time."""
        latency = event.latency_ms if isinstance(event, ToolsReturned) else 0.0
        talk.calls.update((call.id, call) for row in event.messages for call in row.tool_calls or ())
        for row in event.messages:
            if row.role != "tool":
                continue
            call = talk.calls.get(row.tool_call_id or "")
            name = row.name or (call.function.name if call else "tool")
            attributes: dict[str, Attribute] = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": name,
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": row.tool_call_id or "",
            }
            if self._capture:
                attributes["gen_ai.tool.call.result"] = row.text
                if call is not None:
                    attributes["gen_ai.tool.call.arguments"] = call.function.arguments
            self._span(talk, f"execute_tool {name}", attributes, event.at, latency).end(_nanoseconds(event.at))

    def _failed(self, talk: _Talk, event: CallFailed) -> None:
        name = _name(self._plan, event.component, None)
        attributes = {
            **_operation(event.component, name),
            "error.type": event.code,
            "evaluatorq.call.attempt": event.attempt,
            "evaluatorq.call.final": event.final,
        }
        span = self._span(talk, f"{attributes['gen_ai.operation.name']} {name}", attributes, event.at, event.latency_ms)
        span.set_status(Status(StatusCode.ERROR, event.message if self._capture else None))
        span.end(_nanoseconds(event.at))

    def _span(
        self, talk: _Talk, name: str, attributes: Mapping[str, Attribute], at: datetime, latency_ms: float | None
    ) -> Span:
        return self._tracer.start_span(
            name.strip(),
            _under(talk.current),
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=_nanoseconds(at, latency_ms),
        )

    def _verdict(self, span: Span, event: TurnJudged) -> None:
        judgment, at = event.judgment, _nanoseconds(event.at)
        goal: dict[str, Attribute] = {
            "gen_ai.evaluation.name": "goal",
            "gen_ai.evaluation.score.label": "reached" if judgment.goal_achieved else "not reached",
        }
        if "goal_completion_score" not in event.unknown_scores:
            goal["gen_ai.evaluation.score.value"] = judgment.goal_completion_score
        if self._capture:
            goal["gen_ai.evaluation.explanation"] = judgment.reason
        span.add_event("gen_ai.evaluation.result", goal, at)

    def _close(self, talk: _Talk, result: SimulationResult) -> None:
        end = None if talk.ended is None else _nanoseconds(talk.ended.at)
        for score in talk.scores:
            if score.score is not None:
                values: dict[str, Attribute] = {
                    "gen_ai.evaluation.name": score.evaluator,
                    "gen_ai.evaluation.score.value": score.score,
                }
                talk.conversation.add_event("gen_ai.evaluation.result", values, end)
        outcome = {
            "evaluatorq.terminated_by": result.terminated_by.value,
            "evaluatorq.ended_by": result.ended_by,
            "evaluatorq.failed_component": result.failed_component,
            "error.type": talk.ended.error_type if talk.ended and result.errored else None,
        }
        talk.conversation.set_attributes({**_given(outcome), "evaluatorq.turns": result.turn_count})
        if result.errored:
            talk.conversation.set_status(Status(StatusCode.ERROR))
        for span in (talk.turn, talk.conversation, talk.run):
            if span is not None:
                span.end(end)


# ---------------------------------------------------------------- where spans go

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


def has_provider() -> bool:
    """The process has set up a provider of its own."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def provider_from_environment() -> TracerProvider | None:
    """A provider that sends spans where the environment says (OTLP over HTTP); ``None``, which means the process's own
    provider, where it says nothing or the process has set one up. Spans are sent in the background until exit.
    """
    if has_provider() or not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  only to send
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider as Provider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

    service = os.environ.get("OTEL_SERVICE_NAME") or "evaluatorq"
    provider = Provider(resource=Resource.create({"service.name": service}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


# ---------------------------------------------------------------- small things


def _under(span: Span) -> Context:
    return trace.set_span_in_context(span, Context())


def _detach(talk: _Talk) -> None:
    if talk.attached is not None:
        context.detach(talk.attached)
        talk.attached = None


def _nanoseconds(at: datetime, before_ms: float | None = None) -> int:
    return int(at.timestamp() * 1_000_000) * 1000 - int((before_ms or 0.0) * 1_000_000)


def _name(plan: RunPlan | None, role: str, model: str | None) -> str:
    """The model that was asked, the agent's name, or the role."""
    if role == "target":
        return (plan.target if plan else None) or "target"
    return (plan.models.get(role) if plan else None) or model or role


def _operation(role: str, name: str) -> dict[str, Attribute]:
    operation = _OPERATIONS.get(role, "execute_tool")
    named = {"chat": "gen_ai.request.model", "invoke_agent": "gen_ai.agent.name"}.get(operation, "gen_ai.tool.name")
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "evaluatorq",
        named: name,
        "evaluatorq.role": role,
    }


def _given(values: Mapping[str, str | None]) -> dict[str, Attribute]:
    return {name: value for name, value in values.items() if value is not None}


__all__ = ["CAPTURE", "OpenTelemetrySink", "provider_from_environment"]
