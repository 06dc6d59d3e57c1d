"""A case, and any other JSON, in a form that is the same wherever it comes from: for traces and for their hashes.

Fields at ``None`` are left out, except where a case means ``null`` by it: a state that must equal ``null``, a mock that
returns it. Free JSON in a case (a setup, a patch) keeps its nulls.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from pydantic import BaseModel, JsonValue

from evaluatorq.model.cases import SimulationDatapoint, StateCheck
from evaluatorq.model.expectations import ArgumentClaim, StateClaim
from evaluatorq.model.worlds import MockAnswer

_RIVALS: Mapping[type[BaseModel], tuple[str, tuple[str, ...]]] = {
    StateCheck: ("equals", ("one_of", "absent")),
    StateClaim: ("equals", ("one_of", "unchanged", "absent")),
    ArgumentClaim: ("equals", ("not_given",)),
    MockAnswer: ("returns", ("fails",)),
}


def case_document(datapoint: SimulationDatapoint) -> dict[str, JsonValue]:
    """The datapoint as JSON that reads back as the same datapoint."""
    dumped = datapoint.model_dump(mode="json", exclude_none=True, warnings=False)
    document = _with_meant_nulls(datapoint, dumped)
    return document if isinstance(document, dict) else dumped


def _with_meant_nulls(value: object, dumped: JsonValue) -> JsonValue:
    """Puts back the nulls that mean something, walking the record and its dump side by side."""
    match value, dumped:
        case BaseModel(), dict():
            fields = {name: getattr(value, name) for name in type(value).model_fields}
            walked = {name: _with_meant_nulls(fields.get(name), item) for name, item in dumped.items()}
            name, rivals = _RIVALS.get(type(value), ("", ()))
            if name and all(fields[one] is None for one in (name, *rivals)):
                walked[name] = None
            return walked
        case Mapping(), dict():
            return {name: _with_meant_nulls(value.get(name), item) for name, item in dumped.items()}
        case ((list() | tuple()), list()):
            return [_with_meant_nulls(one, item) for one, item in zip(value, dumped, strict=True)]
    return dumped


def canonical(value: JsonValue) -> bytes:
    """JSON with sorted keys and no spaces, in UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def content_hash(value: JsonValue) -> str:
    """``sha256:`` and the digest of the canonical JSON."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()
