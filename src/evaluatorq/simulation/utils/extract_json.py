"""The JSON in a model's answer as text, for code that parses it itself."""

from __future__ import annotations

import re

_FENCED = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL | re.IGNORECASE)
_JSON = re.compile(r"\{.*\}|\[.*\]", re.DOTALL)


def extract_json_from_response(content: str) -> str:
    """The object or list in ``content``, without a code fence and words around it; all of it where there is none."""
    fenced = _FENCED.search(content)
    text = (fenced.group(1) if fenced else content).strip()
    found = _JSON.search(text)
    return found.group() if found else text


__all__ = ["extract_json_from_response"]
