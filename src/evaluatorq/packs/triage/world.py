"""The triage desk as a world: vital signs that are read out on request, red flags on record, and the end.

Every tool also takes what the nurse holds at that moment: level, confidence and reasons; they change nothing here and
are read off the calls afterwards. What a vital sign that nobody measured reads as is a policy: ``null`` gives no value,
``refuse`` an error, ``ask`` no value and the advice to ask the patient.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from evaluatorq.environments.toolbox import Toolbox, ToolRefused, tool
from evaluatorq.model.cognition import FIVE_A_CALL
from evaluatorq.records.accept import Acceptance

Vital = Literal["temperature", "heartrate", "resprate", "o2sat", "sbp"]
Missing = Literal["null", "refuse", "ask"]
Level = Annotated[int, Field(ge=1, le=5), "The level you hold now: 1 most urgent, 5 least."]
Confidence = Annotated[Literal["low", "medium", "high"], "How sure you are of the level."]
Reasons = Annotated[str, "Why you hold this level now, in a sentence."]

NAMES: dict[Vital, str] = {
    "temperature": r"temp\w*|fever",
    "heartrate": r"heart ?rate|pulse|hr",
    "resprate": r"resp\w*( ?rate)?|breathing( rate)?|rr",
    "o2sat": r"o2( ?sat\w*)?|oxygen( saturation)?|sp ?o2|saturation",
    "sbp": r"sbp|bp|(systolic )?blood pressure|systolic",
}


class TriageWorld(BaseModel):
    """What can be measured, what was measured, what is on record. ``level`` is the level that the nurse ended with."""

    model_config = ConfigDict(extra="forbid")

    vitals: dict[Vital, float | None] = Field(default_factory=dict)
    missing: Missing = "null"
    vitals_known: list[Vital] = Field(default_factory=list)
    red_flags: list[str] = Field(default_factory=list)
    ended: bool = False
    level: int | None = None
    events: list[str] = Field(default_factory=list)

    def open(self) -> None:
        """Refuses whatever comes after the end."""
        if self.ended:
            raise ToolRefused("the triage has ended", code="ended")


def vital_named(words: str) -> Vital:
    """The vital sign that words name; a refusal for words that name none, or more than one."""
    found = [name for name, pattern in NAMES.items() if re.fullmatch(pattern, words.strip(), re.IGNORECASE)]
    found = found or [name for name, pattern in NAMES.items() if re.search(rf"\b({pattern})\b", words, re.IGNORECASE)]
    if len(found) != 1:
        said = "names more than one vital sign" if found else "is no vital sign"
        raise ToolRefused(f"{words!r} {said}; ask for one of {', '.join(NAMES)}", code="bad_arguments")
    return found[0]


@tool
def check_vital(
    state: TriageWorld,
    vital: Annotated[str, "Which vital sign: temperature, heartrate, resprate, o2sat or sbp."],
    triage: Level,
    confidence: Confidence,
    explanation: Reasons,
) -> dict[str, object]:
    """Measures one vital sign. It is not said aloud and the patient does not answer it."""
    del triage, confidence, explanation
    state.open()
    name = vital_named(vital)
    value = state.vitals.get(name)
    if value is None and state.missing == "refuse":
        raise ToolRefused(f"{name} cannot be measured", code="not_measurable")
    if name not in state.vitals_known:
        state.vitals_known.append(name)
        state.events.append(f"measured:{name}")
    if value is not None:
        return {"vital": name, "value": value}
    advice = {"note": "ask the patient about it"} if state.missing == "ask" else {}
    return {"vital": name, "value": None, "measurable": False, **advice}


@tool
def log_red_flag(
    state: TriageWorld,
    red_flags: Annotated[list[str], "Warning signs in a few words each; at most five new ones are taken."],
    triage: Level,
    confidence: Confidence,
    explanation: Reasons,
) -> dict[str, object]:
    """Puts warning signs on record. Those that are on record already, blank or too many are not taken."""
    del triage, confidence, explanation
    state.open()
    if not red_flags:
        raise ToolRefused("there is no warning sign in the list", code="bad_arguments")
    growing = Acceptance.holding(FIVE_A_CALL, state.red_flags)
    verdicts = growing.propose([*red_flags])
    state.red_flags = growing.accepted
    refused = [{"value": one.value, "reason": one.refused} for one in verdicts if one.refused is not None]
    return {"accepted": [one.stored for one in verdicts if one.refused is None], "refused": refused}


@tool
def assess(triage: Level, confidence: Confidence, explanation: Reasons) -> dict[str, object]:
    """Notes what you hold now. Do this before you speak, whenever your view has changed."""
    del confidence, explanation
    return {"noted": triage}


@tool
def end_triage(state: TriageWorld, triage: Level, confidence: Confidence, explanation: Reasons) -> dict[str, object]:
    """Ends the triage with a level. What you want the patient to hear, say in the same answer."""
    del confidence, explanation
    state.open()
    state.ended, state.level = True, triage
    state.events.append(f"ended:{triage}")
    return {"level": triage}


TRIAGE_TOOLS = (check_vital, log_red_flag, assess, end_triage)


def triage_environment(seed: int = 0) -> Toolbox[TriageWorld]:
    """The desk with its tools; a case's setup says what can be measured."""
    del seed
    return Toolbox(TriageWorld(), TRIAGE_TOOLS)
