"""Artifacts written by hand, small enough to work every number out on paper."""

from __future__ import annotations

from pydantic import JsonValue

Row = dict[str, JsonValue]


def step(
    turn: int, kind: str, level: int | None, sure: str = "medium", why: str = "because of it", **action: JsonValue
) -> Row:
    """One step of a trace. The level stands inside the action only for words and the end, as in any artifact."""
    inside: Row = {"type": kind, **action}
    if kind in ("utterance", "end"):
        inside["triage"] = level
    return {
        "turn": turn,
        "actor": "nurse",
        "action": inside,
        "triage": level,
        "confidence": sure,
        "explanation": why,
        "red_flags_proposed": [],
    }


def artifact(
    acuity: int | None = 2,
    *steps: Row,
    flags: tuple[str, ...] = (),
    belief: Row | None = None,
    turn: int = 2,
    expert: list[JsonValue] | None = None,
) -> Row:
    """An artifact with these steps."""
    truth: Row = {"chiefcomplaint": "Syncope", "acuity": acuity, "pain": 7, "vitals": {}}
    if expert is not None:
        truth["red_flags"] = expert
    known: Row = {"vitals_known": [], "red_flags_logged": sorted(flags)}
    return {
        "run_id": "00000000-0000-4000-8000-000000000000",
        "ground_truth": truth,
        "state": {"ground_truth": truth, "turn": turn, "done": True},
        "history": [],
        "trace": [*steps],
        "belief": {**known, **(belief or {})},
        "red_flags": [*flags],
    }


SEED = artifact(
    2,
    step(0, "utterance", 3, "low", utterance="What brings you in?"),
    step(1, "check_vital", 3, "low", vital="heartrate"),
    step(1, "log_red_flag", 2, red_flags=["syncope"]),
    step(1, "utterance", 2, utterance="Did you hit your head?"),
    step(2, "end", 2, "high", "done here now"),
    flags=("syncope",),
)
