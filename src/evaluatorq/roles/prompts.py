"""What all prompts share: their version, and the tags that mark other people's words as data.

Prompts are pure functions of the case, so the same case gives the same bytes and provider caches hit. Change
``PROMPT_VERSION`` with every change of wording: it is recorded in each run, and runs are only comparable within one.
"""

from __future__ import annotations

from evaluatorq.llm.tags import as_data, shortened

PROMPT_VERSION = "2"

__all__ = ["PROMPT_VERSION", "as_data", "shortened"]
