"""A run's header is read without its lists, wherever in the file they begin and end, and each list by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluatorq.errors import ReplayError
from evaluatorq.store.run_counts import counted
from evaluatorq.store.run_files import head_of, iter_datapoints, iter_results, read_header, run_parts, texts_of
from evaluatorq.store.runs import list_runs
from made_runs import datapoints, header, talk

POINTS = datapoints(5)
RUN = header(run_id="a" * 32, datapoints=POINTS, total_results=5, config={"note": "results and datapoints"})


def saved(folder: Path, *, change: Callable[[bytes], bytes] = bytes) -> Path:
    results = (talk(point, row, said='a list: "results": [').model_dump_json(indent=2).encode()
               for row, point in enumerate(POINTS))  # fmt: skip
    path = folder / "run.json"
    path.write_bytes(change(b"".join(run_parts(RUN, results))))
    return path


@pytest.mark.parametrize("at_once", [40, 64, 65, 97, 1_000, 1 << 20])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_header_is_the_same_however_much_is_read_at_once(tmp_path: Path, at_once: int, newline: bytes) -> None:
    path = saved(tmp_path, change=lambda text: text.replace(b"\n", newline))
    assert head_of(path, at_once) == {**json.loads(path.read_bytes()), "results": [], "datapoints": []}
    assert read_header(path) == RUN.model_copy(update={"results": [], "datapoints": None})


def test_a_run_on_one_line_is_read_as_well(tmp_path: Path) -> None:
    found = read_header(saved(tmp_path, change=lambda text: json.dumps(json.loads(text)).encode()))
    assert (found.run_id, found.total_results) == ("a" * 32, 5)


def test_a_list_that_does_not_end_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="not a simulation run"):
        read_header(saved(tmp_path, change=lambda text: text[: len(text) // 2]))


def test_a_byte_that_is_no_text_is_named_with_its_result_and_leaves_the_other_lists_readable(tmp_path: Path) -> None:
    path = saved(tmp_path, change=lambda text: b"\x9a".join(text.rsplit(b'a list: "'.replace(b'"', b'\\"'), 1)))
    results = iter_results(path)
    assert [next(results).thread_id for _ in range(4)]
    with pytest.raises(ReplayError, match=r"run\.json: results\[4\] cannot be read: .*unicode"):
        next(results)
    assert list(iter_datapoints(path)) == POINTS
    (row,) = list_runs(tmp_path)
    assert (row.status, counted(row)) == ("completed", row)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_the_lists_are_read_whatever_ends_a_line(tmp_path: Path, newline: bytes) -> None:
    path = saved(tmp_path, change=lambda text: text.replace(b"\n", newline))
    assert [len(list(texts_of(path, key))) for key in ("results", "datapoints", "else")] == [5, 5, 0]
    assert list(iter_datapoints(path)) == POINTS
