"""The card of a training corpus: what went in, what stayed out and why, how it was made, and what it holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from evaluatorq.model.trace import Trace
from evaluatorq.records.training import Row, is_redacted


@dataclass(slots=True)
class Tally:
    """Counts what is read and written while a corpus is made."""

    read: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    duplicates: int = 0
    trained: int = 0
    masked: int = 0
    facts: dict[str, Counter[str]] = field(default_factory=dict)

    def add_trace(self, facts: Iterable[tuple[str, str]]) -> None:
        """Books the facts of a trace that is in the corpus."""
        for what, value in facts:
            self.facts.setdefault(what, Counter())[value] += 1

    def add_row(self, row: Row) -> None:
        """Books a row that is written."""
        self.rows += 1
        for masked, characters in _amounts(row):
            if masked:
                self.masked += characters
            else:
                self.trained += characters


def facts_of(trace: Trace) -> Iterator[tuple[str, str]]:
    """What a card counts about a trace."""
    yield "schemas", trace.schema_tag
    yield "configs", trace.run.config_hash
    if trace.environment is not None:
        yield "environments", trace.environment.hash
    for name, version in (trace.run.versions or {}).items():
        yield "versions", f"{name} {version}"
    for role, model in _models(trace):
        yield "models", f"{role}: {model}"
    labels = trace.outcome.labels.model_dump(mode="json", exclude_none=True)
    for name, value in labels.items():
        yield "labels", f"{name}={json.dumps(value)}"
    for caveat in trace.caveats or ():
        yield "caveats", caveat.code
    yield "redaction", "redacted" if is_redacted(trace) else "not redacted"


def _models(trace: Trace) -> list[tuple[str, str]]:
    """Who wrote what: the models that a run names, and those that the answers name."""
    found = {(role, model) for role, model in (trace.run.models or {}).items()}
    target = trace.run.target.model or trace.run.target.name
    named = {("target", str(step.model)) for step in trace.steps if step.kind == "target" and step.model}
    if not named and target:
        named = {("target", target)}
    return sorted(found | named)


def _amounts(row: Row) -> list[tuple[bool, int]]:
    """Masked or not, and how many characters, for each part of a row of any format."""
    found: list[tuple[bool, int]] = []
    for key in ("segments", "messages", "prompt", "chosen", "rejected"):
        parts = row.get(key)
        found += [_amount(part) for part in (parts if isinstance(parts, list) else []) if isinstance(part, dict)]
    return found


def _amount(part: Mapping[str, JsonValue]) -> tuple[bool, int]:
    start, end = part.get("start"), part.get("end")
    if isinstance(start, int) and isinstance(end, int):
        return bool(part["loss_mask"]), end - start
    content, calls = part.get("content"), part.get("tool_calls")
    text = content if isinstance(content, str) else ""
    words = sum(_call_length(call) for call in calls) if isinstance(calls, list) else 0
    thought = part.get("reasoning")
    return not part.get("train"), len(text) + words + (len(thought) if isinstance(thought, str) else 0)


def _call_length(call: JsonValue) -> int:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return 0
    return len(str(function.get("name", ""))) + len(str(function.get("arguments", "")))


def card_of(tally: Tally, *, made: Row, digest: str) -> Row:
    """The card as JSON. ``made`` says how: format, template, filters, tool version."""
    return {
        "card": "evaluatorq.training-card/1",
        **made,
        "traces_read": tally.read,
        "traces_left_out": dict(sorted(tally.left_out.items())),
        "rows": tally.rows,
        "duplicates_removed": tally.duplicates,
        "characters": {"trained": tally.trained, "masked": tally.masked},
        **{what: dict(sorted(counts.items())) for what, counts in sorted(tally.facts.items())},
        "sha256": digest,
    }


def card_markdown(card: Mapping[str, JsonValue], name: str) -> str:
    """The card for a reader."""
    lines = [f"# Dataset card: {name}", ""]
    tables = []
    for key, value in card.items():
        title = key.replace("_", " ")
        if isinstance(value, dict) and value:
            tables += ["", f"## {title.capitalize()}", "", "| what | value |", "|---|---|"]
            tables += [f"| {_cell(what)} | {_cell(count)} |" for what, count in value.items()]
        elif not isinstance(value, dict):
            lines.append(f"- {title}: {_cell(value)}")
    return "\n".join([*lines, *tables]) + "\n"


def _cell(value: JsonValue) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("|", "\\|").replace("\n", " ")
