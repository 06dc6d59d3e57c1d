"""Results in the shape of other tools."""

from __future__ import annotations

import time

from pydantic import JsonValue

from evaluatorq.model.results import SimulationResult
from evaluatorq.records.open_responses import open_response


def to_open_responses(result: SimulationResult, model: str = "simulation") -> dict[str, JsonValue]:
    """The conversation as an OpenResponses document, dated now; ``model`` is the name that it carries."""
    return open_response(result, model, int(time.time()))
