"""What code concluded from an event, as the rule steps of a trace: which rule, from what, why, and what lost to it.

Everything here is computed again from the two states around an event, so a replay computes it too and compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluatorq.conversation.checks import value_at
from evaluatorq.conversation.ledger import Entry
from evaluatorq.conversation.machine import Conversation, Phase
from evaluatorq.model.cases import criterion_id_for
from evaluatorq.model.events import Ended, Resumed, TurnJudged
from evaluatorq.model.trace import Decision, Fact, Loser, Provenance, RuleStep, Step, ToolStep
from evaluatorq.records.accept import Acceptance
from evaluatorq.records.result import goal_of
from evaluatorq.records.trace_steps import Place

AGREED = "both came to it; the first rule in line names the ending"


def rules_of(place: Place, steps: Sequence[Step]) -> list[RuleStep]:
    """The rules that fired on an event, given the steps it was made into."""
    if isinstance(place.event, Resumed):
        return []
    about_tools = [*_tool_limits(place, steps), *_accepted_items(place, steps)]
    return [*about_tools, *_verdicts(place), *_folded(place), *_stopped(place), *_goal(place)]


def _rule(place: Place, rule: str, derived: Sequence[Fact], why: str, **more: object) -> RuleStep:
    base = place.base(loss_mask=True)
    return RuleStep.model_validate({**base, "rule": rule, "derived": tuple(derived), "why": why, **more})


# ---------------------------------------------------------------- tools


def _tool_limits(place: Place, steps: Sequence[Step]) -> Iterator[RuleStep]:
    for step in (step for step in steps if isinstance(step, ToolStep)):
        for condition in step.preconditions or ():
            if condition.held or not condition.what.startswith("called at most"):
                continue
            fact = Fact(
                about=f"{step.tool} {step.call_id}",
                value=step.outcome,
                provenance=Provenance(source="rule", calls=(step.call_id,)),
            )
            rows = None if step.row is None else (step.row,)
            yield _rule(place, "tool_limits", [fact], f"{step.tool} may be {condition.what}", rows=rows)


def _accepted_items(place: Place, steps: Sequence[Step]) -> Iterator[RuleStep]:
    """What became of items that a call put forward for a list of facts, by the list's policy."""
    cognition = place.after.scenario.cognition
    for name, rule in (cognition.lists if cognition is not None else {}).items():
        for step in (step for step in steps if isinstance(step, ToolStep)):
            arguments = step.arguments or {}
            if step.tool != rule.tool or not step.accepted or rule.argument not in arguments:
                continue
            growing = place.calls.lists.setdefault(name, Acceptance(rule.policy))
            verdicts = growing.propose(arguments[rule.argument], place.turn)
            provenance = Provenance(source="rule", calls=(step.call_id,))
            kept = [
                Fact(about=f"list {name}", value=one.stored, provenance=provenance)
                for one in verdicts
                if one.refused is None
            ]
            lost = [
                Loser(rule="accept_policy", conclusion=f"{json.dumps(one.value)} on list {name}", why=one.refused)
                for one in verdicts
                if one.refused is not None
            ]
            rows = None if step.row is None else (step.row,)
            why = f"what {step.tool} puts forward goes on list {name} by its policy"
            yield _rule(place, "accept_policy", kept, why, rows=rows, suppressed=tuple(lost) or None)


# ---------------------------------------------------------------- criteria


def _verdicts(place: Place) -> Iterator[RuleStep]:
    """The policy by which a judge's verdict on a criterion is accepted: its quote must hold."""
    if not isinstance(place.event, TurnJudged):
        return
    pairs = zip(place.before.ledger.entries, place.after.ledger.entries, strict=True)
    refused = {
        criterion_id_for(i): after.refused
        for i, (before, after) in enumerate(pairs)
        if after.refused is not None and (after.refused != before.refused or _id(i) in place.event.refused)
    }
    if not refused:
        return
    facts = [
        Fact(about=identity, value="refused", provenance=Provenance(source="judge", evidence=reason))
        for identity, reason in refused.items()
    ]
    yield _rule(place, "accept_policy", facts, "a verdict counts only with a quote that holds")


def _id(index: int) -> str:
    return criterion_id_for(index)


def _folded(place: Place) -> Iterator[RuleStep]:
    before, after = place.before.ledger, place.after.ledger
    facts = [
        _standing(criterion_id_for(i), entry, place)
        for i, entry in enumerate(after.entries)
        if entry != before.entries[i]
    ]
    if after.goal != before.goal:
        facts.append(_standing("goal", after.goal, place))
    losers = tuple(_losing_verdicts(place))
    if not facts and not losers:
        return
    rows = tuple(sorted({fact.provenance.message for fact in facts if fact.provenance.message is not None}))
    why = "what was seen stays seen; a check goes before a judge"
    yield _rule(place, "criteria_fold", facts, why, rows=rows or None, suppressed=losers or None)


def _standing(identity: str, entry: Entry, place: Place) -> Fact:
    judged = isinstance(place.event, TurnJudged)
    return Fact(
        about=identity,
        value={"occurred": entry.occurred, "audited": entry.audited},
        provenance=Provenance(
            source="judge" if judged else "check",
            message=entry.message_index,
            evidence=entry.evidence or None,
            evidence_verified=entry.verified if judged else None,
            model=place.event.model if isinstance(place.event, TurnJudged) else None,
        ),
    )


def _losing_verdicts(place: Place) -> Iterator[Loser]:
    """Verdicts that changed nothing because something else stands above them."""
    if not isinstance(place.event, TurnJudged):
        return
    criteria, entries = place.before.scenario.criterion_list, place.before.ledger.entries
    for verdict in place.event.judgment.criteria_verdicts or ():
        said = f"{verdict.criterion_id} {'occurred' if verdict.occurred else 'did not occur'}"
        if verdict.index >= len(criteria):
            yield Loser(rule="judge", conclusion=said, why="the scenario has no such criterion")
        elif criteria[verdict.index].check is not None:
            yield Loser(rule="judge", conclusion=said, why="a check decides this criterion")
        elif entries[verdict.index].occurred and not verdict.occurred:
            yield Loser(rule="judge", conclusion=said, why="it was seen before, and that stays")


# ---------------------------------------------------------------- endings


@dataclass(frozen=True, slots=True)
class _Limit:
    """A rule that ends conversations, and the numbers it compares where it does."""

    name: str
    observed: float | None = None
    threshold: float | None = None


def _applying(state: Conversation, place: Place) -> list[_Limit]:
    """The stop rules whose condition holds in a state."""
    limits = state.limits
    found = []
    if isinstance(place.event, TurnJudged) and place.event.judgment.should_terminate:
        found.append(_Limit("judge"))
    if limits.stop_on_violation and state.ledger.violated(state.scenario):
        found.append(_Limit("violation"))
    if state.repeats >= limits.repetition_limit:
        found.append(_Limit("repetition", state.repeats, limits.repetition_limit))
    if state.turn_count >= limits.max_turns:
        found.append(_Limit("max_turns", state.turn_count, limits.max_turns))
    if state.ending is not None and state.ending.ended_by == "tool_cap":
        found.append(_Limit("tool_cap", state.tool_rounds + 1, limits.tool_rounds))
    return found


def _stopped(place: Place) -> Iterator[RuleStep]:
    """The rule that decided the ending, when it did; and the ones that would have come to it as well."""
    before, after = place.before, place.after
    if isinstance(place.event, Ended):
        if before.phase is not Phase.CLOSED:
            yield _rule(place, "stop_rule", [_ending(place.event.ended_by, "harness")], place.event.reason)
        return
    stop = after.ending
    closes = after.phase is Phase.CLOSED and before.phase is not Phase.CLOSED
    decides = before.ending is None or (stop is not None and stop != before.ending)
    if stop is None or not (decides or closes):
        return
    applying = _applying(after, place)
    losers = tuple(
        Loser(rule=limit.name, conclusion=f"end: {limit.name}", why=AGREED)
        for limit in applying
        if limit.name != stop.ended_by
    )
    if not decides and not losers:
        return
    winner = next((limit for limit in applying if limit.name == stop.ended_by), _Limit(stop.ended_by))
    yield _rule(
        place,
        "stop_rule",
        [_ending(stop.ended_by, "rule")],
        stop.reason,
        observed=winner.observed,
        threshold=winner.threshold,
        suppressed=losers or None,
    )


def _ending(ended_by: str, source: str) -> Fact:
    return Fact(about="ending", value=ended_by, provenance=Provenance.model_validate({"source": source}))


# ---------------------------------------------------------------- the goal


def decision_of(state: Conversation) -> Decision | None:
    """Whether the goal was reached and who decided it; ``None`` where nobody could."""
    if state.ended is None:
        return None
    goal, scenario = goal_of(state, state.ended), state.scenario
    if not goal.known:
        return None
    if state.ended.failed_component == "target":
        return Decision(by="fault", goal_reached=False)
    if scenario.goal_state:
        facts = tuple(
            Fact(
                about=check.pointer,
                value=value_at(state.environment.state, check.pointer),
                provenance=Provenance(source="check"),
            )
            for check in scenario.goal_state
        )
        return Decision(by="state", goal_reached=goal.achieved, facts=facts)
    return Decision(by="judge" if scenario.goal_check is None else "check", goal_reached=goal.achieved)


def _goal(place: Place) -> Iterator[RuleStep]:
    """The one rule that always fires when a conversation ends."""
    state = place.after
    if not isinstance(place.event, Ended):
        return
    decision = decision_of(state)
    if place.redacted and decision is not None and decision.by in ("state", "check"):
        yield _rule(place, "goal", [], "decided before values were redacted; the record and the outcome tell it")
        return
    if decision is None:
        yield _rule(place, "goal", [], "nobody could decide the goal")
        return
    opinion = goal_of(state, place.event).judge
    losers: tuple[Loser, ...] = ()
    if opinion is not None and decision.by != "judge":
        said = f"goal {'reached' if opinion else 'not reached'}"
        losers = (Loser(rule="judge", conclusion=said, why="a fact goes before an opinion"),)
    source = {"state": "check", "check": "check", "judge": "judge", "fault": "rule"}[decision.by]
    fact = Fact(about="goal", value=decision.goal_reached, provenance=Provenance.model_validate({"source": source}))
    yield _rule(place, "goal", [fact], f"decided by {decision.by}", suppressed=losers or None)
