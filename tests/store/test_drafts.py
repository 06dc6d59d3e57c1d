"""What was paid for before a run's first conversation is on disk at once, given again once, and held by one process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluatorq.errors import ReplayError, StoreError
from evaluatorq.model.messages import FunctionCall, ToolCall
from evaluatorq.model.spending import Spending
from evaluatorq.model.usage import Usage
from evaluatorq.ports import ChatReply
from evaluatorq.store.drafts import Draft, is_draft, open_order, read_draft
from evaluatorq.store.journal import Journal, hold
from evaluatorq.testing import a_plan

PLAN = a_plan()
COST = Spending(usage={"generation": Usage(input_tokens=3, total_tokens=3, calls=1)})
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
REPLIES = st.builds(
    ChatReply,
    text=TEXT,
    tool_calls=st.lists(
        st.builds(ToolCall, id=TEXT, function=st.builds(FunctionCall, name=TEXT, arguments=TEXT)), max_size=2
    ).map(tuple),
    answer=st.none() | st.dictionaries(TEXT, st.integers() | TEXT | st.none() | st.booleans(), max_size=3),
    usage=st.none() | st.builds(Usage, input_tokens=st.integers(0, 9), total_cost=st.none() | st.floats(0, 9)),
    refusal=st.none() | TEXT,
    finish_reason=st.none() | TEXT,
    raw=TEXT,
    lenient=st.booleans(),
)


def everything(_line: bytes) -> bool:
    return True


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(replies=st.lists(REPLIES, max_size=4))
def test_what_was_answered_is_given_again_as_it_was_and_once(tmp_path_factory, replies: list[ChatReply]):
    folder = tmp_path_factory.mktemp("drafts") / PLAN.run_id
    draft = Draft.begin(folder, PLAN, everything)
    for reply in replies:
        draft.note("same", COST, reply)
    draft.close()
    again = Draft.reopen(folder, everything)
    assert (again.plan, again.spent) == (PLAN, sum([COST] * len(replies), Spending()))
    assert [again.answered("same") for _ in replies] == replies
    assert (again.answered("same"), again.answered("other")) == (None, None)
    again.close()


def test_a_line_that_a_killed_process_did_not_finish_is_none(tmp_path: Path):
    draft = Draft.begin(tmp_path, PLAN, everything)
    draft.note("q", COST, ChatReply(text="whole"))
    draft.note("q", COST, ChatReply(text="torn"))
    draft.close()
    file = tmp_path / "draft.jsonl"
    file.write_bytes(file.read_bytes()[:-9])
    again = Draft.reopen(tmp_path, everything)
    assert (again.spent, again.answered("q"), again.answered("q")) == (COST, ChatReply(text="whole"), None)
    again.note("q", COST, ChatReply(text="later"))
    again.close()
    third = Draft.reopen(tmp_path, everything)
    assert third.spent == COST + COST
    third.close()


def test_what_may_not_be_written_is_kept_as_its_cost(tmp_path: Path):
    draft = Draft.begin(tmp_path, PLAN, lambda line: b"secret" not in line)
    draft.note("q", COST, ChatReply(text="a secret"))
    draft.close()
    assert "secret" not in (tmp_path / "draft.jsonl").read_text()
    again = Draft.reopen(tmp_path, everything)
    assert (again.spent, again.answered("q")) == (COST, None)
    again.close()


def test_one_process_holds_a_draft_and_it_is_one_until_its_run_begins(tmp_path: Path):
    draft = Draft.begin(tmp_path, PLAN, everything)
    with pytest.raises(StoreError, match="being written by another process"):
        Draft.reopen(tmp_path, everything)
    draft.close()
    assert is_draft(tmp_path)
    assert read_draft(tmp_path) == PLAN
    Journal.create(tmp_path, PLAN).close()
    assert not is_draft(tmp_path)
    with pytest.raises(ReplayError, match="no draft"):
        read_draft(tmp_path / "elsewhere")


def test_who_makes_the_same_cases_at_the_same_moment_takes_the_next_place(tmp_path: Path) -> None:
    (tmp_path / "order-1").mkdir()
    handle = hold(tmp_path / "order-1")  # somebody who has not written the first line yet
    draft = open_order(tmp_path / "order", PLAN, everything)
    draft.close()
    os.close(handle)
    assert draft.folder == tmp_path / "order-2"
    with pytest.raises(StoreError):
        open_order(tmp_path / "order-2" / "draft.jsonl" / "no-folder", PLAN, everything)
