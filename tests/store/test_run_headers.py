"""A run's header is read without its lists, wherever in the file they begin and end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluatorq.errors import ReplayError
from evaluatorq.store.run_files import head_of, read_header, run_parts
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
