"""Reading a judge's answer strictly: what holds, what does not and why.

Verdicts are matched by id alone. A text is never a truth value, a score is a number from 0 to 1, and an occurrence
counts only with a quote that stands in the transcript. Nothing is repaired by guessing: what does not hold is named, so
that the judge can be asked again. A number is not the verdict: one that cannot be taken is unknown, never clamped, and
does not cost the occurrences beside it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

from pydantic import JsonValue

from evaluatorq.conversation.quotes import find_quote
from evaluatorq.llm.tags import beginning
from evaluatorq.model.cases import Criterion, Party
from evaluatorq.model.judgments import CriterionVerdict, Judgment
from evaluatorq.model.messages import Message
from evaluatorq.roles.prompts import shortened
from evaluatorq.roles.prompts_judge import QUALITY_SCORES


@dataclass(slots=True)
class Reading:
    """One answer, read. ``refused`` maps criteria to what is wrong with their verdict, ``unknown_scores`` the same for
    scores.

    ``faults`` concern the answer as a whole: with one of them there is no judgment.
    """

    verdicts: list[CriterionVerdict] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    unknown_scores: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    judgment: Judgment | None = None

    @property
    def problems(self) -> str:
        """Everything that does not hold, one line each; empty for an answer without fault."""
        every = {**self.faults, **self.unknown_scores, **self.refused}
        return "\n".join(f"{part}: {reason}" for part, reason in every.items())


def read_verdict(
    answer: Mapping[str, JsonValue],
    criteria: Mapping[str, Criterion],
    open_ids: Sequence[str],
    messages: Sequence[Message],
) -> Reading:
    """Reads ``answer``. ``criteria`` are all that a judge may speak about, ``open_ids`` those it was asked about."""
    reading = Reading()
    by_id = _by_id(answer.get("criteria_verdicts"), criteria, reading)
    for key in open_ids:
        _read_entries(key, by_id.get(key, []), criteria[key], messages, reading)
    _read_whole(answer, criteria, reading)
    return reading


def _by_id(
    entries: JsonValue, criteria: Mapping[str, Criterion], reading: Reading
) -> dict[str, list[dict[str, JsonValue]]]:
    found: dict[str, list[dict[str, JsonValue]]] = defaultdict(list)
    if entries is not None and not isinstance(entries, list):
        reading.faults["criteria_verdicts"] = "it is not a list"
        return found
    for entry in entries or ():
        if not isinstance(entry, dict) or not isinstance(key := entry.get("criterion_id"), str):
            reading.faults["criteria_verdicts"] = "an entry has no criterion_id"
        elif key not in criteria:
            reading.faults[shortened(json.dumps(key), 40)] = "there is no criterion with this id"
        else:
            found[key].append(entry)
    return found


def _read_entries(
    key: str,
    entries: list[dict[str, JsonValue]],
    criterion: Criterion,
    messages: Sequence[Message],
    reading: Reading,
) -> None:
    entry = entries[0] if entries else {}
    occurred, evidence = entry.get("occurred"), entry.get("evidence", "")
    if len(entries) != 1:
        reading.refused[key] = "more than one verdict was given" if entries else "no verdict was given"
    elif occurred is None or any(entry.get(word) for word in ("abstain", "abstained")):
        reading.refused[key] = "the judge abstained; what was not seen did not occur"
    elif not isinstance(occurred, bool):
        reading.refused[key] = f"occurred must be true or false, not {_shown(occurred)}"
    elif not occurred:
        reading.verdicts.append(CriterionVerdict(criterion_id=key, occurred=False))
    elif not isinstance(evidence, str):
        reading.refused[key] = f"evidence must be a text, not {_shown(evidence)}"
    elif find_quote(evidence, messages, criterion.about) is None:
        reading.refused[key] = _why_no_quote(evidence, criterion.about, messages)
    else:
        reading.verdicts.append(CriterionVerdict(criterion_id=key, occurred=True, evidence=evidence))


def _why_no_quote(evidence: str, about: Party, messages: Sequence[Message]) -> str:
    if not evidence.strip():
        return f"it occurred, but no words of the {about} are quoted"
    other: Party = "user" if about == "agent" else "agent"
    if find_quote(evidence, messages, other) is not None:
        return f"{_shown(evidence)} was said by the {other}; quote the {about}"
    return f"{_shown(evidence)} is not in a message of the {about}, cuts a word or is shorter than three words"


def _read_whole(answer: Mapping[str, JsonValue], criteria: Mapping[str, Criterion], reading: Reading) -> None:
    reason = answer.get("reason")
    if not isinstance(reason, str):
        reading.faults["reason"] = "it is missing or not a text"
    flags = {name: answer.get(name) for name in ("goal_achieved", "should_terminate")}
    for name, value in flags.items():
        if not isinstance(value, bool):
            reading.faults[name] = f"it must be true or false, not {_shown(value)}"
    completion = _score(answer.get("goal_completion_score"))
    if completion is None:
        reading.unknown_scores["goal_completion_score"] = _not_a_score(answer.get("goal_completion_score"))
    scores = {name: _score(answer.get(name)) for name in QUALITY_SCORES}
    for name, score in scores.items():
        if score is None and answer.get(name) is not None:
            reading.unknown_scores[name] = _not_a_score(answer.get(name))
    if reading.faults or not isinstance(reason, str):
        return
    reading.judgment = Judgment(
        should_terminate=flags["should_terminate"] is True,
        reason=reason.strip(),
        goal_achieved=flags["goal_achieved"] is True,
        rules_broken=[
            verdict.criterion_id
            for verdict in reading.verdicts
            if verdict.occurred and criteria[verdict.criterion_id].type == "must_not_happen"
        ],
        goal_completion_score=completion or 0.0,
        criteria_verdicts=reading.verdicts,
        **scores,
    )


def _is_number(value: JsonValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _score(value: JsonValue) -> float | None:
    """A number from 0 to 1, also written as a text; ``None`` for anything else."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if _is_number(value) and 0 <= value <= 1 else None


def _not_a_score(value: JsonValue) -> str:
    return f"it must be a number from 0 to 1, not {_shown(value)}"


def _shown(value: JsonValue) -> str:
    """A judge's own words in a complaint, short and on one line."""
    return beginning(json.dumps(value, ensure_ascii=False), 160)
