"""The tags that mark other people's words in a prompt as data, for all prompts."""

from __future__ import annotations

import re
from typing import Literal, get_args

Tag = Literal[
    "agent_description", "agent_prompt", "agent_said", "case_already_there", "case_context", "criterion_text",
    "example", "facts_you_know", "finding", "item_brief", "persona_background", "persona_name", "reference_facts",
    "scenario_context", "scenario_goal", "scenario_name", "suggestion", "tool_called", "tool_returned", "user_said",
    "wishes",
]  # fmt: skip
_LOOKS_LIKE_ONE = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(get_args(Tag))})\b)", re.IGNORECASE)


def as_data(tag: Tag, text: str) -> str:
    """``text`` between tags of ours. Tags of ours inside it are made harmless, so that data cannot end itself."""
    harmless = _LOOKS_LIKE_ONE.sub("\u2039", text)
    return f"<{tag}>{harmless}</{tag}>"


def shortened(text: str, most: int) -> str:
    """The first ``most`` characters, and how many were left out."""
    return text if len(text) <= most else f"{text[:most]} [{len(text) - most} more characters left out]"
