"""Wraps a trace with the evidence of its external effects: proposed, tried, accepted, and by what receipt."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from pydantic import JsonValue, ValidationError

from evaluatorq.errors import ConfigError, SchemaError
from evaluatorq.model.integration import (
    INTEGRATION_SCHEMA,
    Closure,
    Effect,
    EffectState,
    IntegrationTrace,
    Receipt,
    ResourceVersions,
)
from evaluatorq.model.messages import ToolCall
from evaluatorq.model.trace import Step, TargetStep, ToolStep, Trace
from evaluatorq.records.states import revisions_in
from evaluatorq.records.trace_case import content_hash
from evaluatorq.records.trace_versions import version_of

CONFLICTS = frozenset({"conflict", "stale", "version_conflict", "precondition_failed", "already_exists"})
"""Codes of refusals by which the other side says that somebody else was first."""


def integration_trace(
    trace: Trace,
    *,
    receipts: Mapping[str, Receipt] | None = None,
    identities: Mapping[str, str] | None = None,
    conflicts: Collection[str] = CONFLICTS,
) -> IntegrationTrace:
    """The envelope of a trace. ``receipts`` of the other side stand under the ids of the calls; ``identities`` name
    profiles, mappings, packages and terminologies that the trace itself does not. ``ConfigError`` for a receipt of a
    call that has no effect in the trace: evidence must not be lost.
    """
    document = trace.document()
    effects = tuple(_effects(trace, receipts or {}, conflicts))
    calls = {effect.call_id for effect in effects}
    if strange := [call for call in receipts or {} if call not in calls]:
        known = f"there is {', '.join(sorted(calls))}" if calls else "it has none"
        raise ConfigError(f"{trace.thread_id} has no effect of call {strange[0]!r} for a receipt; {known}")
    references = tuple(dict.fromkeys((trace.snapshots or {}).values()))
    missing = tuple(reference for reference in references if reference not in (trace.states or {}))
    return IntegrationTrace(
        trace=document,
        trace_hash=content_hash(document),
        closure=Closure(states=references, missing=missing or None),
        resources=ResourceVersions(before=_revisions(trace, first=True), after=_revisions(trace, first=False)),
        identities={**_identities(trace), **(identities or {})},
        decision_produced=True if trace.outcome.decision is not None else None,
        effects=effects,
    )


def read_integration_trace(document: Mapping[str, JsonValue]) -> IntegrationTrace:
    """The envelope in a document. ``SchemaError`` for another version, and for a trace that is not the wrapped one."""
    tag, inner = document.get("schema"), document.get("trace")
    if tag != INTEGRATION_SCHEMA or not isinstance(inner, dict):
        raise SchemaError(
            f"this is no {INTEGRATION_SCHEMA}: its schema is {tag!r}; a newer one needs a newer evaluatorq"
        )
    version_of(inner)
    if document.get("trace_hash") != content_hash(inner):
        raise SchemaError("the trace in this envelope is not the one that was wrapped: its content has another hash")
    try:
        return IntegrationTrace.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise SchemaError(f"{'/'.join(map(str, first['loc']))}: {first['msg']}") from None


def _identities(trace: Trace) -> dict[str, str]:
    found = {"config": trace.run.config_hash, "datapoint": trace.datapoint.fingerprint}
    found |= trace.run.versions or {}
    if trace.environment is not None:
        found["environment"] = trace.environment.hash
    return found


def _revisions(trace: Trace, *, first: bool) -> dict[str, int]:
    """Versions in the environment's state, overlaid by those that a store reported."""
    numbers = sorted((trace.snapshots or {}).items(), key=lambda item: int(item[0].removeprefix("s")))
    state = (trace.states or {}).get(numbers[0 if first else -1][1]) if numbers else None
    found = revisions_in(state)
    if not first:
        reports = [step.report for step in trace.steps if isinstance(step, TargetStep) and step.report is not None]
        for report in reports:
            found.update(report.revisions or {})
    return found


def _effects(trace: Trace, receipts: Mapping[str, Receipt], conflicts: Collection[str]) -> Iterator[Effect]:
    """Every call that may change something, in order; also those that nobody carried out."""
    harmless = {
        name for name, repeatable in ((trace.environment and trace.environment.tools) or {}).items() if repeatable
    }
    for number, step in enumerate(trace.steps):
        if not isinstance(step, TargetStep) or step.message is None or step.abandoned:
            continue
        for call in step.message.tool_calls or ():
            answer = _answer(trace.steps[number + 1 :], call.id)
            reads = answer.read_only if answer is not None else call.function.name in harmless
            if not reads:
                yield _effect(call, number, answer, receipts.get(call.id), conflicts)


def _answer(later: Sequence[Step], call_id: str) -> ToolStep | None:
    """The first step after a call that carries its id; agents use ids again."""
    return next((step for step in later if isinstance(step, ToolStep) and step.call_id == call_id), None)


def _effect(
    call: ToolCall, step: int, answer: ToolStep | None, receipt: Receipt | None, conflicts: Collection[str]
) -> Effect:
    parsed = call.parsed_arguments()
    text = answer.message.text if answer is not None and answer.message is not None else None
    if receipt is None and text is not None:
        receipt = Receipt(content_hash=content_hash(text))
    return Effect(
        call_id=call.id,
        tool=call.function.name,
        step=step,
        arguments_hash=content_hash(call.function.arguments if parsed is None else parsed),
        states=_states(answer, conflicts),
        reason=answer.reason if answer is not None else None,
        receipt=receipt,
    )


def _states(answer: ToolStep | None, conflicts: Collection[str]) -> tuple[EffectState, ...]:
    if answer is None or answer.message is None:
        return ("proposed",)
    match answer.outcome:
        case "accepted" | "no_change":
            return ("proposed", "attempted", "accepted")
        case "awaiting":
            return ("proposed", "attempted")
        case _ if answer.reason in conflicts:
            return ("proposed", "attempted", "conflicted")
    return ("proposed", "attempted", "failed")
