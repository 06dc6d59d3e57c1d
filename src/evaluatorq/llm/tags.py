"""The tags that mark other people's words in a prompt as data, for all prompts.

Their names are ones that nobody uses by chance: what looks like one of them is altered, also in what is quoted later.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

Tag = Literal[
    "agent_description", "agent_said", "case_already_there", "case_brief", "case_context", "case_example",
    "case_wishes", "criterion_text", "facts_you_know", "persona_background", "persona_name", "reference_facts",
    "scenario_context", "scenario_goal", "scenario_name", "suggested_change", "test_finding", "tool_called",
    "tool_returned", "user_said",
]  # fmt: skip
_LOOKS_LIKE_ONE = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(get_args(Tag))})\b)", re.IGNORECASE)

_IN_CREDENTIALS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\"',;")


def as_data(tag: Tag, text: str) -> str:
    """``text`` between tags of ours. Tags of ours inside it are made harmless, so that data cannot end itself."""
    harmless = _LOOKS_LIKE_ONE.sub("\u2039", text)
    return f"<{tag}>{harmless}</{tag}>"


def beginning(text: str, most: int) -> str:
    """The start of a text, at most so long, ending between words: nothing recognises half a credential."""
    if len(text) <= most:
        return text
    start = text[:most]
    return start.rstrip(_IN_CREDENTIALS) if text[most] in _IN_CREDENTIALS else start


def ending(text: str, most: int) -> str:
    """The end of a text, at most so long, beginning between words."""
    return beginning(text[::-1], most)[::-1]


def shortened(text: str, most: int) -> str:
    """The first ``most`` characters, and how many were left out."""
    return text if len(text) <= most else f"{text[:most]} [{len(text) - most} more characters left out]"
