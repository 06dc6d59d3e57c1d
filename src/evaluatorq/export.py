"""Traces out of runs, and training data out of traces.

    from evaluatorq.export import to_training_jsonl, traces_of_run

    card = to_training_jsonl(traces_of_run("latest"), out="corpus.jsonl", min_outcome={"workflow_completed": True})

The same traces give the same bytes, whatever order they come in: rows are in the order of run and datapoint, and no
clock is read. Beside ``corpus.jsonl`` stand ``corpus.card.json`` and ``corpus.card.md``.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import IO, Literal

from pydantic import JsonValue, ValidationError

from evaluatorq import __version__
from evaluatorq.errors import ConfigError
from evaluatorq.model.trace import Trace
from evaluatorq.records.integration import integration_trace, read_integration_trace
from evaluatorq.records.trace_versions import read_trace
from evaluatorq.records.training import Row, Wanted
from evaluatorq.records.training_card import Tally, card_markdown, card_of, facts_of
from evaluatorq.records.training_chat import Render, chat_fault, chat_row, preference_rows
from evaluatorq.records.training_tagged import Template, same_pieces, tagged_row
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.run_traces import traces_of_run
from evaluatorq.store.traces import open_trace_store

Style = Literal["tagged", "chat", "preference"]
STYLES: tuple[Style, ...] = ("tagged", "chat", "preference")


def to_training_jsonl(
    traces: Iterable[Trace],
    *,
    out: str | PathLike[str],
    format: Style = "tagged",  # noqa: A002  the name that says it
    min_outcome: Mapping[str, JsonValue] | None = None,
    where: Wanted | None = None,
    template: str | PathLike[str] | Render | None = None,
) -> Row:
    """Writes a corpus of JSON Lines and its card, and returns the card.

    ``tagged`` rows are text with character spans (of code points), ``chat`` rows messages with a ``train`` flag each,
    ``preference`` rows pairs of samples of one case, of which only the better one has the labels of ``min_outcome``.
    ``where`` filters by more than labels. ``template`` is a file of tags for ``tagged``; for ``chat`` a function from
    messages to text, which then must not change earlier text as messages are added.

    Raises ``ConfigError`` for options that do not go together, ``StoreError`` when a file cannot be written.
    """
    wanted = where or Wanted()
    wanted = replace(wanted, labels={**wanted.labels, **(min_outcome or {})})
    path = Path(out)
    with tempfile.TemporaryFile() as spool:
        corpus = _Corpus(spool)
        rows = _rows_in(format, template)
        rows.write(traces, wanted, corpus)
        replace_file(path, corpus.lines())
        made: Row = {"format": format, "tool": f"evaluatorq {__version__}", "filters": wanted.described(), **rows.about}
        card = card_of(corpus.tally, made=made, digest=corpus.count())
    text = json.dumps(card, indent=2, ensure_ascii=False) + "\n"
    replace_file(path.with_suffix(".card.json"), [text.encode()])
    replace_file(path.with_suffix(".card.md"), [card_markdown(card, path.name).encode()])
    return card


# ---------------------------------------------------------------- the corpus on its way


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Where a row stands while the corpus is made, and the facts of its traces after it."""

    key: tuple[str, int]
    at: int
    length: int
    facts: int


class _Corpus:
    """Rows on their way to the file: on disk as they come, in memory only where each of them stands."""

    def __init__(self, spool: IO[bytes]) -> None:
        self.tally = Tally()
        self._spool = spool
        self._places: dict[bytes, _Place] = {}

    def add(self, key: tuple[str, int], content: JsonValue, row: Row, *traces: Trace) -> None:
        """Keeps a row; of rows with equal ``content`` the first in order, whichever comes first."""
        identity = hashlib.sha256(_encoded(content)).digest()
        known = self._places.get(identity)
        if known is not None:
            self.tally.duplicates += 1
            if known.key <= key:
                return
        line = _encoded(row) + b"\n"
        facts = _encoded({trace.thread_id: [list(fact) for fact in facts_of(trace)] for trace in traces})
        self._places[identity] = _Place(key, self._spool.seek(0, 2), len(line), len(facts))
        self._spool.write(line + facts)

    def lines(self) -> Iterator[bytes]:
        """The rows in the order of the corpus."""
        for place in sorted(self._places.values()):
            self._spool.seek(place.at)
            yield self._spool.read(place.length)

    def count(self) -> str:
        """Books every row and every trace once, and returns the SHA-256 of the corpus."""
        digest, seen = hashlib.sha256(), set[str]()
        for place, line in zip(sorted(self._places.values()), self.lines(), strict=True):
            digest.update(line)
            self.tally.add_row(json.loads(line))
            for thread_id, facts in json.loads(self._spool.read(place.facts)).items():
                if thread_id not in seen:
                    self.tally.add_trace(facts)
                    seen.add(thread_id)
        return digest.hexdigest()


def _encoded(value: JsonValue) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _key(trace: Trace) -> tuple[str, int]:
    return trace.run.id, trace.row


# ---------------------------------------------------------------- formats


class _Tagged:
    def __init__(self, template: Template) -> None:
        self.template = template
        described: JsonValue = template.model_dump(mode="json")
        self.about: Row = {"template": described}

    def write(self, traces: Iterable[Trace], wanted: Wanted, corpus: _Corpus) -> None:
        for trace in _kept(traces, wanted, corpus.tally):
            row = tagged_row(trace, self.template)
            assert same_pieces(row, trace, self.template), "escaping is the inverse of reading"
            if not row["text"]:
                corpus.tally.left_out["nothing was said"] += 1
                continue
            corpus.add(_key(trace), [row["text"], _masks(row)], row, trace)


def _masks(row: Row) -> JsonValue:
    segments = row["segments"]
    assert isinstance(segments, list), "a tagged row has segments"
    return [[part["start"], part["loss_mask"]] for part in segments if isinstance(part, dict)]


class _Chat:
    def __init__(self, render: Render | None) -> None:
        self.render = render
        self.about: Row = {}

    def write(self, traces: Iterable[Trace], wanted: Wanted, corpus: _Corpus) -> None:
        for trace in _kept(traces, wanted, corpus.tally):
            row = chat_row(trace)
            fault = chat_fault(trace, self.render) if row["messages"] else "nothing was said"
            if fault is not None:
                corpus.tally.left_out[fault] += 1
            else:
                corpus.add(_key(trace), row["messages"], row, trace)


class _Preference:
    def __init__(self) -> None:
        self.about: Row = {}

    def write(self, traces: Iterable[Trace], wanted: Wanted, corpus: _Corpus) -> None:
        if not (wanted.labels or wanted.verdicts or wanted.scores):
            raise ConfigError("a preference needs min_outcome: the labels that only the better sample has")
        cases: dict[str, tuple[list[Trace], list[Trace]]] = {}
        for trace in traces:
            corpus.tally.read += 1
            reason = wanted.unfit(trace) or chat_fault(trace, None)
            if reason is not None:
                corpus.tally.left_out[reason] += 1
                continue
            better, worse = cases.setdefault(trace.datapoint.fingerprint, ([], []))
            (worse if wanted.falls_short(trace) else better).append(trace)
        for better, worse in cases.values():
            self._write_case(sorted(better, key=_key), sorted(worse, key=_key), corpus)

    def _write_case(self, better: list[Trace], worse: list[Trace], corpus: _Corpus) -> None:
        if not better or not worse:
            corpus.tally.left_out["all samples have one outcome"] += len(better) + len(worse)
            return
        pairs = ((good, bad) for good in better for bad in worse)
        for (good, bad), row in zip(pairs, preference_rows(better, worse), strict=True):
            if isinstance(row, str):
                corpus.tally.left_out[f"pair: {row}"] += 1
            else:
                corpus.add(_key(good), [row[part] for part in ("prompt", "chosen", "rejected")], row, good, bad)


def _kept(traces: Iterable[Trace], wanted: Wanted, tally: Tally) -> Iterator[Trace]:
    for trace in traces:
        tally.read += 1
        reason = wanted.refusal(trace)
        if reason is None:
            yield trace
        else:
            tally.left_out[reason] += 1


def _rows_in(style: Style, template: str | PathLike[str] | Render | None) -> _Tagged | _Chat | _Preference:
    given = template
    match style:
        case "tagged" if given is None or isinstance(given, str | PathLike):
            return _Tagged(load_template(given))
        case "chat" if given is None or not isinstance(given, str | PathLike):
            return _Chat(given)
        case "preference" if given is None:
            return _Preference()
        case "tagged" | "chat" | "preference":
            raise ConfigError(
                f"this template does not go with format {style!r}: a file of tags goes with 'tagged', a "
                "function from messages to text with 'chat'"
            )
    raise ConfigError(f"no such format: {style!r}; there is {', '.join(STYLES)}")


def load_template(path: str | PathLike[str] | None = None) -> Template:
    """The template in a JSON file; the one that ships unless one is named. ``ConfigError`` says what is wrong."""
    try:
        if path is None:
            text = (files("evaluatorq") / "_templates" / "tagged-1.json").read_text(encoding="utf-8")
        else:
            text = Path(path).read_text(encoding="utf-8")
        return Template.model_validate_json(text)
    except OSError as error:
        raise ConfigError(f"cannot read the template {path}: {error.strerror}") from None
    except ValidationError as error:
        raise ConfigError(f"the template {path}: {error.errors(include_url=False)[0]['msg']}") from None


__all__ = [
    "STYLES", "Template", "Wanted", "integration_trace", "load_template", "open_trace_store", "read_integration_trace",
    "read_trace", "to_training_jsonl", "traces_of_run",
]  # fmt: skip
