"""The index of a run file finds exactly the results that reading the file finds, whatever its layout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluatorq.errors import ReplayError
from evaluatorq.model.results import SimulationResult
from evaluatorq.store.run_index import RunIndex
from evaluatorq.store.runs import read_run, run_parts
from made_runs import datapoints, header, talk

NASTY = 'brace }\n    }\n  ]\n    {\r\n "results": [ \\" \u2028 \x00 ünï \U0001f600'


def results() -> list[SimulationResult]:
    return [talk(point, row, said=f"{NASTY}{row}") for row, point in enumerate(datapoints(5))]


def written(path: Path, made: list[SimulationResult]) -> Path:
    about = header(total_results=len(made), datapoints=datapoints(5))
    path.write_bytes(b"".join(run_parts(about, (result.model_dump_json(indent=2).encode() for result in made))))
    return path


@pytest.mark.parametrize("layout", ["ours", "windows", "compact", "wide", "empty"])
def test_every_result_is_found_at_its_place(tmp_path: Path, layout: str) -> None:
    made = [] if layout == "empty" else results()
    path = written(tmp_path / "run.json", made)
    if layout == "windows":
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    elif layout in ("compact", "wide"):
        path.write_text(json.dumps(json.loads(path.read_bytes()), indent=None if layout == "compact" else 4))
    index = RunIndex.of(path)
    assert list(index) == read_run(path).results == made
    assert len(index) == len(made)
    for position in reversed(range(len(made))):
        assert index.result(position) == made[position]
        assert SimulationResult.model_validate_json(index.text(position)) == made[position]
    with pytest.raises(IndexError):
        index.result(len(made))


def test_a_file_that_is_no_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"some": "thing"}')
    with pytest.raises(ReplayError, match="not a simulation run"):
        RunIndex.of(path)
