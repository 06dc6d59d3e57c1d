"""Says what is wrong with a saved file, in a sentence without the words of the library that found it."""

from __future__ import annotations

from pydantic import ValidationError


def fault_in(error: ValidationError) -> str:
    """The first thing that is wrong: the field's path, and what is wrong with it."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{place} is missing"
    return f"{place}: {first['msg']}" if place else first["msg"]
