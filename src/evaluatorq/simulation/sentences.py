"""A fault in options as one sentence: where, what, and what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from pydantic_core import ErrorDetails

from evaluatorq.simulation.elsewhere import ELSEWHERE


def sentence(detail: ErrorDetails, names: tuple[str, ...], typed: Mapping[str, str]) -> str:
    """One fault that pydantic found; ``names`` are what the options are called, ``typed`` what some were typed as."""
    parts = [str(part) for part in detail["loc"] if part not in ("case", "path")]
    path = ".".join([*(typed.get(part, part) for part in parts[:1]), *parts[1:]])
    if detail["type"] == "extra_forbidden":
        return unknown(path, names if len(detail["loc"]) == 1 else ())
    if detail["type"] == "value_error":
        reason = str(detail.get("ctx", {}).get("error", detail["msg"]))
        if path:
            return f"{path} {reason}" if reason.startswith(("is ", "must ", "names ")) else f"{path}: {reason}"
        return reason
    return f"{path}: {detail['msg'][:1].lower()}{detail['msg'][1:]} (got {detail['input']!r})"


def unknown(path: str, names: tuple[str, ...]) -> str:
    """An option that does not exist, with the name that comes nearest."""
    if path in ELSEWHERE:
        return f"{path}: {ELSEWHERE[path]}"
    near = get_close_matches(path, names, n=1)
    return f"{path}: unknown option, extra keys are not permitted" + (f"; did you mean {near[0]}?" if near else "")
