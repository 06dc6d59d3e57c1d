"""The metrics of an artifact under the keys and by the formulas that readers of triage artifacts know.

Everything is computed from parts of a saved artifact. One thing is done otherwise, on purpose: a nurse's reasons are
looked for where artifacts have them, on the step, and not only inside its action, where they never are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pydantic import JsonValue

Row = Mapping[str, JsonValue]
_SLOTS = ("chief_complaint", "pain_location", "pain_severity", "duration")


def compute_all_metrics(
    *,
    trace: Sequence[Row],
    belief: Row,
    ground_truth: Row,
    expert_red_flags: Collection[str] | None = None,
) -> dict[str, dict[str, JsonValue]]:
    """Four groups: ``triage``, ``belief_coverage``, ``red_flags`` and ``explanation``.

    With ``expert_red_flags`` (an empty collection counts as given) flags are matched letter by letter; see
    ``evaluatorq.records.metrics`` for a match in normal form, F1, trajectories and calibration.
    """
    return {
        "triage": _triage(trace, ground_truth.get("acuity")),
        "belief_coverage": _coverage(belief),
        "red_flags": _red_flags(belief, expert_red_flags),
        "explanation": _explanation(trace),
    }


def _triage(trace: Sequence[Row], acuity: JsonValue) -> dict[str, JsonValue]:
    final = _final(trace)
    judged: dict[str, JsonValue] = dict.fromkeys(("correct", "absolute_error", "over_triage", "under_triage"))
    if isinstance(final, int | float) and isinstance(acuity, int | float):
        judged = {
            "correct": final == acuity,
            "absolute_error": abs(final - acuity),
            "over_triage": final < acuity,
            "under_triage": final > acuity,
        }
    first = None
    if acuity is not None:
        first = next((step.get("turn") for step in trace if _action(step).get("triage") == acuity), None)
    return {"ground_truth": acuity, "final_prediction": final, **judged, "first_correct_turn": first}


def _final(trace: Sequence[Row]) -> JsonValue:
    """The level of the end, or of the last action that says one."""
    for step in reversed(trace):
        action = _action(step)
        if action.get("type") == "end" or "triage" in action:
            return action.get("triage")
    return None


def _coverage(belief: Row) -> dict[str, JsonValue]:
    vitals = belief.get("vitals_known")
    known: list[JsonValue] = vitals if isinstance(vitals, list) else []
    return {
        "num_associated_symptoms": _count(belief.get("associated_symptoms")),
        "num_red_flags_inferred": _count(belief.get("red_flags")),
        **{f"has_{slot}": bool(belief.get(slot)) for slot in _SLOTS},
        "vitals_known": known,
        "num_vitals_known": len(known),
    }


def _red_flags(belief: Row, expert: Collection[str] | None) -> dict[str, JsonValue]:
    flags = belief.get("red_flags_logged")
    logged = {flag for flag in flags if isinstance(flag, str)} if isinstance(flags, list) else set()
    told: dict[str, JsonValue] = {
        "num_red_flags_logged": len(logged),
        "logged_any": bool(logged),
        "logged_flags": _sorted(logged),
    }
    if expert is None:
        return told
    wanted = set(expert)
    hits = logged & wanted
    return told | {
        "expert_red_flags": _sorted(wanted),
        "true_positives": _sorted(hits),
        "false_positives": _sorted(logged - wanted),
        "false_negatives": _sorted(wanted - logged),
        "precision": len(hits) / len(logged) if logged else None,
        "recall": len(hits) / len(wanted) if wanted else None,
    }


def _explanation(trace: Sequence[Row]) -> dict[str, JsonValue]:
    last = next((step for step in reversed(trace) if step.get("actor") == "nurse"), None)
    said = None if last is None else _action(last).get("explanation") or last.get("explanation")
    words = said.split() if isinstance(said, str) else []
    return {"has_explanation": bool(words), "explanation_length": len(words)}


def _action(step: Row) -> Row:
    action = step.get("action")
    return action if isinstance(action, dict) else {}


def _count(value: JsonValue) -> int:
    return len(value) if isinstance(value, list) else 0


def _sorted(values: set[str]) -> list[JsonValue]:
    return [*sorted(values)]
