"""Sampling options and limits of the simulation's side; what was not set is read from the environment.

Variables are read when a run is assembled, never at import: ``EVALUATORQ_LLM_TIMEOUT_S``, ``EVALUATORQ_LLM_MAX_TOKENS``
and ``EVALUATORQ_REASONING_EFFORT``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue

from evaluatorq.errors import ConfigError
from evaluatorq.llm.endpoint import Sampling
from evaluatorq.model.calls import LLMCallConfig

N = TypeVar("N", int, float)
_NO_EFFORT = ("", "none", "off")


def sampling_of(calls: LLMCallConfig, cap: int | None = None) -> Sampling:
    """The options of each request: only what was set, here or in the environment. ``cap`` limits answers further."""
    extra: dict[str, JsonValue] = {**calls.extra_kwargs, **calls.extra_body}
    limits = [cap, calls.max_tokens or _number("EVALUATORQ_LLM_MAX_TOKENS", int)]
    effort = calls.reasoning_effort
    if "reasoning_effort" not in calls.model_fields_set:
        effort = os.environ.get("EVALUATORQ_REASONING_EFFORT")
    return Sampling(
        temperature=calls.temperature,
        max_tokens=min((limit for limit in limits if limit is not None), default=None),
        reasoning_effort=None if effort is None or effort.strip().lower() in _NO_EFFORT else effort.strip(),
        extra_body=extra or None,
        stream=calls.stream,
    )


def timeout_of(calls: LLMCallConfig) -> float:
    """Seconds that one request may take."""
    if "timeout_ms" in calls.model_fields_set:
        return calls.timeout_ms / 1000
    return _number("EVALUATORQ_LLM_TIMEOUT_S", float) or calls.timeout_ms / 1000


def _number(variable: str, kind: Callable[[str], N]) -> N | None:
    """A number above zero from the environment, ``None`` where the variable is not set."""
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    try:
        value = kind(text)
    except ValueError:
        value = kind("0")
    if not value > 0:
        raise ConfigError(f"{variable} must be a number above 0, not {text!r}")
    return value
