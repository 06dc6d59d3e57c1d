"""What makes two datapoints the same case: a digest over persona, scenario (with its script) and first message.

Ids, prompts made for export and fields at their defaults do not count, so a digest outlives versions that add fields.
"""

from __future__ import annotations

import hashlib
import json

from pydantic import JsonValue

from evaluatorq.model.cases import SimulationDatapoint

_CASE = {"persona", "scenario", "first_message"}


def fingerprint(datapoint: SimulationDatapoint) -> str:
    """The SHA-256 of the case as canonical JSON, in hex."""
    case = datapoint.model_dump(mode="json", include=_CASE, exclude_defaults=True, warnings=False)
    return hashlib.sha256(_canonical(case)).hexdigest()


def case_parts(datapoint: SimulationDatapoint) -> dict[str, str]:
    """Short digests of what a case consists of; equal in all parts exactly where the fingerprints are."""
    case = datapoint.model_dump(mode="json", include=_CASE, exclude_defaults=True, warnings=False)
    scenario = case["scenario"]
    parts = {
        "persona": case["persona"],
        "criteria": scenario.pop("criteria", None),
        "script": scenario.pop("script", None),
        "scenario": scenario,
        "first message": case.get("first_message"),
    }
    return {name: hashlib.blake2b(_canonical(part), digest_size=8).hexdigest() for name, part in parts.items()}


def case_id(datapoint: SimulationDatapoint) -> str:
    """The id of a case that was given none: ``dp_`` and 12 hex digits, the same for the same case."""
    return f"dp_{fingerprint(datapoint)[:12]}"


def _canonical(value: JsonValue) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
