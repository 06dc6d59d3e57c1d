"""JSON merge patches (RFC 7386): objects merge, ``null`` removes."""

from __future__ import annotations

import copy

from pydantic import JsonValue


def merge_patch(target: JsonValue, patch: JsonValue) -> JsonValue:
    """``patch`` laid over ``target`` (RFC 7386); neither is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged: dict[str, JsonValue] = copy.deepcopy(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
