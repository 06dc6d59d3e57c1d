"""Labels on verdicts through the page: kept, shown, replaced, taken away, counted and exported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from viewing import Viewer, unfinished

from evaluatorq.cli import main
from evaluatorq.model.labels import Label
from evaluatorq.store.labels import LabelFile


def labels_of(viewer: Viewer) -> list[Label]:
    return list(LabelFile.beside(next(viewer.folder.glob("good_*.json"))).read().values())


def test_a_label_holds_all_that_calibrating_a_judge_needs(own_viewer: Viewer) -> None:
    own_viewer.label("good", 4, say="disagree", note="  it only\nhinted at it ")
    [label] = labels_of(own_viewer)
    assert (label.row, label.subject, label.agrees, label.note) == (4, "criteria_0", False, "it only hinted at it")
    assert label.rule == "must happen: The agent says that the refund window is 30 days"
    assert (label.said, label.source, label.evidence) == ("held", "check", "30 days")
    assert (label.persona, label.scenario) == ("Blunt engineer", "Refund after the window closed")
    assert label.thread_id == f"{label.run_id}:4"


def test_a_later_label_replaces_the_earlier_and_remove_takes_it_away(own_viewer: Viewer) -> None:
    own_viewer.label("good", 4)
    own_viewer.label("good", 4, say="disagree")
    own_viewer.label("good", 4, subject="goal")
    own_viewer.label("good", 0, subject="verdict")
    assert [(label.row, label.subject, label.agrees) for label in labels_of(own_viewer)] == [
        (0, "verdict", True), (4, "criteria_0", False), (4, "goal", True),
    ]  # fmt: skip
    own_viewer.label("good", 4, say="remove")
    assert [label.subject for label in labels_of(own_viewer)] == ["verdict", "goal"]


def test_the_page_shows_the_label_and_goes_back_to_where_it_was_given(own_viewer: Viewer) -> None:
    answer = own_viewer.label("good", 4, note="indeed")
    assert answer.headers["location"] == f"/runs/{own_viewer.key('good')}/4#v-criteria_0"
    page = own_viewer.get(f"/runs/{own_viewer.key('good')}/4")
    assert "you agree" in page
    assert "indeed" in page


@pytest.mark.parametrize("fields", [{"subject": "criteria_99"}, {"subject": ""}, {"say": "maybe"}, {"say": ""}])
def test_a_label_on_nothing_is_refused(own_viewer: Viewer, fields: dict[str, str]) -> None:
    assert own_viewer.label("good", 4, **fields).status_code == 400
    assert labels_of(own_viewer) == []


def test_agreement_is_counted_and_the_export_is_the_file(own_viewer: Viewer) -> None:
    for number in range(3):
        own_viewer.label("good", number)
    own_viewer.label("good", 3, say="disagree", subject="goal")
    page = own_viewer.get(f"/runs/{own_viewer.key('good')}/labels")
    assert "Agreement with 3 of 4 labelled verdicts (75 %" in page
    answer = own_viewer.client.get(f"/runs/{own_viewer.key('good')}/labels.jsonl")
    assert answer.content == LabelFile.beside(next(own_viewer.folder.glob("good_*.json"))).path.read_bytes()
    assert "attachment" in answer.headers["content-disposition"]


def test_a_run_that_is_not_finished_is_labelled_and_keeps_it(
    own_viewer: Viewer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = next(own_viewer.folder.glob("flawed_*.json"))
    saved = file.read_bytes()
    run_id = unfinished(own_viewer.folder)
    data = {"token": own_viewer.site.forms.token, "subject": "goal", "say": "agree", "note": "early"}
    assert own_viewer.client.post(f"/runs/{run_id}/4/labels", data=data).status_code == 303
    assert "you agree" in own_viewer.get(f"/runs/{run_id}/4")
    assert "Labels (1)" in own_viewer.get(f"/runs/{run_id}")
    assert "Agreement with 1 of 1" in own_viewer.get(f"/runs/{run_id}/labels")
    exported = own_viewer.get(f"/runs/{run_id}/labels.jsonl")
    monkeypatch.setenv("EVALUATORQ_DIR", str(own_viewer.folder.parent))
    assert main(["sim", "labels", run_id[:12]]) == 0
    assert capsys.readouterr().out == exported
    file.write_bytes(saved)
    assert "early" in own_viewer.get(f"/runs/{file.stem}/4")
    assert main(["sim", "labels", "flawed"]) == 0
    assert capsys.readouterr().out == exported
    own_viewer.label("flawed", 5)
    assert [(label.row, label.note) for label in LabelFile.beside(file).read().values()] == [(4, "early"), (5, "")]


def test_a_conversation_that_goes_on_has_no_verdict_to_label(own_viewer: Viewer) -> None:
    run_id = unfinished(own_viewer.folder)
    (journal,) = (own_viewer.folder / ".journal" / run_id).glob("*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    ended = max(at for at, line in enumerate(lines) if b'"kind":"ended"' in line)
    journal.write_bytes(b"".join(lines[:ended]))
    (going,) = {0, *range(48)} - set(own_viewer.site.library.open(own_viewer.site.shelf.find(run_id)).entries)
    assert '<form class="label"' not in own_viewer.get(f"/runs/{run_id}/{going}")
    data = {"token": own_viewer.site.forms.token, "subject": "goal", "say": "agree"}
    assert own_viewer.client.post(f"/runs/{run_id}/{going}/labels", data=data).status_code == 404


def test_conversations_are_chosen_by_their_labels(own_viewer: Viewer) -> None:
    own_viewer.label("good", 4, say="disagree")
    own_viewer.label("good", 7, subject="goal")
    own_viewer.label("good", 7, subject="verdict", say="disagree")

    def shown(label: str) -> list[int]:
        page = own_viewer.get(f"/runs/{own_viewer.key('good')}?label={label}&sort=number")
        return [int(number) for number in re.findall(r'<td class="n dim first">(\d+)<', page)]

    assert [shown(label) for label in ("any", "agree", "disagree")] == [[4, 7], [7], [4, 7]]
    assert shown("none") == [number for number in range(48) if number not in (4, 7)]
    assert len(shown("rubbish")) == 48
    page = own_viewer.get(f"/runs/{own_viewer.key('good')}/4?label=disagree&sort=number")
    assert re.search(r'href="[^"]*/7\?label=disagree&amp;sort=number" rel="next"', page)


def test_a_labels_file_that_cannot_be_read_is_named(own_viewer: Viewer) -> None:
    LabelFile.beside(next(own_viewer.folder.glob("good_*.json"))).path.write_text("{}\n")
    page = own_viewer.get(f"/runs/{own_viewer.key('good')}/labels", 422)
    assert re.search(r"labels\.jsonl:1: this is no label", page)


def test_the_command_line_prints_the_labels_and_the_rate(
    own_viewer: Viewer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVALUATORQ_DIR", str(own_viewer.folder.parent))
    own_viewer.label("good", 4, note="naïve")
    assert main(["sim", "labels", "good"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["note"] == "naïve"
    assert "Agreement with 1 of 1 labelled verdict " in said.err
    assert main(["sim", "labels", "flawed"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "Nobody has labelled" in said.err
    assert main(["sim", "labels", "nope"]) == 2


def test_labels_are_found_again_beside_a_run_that_moved(own_viewer: Viewer, tmp_path: Path) -> None:
    own_viewer.label("good", 4)
    path = next(own_viewer.folder.glob("good_*.json"))
    there = tmp_path / "elsewhere"
    there.mkdir()
    LabelFile.beside(path).path.rename(there / LabelFile.beside(path).path.name)
    assert len(LabelFile.beside(path.rename(there / path.name)).read()) == 1
