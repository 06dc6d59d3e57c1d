"""A triage nurse without a model, who goes by simple rules and is therefore often wrong: an agent to measure.

It sees what any agent sees, the transcript and the tools, and works in small steps: measure, put on record, speak, end.
Its rules know loud signs and not quiet ones, so quiet emergencies come out too low and loud trifles too high.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from evaluatorq.model.assessments import Assessment
from evaluatorq.model.messages import Message, assistant, tool_call
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.packs.triage.cases import personas, tables
from evaluatorq.packs.triage.world import NAMES
from evaluatorq.ports import Seat, Target, TargetReply
from evaluatorq.records.steps import steps_of

QUESTIONS = (
    "Hello, I am the triage nurse. What brings you in today?",
    "When did it start, and how bad is it on a scale of 0 to 10?",
    "Where is it, and is there anything else you feel?",
)
GOODBYE = "Thank you. Please take a seat, we will call you."
_QUICK = ("heartrate", "o2sat")
_SIGNS = {
    "unconscious": r"unconscious|will not wake|does not answer",
    "trouble breathing": r"can't breathe|short of breath|throat is closing",
    "collapse": r"collapsed",
    "vomiting blood": r"vomiting blood",
    "chest pain": r"chest pain|pain in my chest",
    "thunderclap headache": r"thunderclap|worst headache",
    "slurred speech": r"slurred",
    "stiff neck": r"stiff neck",
    "faint": r"felt faint",
}
_RANGES = {
    "low oxygen": ("o2sat", 92, 100),
    "low blood pressure": ("sbp", 90, 300),
    "fast breathing": ("resprate", 0, 29),
    "slow breathing": ("resprate", 9, 100),
    "fever": ("temperature", 0, 38.4),
}
_GRAVE = frozenset({"unconscious", "trouble breathing", "collapse", "vomiting blood"})
_TRIFLES = r"prescription|stitches|note for work|rash|sore throat|tick"
_SMALL = r"sprain|cut my|burns when|earache|in my eye"


@dataclass(frozen=True, slots=True)
class View:
    """What the nurse holds now, and why."""

    level: int
    confidence: str
    why: str

    def arguments(self) -> dict[str, JsonValue]:
        """As arguments of a tool."""
        return {"triage": self.level, "confidence": self.confidence, "explanation": self.why}

    def assessment(self) -> Assessment:
        """As what goes beside words."""
        return Assessment(value=self.level, confidence=self.confidence, rationale=self.why)


class TriageNurse:
    """A stateless agent: the same transcript always gets the same answer."""

    stateful = False

    def __init__(self, traits: Mapping[str, str]) -> None:
        self._bold = traits.get("risk") == "bold"
        self._thorough = traits.get("thoroughness") == "thorough"

    async def respond(self, messages: Sequence[Message], *, thread_id: str) -> TargetReply:  # noqa: ARG002  no memory to look up
        """One small step: a measurement, an entry, a question, or the end."""
        look = _Look(messages, bold=self._bold)
        view = look.view()
        tool = self._tool(look, view)
        if tool is not None:
            name, arguments = tool
            call = tool_call(f"call_{look.calls + 1}", name, {**arguments, **view.arguments()})
            row = assistant(GOODBYE if name == "end_triage" else None, [call])
            return TargetReply((row,), usage=NO_USAGE, reports_tools=True)
        question = QUESTIONS[min(look.turn, len(QUESTIONS) - 1)]
        return TargetReply((assistant(question),), usage=NO_USAGE, reports_tools=True, assessment=view.assessment())

    def _tool(self, look: _Look, view: View) -> tuple[str, dict[str, JsonValue]] | None:
        if not look.turn:
            return None
        wanted = NAMES if self._thorough or look.turn > 1 else _QUICK
        missing = [name for name in wanted if name not in look.asked]
        if missing and (look.turn > 1 or missing[0] in _QUICK) and len(look.asked) < (5 if self._thorough else 3):
            return "check_vital", {"vital": missing[0]}
        flags: list[JsonValue] = [sign for sign in look.signs if sign not in look.logged]
        if flags:
            return "log_red_flag", {"red_flags": flags}
        if look.turn >= len(QUESTIONS) or (view.level == 1 and look.turn > 1):
            return "end_triage", {}
        return None


class _Look:
    """One look at the transcript."""

    def __init__(self, messages: Sequence[Message], *, bold: bool) -> None:
        self._bold = bold
        steps = list(steps_of(messages))
        self._told = " ".join(row.text for row in messages if row.role == "user").casefold()
        self.turn = sum(row.role == "user" for row in messages)
        self.calls = sum(step.call is not None for step in steps)
        self.asked = {str(step.arguments.get("vital")) for step in steps if step.tool == "check_vital"}
        self.logged = {str(flag) for step in steps if step.tool == "log_red_flag" for flag in _listed(step.arguments)}
        self._vitals = {name: value for step in steps for name, value in _measured(step.answer)}
        self._heard = [sign for sign, pattern in _SIGNS.items() if re.search(pattern, self._told)]
        measured = [
            sign for sign, (name, low, high) in _RANGES.items() if not low <= self._vitals.get(name, low) <= high
        ]
        self.signs = [*self._heard, *measured]

    def view(self) -> View:
        """The level by the nurse's rules, graver ones first."""
        if not self.turn:
            return View(3, "low", "Nothing is known yet.")
        grave = [sign for sign in self._heard if sign in _GRAVE]
        vital = self._worst_vital()
        if vital is not None and vital.level == 1:
            return vital
        if grave:
            return View(1 if len(grave) > 1 else 2, "medium", f"The patient reports {' and '.join(grave)}.")
        if vital is not None:
            return vital
        if self._heard:
            return View(2, "medium", f"The patient reports {', '.join(self._heard)}.")
        return self._by_complaint()

    def _by_complaint(self) -> View:
        pain = self._pain()
        if pain >= 7 and not self._bold:
            return View(2, "medium", f"The pain is {pain} out of 10.")
        if re.search(_TRIFLES, self._told):
            return View(5, "high", "The complaint needs no treatment here.")
        if re.search(_SMALL, self._told):
            return View(4, "high", "The complaint is small and the vital signs are fine.")
        sure = "medium" if self.turn > 1 else "low"
        return View(4 if self._bold and pain < 5 else 3, sure, "Stable, and the cause is open.")

    def _worst_vital(self) -> View | None:
        seen = self._vitals
        if seen.get("o2sat", 100) < 86 or seen.get("sbp", 120) < 80 or seen.get("resprate", 16) < 9:
            return View(1, "high", "A vital sign is in a range that does not wait.")
        if seen.get("o2sat", 100) < 92 or seen.get("heartrate", 80) > 130 or seen.get("sbp", 120) < 90:
            return View(2, "high", "A vital sign is far out of range.")
        return None

    def _pain(self) -> int:
        found = re.findall(r"(\d{1,2}) out of 10", self._told)
        return int(found[-1]) if found else 0


def _listed(arguments: Mapping[str, JsonValue]) -> list[JsonValue]:
    flags = arguments.get("red_flags")
    return flags if isinstance(flags, list) else []


def _measured(answer: Message | None) -> list[tuple[str, float]]:
    """The vital sign that a result row tells."""
    found = None if answer is None else re.search(r'"vital":\s*"(\w+)",\s*"value":\s*(\d+(?:\.\d+)?)', answer.text)
    return [] if found is None else [(found.group(1), float(found.group(2)))]


def triage_nurse(seat: Seat) -> Target:
    """Makes the nurse that the case names."""
    rules = seat.datapoint.scenario.cognition
    known = personas()[1].get(rules.agent or "") if rules is not None else None
    return TriageNurse({} if known is None else known.traits)


def nurse_instructions(seat: Seat) -> str:
    """What a model is told that is to be the nurse: who it is, the scale, and how to use the tools."""
    rules = seat.datapoint.scenario.cognition
    scale = rules.scale.name if rules is not None and rules.scale is not None else "Emergency Severity Index"
    nurse = personas()[1].get(rules.agent or "") if rules is not None else None
    who = "" if nurse is None else f" {tables()['nurse'].describe(nurse.traits)}"
    return (
        f"You are a triage nurse in an emergency department. You speak first.{who}\n"
        f"Find out how urgent the patient is on the {scale}, from 1 (most urgent) to 5.\n"
        "- Measure vital signs with check_vital; put warning signs on record with log_red_flag.\n"
        "- Before you speak, note what you hold with assess. Ask one or two short questions at a time.\n"
        "- Give no diagnosis and no treatment advice.\n"
        "- When you are sure enough, say goodbye and call end_triage in the same answer."
    )
