"""What a run must not write: credentials that this process holds, and what the user's rules name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

from evaluatorq.model.cases import Scenario
from evaluatorq.records.redaction import Redactor, parse_rules, scopes_in
from evaluatorq.store.keys import redaction_key

_NAMES = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
_LEAST = 8


def redactor_for(rules: Collection[str], secrets: Collection[str] = (), cases: Iterable[Scenario] = ()) -> Redactor:
    """The redactor of one run. ``rules`` are names or ``name=pattern``; ``secrets`` are hidden wherever they stand, if
    they have eight characters or more; ``cases`` may name rules of their own.
    """
    parsed, scopes = parse_rules(tuple(rules)), scopes_in(tuple(rules))
    keyed = parsed or scopes or any(scenario.redact for scenario in cases)
    known = {value for value in secrets if len(value) >= _LEAST} | set(secrets_in(os.environ))
    return Redactor(parsed, key=redaction_key() if keyed else b"", secrets=known, scopes=scopes)


def keys_among(values: Iterable[str]) -> tuple[str, ...]:
    """Those that look like a credential: a model's key may be a word that says that none is needed."""
    return tuple(filter(_looks_like_one, values))


def secrets_in(environment: Mapping[str, str]) -> list[str]:
    """The values of variables whose names say that they are credentials, and that look like one."""
    return [value for name, value in environment.items() if _NAMES.search(name) and _looks_like_one(value)]


def _looks_like_one(value: str) -> bool:
    """No plain word such as ``not-needed``, and no path: they would be hidden in every text."""
    return len(value) >= _LEAST and any(letter.isdigit() for letter in value) and not value.startswith(("/", "~"))
