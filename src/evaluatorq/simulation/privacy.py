"""What a run must not write: credentials that this process holds, and what the user's rules name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

from evaluatorq.records.redaction import Redactor, parse_rules
from evaluatorq.store.keys import redaction_key

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_LEAST = 8


def redactor_for(rules: Collection[str], secrets: Collection[str] = ()) -> Redactor:
    """The redactor of one run. ``rules`` are names or ``name=pattern``; ``secrets`` are hidden wherever they stand."""
    parsed = parse_rules(tuple(rules))
    known = {value for value in secrets if len(value) >= _LEAST} | set(secrets_in(os.environ))
    return Redactor(parsed, key=redaction_key() if parsed else b"", secrets=known)


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they are credentials, and that look like one."""
    return [value for name, value in environment.items() if _NAMES.search(name) and _looks_like_one(value)]


def _looks_like_one(value: str) -> bool:
    """No plain word such as ``not-needed``, and no path: they would be hidden in every text."""
    return len(value) >= _LEAST and any(letter.isdigit() for letter in value) and not value.startswith(("/", "~"))
