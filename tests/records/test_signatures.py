"""Signatures: rewording never changes one, any changed fact does; and states are found again from the last one."""

from __future__ import annotations

import json
import string

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from evaluatorq.model.observation import (
    Act,
    Change,
    Discarded,
    Interaction,
    Observation,
    ObservedCall,
    Resolution,
)
from evaluatorq.records.observation import conversation_signature
from evaluatorq.records.states import changes_between, state_after, taken_back

NAMES = st.text(st.sampled_from(string.ascii_lowercase + '_/:, =-\n"é'), max_size=5)
SOME = st.none() | NAMES
CALLS = st.builds(
    ObservedCall,
    id=NAMES,
    name=NAMES,
    digest=st.sampled_from(["d1", "d2"]),
    outcome=st.sampled_from(["accepted", "rejected", "no_change", "failed", "awaiting"]),
    reason=SOME,
)
VALUES = st.none() | st.integers(0, 2) | st.sampled_from(["x", "y"])
CHANGE = st.builds(Change, before=VALUES, after=VALUES)
CHANGES = st.dictionaries(NAMES, CHANGE, min_size=1, max_size=2)
CARDS = st.builds(Interaction, id=NAMES, resource=SOME, kind=NAMES, status=NAMES, turn=st.none() | st.integers(1, 2))
OBSERVATIONS = st.builds(
    Observation,
    turn=st.integers(0, 3),
    turn_id=SOME,
    error_code=SOME,
    acts=st.none() | st.lists(st.builds(Act, kind=NAMES, operation=SOME, outcome=SOME), max_size=2).map(tuple),
    target_resolutions=st.none()
    | st.lists(
        st.builds(Resolution, act=st.integers(0, 1), resolution=st.sampled_from(["exact", "missing"]), resource=SOME),
        min_size=1,
        max_size=2,
    ).map(tuple),
    tool_calls=st.none() | st.lists(CALLS, max_size=2).map(tuple),
    commands=st.none() | st.lists(NAMES, max_size=2).map(tuple),
    events=st.none() | st.lists(NAMES, max_size=2).map(tuple),
    events_truncated=st.booleans(),
    read_error=SOME,
    revisions=st.none() | st.dictionaries(NAMES, st.integers(0, 2), min_size=1, max_size=2),
    states=st.none() | CHANGES,
    outside=st.none() | CHANGES,
    interactions=st.none() | st.lists(CARDS, min_size=1, max_size=2).map(tuple),
    blocks=st.none() | st.lists(NAMES, max_size=2).map(tuple),
    phase=SOME,
    provider_failures=st.integers(0, 2),
    discarded_answers=st.lists(st.builds(Discarded, code=NAMES, reason=SOME), max_size=2).map(tuple),
    answer=NAMES,
)


def reworded(seen: Observation, words: str) -> Observation:
    """The same facts with other words, ids, numbers of attempts and discarded answers."""
    return seen.model_copy(
        update={
            "answer": words,
            "turn": seen.turn + 1,
            "turn_id": words,
            "read_error": None if seen.read_error is None else words,
            "provider_failures": seen.provider_failures + 1,
            "discarded_answers": (Discarded(code=words),),
            "cards_created": 7,
            "tool_calls": None
            if seen.tool_calls is None
            else tuple(call.model_copy(update={"id": f"{words}{i}"}) for i, call in enumerate(seen.tool_calls)),
            "interactions": None
            if seen.interactions is None
            else tuple(card.model_copy(update={"id": words, "turn": 9}) for card in seen.interactions),
        }
    )


def facts(seen: Observation) -> str:
    """Everything that a signature is about, argument digests and values of states included."""
    plain = reworded(seen, "-").model_dump(mode="json", exclude={"turn", "provider_failures"})
    for change in (*(plain.get("states") or {}).values(), *(plain.get("outside") or {}).values()):
        change["before"] = None if change["before"] is None else "there"
    return json.dumps(plain, sort_keys=True)


@given(OBSERVATIONS, NAMES)
def test_rewording_never_changes_a_signature(seen: Observation, words: str) -> None:
    other = reworded(seen, words)
    assert other.signature() == seen.signature()
    assert other.signature({"arguments", "states"}) == seen.signature({"arguments", "states"})
    assert other.signature_hash() == seen.signature_hash()


@settings(max_examples=200)
@given(OBSERVATIONS, OBSERVATIONS, st.data())
def test_any_changed_fact_changes_the_signature(one: Observation, other: Observation, data: st.DataObject) -> None:
    fields = sorted(set(Observation.model_fields) - {"understanding", "offers", "asks", "cards_created"})
    changed = data.draw(st.sets(st.sampled_from(fields), min_size=1, max_size=3))
    two = one.model_copy(update={name: getattr(other, name) for name in changed})
    everything = ("arguments", "states")
    assert (one.signature(everything) == two.signature(everything)) == (facts(one) == facts(two))


@given(OBSERVATIONS)
def test_a_signature_is_lines_that_say_what_they_are_and_survives_saving(seen: Observation) -> None:
    assert all(line.split("=")[0].split(" ")[0].isprintable() for line in seen.signature().splitlines())
    assert Observation.model_validate_json(seen.model_dump_json()).signature() == seen.signature()


@given(st.lists(OBSERVATIONS, max_size=3), st.lists(OBSERVATIONS, max_size=3))
def test_a_conversations_signature_is_that_of_its_turns_in_order(
    one: list[Observation], two: list[Observation]
) -> None:
    same = [seen.signature() for seen in one] == [seen.signature() for seen in two]
    assert (conversation_signature(one) == conversation_signature(two)) == same


def test_values_of_arguments_and_states_count_only_when_they_are_asked_for() -> None:
    def seen(digest: str, status: str) -> Observation:
        call = ObservedCall(id="c", name="refund", digest=digest, outcome="accepted")
        return Observation(turn=1, tool_calls=(call,), states={"/orders/A1": Change(before="new", after=status)})

    one, two = seen("d1", "sent"), seen("d2", "kept")
    assert one.signature() == two.signature()
    assert one.signature(["arguments"]) != two.signature(["arguments"])
    assert one.signature(["states"]) != two.signature(["states"])
    assert one.signature() == "call=refund outcome=accepted reason=-\nstate /orders/A1 changed\n"


# ---------------------------------------------------------------- states

KEYS = st.sampled_from(["a", "b/c", "d~e", "events"])
LEAVES = st.integers(0, 2) | st.text("xy", max_size=2) | st.lists(st.text("z", max_size=1), max_size=2)
MEMBERS = LEAVES | st.dictionaries(KEYS, LEAVES | st.dictionaries(KEYS, LEAVES, max_size=2), max_size=2)
STATES = st.dictionaries(KEYS, MEMBERS, max_size=3)


def without_empty(state: JsonValue) -> JsonValue:
    """States as resources know them: an object without members is no resource."""
    return {k: v for k, v in state.items() if v != {}} if isinstance(state, dict) else state


@given(STATES, STATES)
def test_taking_changes_back_gives_the_state_before_them(before: JsonValue, after: JsonValue) -> None:
    assert without_empty(taken_back(after, changes_between(before, after))) == without_empty(before)


@given(st.lists(st.tuples(STATES, STATES), min_size=1, max_size=4))
def test_the_state_of_every_turn_is_found_again_from_the_last_one(steps: list[tuple[JsonValue, JsonValue]]) -> None:
    """Each step is an outside change followed by the agent's."""
    state: JsonValue = {}
    turns, after_each = [], [state]
    for number, (outside, own) in enumerate(steps, 1):
        turns.append(
            Observation(
                turn=number,
                outside=changes_between(state, outside) or None,
                states=changes_between(outside, own),
            )
        )
        state = own
        after_each.append(state)
    assume(state is not None)
    for position in range(-1, len(turns)):
        assert without_empty(state_after(state, turns, position)) == without_empty(after_each[position + 1])
