"""What makes two datapoints the same case: a digest over persona, scenario (with its script) and first message.

Ids, prompts made for export and fields at their defaults do not count, so a digest outlives versions that add fields.
"""

from __future__ import annotations

import hashlib
import json

from pydantic import JsonValue

from evaluatorq.model.cases import SimulationDatapoint

_CASE = {"persona", "scenario", "first_message"}
PARTS = ("persona", "criteria", "script", "scenario", "first message")
"""What ``case_parts`` tells apart, in its order."""


def fingerprint(datapoint: SimulationDatapoint) -> str:
    """The SHA-256 of the case as canonical JSON, in hex."""
    case = datapoint.model_dump(mode="json", include=_CASE, exclude_defaults=True, warnings=False)
    return hashlib.sha256(_canonical(case)).hexdigest()


def case_parts(datapoint: SimulationDatapoint) -> tuple[str, ...]:
    """A short digest of each of ``PARTS``; equal in all of them exactly where the fingerprints are."""
    case = datapoint.model_dump(mode="json", include=_CASE, exclude_defaults=True, warnings=False)
    scenario = case["scenario"]
    criteria, script = scenario.pop("criteria", None), scenario.pop("script", None)
    parts = (case["persona"], criteria, script, scenario, case.get("first_message"))
    return tuple(hashlib.blake2b(_canonical(part), digest_size=8).hexdigest() for part in parts)


def case_id(datapoint: SimulationDatapoint) -> str:
    """The id of a case that was given none: ``dp_`` and 12 hex digits, the same for the same case."""
    return f"dp_{fingerprint(datapoint)[:12]}"


def _canonical(value: JsonValue) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
