"""The data of each published report section, made from the results of a run."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from evaluatorq.model.results import SimulationResult, TerminatedBy
from evaluatorq.model.runs import SimulationRecommendation
from evaluatorq.records.verdicts import CriterionView, criteria_of

Data = dict[str, JsonValue]
_TOP_MODES, _TOP_ERRORS = 15, 10
_METRICS = ("response_quality", "hallucination_risk", "tone_appropriateness", "factual_accuracy")


@dataclass(frozen=True, slots=True)
class Cohort:
    """A persona or a scenario; ``id`` keeps those of the same name apart."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Case:
    """A result with what every section asks of it."""

    index: int
    result: SimulationResult
    errored: bool
    achieved: bool
    persona: Cohort
    scenario: Cohort
    criteria: list[CriterionView] = field(default_factory=list)

    @classmethod
    def of(cls, index: int, result: SimulationResult) -> Case:
        """The case of a result; ``index`` counts from 0."""
        found = result.metadata
        errored = bool(found.get("error") or found.get("criteria_errors")) or result.terminated_by is TerminatedBy.ERROR
        return cls(
            index, result, errored, result.goal_achieved and not errored,
            _cohort("persona", result, ("persona_traits",), []),
            _cohort("scenario", result, ("scenario_goal", "scenario_context"), _rules(result)),
            criteria_of(result),
        )  # fmt: skip


def _rules(result: SimulationResult) -> list[JsonValue]:
    meta = result.metadata.get("criteria_meta")
    entries = [entry for entry in meta if isinstance(entry, dict)] if isinstance(meta, list) else []
    return [[entry.get("description"), entry.get("type")] for entry in entries]


def _cohort(kind: str, result: SimulationResult, keys: Sequence[str], rules: list[JsonValue]) -> Cohort:
    found = result.metadata
    name, given = str(found.get(kind) or "unknown"), found.get(f"{kind}_id")
    snapshot: list[JsonValue] = [name, *(found.get(key) for key in keys), rules]
    digest = hashlib.sha256(json.dumps(snapshot, sort_keys=True).encode()).hexdigest()[:16]
    return Cohort(str(given or digest), name)


def mean(values: Sequence[float]) -> float | None:
    """The average, ``None`` of nothing."""
    return sum(values) / len(values) if values else None


def completions(cases: Iterable[Case]) -> list[float]:
    """How far each goal was reached; conversations where nobody could say are left out."""
    return [known for case in cases if (known := case.result.completion) is not None]


def _grouped(cases: Iterable[Case], of: Callable[[Case], Cohort]) -> dict[str, list[Case]]:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(of(case).id, []).append(case)
    return groups


def _persona(case: Case) -> Cohort:
    return case.persona


def _scenario(case: Case) -> Cohort:
    return case.scenario


def _labels(cases: Iterable[Case], of: Callable[[Case], Cohort]) -> dict[str, str]:
    """A name for each id; the second of the same name is ``name (2)``."""
    labels: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for cohort in dict.fromkeys(of(case) for case in cases):
        if cohort.id not in labels:
            seen[cohort.name] += 1
            labels[cohort.id] = cohort.name if seen[cohort.name] == 1 else f"{cohort.name} ({seen[cohort.name]})"
    return labels


def _rate(cases: Sequence[Case]) -> float:
    return sum(case.achieved for case in cases) / len(cases) if cases else 0.0


def _anchor(index: int) -> str:
    return f"conversation-{index + 1}"


# ---------------------------------------------------------------- overview and failures


def overview(cases: list[Case]) -> Data:
    """Who met what."""
    personas: list[JsonValue] = []
    for identity, group in _grouped(cases, _persona).items():
        traits = group[0].result.metadata.get("persona_traits")
        known = dict(traits) if isinstance(traits, dict) else {}
        background = known.pop("background", None)
        personas.append({
            "id": identity, "name": group[0].persona.name, "conversations": len(group),
            "traits": known, "background": background,
        })  # fmt: skip
    scenarios: list[JsonValue] = []
    for identity, group in _grouped(cases, _scenario).items():
        found = group[0].result.metadata
        scenarios.append({
            "id": identity, "name": group[0].scenario.name, "goal": found.get("scenario_goal"),
            "context": found.get("scenario_context"), "criteria": [c.description for c in group[0].criteria],
            "pass_rate": _rate(group),
        })  # fmt: skip
    return {"total_conversations": len(cases), "personas": personas, "scenarios": scenarios}


def _criterion(criterion: CriterionView) -> Data:
    return {
        "description": criterion.description, "passed": criterion.state != "fail",
        "safety": criterion.type == "must_not_happen", "state": criterion.state,
    }  # fmt: skip


def _missed(cases: list[Case]) -> list[Case]:
    return [case for case in cases if not case.errored and not case.result.goal_achieved]


def failures(cases: list[Case]) -> Data:
    """Conversations that went to their end without the goal; ``index`` counts from 1."""
    rows: list[JsonValue] = []
    for case in _missed(cases):
        violated = [criterion for criterion in case.criteria if criterion.state == "fail"]
        rows.append({
            "index": case.index + 1, "persona": case.persona.name, "scenario": case.scenario.name,
            "violated": [criterion.description for criterion in violated],
            "criteria": [_criterion(criterion) for criterion in case.criteria],
            "has_safety": any(criterion.type == "must_not_happen" for criterion in violated),
            "terminated_by": case.result.terminated_by.value, "reason": case.result.reason,
            "score": case.result.completion, "anchor": _anchor(case.index),
        })  # fmt: skip
    return {"rows": rows}


def failure_modes(cases: list[Case]) -> Data:
    """The criteria that failed most often where the goal was missed."""
    counts = Counter(
        f"{case.scenario.name}: {criterion.description}"
        for case in _missed(cases)
        for criterion in case.criteria
        if criterion.state == "fail"
    )
    return dict(counts.most_common(_TOP_MODES))


def advice(recommendations: Sequence[SimulationRecommendation]) -> Data:
    """Suggested fixes."""
    rows: list[JsonValue] = [
        {
            "index": item.result_index, "datapoint_id": item.datapoint_id, "persona": item.persona,
            "scenario": item.scenario, "triggers": [_prettified(trigger) for trigger in item.triggers],
            "suggestions": [*item.suggestions], "anchor": _anchor(item.result_index),
        }
        for item in recommendations
    ]  # fmt: skip
    return {"rows": rows}


def _prettified(trigger: str) -> str:
    kind, colon, evidence = trigger.partition(": ")
    return kind.replace("_", " ").capitalize() + colon + evidence


# ---------------------------------------------------------------- numbers by cohort and by turn


def heatmap(cases: list[Case]) -> Data:
    """Every persona with every scenario that it met."""
    personas, scenarios = _labels(cases, _persona), _labels(cases, _scenario)
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        groups.setdefault((case.persona.id, case.scenario.id), []).append(case)
    cells: list[JsonValue] = [
        {
            "persona_id": persona, "scenario_id": scenario, "persona": personas[persona],
            "scenario": scenarios[scenario], "success_rate": _rate(group),
            "avg_score": mean(completions(group)), "n": len(group),
            "completed_conversations": sum(not case.errored for case in group),
            "errored_conversations": sum(case.errored for case in group),
        }
        for (persona, scenario), group in groups.items()
    ]  # fmt: skip
    return {"personas": [*personas.values()], "scenarios": [*scenarios.values()], "cells": cells}


def scores(cases: list[Case]) -> Data:
    """Every goal completion score that is known, and those of conversations that came to their end."""
    completed = [case for case in cases if not case.errored]
    return {
        "scores": [*completions(cases)], "measured_scores": [*completions(completed)],
        "completed": len(completed), "errored": len(cases) - len(completed), "total": len(cases),
    }  # fmt: skip


def _measured(cases: Iterable[Case]) -> dict[str, dict[int, list[float]]]:
    found: dict[str, dict[int, list[float]]] = {name: {} for name in _METRICS}
    for case in cases:
        for turn in case.result.turn_metrics:
            for name in _METRICS:
                value: object = getattr(turn, name)
                if isinstance(value, float):
                    found[name].setdefault(turn.turn_number, []).append(value)
    return found


def timeline(cases: list[Case]) -> Data:
    """The judge's scores turn by turn, averaged over the conversations."""
    measured = _measured(cases)
    turns = sorted({turn.turn_number for case in cases for turn in case.result.turn_metrics})
    series: Data = {
        name: [mean(by_turn.get(turn, [])) for turn in turns] for name, by_turn in measured.items() if by_turn
    }
    return {"turns": [*turns], "series": series}


def _breakdown(cases: list[Case], of: Callable[[Case], Cohort], *, turns: bool) -> Data:
    rows: list[JsonValue] = []
    for identity, group in sorted(_grouped(cases, of).items(), key=lambda item: _rate(item[1])):
        row: Data = {
            "id": identity, "name": of(group[0]).name, "conversations": len(group),
            "completed": sum(not case.errored for case in group), "errored": sum(case.errored for case in group),
            "goals_achieved": sum(case.achieved for case in group), "success_rate": _rate(group),
            "avg_goal_completion_score": mean(completions(group)),
            "total_tokens": sum(case.result.token_usage.total_tokens for case in group),
        }  # fmt: skip
        rows.append(row | ({"avg_turn_count": mean([c.result.turn_count for c in group])} if turns else {}))
    return {"rows": rows}


def personas(cases: list[Case]) -> Data:
    """Persona by persona, worst first."""
    return _breakdown(cases, _persona, turns=False)


def scenarios(cases: list[Case]) -> Data:
    """Scenario by scenario, worst first."""
    return _breakdown(cases, _scenario, turns=True)


def verdicts(cases: list[Case]) -> Data:
    """What ended the conversations, and the rules that were broken."""
    broken = Counter(rule for case in cases for rule in case.result.rules_broken)
    return {
        "terminated_by": dict(Counter(case.result.terminated_by.value for case in cases)),
        "rules_broken": dict(broken.most_common(_TOP_MODES)),
        "total_rules_broken_instances": broken.total(),
    }


def turn_metrics(cases: list[Case]) -> Data:
    """How long the conversations were, longest first, and the judge's scores over all turns."""
    longest = sorted(cases, key=lambda case: -case.result.turn_count)
    per_conversation: list[JsonValue] = [
        {
            "index": case.index, "persona": case.persona.name, "scenario": case.scenario.name,
            "turn_count": case.result.turn_count, "total_tokens": case.result.token_usage.total_tokens,
        }
        for case in longest
    ]  # fmt: skip
    counts = Counter(case.result.turn_count for case in cases)
    quality: Data = {
        name: mean([value for values in by_turn.values() for value in values])
        for name, by_turn in _measured(cases).items()
        if by_turn
    }
    return {
        "per_conversation": per_conversation,
        "turn_count_distribution": {str(turns): counts[turns] for turns in sorted(counts)},
        "avg_quality_metrics": quality,
    }


# ---------------------------------------------------------------- evaluators, errors, entries


def evaluators(cases: list[Case]) -> Data:
    """What each evaluator scored and what it could not; empty when none ran."""
    found: dict[str, list[float]] = {}
    faults: dict[str, list[str]] = {}
    for case in cases:
        given, failed = (case.result.metadata.get(key) for key in ("evaluator_scores", "evaluator_errors"))
        for name, value in given.items() if isinstance(given, dict) else ():
            if isinstance(value, int | float):
                found.setdefault(name, []).append(float(value))
        for name, text in failed.items() if isinstance(failed, dict) else ():
            faults.setdefault(name, []).append(str(text))
    rows: list[JsonValue] = []
    for name in dict.fromkeys((*found, *faults)):
        values, errors = found.get(name, []), faults.get(name, [])
        rows.append({
            "evaluator": name, "runs": len(values), "dropped": len(errors), "mean": mean(values),
            "min": min(values, default=None), "max": max(values, default=None),
            "first_error": errors[0] if errors else None,
        })  # fmt: skip
    return {"rows": rows} if rows else {}


def errors(cases: list[Case]) -> Data:
    """What broke conversations off, most frequent first; empty when nothing did."""
    broken = [case for case in cases if case.errored]
    messages = Counter(str(case.result.metadata.get("error") or case.result.reason) for case in broken)
    return {"total_errored": len(broken), "by_message": dict(messages.most_common(_TOP_ERRORS))} if broken else {}


def entries(cases: list[Case]) -> Data:
    """Every conversation; ``index`` counts from 0."""
    return {"entries": [_entry(case) for case in cases]}


def _entry(case: Case) -> Data:
    result, found = case.result, case.result.metadata
    transcript: list[JsonValue] = [{"role": row.role, "content": row.text} for row in result.messages]
    audited = {"pass": True, "fail": True, "unknown": False}
    criteria: list[JsonValue] = [
        {
            "id": criterion.id, "type": criterion.type, **_criterion(criterion),
            "audited": audited[criterion.state], "evidence": criterion.evidence or None,
        }
        for criterion in case.criteria
    ]  # fmt: skip
    error = found.get("error")
    return {
        "index": case.index, "persona": case.persona.name, "scenario": case.scenario.name,
        "model": str(found.get("model") or "unknown"), "target_model": found.get("target_model"),
        "terminated_by": result.terminated_by.value, "goal_achieved": result.goal_achieved,
        "goal_completion_score": result.goal_completion_score, "rules_broken": [*result.rules_broken],
        "criteria": criteria, "criteria_verified": result.criteria_verified, "turn_count": result.turn_count,
        "total_tokens": result.token_usage.total_tokens, "judge_reason": result.reason, "error": error,
        "evaluator_scores": found.get("evaluator_scores") or {}, "transcript": transcript,
        "thread_id": result.thread_id, "last_trace_id": result.last_trace_id, "goal": found.get("scenario_goal"),
    }  # fmt: skip
