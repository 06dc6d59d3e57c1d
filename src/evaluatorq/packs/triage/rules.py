"""How to read what a triage nurse believed: scales, the tools it assesses by, and detectors over patients' words."""

from __future__ import annotations

from typing import Literal

from evaluatorq.model.assessments import Scale
from evaluatorq.model.cognition import (
    FIVE_A_CALL,
    AssessmentRule,
    Cognition,
    Detector,
    ListRule,
    ReadingRule,
)

ScaleName = Literal["esi", "ats"]
SCALES: dict[str, Scale] = {
    "esi": Scale(name="Emergency Severity Index", levels=(1, 2, 3, 4, 5)),
    "ats": Scale(name="Australasian Triage Scale", levels=(1, 2, 3, 4, 5)),
}
SLOTS = ("chief_complaint", "pain_severity", "pain_location", "duration", "associated_symptom")

_PLACES = (
    "chest|belly|stomach|head|back|leg|calf|arms?|hand|finger|ankle|hip|throat|ear|eye|jaw|neck|side|groin|testicle"
)
_SYMPTOMS = {
    "nausea": ("nausea", "nauseous", "feel sick"),
    "vomiting": ("vomiting", "threw up", "throwing up"),
    "sweating": ("sweating", "sweaty", "cold sweat"),
    "dizziness": ("dizzy", "dizziness", "lightheaded", "felt faint"),
    "fever": ("fever", "feverish"),
    "shortness of breath": ("short of breath", "can't breathe", "cannot breathe", "out of breath", "wheezing"),
    "cough": ("cough", "coughing"),
    "tiredness": ("tired", "very weak", "sleeps all the time"),
    "palpitations": ("palpitations", "heart is racing"),
    "numbness": ("numb", "numbness", "tingling"),
    "bleeding": ("bleeding", "blood"),
    "swelling": ("swollen", "swelling"),
    "stiff neck": ("stiff neck",),
    "sensitivity to light": ("light hurts",),
    "runny nose": ("runny nose",),
    "rash": ("rash",),
    "shivering": ("shivering", "chills"),
}
_FLAGS = {
    "collapse": ("collapsed", "passed out"),
    "unconscious": ("unconscious", "will not wake up"),
    "trouble breathing": ("can't breathe", "cannot breathe", "short of breath"),
    "chest pain": ("chest pain", "pain in my chest"),
    "throat swelling": ("throat is closing",),
    "slurred speech": ("slurred",),
    "face droop": ("face hangs down", "face droops"),
    "thunderclap headache": ("thunderclap", "worst headache"),
    "stiff neck": ("stiff neck",),
    "vomiting blood": ("vomiting blood",),
    "ongoing seizure": ("seizure that will not stop",),
    "faint": ("felt faint", "fainted"),
}
_COMPLAINT = (
    r"\b(?P<value>(?:chest|belly|back|jaw|flank|side|hip|ankle|ear|eye)\s?(?:pain|ache|hurts|aches)|(?:earache|headache)"
    r"|migraine|asthma|seizure|collapsed|sore throat|rash|cough|sprained[\w ]{1,20}|prescription|stitches|tick"
    r"|vomiting(?: blood)?|stung|fever|note for work|cut my \w+|burns when i pee|leg is red[\w ]{0,20}"
    r"|heart is racing|fell|not myself|hurt my \w+|pain in my \w+|something in my eye|arm is weak|too many [\w ]{3,30}"
    r"|belly hurts)\b"
)
_DURATION = (
    r"\b(?P<value>just now"
    r"|since (?:(?:this|last|yesterday) )?(?:morning|afternoon|evening|night|noon|breakfast|yesterday)"
    r"|(?:\w+ )?(?:an? |half an |\w+ )(?:minutes?|hours?|days?|weeks?) ago|last week|this morning|yesterday)\b"
)

DETECTORS = (
    Detector(slot="pain_severity", pattern=r"\bpain (?:is|of|at)?\s?(?:a |about |around )?(?P<value>\d{1,2})\b"),
    Detector(slot="pain_severity", pattern=r"(?P<value>\d{1,2}) (?:out of|of|/) ?10"),
    Detector(slot="pain_severity", words={"none": ("no pain at all",), "severe": ("killing me", "terrible pain")}),
    Detector(
        slot="pain_location", pattern=rf"\b(?:in|is|low in|at) (?:my|his|her|the) (?:\w+ )?(?P<value>{_PLACES})\b"
    ),
    Detector(slot="associated_symptom", words=_SYMPTOMS),
    Detector(slot="chief_complaint", pattern=_COMPLAINT, even_denied=True),
    Detector(slot="duration", pattern=_DURATION, even_denied=True),
    Detector(slot="red_flag", words=_FLAGS, certainty="suspected"),
)


def triage_rules(scale: str = "esi", nurse: str | None = None) -> Cognition:
    """The rules on one of the scales; ``nurse`` is the persona that the agent is told to be."""
    return Cognition(
        scale=SCALES[scale],
        decides="/acuity",
        assess=AssessmentRule(
            value="triage", confidence="confidence", rationale="explanation", proposes={"red_flags": "red_flags"}
        ),
        lists={
            "red_flags": ListRule(
                tool="log_red_flag", argument="red_flags", policy=FIVE_A_CALL, expected="/red_flags", slot="red_flag"
            )
        },
        reads=ReadingRule(tool="check_vital", name="vital", value="value"),
        ends=("end_triage",),
        detectors=DETECTORS,
        slots=SLOTS,
        agent=nurse,
    )
