"""Reads one generated item: slips of the pen are put right, keys nobody asked for are left out, the rest is a fault.

Nothing is guessed. A number in quotes is a number, ``De-escalating`` is ``de_escalating``; a trait of 7 is a fault,
because nobody knows of what scale.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from evaluatorq.generate.kinds import Kind, M


def read_item(kind: Kind[M], value: JsonValue, fixed: Mapping[str, JsonValue]) -> M | list[str]:
    """The case in ``value``, or what is wrong with it. ``fixed`` are values that were decided beforehand."""
    item = mended(value, kind.item)
    if isinstance(item, dict):
        item = {**item, **fixed}
        if "criteria" in item:
            item["criteria"] = _without_repeats(item["criteria"])
    problems = list(kind.rule(item))
    return problems or kind.model.model_validate(item)


def mended(value: JsonValue, schema: JsonValue) -> JsonValue:
    """``value`` as ``schema`` would have it, as far as that takes no guess; what does not fit stays as it is."""
    if not isinstance(schema, dict):
        return value
    match value, schema.get("type"):
        case dict(), "object":
            parts = schema.get("properties")
            known = parts if isinstance(parts, dict) else {}
            return {key: mended(item, known[key]) for key, item in value.items() if key in known and item is not None}
        case list(), "array":
            return [mended(item, schema.get("items")) for item in value]
        case str(), "number":
            return _number(value)
        case str(), "string":
            return _word(value, schema.get("enum"))
    return value


def _number(text: str) -> JsonValue:
    try:
        return float(text)
    except ValueError:
        return text


def _word(text: str, allowed: JsonValue) -> str:
    plain = text.strip()
    if not isinstance(allowed, list):
        return plain
    word = plain.casefold().replace("-", "_").replace(" ", "_")
    return word if word in allowed else plain


def _without_repeats(criteria: JsonValue) -> JsonValue:
    """Criteria whose words are the same are one: results are also kept by description."""
    if not isinstance(criteria, list):
        return criteria
    kept: dict[str, JsonValue] = {}
    for number, criterion in enumerate(criteria):
        words = criterion.get("description") if isinstance(criterion, dict) else None
        kept.setdefault(words.casefold() if isinstance(words, str) else str(number), criterion)
    return list(kept.values())
