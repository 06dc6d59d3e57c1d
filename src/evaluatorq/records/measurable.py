"""What the metrics of beliefs look at, whether it comes from a result or from a saved artifact.

Both roads end in one ``Measurable``, so a conversation scores the same while it is fresh and years later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from evaluatorq.conversation.checks import value_at
from evaluatorq.model.cognition import Cognition, CognitionRecord
from evaluatorq.model.results import SimulationResult
from evaluatorq.records.artifact import LIST, to_artifact
from evaluatorq.records.cognition import NO_RULES

RESERVED = ("vitals_known", "red_flags_logged")


@dataclass(frozen=True, slots=True)
class Held:
    """One step of the agent: the level held at it, how surely, and the reasons given at it."""

    turn: int
    value: JsonValue = None
    confidence: str | float | None = None
    rationale: str | None = None


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of facts: what was accepted, and what was expected; ``None`` where nobody said."""

    found: tuple[str, ...]
    expected: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Measurable:
    """One conversation, as far as beliefs can be measured. ``turns`` is how often the user spoke.

    ``left_out`` says why it counts neither for nor against the agent.
    """

    case: str
    rules: Cognition = NO_RULES
    truth: JsonValue = None
    held: tuple[Held, ...] = ()
    turns: int = 0
    filled: frozenset[str] = frozenset()
    lists: Mapping[str, Listed] = field(default_factory=dict)
    left_out: str | None = None


def measurable(result: SimulationResult) -> Measurable:
    """A result, live or read from a file."""
    record = result.cognition or CognitionRecord()
    rules = record.rules or NO_RULES
    seen = measurable_artifact(to_artifact(result), rules)
    lists = {
        name: Listed(
            tuple(one.stored for one in decided if one.stored is not None), _expected(rules, name, record.truth)
        )
        for name, decided in record.lists.items()
    }
    broken = result.errored and result.failed_component != "target"
    return replace(
        seen,
        held=() if result.cognition is None else seen.held,
        case=str(result.metadata.get("datapoint_id") or seen.case),
        lists=lists,
        left_out=f"ended in {result.terminated_by.value}, not by the agent" if broken else None,
    )


def measurable_artifact(artifact: Mapping[str, JsonValue], rules: Cognition) -> Measurable:
    """A saved artifact. ``rules`` say what its scale, slots and lists are; the artifact itself does not."""
    truth, belief, flags = artifact.get("ground_truth"), artifact.get("belief"), artifact.get("red_flags")
    slots = belief if isinstance(belief, dict) else {}
    found = tuple(flag for flag in flags if isinstance(flag, str)) if isinstance(flags, list) else ()
    state = artifact.get("state")
    turn = state.get("turn") if isinstance(state, dict) else None
    trace = artifact.get("trace")
    return Measurable(
        case=str(artifact.get("run_id") or ""),
        rules=rules,
        truth=value_at(truth, rules.decides),
        held=tuple(_held(step) for step in trace if isinstance(step, dict)) if isinstance(trace, list) else (),
        turns=turn if isinstance(turn, int) else 0,
        filled=frozenset(name for name, items in slots.items() if items and name not in RESERVED),
        lists={LIST: Listed(found, _expected(rules, LIST, truth))},
    )


def _held(step: Mapping[str, JsonValue]) -> Held:
    turn, said, sure = step.get("turn"), step.get("explanation"), step.get("confidence")
    return Held(
        turn if isinstance(turn, int) else 0,
        step.get("triage"),
        sure if isinstance(sure, str | float | int) else None,
        said if isinstance(said, str) and said.strip() else None,
    )


def _expected(rules: Cognition, name: str, truth: JsonValue) -> tuple[str, ...] | None:
    rule = rules.lists.get(name)
    if rule is None or rule.expected is None:
        return None
    value = value_at(truth, rule.expected)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else None
