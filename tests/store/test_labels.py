"""The file of labels: whole with every change, safe with two writers, clear about what it cannot read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from evaluatorq.errors import ReplayError, SchemaError, StoreError
from evaluatorq.model.labels import Label
from evaluatorq.store.labels import LabelFile


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
        LabelFile.beside(run).put(label)
    assert list(LabelFile.beside(run).read().values()) == sorted(labels, key=lambda label: label.row)
    LabelFile.beside(run).remove((2, "goal"))
    LabelFile.beside(run).remove((9, "goal"))
    assert [label.row for label in LabelFile.beside(run).read().values()] == [1, 3]


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run_1.json"
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(lambda row: LabelFile.beside(run).put(a_label(row)), range(60)))
    assert [label.row for label in LabelFile.beside(run).read().values()] == list(range(60))
    assert [path.name for path in tmp_path.iterdir()] == ["run_1.labels.jsonl"]


def test_a_line_that_is_no_label_is_named_and_nothing_is_written_over_it(tmp_path: Path) -> None:
    run = tmp_path / "run_1.json"
    LabelFile.beside(run).put(a_label(0))
    with LabelFile.beside(run).path.open("a") as file:
        file.write('{"row": 1}\n')
    with pytest.raises(ReplayError, match=r"run_1\.labels\.jsonl:2: this is no label: [a-z_]+ is missing$"):
        LabelFile.beside(run).read()
    LabelFile.beside(run).path.write_text(LabelFile.beside(run).path.read_text().replace('{"row": 1}', "torn {"))
    before = LabelFile.beside(run).path.read_bytes()
    with pytest.raises(ReplayError, match=r"run_1\.labels\.jsonl:2: this is no label"):
        LabelFile.beside(run).put(a_label(1))
    assert LabelFile.beside(run).path.read_bytes() == before


def test_labels_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    run = tmp_path / "run_1.json"
    LabelFile.beside(run).path.write_text(a_label(0, label_version=2).model_dump_json())
    with pytest.raises(SchemaError, match="newer"):
        LabelFile.beside(run).read()


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write in"):
        LabelFile.beside(tmp_path / "gone" / "run.json").put(a_label(0))


def test_labels_from_before_a_run_had_a_file_are_its_own_and_move_with_the_first_change(tmp_path: Path) -> None:
    early = LabelFile.of_unfinished("ab12", tmp_path)
    for row in (0, 1):
        early.put(a_label(row, note="early", run_id="ab12"))
    saved = LabelFile.beside(tmp_path / "run_1.json", "ab12")
    assert [label.note for label in saved.read().values()] == ["early", "early"]
    saved.put(a_label(1, note="late"))
    saved.remove((0, "goal"))
    assert [label.note for label in saved.read().values()] == ["late"]
    assert [path.name for path in tmp_path.iterdir()] == ["run_1.labels.jsonl"]
    assert LabelFile.beside(tmp_path / "run_2.json", "cd34").read() == {}


def test_a_run_file_that_is_called_by_its_id_keeps_its_labels(tmp_path: Path) -> None:
    LabelFile.of_unfinished("ab12", tmp_path).put(a_label(0, run_id="ab12"))
    saved = LabelFile.beside(tmp_path / "ab12.json", "ab12")
    for row in (1, 2):
        saved.put(a_label(row, run_id="ab12"))
    assert [row for row, _ in saved.read()] == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["ab12.labels.jsonl"]


@pytest.mark.parametrize("stem", ["good_1", "good_1.early", "good_1.labels", "good_1.labels.early"])
def test_a_run_whose_id_is_the_name_of_another_leaves_the_others_labels(tmp_path: Path, stem: str) -> None:
    good = LabelFile.beside(tmp_path / f"{stem}.json", "ab12")
    good.put(a_label(0, run_id="ab12"))
    for run_id in (stem, "good_1"):
        other = LabelFile.beside(tmp_path / "other_1.json", run_id)
        other.put(a_label(1, run_id=run_id))
        assert [row for row, _ in other.read()] == [1]
    assert [row for row, _ in good.read()] == [0]


def test_early_labels_that_name_another_run_stay_where_they_are(tmp_path: Path) -> None:
    early = LabelFile.of_unfinished("ab12", tmp_path)
    early.put(a_label(0, run_id="ab12"))
    early.put(a_label(1, run_id="cd34"))
    saved = LabelFile.beside(tmp_path / "run_1.json", "ab12")
    saved.put(a_label(2, run_id="ab12"))
    assert [row for row, _ in saved.read()] == [0, 2]
    assert [row for row, _ in early.read()] == [1]
