"""What makes two datapoints the same case: a digest over persona, scenario (with its script) and first message.

Ids, prompts made for export and fields at their defaults do not count, so a digest outlives versions that add fields.
"""

from __future__ import annotations

import hashlib
import json

from evaluatorq.model.cases import SimulationDatapoint


def fingerprint(datapoint: SimulationDatapoint) -> str:
    """The SHA-256 of the case as canonical JSON, in hex."""
    case = datapoint.model_dump(
        mode="json", include={"persona", "scenario", "first_message"}, exclude_defaults=True, warnings=False
    )
    canonical = json.dumps(case, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def case_id(datapoint: SimulationDatapoint) -> str:
    """The id of a case that was given none: ``dp_`` and 12 hex digits, the same for the same case."""
    return f"dp_{fingerprint(datapoint)[:12]}"
