from __future__ import annotations

import pytest

from evaluatorq.errors import ConfigError, MissingLLMCredentialsError
from evaluatorq.llm.endpoint import Endpoint, Sampling, endpoint_from_environment


def test_without_a_key_the_error_names_the_variable() -> None:
    with pytest.raises(MissingLLMCredentialsError, match="OPENAI_API_KEY"):
        endpoint_from_environment()


@pytest.mark.parametrize("key", ["", "   "])
def test_an_empty_key_is_no_key(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(MissingLLMCredentialsError):
        endpoint_from_environment()


def test_an_endpoint_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
    endpoint = endpoint_from_environment()
    assert endpoint.api_key is None
    assert "authorization" not in endpoint.request_headers()


def test_the_environment_is_read_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "first-key\n")
    assert endpoint_from_environment().request_headers()["authorization"] == "Bearer first-key"
    monkeypatch.setenv("OPENAI_API_KEY", "second-key")
    assert endpoint_from_environment().request_headers()["authorization"] == "Bearer second-key"


def test_no_form_of_an_endpoint_that_is_shown_holds_credentials() -> None:
    endpoint = Endpoint("https://user:pass@host.test:8443/v1?token=abc", "sk-secret-key", {"x-key": "header-secret"})
    for text in (repr(endpoint), str(endpoint), f"{endpoint}", endpoint.shown, endpoint.host):
        for secret in ("pass", "abc", "sk-secret-key", "header-secret"):
            assert secret not in text
    assert endpoint.shown == "https://host.test:8443/v1"


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://h.test/v1", "https://h.test/v1/chat/completions"),
        ("https://h.test/v1/", "https://h.test/v1/chat/completions"),
        ("http://h.test", "http://h.test/chat/completions"),
        ("https://h.test/d/x?api-version=1", "https://h.test/d/x/chat/completions?api-version=1"),
        ("https://u:p@h.test:1/v1", "https://h.test:1/v1/chat/completions"),
    ],
)
def test_chat_completions_are_posted_below_the_base_url(base_url: str, url: str) -> None:
    assert Endpoint(base_url).chat_url == url


def test_credentials_in_the_url_become_a_header_and_given_headers_win() -> None:
    assert Endpoint("https://u:p%40ss@h.test").request_headers()["authorization"] == "Basic dTpwQHNz"
    assert (
        Endpoint("https://h.test", "k", {"Authorization": "Custom x"}).request_headers()["authorization"] == "Custom x"
    )
    assert Endpoint("https://h.test", None, {"api-key": "k"}).request_headers()["api-key"] == "k"


@pytest.mark.parametrize(
    "base_url", ["", "host.test/v1", "ftp://host.test", "http://", "http:///v1", "http://h:port", "http://[::1"]
)
def test_what_is_no_base_url_is_refused_in_one_sentence(base_url: str) -> None:
    with pytest.raises(ConfigError, match="a base URL starts with"):
        Endpoint(base_url)


def test_a_key_that_no_header_can_hold_is_refused_without_being_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint("https://h.test", "sk-secret\nx")
    assert "sk-secret" not in str(caught.value)


def test_an_extra_body_cannot_replace_the_request_itself() -> None:
    with pytest.raises(ConfigError, match="messages"):
        Sampling(extra_body={"messages": [], "top_p": 1})
