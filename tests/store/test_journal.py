"""The journal keeps every whole line, says which lines are broken, and is written by one process at a time."""

from __future__ import annotations

import fcntl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluatorq.errors import ReplayError, SchemaError, StoreError
from evaluatorq.model.events import Ended, Started, UserSpoke
from evaluatorq.store.journal import Journal, JournalReader, is_held
from evaluatorq.testing import FakeClock, a_plan

CLOCK = FakeClock()
SEAL = len(',"crc":"00000000"}')
EVENTS = [
    Started(at=CLOCK.now()),
    UserSpoke(at=CLOCK.now(), text="Grüße \U0001f600 \x00\u2028 end", usage=None),
    Ended(at=CLOCK.now(), terminated_by="judge", ended_by="judge", reason="done"),
]


def written(folder: Path) -> bytes:
    with Journal.create(folder, a_plan()) as journal:
        for row in (0, 3):
            for event in EVENTS:
                journal.append(row, event)
    return (folder / "0001.jsonl").read_bytes()


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    written(tmp_path / "run")
    reader = JournalReader(tmp_path / "run")
    assert reader.plan == a_plan()
    assert [(line.row, line.event) for line in reader.lines()] == [(row, event) for row in (0, 3) for event in EVENTS]
    assert reader.damage == []


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_journal_cut_at_any_byte_keeps_every_whole_line(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "cut"
    whole = (tmp_path / "run" / "0001.jsonl").read_bytes() if (tmp_path / "run").exists() else written(tmp_path / "run")
    cut = data.draw(st.integers(0, len(whole)))
    folder.mkdir(exist_ok=True)
    (folder / "0001.jsonl").write_bytes(whole[:cut])
    reader = JournalReader(folder)
    lines = whole[:cut].count(b"\n")
    if cut <= whole.index(b"\n"):
        with pytest.raises(ReplayError):
            _ = reader.plan
        return
    assert reader.plan == a_plan()
    assert len(list(reader.lines())) == max(0, lines - 1)
    assert reader.damage == []


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_journal_corrupted_at_any_byte_names_the_line_and_keeps_the_rest(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "bad"
    whole = (tmp_path / "run" / "0001.jsonl").read_bytes() if (tmp_path / "run").exists() else written(tmp_path / "run")
    start = whole.index(b"\n") + 1
    at = data.draw(st.integers(start, len(whole) - 2).filter(lambda i: whole[i] != ord("\n")))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (whole[at], ord("\n"))))
    number = whole[:at].count(b"\n") + 1
    folder.mkdir(exist_ok=True)
    (folder / "0001.jsonl").write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
    reader = JournalReader(folder)
    in_seal = at >= whole.index(b"\n", at) - SEAL
    kept = [line.event for line in reader.lines()]
    assert [event for event in kept if event not in EVENTS] == [], "nothing is read that was not written"
    if not in_seal or len(kept) < 2 * len(EVENTS):
        assert len(kept) == 2 * len(EVENTS) - 1
        assert reader.damage[0].startswith(f"0001.jsonl:{number}: ")


def test_a_second_writer_is_refused_while_the_first_one_lives(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Journal.create(folder, a_plan()):
        assert is_held(folder)
        with pytest.raises(StoreError, match="another process"):
            Journal.reopen(folder)
    assert not is_held(folder)


def test_looking_whether_a_run_is_written_leaves_no_trace_and_fools_no_other_looker(tmp_path: Path) -> None:
    written(tmp_path / "run")
    (tmp_path / "run" / "lock").unlink()
    assert not is_held(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["0001.jsonl"]
    with Journal.reopen(tmp_path / "run"):
        pass
    with looking(tmp_path / "run"):
        assert not is_held(tmp_path / "run")


def test_a_writer_waits_a_moment_for_somebody_who_only_looks(tmp_path: Path) -> None:
    """On a busy machine the moment is longer than one thinks."""
    written(tmp_path / "run")
    look = looking(tmp_path / "run")
    look.__enter__()
    timer = threading.Timer(0.25, look.__exit__, (None, None, None))
    timer.start()
    Journal.reopen(tmp_path / "run").close()
    timer.join()


@contextmanager
def looking(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def test_a_later_process_writes_its_own_part_and_both_are_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Journal.create(folder, a_plan()) as journal:
        journal.append(0, EVENTS[0])
    with Journal.reopen(folder) as journal:
        journal.append(0, EVENTS[1])
    lines = list(JournalReader(folder).lines())
    assert [(line.part, line.event) for line in lines] == [("0001", EVENTS[0]), ("0002", EVENTS[1])]


def test_a_torn_line_is_dropped_also_when_a_later_part_follows(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Journal.create(folder, a_plan()) as journal:
        journal.append(0, EVENTS[0])
    with (folder / "0001.jsonl").open("ab") as file:
        file.write(b'{"row":0,"kind":"user_sp')
    with Journal.reopen(folder) as journal:
        journal.append(0, EVENTS[1])
    assert [line.event for line in JournalReader(folder).lines()] == EVENTS[:2]


def test_a_newer_journal_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    newer = a_plan().model_dump_json().replace('"journal_version":1', '"journal_version":99')
    (folder / "0001.jsonl").write_text('{"kind":"plan",' + newer[1:] + "\n")
    with pytest.raises(SchemaError, match="99"):
        _ = JournalReader(folder).plan


def test_journal_files_are_private(tmp_path: Path) -> None:
    written(tmp_path / "run")
    assert (tmp_path / "run").stat().st_mode & 0o077 == 0
    assert (tmp_path / "run" / "0001.jsonl").stat().st_mode & 0o077 == 0


def test_a_folder_that_cannot_be_made_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create"):
        Journal.create(tmp_path / "file" / "run", a_plan())


def test_a_full_disk_stops_with_its_name_and_leaves_whole_lines() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this machine has no /dev/full")
    import os

    journal = Journal(Path("run"), os.open("/dev/null", os.O_RDONLY), os.open(full, os.O_WRONLY))
    with pytest.raises(StoreError, match="No space left"):
        journal.append(0, EVENTS[0])
    journal.close()
