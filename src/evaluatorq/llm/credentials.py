"""What of a request is a credential: what is to be written nowhere, in each form in which it may be repeated."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from urllib.parse import parse_qsl

from pydantic import JsonValue

_NAME = re.compile(
    r"(?:^|[-_.])(?:\w*key|\w*token|\w*secret|pass(?:word|wd|phrase)?|pwd|auth|\w*authorization|authentication|"
    r"bearer|cookie|credentials?|signature|sig|jwt)s?(?:$|[-_.])",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(?:max|total|num)[-_]?\w*tokens", re.IGNORECASE)


def names_a_credential(name: str) -> bool:
    """A header or member of this name carries one: ``x-functions-key``, ``Authorization``, ``apiKey``."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    return _NAME.search(parted) is not None and _COUNT.search(name) is None


def header_credentials(name: str, value: str) -> tuple[str, ...]:
    """The credentials in a header: all of it, its last word, the values of cookies, what basic authentication says."""
    if not names_a_credential(name) or "{{" in value:
        return ()
    words = value.split()
    found = [value, *words[-1:], *(pair.partition("=")[2].strip() for pair in value.split(";") if "=" in pair)]
    if words and words[0].lower() == "basic":
        found += _spoken(words[-1])
    return tuple(text for text in found if text)


def _spoken(encoded: str) -> tuple[str, ...]:
    try:
        pair = b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (Error, ValueError):
        return ()
    user, _, password = pair.partition(":")
    return account_credentials(user, password)


def query_credentials(query: str) -> tuple[str, ...]:
    """The values of parameters of a URL that are named like credentials."""
    return tuple(value for name, value in parse_qsl(query) if names_a_credential(name) and "{{" not in value)


def basic(user: str, password: str) -> str:
    """What stands for a user and a password in a header."""
    return b64encode(f"{user}:{password}".encode()).decode()


def account_credentials(user: str, password: str) -> tuple[str, ...]:
    """A password alone, with its user, and both as basic authentication writes them, with and without padding."""
    if not user and not password:
        return ()
    encoded = basic(user, password)
    return tuple(text for text in (encoded, encoded.rstrip("="), f"{user}:{password}", password) if text)


def members_credentials(value: JsonValue, name: str = "") -> tuple[str, ...]:
    """The texts that stand under the name of a credential, however deep."""
    if isinstance(value, str):
        return header_credentials(name, value)
    pairs = value.items() if isinstance(value, Mapping) else ()
    items = [(name, item) for item in value] if isinstance(value, list) else list(pairs)
    return tuple(found for key, item in items for found in members_credentials(item, key))
