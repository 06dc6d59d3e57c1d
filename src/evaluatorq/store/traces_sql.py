"""Traces in a database through SQLAlchemy: a table of documents, and one of labels to find them by.

The document is kept as text, byte for byte what was written, so that a database changes nothing about it. Times are
whole microseconds since 1970 in UTC, which every database compares alike.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from pydantic import JsonValue
from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    MetaData,
    Select,
    String,
    Table,
    Text,
    create_engine,
    exists,
    insert,
    inspect,
    select,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from evaluatorq.errors import ConfigError, StoreError
from evaluatorq.model.trace import TRACE_SCHEMA, Trace
from evaluatorq.ports import TraceQuery
from evaluatorq.records.trace_versions import read_trace
from evaluatorq.store.atomic import PRIVATE_FILE
from evaluatorq.store.traces import another_has_its_id, digest_of_trace, in_utc, labels_of

_META = MetaData()
TRACES = Table(
    "evaluatorq_traces",
    _META,
    Column("thread_id", String(255), primary_key=True),
    Column("run_id", String(255), nullable=False, index=True),
    Column("schema", String(64), nullable=False),
    Column("at_us", BigInteger, nullable=False, index=True),
    Column("digest", String(64), nullable=False),
    Column("document", Text, nullable=False),
)
LABELS = Table(
    "evaluatorq_trace_labels",
    _META,
    Column("thread_id", String(255), ForeignKey(TRACES.c.thread_id, ondelete="CASCADE"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("value", String(255), nullable=False),
    Index("evaluatorq_trace_labels_value", "name", "value"),
)
_EPOCH = in_utc(datetime(1970, 1, 1))  # noqa: DTZ001  in_utc gives it its zone
_DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


class SqlTraceStore:
    """A ``TraceStore`` in the database at ``url``; its tables are made when they are not there, unless they must be."""

    def __init__(self, url: str, *, existing: bool = False) -> None:
        scheme, _, rest = url.partition("://")
        try:
            parsed = make_url(f"{_DRIVERS.get(scheme, scheme)}://{rest}")
            if existing:
                _check_file(parsed)
            else:
                _make_private(parsed)
            self._engine = create_engine(parsed)
        except (SQLAlchemyError, ImportError) as error:
            raise ConfigError(f"{scheme}://… is no database that can be opened here: {_one_line(error)}") from None
        weakref.finalize(self, self._engine.dispose)  # connections live as long as the store
        self._where = parsed.render_as_string(hide_password=True)
        try:
            if not existing:
                _META.create_all(self._engine)
            elif not inspect(self._engine).has_table(TRACES.name):
                raise ConfigError(f"{self._where} holds no traces: it has no table {TRACES.name}")
        except SQLAlchemyError as error:
            raise self._failed("open", error) from None

    def append(self, trace: Trace) -> bool:
        """Keeps a trace: ``False`` where the same is there already, ``StoreError`` where another one has its id."""
        digest = digest_of_trace(trace.document())
        row = {
            "thread_id": trace.thread_id,
            "run_id": trace.run.id,
            "schema": TRACE_SCHEMA,
            "at_us": _microseconds(trace.at),
            "digest": digest,
            "document": trace.line().decode(),
        }
        labels = [
            {"thread_id": trace.thread_id, "name": name, "value": _as_text(value)}
            for name, value in labels_of(trace).items()
        ]
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(TRACES), row)
                connection.execute(insert(LABELS), labels)
        except IntegrityError:
            return self._was_there(trace, digest)
        except SQLAlchemyError as error:
            raise self._failed("write to", error) from None
        return True

    def get(self, thread_id: str) -> Trace | None:
        """The trace of a conversation."""
        found = list(self._documents(select(TRACES.c.document).where(TRACES.c.thread_id == thread_id)))
        return read_trace(json.loads(found[0])) if found else None

    def query(self, wanted: TraceQuery) -> Iterator[Trace]:
        """The traces that fit, by time and then by id."""
        statement = select(TRACES.c.document)
        if wanted.run is not None:
            statement = statement.where(TRACES.c.run_id == wanted.run)
        if wanted.schema is not None:
            statement = statement.where(TRACES.c.schema == wanted.schema)
        if wanted.since is not None:
            statement = statement.where(TRACES.c.at_us >= _microseconds(wanted.since))
        if wanted.until is not None:
            statement = statement.where(TRACES.c.at_us < _microseconds(wanted.until))
        for name, value in wanted.labels.items():
            of_trace = LABELS.c.thread_id == TRACES.c.thread_id
            statement = statement.where(
                exists().where(of_trace, LABELS.c.name == name, LABELS.c.value == _as_text(value))
            )
        for text in self._documents(statement.order_by(TRACES.c.at_us, TRACES.c.thread_id)):
            yield read_trace(json.loads(text))

    def _documents(self, statement: Select[str]) -> Iterator[str]:
        try:
            with self._engine.connect().execution_options(yield_per=100) as connection:
                yield from connection.scalars(statement)
        except SQLAlchemyError as error:
            raise self._failed("read", error) from None

    def _was_there(self, trace: Trace, digest: str) -> bool:
        statement = select(TRACES.c.digest).where(TRACES.c.thread_id == trace.thread_id)
        if list(self._documents(statement)) != [digest]:
            raise another_has_its_id(trace)
        return False

    def _failed(self, what: str, error: SQLAlchemyError) -> StoreError:
        return StoreError(f"cannot {what} the traces in {self._where}: {_one_line(error)}")


def _file_of(url: URL) -> Path | None:
    """The file that a database is, where it is one."""
    name = url.database if url.get_backend_name() == "sqlite" else None
    return Path(name) if name and name != ":memory:" and not name.startswith("file:") else None


def _check_file(url: URL) -> None:
    """Refuses a database in a file that is not there, which looking into would make."""
    file = _file_of(url)
    if file is not None and not file.is_file():
        raise ConfigError(f"no such database: {url.render_as_string(hide_password=True)}")


def _make_private(url: URL) -> None:
    """Makes the file of a new database its owner's alone, as transcripts are; SQLite gives its own files that mode."""
    file = _file_of(url)
    if file is not None:
        with suppress(OSError):  # there already, or to be refused in SQLite's words
            os.close(os.open(file, os.O_CREAT | os.O_EXCL, PRIVATE_FILE))


def _microseconds(moment: datetime) -> int:
    return (in_utc(moment) - _EPOCH) // timedelta(microseconds=1)


def _as_text(value: JsonValue) -> str:
    """A label's value so that ``true``, ``1`` and ``"1"`` differ and ``1`` is ``1.0``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


def _one_line(error: Exception) -> str:
    return " ".join(str(error.__cause__ or error).split())[:300]
