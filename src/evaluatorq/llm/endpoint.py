"""Where a model is and how it is asked: endpoint, sampling options, and both read from the environment at call time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

from pydantic import JsonValue

from evaluatorq.errors import ConfigError, MissingLLMCredentialsError

API_KEY_VARIABLE = "OPENAI_API_KEY"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
DEFAULT_BASE_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible base URL. Its repr and its ``shown`` form hold no credentials."""

    base_url: str = field(repr=False)
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    shown: str = field(init=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(
                f"a base URL starts with http:// or https:// and names a host, not {_bare(self.base_url)!r}"
            )
        object.__setattr__(self, "shown", _bare(self.base_url))

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.shown).netloc

    @property
    def chat_url(self) -> str:
        """Where chat completions are posted."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(path=parts.path.rstrip("/") + "/chat/completions", fragment=""))


@dataclass(frozen=True, slots=True)
class Sampling:
    """Options of a model's answers; what is ``None`` is not sent. ``stream`` asks for server-sent events."""

    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    extra_body: Mapping[str, JsonValue] | None = field(default=None, hash=False)
    stream: bool = False


def endpoint_from_environment() -> Endpoint:
    """The endpoint that ``OPENAI_BASE_URL`` and ``OPENAI_API_KEY`` name now.

    Raises ``MissingLLMCredentialsError`` when no key is set for the default endpoint; other endpoints may need none.
    """
    base_url = os.environ.get(BASE_URL_VARIABLE, "").strip() or DEFAULT_BASE_URL
    key = os.environ.get(API_KEY_VARIABLE, "").strip() or None
    if key is None and base_url.rstrip("/") == DEFAULT_BASE_URL:
        raise MissingLLMCredentialsError(
            f"{API_KEY_VARIABLE} is not set: set it, or point {BASE_URL_VARIABLE} at an endpoint that needs no key, "
            "or run with --offline"
        )
    return Endpoint(base_url, key)


def _bare(url: str) -> str:
    """The URL without credentials, query and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
