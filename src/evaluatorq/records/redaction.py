"""What is taken out of records before they are written: credentials always, personal data by the rules of a run.

A credential becomes ``[hidden]``. What a rule finds becomes a pseudonym such as ``[email:3f9a2c1b]``: the same value
has the same pseudonym wherever the same key is used, and without the key nobody can find it by trying. Redacting twice
changes nothing more. JSON inside of texts (tool arguments and results) is read and redacted as such. Numbers stay.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, JsonValue
from pydantic_core import SchemaValidator, core_schema

from evaluatorq.errors import ConfigError
from evaluatorq.model.cases import Scenario, SimulationDatapoint
from evaluatorq.model.events import Event
from evaluatorq.model.results import SimulationResult
from evaluatorq.model.runs import Analysis, RunPlan
from evaluatorq.records.known_secrets import KnownSecrets
from evaluatorq.records.withholding import SCOPE, WITHHELD, Withholding

HIDDEN = "[hidden]"
M = TypeVar("M", bound=BaseModel)

# ---------------------------------------------------------------- credentials

_SECRET_KEY = re.compile(
    r"(?:^|[_-])(?:passwords?|passwd|secrets?|api[_-]?keys?|access[_-]?keys?|private[_-]?keys?|"
    r"authorization|credentials?|cookies?|token|bearer)$",
    re.IGNORECASE,
)
_NAMED = r"\w*api[_-]?key|\w*access[_-]?key|\w*secret(?:[_-]?key)?|\w*token|\w*passw(?:or)?d|authorization"
_SECRETS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), HIDDEN),
    (re.compile(r"\b([a-z][a-z0-9+.-]*://)[^\s/@\"'<>]+@", re.IGNORECASE), rf"\1{HIDDEN}@"),
    (re.compile(rf"([?&](?:key|sig|signature|{_NAMED})=)[^&\s\"'<>]+", re.IGNORECASE), rf"\1{HIDDEN}"),
    (re.compile(r"\b((?:bearer|basic)\s+)(?=\S*\d)[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1{HIDDEN}"),
    (
        re.compile(r"\b((?:set-)?cookie:\s*)[\w.-]+=[^\s;,\"'<>]+(?:;\s*[\w.-]+=[^\s;,\"'<>]+)*", re.IGNORECASE),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), HIDDEN),
    (re.compile(r"\b(?:sk|pk|rk)[-_](?=\S*\d)[\w-]{12,}"), HIDDEN),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|hf_)[\w.-]{16,}"), HIDDEN),
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[\w-]{35}"), HIDDEN),
    (
        re.compile(
            rf"\b((?:{_NAMED})\b[\"']?\s*[:=]\s*[\"']?)(?!\[hidden\])(?=\S*\d)[^\s\"',;<>]{{6,}}", re.IGNORECASE
        ),
        rf"\1{HIDDEN}",
    ),
)
_TRACES = SchemaValidator(
    core_schema.str_schema(
        pattern=r"(?is)passw|secret|authoriz|credential|cookie|eyj|_pat|glpat|xox|hf_|akia|asia|aiza|gh[pousr]_|"
        r"sig=|signature=|[?&]key=|private key|(?:api|access|private)[_-]?key|[spr]k[_-]|(?:bearer|basic)[\s\"\\]|"
        r"token(?:[^s]|$)|://.*@|\\\\(?:/|u00[2-7])"
    )
)
"""What a credential in a line comes with. Looking closely at a line takes a millisecond, so it has to be rare. The
validator's regular expressions search for all of it at once; with the standard ones this takes longer than writing.
The last is JSON inside of a text whose ASCII is escaped, as some languages write it.
"""


def _may_hold_secrets(encoded: bytes) -> bool:
    """Quick, and never wrong when it says no: a text with a credential in it has one of these in its JSON form."""
    return _TRACES.isinstance_python(encoded.decode(errors="replace"))


# ---------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True)
class Rule:
    """What to find, what to call it, and what makes two spellings the same value."""

    name: str
    pattern: re.Pattern[str]
    accepts: Callable[[str], bool] | None = None
    canonical: Callable[[str], str] = str.casefold


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _compact(text: str) -> str:
    return re.sub(r"[^0-9A-Za-z]", "", text).upper()


def _is_card(text: str) -> bool:
    """The Luhn sum (ISO/IEC 7812-1) holds."""
    digits = [int(digit) for digit in _digits(text)]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_iban(text: str) -> bool:
    """The check digits (ISO 13616, modulo 97) hold."""
    plain = _compact(text)
    moved = plain[4:] + plain[:4]
    return 15 <= len(plain) <= 34 and int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


BUILT_IN: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule("email", re.compile(r"[\w.+%-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")),
        Rule("iban", re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{2,4}){3,8}\b"), _is_iban, _compact),
        Rule("card", re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])"), _is_card, _digits),
        Rule(
            "phone",
            re.compile(
                r"(?<![\w+])(?:(?:\+|00)\d{1,3}[ ./-]?(?:\(0?\d*\)[ ./-]?)?\d(?:[ ./-]?\d){5,12}"
                r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?![\w-])"
            ),
            canonical=_digits,
        ),
        Rule(
            "ip",
            re.compile(
                r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)|(?<![\w:])(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}"
            ),
        ),
    )
}
_OWN = re.compile(r"([A-Za-z][\w-]{0,31})=(.+)", re.DOTALL)


def scopes_in(specs: Sequence[str]) -> frozenset[str]:
    """Those of the rules that keep back whole texts: ``user``, ``agent``, ``tools``, ``tool:NAME``."""
    return frozenset(spec for spec in specs if SCOPE.fullmatch(spec))


def parse_rules(specs: Sequence[str]) -> tuple[Rule, ...]:
    """Rules by name, or one's own as ``name=regular expression``. ``ConfigError`` for anything else.

    One's own go first; the others have an order in which the exact go before the vague.
    """
    rules = [_parse(spec) for spec in specs if not SCOPE.fullmatch(spec)]
    return (*(rule for rule in rules if rule.name not in BUILT_IN), *(r for r in BUILT_IN.values() if r in rules))


def _parse(spec: str) -> Rule:
    if spec in BUILT_IN:
        return BUILT_IN[spec]
    own = _OWN.fullmatch(spec)
    if own is None:
        raise ConfigError(
            f"redact: {spec!r} is no rule; there is {', '.join(BUILT_IN)}, user, agent, tools, tool:NAME, or write "
            "your own as name=regular-expression"
        )
    if own[1] in BUILT_IN:
        raise ConfigError(f"redact: there is a rule called {own[1]} already; give your own another name")
    try:
        pattern = re.compile(own[2])
    except re.error as error:
        raise ConfigError(f"redact: {own[1]}: {own[2]!r} is no regular expression: {error}") from None
    if pattern.search("") is not None:
        raise ConfigError(f"redact: {own[1]}: {own[2]!r} also matches nothing at all")
    return Rule(own[1], pattern)


# ---------------------------------------------------------------- the redactor

_PSEUDONYM = re.compile(r"(\[[A-Za-z][\w-]{0,31}:[0-9a-f]{8}\])")
PLACEHOLDER = re.compile(rf"{_PSEUDONYM.pattern}|{WITHHELD.pattern}|{re.escape(HIDDEN)}")
"""What stands in a text in place of something that was taken out."""
_EVENT_FACTS = {
    "kind", "at", "digest", "usage", "model", "response_id", "trace_id", "span_id", "component", "code", "source",
    "terminated_by", "ended_by", "failed_component", "error_type", "lost", "evaluator", "finish_reason", "what",
}  # fmt: skip
_RESULT_FACTS = {
    "thread_id", "response_traces", "token_usage", "usage_by_role", "usage_by_model", "unread_answers",
    "terminated_by", "ended_by", "failed_component",
}  # fmt: skip
_ROW_FACTS = {"role"}
_CASE_FACTS = {"id"}
_PROSE_OPTIONS = {"agent_description", "generation_instructions", "experiment_description"}


def _part(found: str, accepts: Callable[[str], bool]) -> tuple[str, str, str]:
    """The longest run of groups within ``found`` that is the real thing, with what stands before and after it."""
    starts = [0, *(match.end() for match in re.finditer("[ -]", found))]
    ends = [*(match.start() for match in re.finditer("[ -]", found)), len(found)]
    spans = sorted(((s, e) for s in starts for e in ends if s < e), key=lambda span: span[0] - span[1])
    start, end = next((span for span in spans if accepts(found[slice(*span)])), (0, 0))
    return found[:start], found[start:end], found[end:]


def names_a_secret(name: str) -> bool:
    """What stands under this name (a header, a tool's argument, a member of a state) is a credential."""
    return _SECRET_KEY.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)) is not None


class Redactor:
    """Takes credentials and what ``rules`` find out of texts and records.

    ``key`` makes the pseudonyms; ``secrets`` are values known to be credentials, whatever they look like. ``scopes``
    name whose texts are kept back as a whole, beside those that a scenario names.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        key: bytes = b"",
        secrets: Collection[str] = (),
        scopes: Collection[str] = (),
    ) -> None:
        self._rules = tuple(rules)
        self._key = key
        self._scopes = frozenset(scopes)
        self._withholding = Withholding(self._scopes, key)
        self._known = KnownSecrets(secrets)

    def may_change(self, encoded: bytes) -> bool:
        """Whether a record, encoded as JSON, is worth a closer look; quick, and never wrong when it says no."""
        return bool(self._rules) or _may_hold_secrets(encoded) or self._known.may_be_in(encoded)

    def text(self, text: str) -> str:
        """The text without credentials and with pseudonyms."""
        text = self._known.hidden(text, HIDDEN)
        for pattern, instead in _SECRETS:
            text = pattern.sub(instead, text)
        for rule in self._rules:
            text = self._apply(rule, text)
        return text

    def _apply(self, rule: Rule, text: str) -> str:
        def pseudonym(match: re.Match[str]) -> str:
            found = match.group()
            if rule.accepts is not None and not rule.accepts(found):
                before, inner, after = _part(found, rule.accepts)
                if not inner:
                    return found
                return rule.pattern.sub(pseudonym, before) + named(inner) + rule.pattern.sub(pseudonym, after)
            return named(found)

        def named(found: str) -> str:
            value = f"{rule.name}\x00{rule.canonical(found)}".encode()
            return f"[{rule.name}:{hmac.new(self._key, value, hashlib.sha256).hexdigest()[:8]}]"

        if rule.pattern.search(text) is None:
            return text
        pieces = _PSEUDONYM.split(text)
        pieces[::2] = [rule.pattern.sub(pseudonym, piece) for piece in pieces[::2]]
        return "".join(pieces)

    def value(self, value: JsonValue, *, hide: bool = False) -> JsonValue:
        """A JSON value with its texts and names redacted; what stands under a name such as ``password`` is hidden."""
        if isinstance(value, str):
            return HIDDEN if hide and value else self._string(value)
        if isinstance(value, list):
            return [self.value(item, hide=hide) for item in value]
        if isinstance(value, dict):
            return {
                self.text(name): self.value(item, hide=hide or names_a_secret(name)) for name, item in value.items()
            }
        return value

    def _string(self, text: str) -> str:
        if text.lstrip()[:1] in ("{", "["):
            try:
                inner: JsonValue = json.loads(text)
            except (ValueError, RecursionError):
                return self.text(text)
            clean = self.value(inner)
            return self._known.hidden(text, HIDDEN) if clean == inner else json.dumps(clean, ensure_ascii=False)
        return self.text(text)

    def withholding(self, scenario: Scenario) -> Withholding:
        """What of a conversation in this scenario is kept back as a whole."""
        return Withholding(self._scopes | set(scenario.redact), self._key) if scenario.redact else self._withholding

    # ---------------------------------------------------------------- records

    def event(self, event: Event) -> Event:
        """The event as it is written; the same object where nothing had to be taken out."""
        return self._record(event, _EVENT_FACTS)

    def result(self, result: SimulationResult) -> SimulationResult:
        """A conversation's record as it is written."""
        return self._record(result, _RESULT_FACTS)

    def analysis(self, analysis: Analysis) -> Analysis:
        """What was written about a run, as it is kept."""
        return self._record(analysis, {"spent"})

    def plan(self, plan: RunPlan) -> RunPlan:
        """The plan as it is written, and with it the cases; those that need no change are the same objects."""
        points = tuple(map(self.case, plan.datapoints))
        changed = any(after is not before for after, before in zip(points, plan.datapoints, strict=True))
        update = {
            "target": plan.target and self._known.hidden(plan.target, HIDDEN),
            "problems": tuple(map(self.text, plan.problems)),
            "config": {name: self._option(name, value) for name, value in plan.config.items()},
        }
        if not changed and all(getattr(plan, name) == value for name, value in update.items()):
            return plan
        return plan.model_copy(update={**update, "datapoints": points, "redacted": plan.redacted or changed})

    def _option(self, name: str, value: JsonValue) -> JsonValue:
        """An option as it is written: what a person wrote about the agent by the rules, else without known values."""
        return self.value(value) if name in _PROSE_OPTIONS else self._fact(value)

    def case(self, point: SimulationDatapoint) -> SimulationDatapoint:
        """A case as it is written; the same object where nothing had to be taken out."""
        if not self.may_change(point.model_dump_json(exclude_defaults=True).encode()):
            return point
        return self._record(point, _CASE_FACTS)

    def _fact(self, value: JsonValue) -> JsonValue:
        """A value that no rule is about, for all that the agent may have given it: an id, the name of a model."""
        if isinstance(value, str):
            return self._known.hidden(value, HIDDEN)
        if isinstance(value, list):
            return [self._fact(item) for item in value]
        if isinstance(value, dict):
            return {self._known.hidden(name, HIDDEN): self._fact(item) for name, item in value.items()}
        return value

    def _record(self, record: M, facts: Collection[str]) -> M:
        before: dict[str, JsonValue] = record.model_dump(mode="json", by_alias=True)
        after = {name: self._fact(value) if name in facts else self.value(value) for name, value in before.items()}
        return record if after == before else type(record).model_validate(after)


NOTHING_KNOWN = Redactor()
