"""The quick ``replace``: nobody can tell it from the standard one."""

from __future__ import annotations

import dataclasses

import pytest

from evaluatorq.conversation.facts import TurnFacts
from evaluatorq.conversation.ledger import Entry, Ledger
from evaluatorq.conversation.machine import Conversation, Environment, Turn
from evaluatorq.llm.errors import ApiError
from evaluatorq.model.replacing import replace
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import ChatReply


def test_it_makes_what_the_standard_function_makes() -> None:
    turn = Turn(1, NO_USAGE)
    assert replace(turn, note="broken") == dataclasses.replace(turn, note="broken")
    assert turn.note == "", "the record itself stays as it was"


@pytest.mark.parametrize("record", [Conversation, Turn, Environment, Entry, Ledger, TurnFacts, ApiError, ChatReply])
def test_every_record_it_is_used_on_can_be_replaced_quickly(record: type) -> None:
    assert not hasattr(record, "__slots__"), "fields in slots would not be copied"
    assert not hasattr(record, "__post_init__"), "it would not be called"
