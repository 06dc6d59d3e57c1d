"""Emergency triage: invented patients, a nurse to be tested, and what it believed on its way to a level.

No medical advice: patients and right levels are made up, and nothing here was validated for use with real ones.
"""

from __future__ import annotations

from evaluatorq.packs.pack import Pack
from evaluatorq.packs.triage.cases import triage_cases
from evaluatorq.packs.triage.metrics import compute_all_metrics
from evaluatorq.packs.triage.nurse import nurse_instructions, triage_nurse
from evaluatorq.packs.triage.patient import triage_patient
from evaluatorq.packs.triage.rules import triage_rules
from evaluatorq.packs.triage.world import triage_environment

REDACT = (
    "email",
    "phone",
    r"born=\b(?:\d{1,2}[./-]){2}(?:19|20)\d{2}\b|\b(?:19|20)\d{2}-\d{2}-\d{2}\b",
    r"record-number=\b(?:MRN|[Ii]nsurance|[Pp]atient)\W{0,3}(?:no\.?|number)?\W{0,3}\d[\d -]{4,}\d\b",
)
"""What identifies a person in a transcript with a real one; the invented patients have none of it."""

PACK = Pack(
    name="triage",
    about="A nurse finds out how urgent a patient is, on one of two scales.",
    cases=triage_cases,
    agent=triage_nurse,
    user=triage_patient,
    instructions=nurse_instructions,
    evaluators=("goal_achieved", "criteria_met", "decision_correct", "slot_coverage", "list_f1", "rationale_given"),
    variants=("esi", "ats"),
    redact=REDACT,
)

__all__ = ["PACK", "compute_all_metrics", "triage_environment", "triage_rules"]
