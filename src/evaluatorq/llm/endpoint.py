"""Where a model is and how it is asked: endpoint, sampling options, and both read from the environment at call time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit, urlunsplit

from pydantic import JsonValue

from evaluatorq.errors import ConfigError, MissingLLMCredentialsError
from evaluatorq.llm.credentials import account_credentials, basic, header_credentials, query_credentials

API_KEY_VARIABLE = "OPENAI_API_KEY"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
DEFAULT_BASE_URL = "https://api.openai.com/v1"
_NOT_OPTIONS = frozenset({"model", "messages", "tools", "tool_choice", "response_format", "n", "stream"})


@dataclass(frozen=True, slots=True, repr=False)
class Endpoint:
    """An OpenAI-compatible base URL with its credentials; neither its repr nor ``shown`` holds them."""

    base_url: str
    api_key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not is_http_url(self.base_url):
            raise ConfigError(
                f"a base URL starts with http:// or https:// and names a host, not {bare_url(self.base_url)!r}"
            )
        for name, value in self.request_headers().items():
            if not (name + value).isprintable() or not (name + value).isascii():
                raise ConfigError(f"the header {name!r} for {self.host} holds characters that no header can have")

    def __repr__(self) -> str:
        return f"Endpoint({self.shown!r})"

    @property
    def host(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def shown(self) -> str:
        """The base URL without credentials and query, for files and messages."""
        return bare_url(self.base_url)

    @property
    def chat_url(self) -> str:
        """Where chat completions are posted: query kept, credentials moved to a header."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, self.host, parts.path.rstrip("/") + "/chat/completions", parts.query, ""))

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not appear in a message or a file."""
        within = (text for name, value in self.headers.items() for text in header_credentials(name, value))
        held = (self.api_key, *self.headers.values(), *within, *self.url_secrets)
        return tuple(value for value in held if value and len(value) >= 8)

    @property
    def url_secrets(self) -> tuple[str, ...]:
        """Those that stand in the base URL: secret whatever they look like, where a key may say that none is needed."""
        parts = urlsplit(self.base_url)
        account = account_credentials(unquote(parts.username or ""), unquote(parts.password or ""))
        return (*account, *query_credentials(parts.query))

    def request_headers(self) -> dict[str, str]:
        """The headers of every request to this endpoint."""
        parts = urlsplit(self.base_url)
        headers = {"content-type": "application/json"}
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        elif parts.username:
            headers["authorization"] = f"Basic {basic(unquote(parts.username), unquote(parts.password or ''))}"
        return {**headers, **{name.lower(): value for name, value in self.headers.items()}}


@dataclass(frozen=True, slots=True)
class Sampling:
    """Options of a model's answers; what is ``None`` is not sent. ``stream`` asks for server-sent events."""

    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    extra_body: Mapping[str, JsonValue] | None = field(default=None, hash=False)
    stream: bool = False

    def __post_init__(self) -> None:
        ours = sorted(_NOT_OPTIONS & (self.extra_body or {}).keys())
        if ours:
            raise ConfigError(f"extra_body cannot set {', '.join(ours)}: the request itself is made of it")


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


def is_http_url(url: str) -> bool:
    """Whether requests can go there: a scheme, a host and a port that are some."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        return False


def bare_url(url: str) -> str:
    """The URL without credentials, query and fragment; a text that is no URL as it is, up to its query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.rpartition("@")[2].partition("?")[0]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
