"""The file of labels: whole with every change, safe with two writers, clear about what it cannot read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evaluatorq.errors import ReplayError, SchemaError, StoreError
from evaluatorq.model.labels import Label
from evaluatorq.store.labels import labels_path, read_labels, remove_label, write_label


def a_label(row: int, **fields: object) -> Label:
    values: dict[str, object] = {
        "row": row, "persona": "Ann", "scenario": "Refund", "subject": "goal", "rule": "goal", "said": "achieved",
        "agrees": True, "at": datetime(2026, 1, 1, tzinfo=UTC),
    }  # fmt: skip
    return Label.model_validate({**values, **fields})


def test_labels_come_back_as_they_were_given(tmp_path: Path) -> None:
    run = tmp_path / "run_1.json"
    labels = [a_label(row, note="line\u2028break \U0001f600 \x85") for row in (3, 1, 2)]
    for label in labels:
        write_label(run, label)
    assert list(read_labels(run).values()) == sorted(labels, key=lambda label: label.row)
    remove_label(run, (2, "goal"))
    remove_label(run, (9, "goal"))
    assert [label.row for label in read_labels(run).values()] == [1, 3]


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run_1.json"
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda row: write_label(run, a_label(row)), range(60)))
    assert [label.row for label in read_labels(run).values()] == list(range(60))
    assert [path.name for path in tmp_path.iterdir()] == ["run_1.labels.jsonl"]


def test_a_line_that_is_no_label_is_named_and_nothing_is_written_over_it(tmp_path: Path) -> None:
    run = tmp_path / "run_1.json"
    write_label(run, a_label(0))
    with labels_path(run).open("a") as file:
        file.write('{"row": 1}\n')
    with pytest.raises(ReplayError, match=r"run_1\.labels\.jsonl:2: this is no label: [a-z_]+ is missing$"):
        read_labels(run)
    labels_path(run).write_text(labels_path(run).read_text().replace('{"row": 1}', "torn {"))
    before = labels_path(run).read_bytes()
    with pytest.raises(ReplayError, match=r"run_1\.labels\.jsonl:2: this is no label"):
        write_label(run, a_label(1))
    assert labels_path(run).read_bytes() == before


def test_labels_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run_1.json"
    labels_path(run).write_text(a_label(0, label_version=2).model_dump_json())
    with pytest.raises(SchemaError, match="newer"):
        read_labels(run)


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write in"):
        write_label(tmp_path / "gone" / "run.json", a_label(0))
