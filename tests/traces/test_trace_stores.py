"""The same store of traces in a file, in SQLite and in a real PostgreSQL server."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from trace_samples import SAMPLES, made

from evaluatorq.errors import ConfigError, SchemaError, StoreError
from evaluatorq.model.trace import Trace
from evaluatorq.ports import TraceQuery
from evaluatorq.store.trace_conformance import BrokenTraceStore, sample_traces
from evaluatorq.store.traces import open_trace_store
from evaluatorq.store.traces_jsonl import JsonlTraceStore
from evaluatorq.testing import check_trace_store


def test_a_file_keeps_the_port(tmp_path: Path) -> None:
    check_trace_store(lambda: open_trace_store(tmp_path / "deep" / "traces.jsonl"))
    assert (tmp_path / "deep" / "traces.jsonl").stat().st_mode & 0o077 == 0


def test_a_store_of_transcripts_is_its_owners_alone_whatever_it_is_kept_in(tmp_path: Path) -> None:
    for where in (str(tmp_path / "t.jsonl"), f"sqlite:///{tmp_path}/t.db"):
        open_trace_store(where).append(made("refund"))
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_sqlite_keeps_the_port(tmp_path: Path) -> None:
    check_trace_store(lambda: open_trace_store(f"sqlite:///{tmp_path}/traces.db"))


def test_a_postgresql_server_keeps_the_port(postgresql: str) -> None:
    check_trace_store(lambda: open_trace_store(postgresql))


def test_the_check_finds_a_store_that_forgets() -> None:
    class Forgetful:
        def append(self, trace: Trace) -> bool:
            return True

        def get(self, thread_id: str) -> Trace | None:
            return None

        def query(self, wanted: TraceQuery) -> Iterator[Trace]:
            return iter(())

    with pytest.raises(BrokenTraceStore):
        check_trace_store(Forgetful)


def test_every_kind_of_trace_comes_back_from_every_store(tmp_path: Path, postgresql: str) -> None:
    for where in (str(tmp_path / "t.jsonl"), f"sqlite:///{tmp_path}/t.db", postgresql):
        for name in SAMPLES:
            trace = made(name).model_copy(update={"thread_id": f"{name}:0"})
            store = open_trace_store(where)
            assert store.append(trace)
            found = store.get(f"{name}:0")
            assert found is not None
            assert found.document() == trace.document()


# ---------------------------------------------------------------- the file


def test_a_torn_last_line_is_not_read_and_the_next_writer_takes_it_away(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first, second, third, *_ = sample_traces()
    path.write_bytes(first.line() + second.line()[:100])
    store = JsonlTraceStore(path)
    assert [trace.thread_id for trace in store.query(TraceQuery())] == ["r1:0"]
    assert store.append(third)
    assert path.read_bytes() == first.line() + third.line()
    assert store.damage == []


def test_a_broken_line_in_the_middle_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first, second, *_ = sample_traces()
    path.write_bytes(first.line() + b"{]\n[]\n" + second.line())
    store = JsonlTraceStore(path)
    assert [trace.thread_id for trace in store.query(TraceQuery())] == ["r1:0", "r1:1"]
    assert store.damage == [f"{path}:2: not a trace", f"{path}:3: not a trace"]


def test_older_traces_in_a_file_are_upgraded_and_found_by_their_tag(tmp_path: Path) -> None:
    old = (Path(__file__).parents[1] / "golden" / "trace-0" / "outside.json").read_text(encoding="utf-8")
    path = tmp_path / "t.jsonl"
    path.write_text(" ".join(old.split("\n")) + "\n", encoding="utf-8")
    found = list(JsonlTraceStore(path).query(TraceQuery(schema="evaluatorq.trace/0")))
    assert [trace.document() for trace in found] == [made("outside").document()]


def test_a_trace_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(sample_traces()[0].line().replace(b"evaluatorq.trace/1", b"evaluatorq.trace/9"))
    with pytest.raises(SchemaError, match="newer than this version"):
        JsonlTraceStore(path).get("r1:0")


def test_a_folder_in_place_of_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        JsonlTraceStore(tmp_path).append(sample_traces()[0])


def _write_all(path: str, reverse: bool) -> None:
    store = JsonlTraceStore(path)
    traces = [
        trace.model_copy(update={"thread_id": f"{i}:{trace.thread_id}"}) for i in range(20) for trace in sample_traces()
    ]
    for trace in reversed(traces) if reverse else traces:
        store.append(trace)


def test_processes_that_write_at_once_keep_each_trace_once(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_all, args=(str(path), bool(n % 2))) for n in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    store = JsonlTraceStore(path)
    assert len(list(store.query(TraceQuery()))) == path.read_bytes().count(b"\n") == 120
    assert store.damage == []


# ---------------------------------------------------------------- databases


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nosuch://x", "no database that can be opened here"),
        ("postgresql://me:hunter2@127.0.0.1:1/x", "cannot open the traces in postgresql"),
        ("sqlite:////nowhere/at/all.db", "cannot open the traces"),
    ],
)
def test_a_database_that_cannot_be_opened_is_told_without_its_password(url: str, says: str) -> None:
    with pytest.raises((ConfigError, StoreError), match=says) as told:
        open_trace_store(url)
    assert "hunter2" not in str(told.value)


SERVE = """
trap '' PIPE
trap '"$1/pg_ctl" -D "$2/data" -m immediate stop; rm -rf "$2"' EXIT
set -e
"$1/initdb" -D "$2/data" -A trust -U tests --no-sync -E UTF8
"$1/pg_ctl" -D "$2/data" -w -l "$2/log" \\
  -o "-c listen_addresses='' -c unix_socket_directories='$2' -c fsync=off" start
echo ready >&3
cat >/dev/null
"""
"""Serves until its standard input ends, which it does with the process that holds it, however that one dies."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A PostgreSQL server of this test's own on a loopback socket; the database's own programs must be installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin")) or [Path(found).parent for found in _pg_ctl()]
    if not programs:
        pytest.skip("no PostgreSQL server is installed (Debian: apt-get install postgresql)")
    base = Path(subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip())
    account = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if account:
        shutil.chown(base, "postgres")
    words = [*account, "sh", "-c", f"{{ {SERVE} }} 3>&1 >/dev/null 2>&1", "sh", str(programs[-1]), str(base)]
    keeper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", start_new_session=True)
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        assert keeper.stdout.readline() == b"ready\n"
        yield f"postgresql://tests@/postgres?host={base}"
    finally:
        keeper.stdin.close()
        keeper.wait()
        keeper.stdout.close()


def _pg_ctl() -> list[str]:
    found = shutil.which("pg_ctl")
    return [found] if found else []


@pytest.fixture
def postgresql(server: str) -> str:
    """The server with no traces in it."""
    from sqlalchemy import create_engine, text

    engine = create_engine(server.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS evaluatorq_trace_labels, evaluatorq_traces"))
    engine.dispose()
    return server
