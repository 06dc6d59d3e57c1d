"""What all prompts share: their version, and the tags that mark other people's words as data.

Prompts are pure functions of the case, so the same case gives the same bytes and provider caches hit. Change
``PROMPT_VERSION`` with every change of wording: it is recorded in each run, and runs are only comparable within one.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

PROMPT_VERSION = "1"

Tag = Literal[
    "agent_said", "criterion_text", "facts_you_know", "persona_background", "persona_name", "reference_facts",
    "scenario_context", "scenario_goal", "scenario_name", "tool_called", "tool_returned", "user_said",
]  # fmt: skip
_LOOKS_LIKE_ONE = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(get_args(Tag))})\b)", re.IGNORECASE)


def as_data(tag: Tag, text: str) -> str:
    """``text`` between tags of ours. Tags of ours inside it are made harmless, so that data cannot end itself."""
    harmless = _LOOKS_LIKE_ONE.sub("\u2039", text)
    return f"<{tag}>{harmless}</{tag}>"


def shortened(text: str, most: int) -> str:
    """The first ``most`` characters, and how many were left out."""
    return text if len(text) <= most else f"{text[:most]} [{len(text) - most} more characters left out]"
