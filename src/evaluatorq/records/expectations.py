"""Holds claims against observations: a pure function over a saved conversation, so the same live and offline.

A check returns every failure and never raises. What was not reported, was cut or could not be read proves nothing: a
claim about it fails, because a forbidden event may hide in the half that nobody read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from evaluatorq.conversation.checks import same_json
from evaluatorq.model.expectations import (
    ActClaim,
    Claims,
    Expectations,
    FailsWith,
    Forbidden,
    ToolClaim,
    TurnClaims,
)
from evaluatorq.model.findings import ExpectationFailure, ExpectationReport
from evaluatorq.model.observation import Act, Observation, ObservedCall
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.observation import joined
from evaluatorq.records.state_claims import World, check_counts, check_state
from evaluatorq.records.states import state_after, taken_back
from evaluatorq.records.understanding import score_understanding

Failures = Iterator[ExpectationFailure]
IRREVERSIBLE = frozenset({"forbidden_tool", "forbidden_command", "forbidden_event"})
"""Failures that nothing later in a conversation could have made good."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What claims are held against: a turn or a whole conversation, with its states and the arguments of its calls."""

    seen: Observation
    world: World
    arguments: Mapping[str, dict[str, JsonValue] | None] = field(default_factory=dict)
    turn: int | None = None

    def failure(self, name: str, expected: object, actual: object, subject: str | None = None) -> ExpectationFailure:
        """A failure at this place."""
        return ExpectationFailure(
            name=name, expected=str(expected), actual=str(actual), subject=subject, turn=self.turn
        )

    def unreported(self, what: str) -> ExpectationFailure:
        """A claim about something that nobody told."""
        return self.failure("unreported_facts", f"{what} to be known", "nobody reported them", what)


def expectation_failures(result: SimulationResult) -> list[ExpectationFailure]:
    """The failures recorded with a result, empty where none were or nothing was expected."""
    return [] if result.expectations is None else list(result.expectations.failures)


def check_expectations(expect: Expectations, result: SimulationResult) -> ExpectationReport:
    """Everything that a conversation does not hold of what its scenario expects.

    A conversation that the simulated user or the infrastructure broke off is not measured: only what must never happen,
    and did, is held against it.
    """
    failures = list(_all(expect, result))
    if not is_measured(result):
        failures = [failure for failure in failures if failure.name in IRREVERSIBLE]
        return ExpectationReport(met=False if failures else None, failures=failures)
    return ExpectationReport(
        met=not failures, failures=failures, tasks=score_understanding(expect, result.observations)
    )


def is_measured(result: SimulationResult) -> bool:
    """The agent had its chance: the conversation came to its end, the agent broke it, or only a verdict is missing."""
    if not result.errored or result.failed_component == "target":
        return True
    return result.failed_component == "judge" and result.terminated_by.value == "error"


def _all(expect: Expectations, result: SimulationResult) -> Failures:
    turns = result.observations
    arguments = {call.id: call.parsed_arguments() for row in result.messages for call in row.tool_calls or ()}
    final = result.final_state
    whole = joined(turns)
    yield from check(expect, Evidence(whole, World.of(state_after(final, turns, -1), final, whole), arguments))
    for claims in expect.turns:
        position = _position(claims, turns)
        if position is None:
            yield ExpectationFailure(
                name="turn", expected=f"turn {claims.turn} to take place", actual=f"{len(turns)} turns of the agent"
            )
            continue
        seen, after = turns[position], state_after(final, turns, position)
        world = World.of(taken_back(after, seen.states), after, seen)
        yield from check(claims, Evidence(seen, world, arguments, seen.turn))


def _position(claims: TurnClaims, turns: Sequence[Observation]) -> int | None:
    if claims.turn == "last":
        return len(turns) - 1 if turns else None
    return next((i for i, seen in enumerate(turns) if seen.turn == claims.turn), None)


def check(claims: Claims, evidence: Evidence) -> list[ExpectationFailure]:
    """Every claim that does not hold."""
    return [
        *_completeness(claims, evidence),
        *_outcome(claims, evidence),
        *_tools(claims, evidence),
        *_call_counts(claims, evidence),
        *_forbidden(claims.forbid or Forbidden(), evidence),
        *_lists(claims, evidence),
        *(evidence.failure(*found) for found in check_state(claims.state or (), evidence.world)),
        *(evidence.failure(*found) for found in check_counts(claims.counts or {}, evidence.world)),
        *_revisions(claims, evidence),
        *_interactions(claims, evidence),
        *_acts(claims, evidence),
        *_resolutions(claims, evidence),
    ]


# ---------------------------------------------------------------- what could be read


def _completeness(claims: Claims, evidence: Evidence) -> Failures:
    forbidden = claims.forbid or Forbidden()
    about_events = claims.events is not None or bool(forbidden.events)
    if evidence.seen.events_truncated and about_events:
        yield evidence.failure("truncated_ledger", "the whole list of events", "a list that was cut")
    stored = (claims.state, claims.counts, claims.commands, claims.revisions, claims.interactions)
    about_store = about_events or bool(forbidden.commands) or any(claim is not None for claim in stored)
    if evidence.seen.read_error is not None and about_store:
        yield evidence.failure("unreadable_facts", "facts that can be read", evidence.seen.read_error)


def _outcome(claims: Claims, evidence: Evidence) -> Failures:
    code = evidence.seen.error_code
    actual = "succeeded" if code is None else f"failed with {code}"
    match claims.outcome:
        case "succeeds" if code is not None:
            yield evidence.failure("outcome", "succeeds", actual)
        case "fails" if code is None:
            yield evidence.failure("outcome", "fails", actual)
        case FailsWith(fails_with=wanted) if code != wanted:
            yield evidence.failure("outcome", f"fails with {wanted}", actual)


# ---------------------------------------------------------------- tools


def _tools(claims: Claims, evidence: Evidence) -> Failures:
    wanted, calls = claims.tools, evidence.seen.tool_calls
    if wanted is None:
        return
    if calls is None:
        yield evidence.unreported("tool calls")
        return
    actual = _told_calls(calls)
    if wanted.exact is not None and not _equal(wanted.exact, calls, evidence):
        yield evidence.failure("tools", f"exactly {_told(wanted.exact)}", actual)
    if wanted.in_order is not None and not _in_order(wanted.in_order, calls, evidence):
        yield evidence.failure("tools", f"in this order {_told(wanted.in_order)}", actual)
    if wanted.subset is not None:
        for missing in _missing(wanted.subset, calls, evidence):
            yield evidence.failure("tools", _told([missing]), actual, missing.name)
    if wanted.any_of is not None and not any(_equal(option, calls, evidence) for option in wanted.any_of):
        yield evidence.failure("tools", f"exactly {' or '.join(map(_told, wanted.any_of))}", actual)


def _fits(claim: ToolClaim, call: ObservedCall, evidence: Evidence) -> bool:
    if claim.name != call.name or claim.outcome not in (None, call.outcome):
        return False
    given = evidence.arguments.get(call.id) or {}
    return all(key in given and same_json(given[key], value) for key, value in claim.arguments.items())


def _equal(claims: Sequence[ToolClaim], calls: Sequence[ObservedCall], evidence: Evidence) -> bool:
    return len(claims) == len(calls) and all(map(lambda a, b: _fits(a, b, evidence), claims, calls))


def _in_order(claims: Sequence[ToolClaim], calls: Sequence[ObservedCall], evidence: Evidence) -> bool:
    left = iter(calls)
    return all(any(_fits(claim, call, evidence) for call in left) for claim in claims)


def _missing(claims: Sequence[ToolClaim], calls: Sequence[ObservedCall], evidence: Evidence) -> Iterator[ToolClaim]:
    """Claims without a call of their own; the choosier ones take theirs first."""
    left = list(calls)
    for claim in sorted(claims, key=lambda claim: (claim.outcome is None, -len(claim.arguments))):
        found = next((call for call in left if _fits(claim, call, evidence)), None)
        if found is None:
            yield claim
        else:
            left.remove(found)


def _call_counts(claims: Claims, evidence: Evidence) -> Failures:
    if claims.calls is None:
        return
    if evidence.seen.tool_calls is None:
        yield evidence.unreported("tool calls")
        return
    counted = Counter(call.name for call in evidence.seen.tool_calls)
    for name, claim in claims.calls.items():
        if not claim.holds(counted[name]):
            yield evidence.failure("calls", claim.text, counted[name], name)


def _forbidden(forbidden: Forbidden, evidence: Evidence) -> Failures:
    seen = evidence.seen
    if forbidden.tools and seen.tool_calls is None:
        yield evidence.unreported("tool calls")
    for claim in forbidden.tools:
        found = [call for call in seen.tool_calls or () if _fits(claim, call, evidence)]
        if found:
            yield evidence.failure("forbidden_tool", f"no {_told([claim])}", _told_calls(found), claim.name)
    for name, wanted, actual in (
        ("command", forbidden.commands, seen.commands),
        ("event", forbidden.events, seen.events),
    ):
        if wanted and actual is None and seen.read_error is None:
            yield evidence.unreported(f"{name}s")
        for word in wanted:
            found_words = [text for text in actual or () if _is(word, text)]
            if found_words:
                yield evidence.failure(f"forbidden_{name}", f"no {word}", ", ".join(found_words), word)


def _is(word: str, text: str) -> bool:
    """An event ``refunded:A1`` answers to its kind, ``refunded``, as well."""
    return text == word or text.partition(":")[0] == word


def _told(claims: Sequence[ToolClaim]) -> str:
    return _listed([f"{claim.name}{_with(claim)}" for claim in claims])


def _with(claim: ToolClaim) -> str:
    parts = [f"{name}={value!r}" for name, value in claim.arguments.items()]
    return (f"({', '.join(parts)})" if parts else "") + (f" {claim.outcome}" if claim.outcome else "")


def _told_calls(calls: Sequence[ObservedCall]) -> str:
    return _listed([call.name if call.outcome == "accepted" else f"{call.name} {call.outcome}" for call in calls])


def _listed(words: Sequence[str]) -> str:
    return f"[{', '.join(words)}]"


# ---------------------------------------------------------------- lists, cards, acts


def _lists(claims: Claims, evidence: Evidence) -> Failures:
    seen = evidence.seen
    for name, wanted, actual in (
        ("commands", claims.commands, seen.commands),
        ("events", claims.events, seen.events),
        ("blocks", claims.blocks, seen.blocks),
    ):
        if wanted is None:
            continue
        if actual is None:
            if seen.read_error is None:
                yield evidence.unreported(name)
        elif len(wanted) != len(actual) or not all(map(_is, wanted, actual)):
            yield evidence.failure(name, _listed(wanted), _listed(actual))
    if claims.phase is not None and seen.phase != claims.phase:
        yield (
            evidence.unreported("phase") if seen.phase is None else evidence.failure("phase", claims.phase, seen.phase)
        )


def _revisions(claims: Claims, evidence: Evidence) -> Failures:
    for resource, wanted in (claims.revisions or {}).items():
        actual = evidence.seen.revision_of(resource)
        if actual is None:
            yield evidence.failure("revision", wanted, "not observed", resource)
        elif actual != wanted:
            yield evidence.failure("revision", wanted, actual, resource)


def _interactions(claims: Claims, evidence: Evidence) -> Failures:
    if claims.interactions and evidence.seen.interactions is None:
        yield evidence.unreported("interactions")
        return
    for resource, wanted in (claims.interactions or {}).items():
        actual = tuple(card.status for card in evidence.seen.interactions_of(resource))
        if actual != wanted:
            yield evidence.failure("interactions", _listed(wanted), _listed(actual), resource)


def _acts(claims: Claims, evidence: Evidence) -> Failures:
    if claims.acts is None:
        return
    acts = evidence.seen.acts
    if acts is None:
        yield evidence.unreported("acts")
        return
    options = [claims.acts.exact] if claims.acts.exact is not None else list(claims.acts.any_of or ())
    if not any(len(option) == len(acts) and all(map(_understood, option, acts)) for option in options):
        told = " or ".join(_listed([_act(claim) for claim in option]) for option in options)
        yield evidence.failure("acts", told, _listed([_act(act) for act in acts]))


def _understood(claim: ActClaim, act: Act) -> bool:
    return claim.kind == act.kind and claim.operation in (None, act.operation) and claim.outcome in (None, act.outcome)


def _act(act: Act | ActClaim) -> str:
    return " ".join(part for part in (act.kind, act.operation, act.outcome) if part)


def _resolutions(claims: Claims, evidence: Evidence) -> Failures:
    found = {item.act: item for item in reversed(evidence.seen.target_resolutions or ())}
    for claim in claims.resolutions or ():
        actual = found.get(claim.act)
        wanted = f"{claim.resolution} {claim.resource or ''}".strip()
        told = "none recorded" if actual is None else f"{actual.resolution} {actual.resource or ''}".strip()
        if actual is None or actual.resolution != claim.resolution or claim.resource not in (None, actual.resource):
            yield evidence.failure("resolution", wanted, told, f"act {claim.act}")
