"""The simulated user without a model: it answers, insists, is satisfied or gives up; same seed, same words."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluatorq.model.cases import ConversationStrategy, Persona, Scenario, SimulationDatapoint
from evaluatorq.model.messages import Message, assistant, tool_call, tool_result, user
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Seat, UserReply
from evaluatorq.roles.scripted import offline_user
from evaluatorq.roles.scripted_hearing import hear, kinds
from evaluatorq.roles.scripted_voice import first_person

KNOWS = {
    "order_number": "A1001",
    "email": "ada@example.com",
    "reason": "The kettle no longer heats water",
    "wants": "a refund",
}
TRAITS = {"patience": 0.5, "assertiveness": 0.5, "politeness": 0.5, "technical_level": 0.5}


def seat(seed: int = 1, persona: dict[str, object] | None = None, **scenario: object) -> Seat:
    who = {"name": "p", **TRAITS, "communication_style": "casual", "background": "b", **(persona or {})}
    what = {"name": "s", "goal": "Get a refund for the kettle that broke", "knows": KNOWS, **scenario}
    datapoint = SimulationDatapoint(id="d", persona=Persona.model_validate(who), scenario=Scenario.model_validate(what))
    return Seat(datapoint, "t", seed, 10)


async def speak(at: Seat, *lines: str) -> UserReply:
    """The user's next turn after agent lines; user lines in between come from the user itself."""
    rows: list[Message] = []
    who = offline_user(at)
    reply = await who.speak(rows)
    for line in lines:
        rows += [user(reply.text), assistant(line)]
        reply = await who.speak(rows)
    return reply


async def talk(at: Seat, agent: Callable[[int], str], cap: int = 30) -> list[UserReply]:
    rows: list[Message] = []
    said: list[UserReply] = []
    who = offline_user(at)
    while len(said) < cap and not (said and said[-1].stop):
        said.append(await who.speak(rows))
        rows += [user(said[-1].text), assistant(agent(len(said)))]
    return said


# ---------------------------------------------------------------- reacting


async def test_it_opens_with_its_wish_in_its_own_words() -> None:
    reply = await speak(seat())
    assert "get a refund for the kettle that broke" in reply.text
    assert (reply.stop, reply.usage, reply.model) == (False, NO_USAGE, None)


async def test_it_opens_after_an_agent_that_greets_first() -> None:
    reply = await offline_user(seat()).speak([assistant("Welcome to support, what can I do for you?")])
    assert "get a refund" in reply.text


@pytest.mark.parametrize(
    ("question", "told", "untold"),
    [
        ("What is your order number?", ["A1001"], ["ada@example.com"]),
        ("Could you give me the order number and the e-mail address it was placed with?", ["A1001", "ada@"], ["heats"]),
        ("Please tell me what went wrong.", ["no longer heats water"], ["A1001"]),
        ("May I have your email?", ["ada@example.com"], ["A1001"]),
    ],
)
async def test_it_answers_what_it_is_asked_and_no_more(question: str, told: list[str], untold: list[str]) -> None:
    reply = await speak(seat(), question)
    assert [fact for fact in told if fact not in reply.text] == []
    assert [fact for fact in untold if fact in reply.text] == []


async def test_any_key_of_knows_can_be_asked_for() -> None:
    at = seat(goal="Book a table", knows={"party_size": "four people", "favourite_dish": "gnocchi"})
    assert "four people" in (await speak(at, "What is your party size?")).text
    assert "gnocchi" in (await speak(at, "And your favourite dish?")).text


@pytest.mark.parametrize(
    "offer",
    [
        "Shall I refund 59.90 euros to your card?",
        "Would you like me to proceed with the refund?",
        "I can refund order A1001. Please confirm with yes or no.",
        "You want your money back for A1001, is that right?",
    ],
)
async def test_it_agrees_to_what_it_wants_without_stopping(offer: str) -> None:
    reply = await speak(seat(), offer)
    assert reply.text.startswith("Yes")
    assert not reply.stop


async def test_it_declines_what_it_does_not_want_and_says_what_instead() -> None:
    reply = await speak(seat(), "Shall I send you a replacement?")
    assert reply.text.startswith("No")
    assert "a refund" in reply.text


async def test_it_notices_the_wrong_order_number_in_an_offer() -> None:
    reply = await speak(seat(), "Shall I refund order B777?")
    assert "A1001, not B777" in reply.text


@pytest.mark.parametrize(
    "claim",
    ["I have refunded order A1001.", "Your refund has been issued.", "We've processed the refund. Anything else?"],
)
async def test_it_believes_that_it_got_what_it_wanted_thanks_and_stops(claim: str) -> None:
    reply = await speak(seat(persona={"politeness": 0.8}), claim)
    assert reply.stop
    assert "hank you" in reply.text


@pytest.mark.parametrize(
    "words",
    ["A refund is possible within 30 days.", "I cannot refund it: it was delivered 75 days ago.", "Shall I refund it?"],
)
async def test_words_about_a_refund_are_no_refund(words: str) -> None:
    assert not (await speak(seat(), words)).stop


async def test_news_is_enough_for_a_user_who_wants_news() -> None:
    at = seat(goal="Find out where the parcel is", knows={"order_number": "A1001"})
    assert (await speak(at, "Your parcel has shipped and was last seen in Velm.")).stop


async def test_something_else_than_was_wanted_is_not_enough() -> None:
    reply = await speak(seat(), "I have sent you a replacement.")
    assert not reply.stop
    assert "get a refund" in reply.text


async def test_a_goal_that_it_knows_no_sign_for_is_met_by_two_real_answers() -> None:
    at = seat(goal="Learn how to descale the kettle", knows={})
    answer = "Fill it with water and two spoons of citric acid, boil it once and leave it for half an hour."
    assert not (await speak(at, answer)).stop
    assert (await speak(at, answer, answer)).stop


async def test_it_settles_for_what_the_case_says_it_accepts() -> None:
    offer = "I cannot refund it. Shall I hand this to a colleague?"
    accepting = seat(knows={**KNOWS, "accepts": "a colleague who looks into it"})
    assert (await speak(accepting, offer)).text.startswith("Yes")
    assert (await speak(seat(), offer)).text.startswith("No")


async def test_it_hears_nothing_of_tools() -> None:
    rows = [
        user("hi"),
        assistant(None, [tool_call("c", "refund", {})]),
        tool_result("c", "Your refund has been issued."),
    ]
    silent = await offline_user(seat()).speak(rows)
    assert not silent.stop


# ---------------------------------------------------------------- traits and strategies


async def test_assertive_users_insist_longer_and_everyone_gives_up() -> None:
    def refusals(assertiveness: float) -> int:
        said = anyio.run(talk, seat(persona={"assertiveness": assertiveness}), lambda _: "Sorry, I can't refund that.")
        assert said[-1].stop
        return len(said)

    lengths = await anyio.to_thread.run_sync(lambda: [refusals(a) for a in (0.1, 0.5, 0.95)])
    assert lengths == [3, 4, 5]


async def test_patient_users_stay_longer_with_an_agent_that_says_nothing() -> None:
    lengths = [len(await talk(seat(persona={"patience": p}), lambda _: "I see.")) for p in (0.1, 0.5, 0.9)]
    assert lengths == sorted(set(lengths))


async def test_style_and_politeness_show() -> None:
    ask = "What is your order number?"
    assert (await speak(seat(persona={"communication_style": "terse"}), ask)).text == "A1001"
    assert (await speak(seat(persona={"communication_style": "formal"}), ask)).text == "My order number is A1001."
    assert "please" in (await speak(seat(persona={"politeness": 0.9}), "Shall I refund it?")).text
    rude = await talk(seat(persona={"politeness": 0.1}), lambda _: "I see.")
    polite = await talk(seat(persona={"politeness": 0.9}), lambda _: "I see.")
    assert rude[-1].text != polite[-1].text
    assert "urgent" in (await speak(seat(seed=0, starting_emotion="urgent"))).text + (
        await speak(seat(seed=3, starting_emotion="urgent"))
    ).text.replace("quickly", "urgent")


async def test_a_contradictory_user_says_the_wrong_thing_first_and_takes_it_back() -> None:
    knows = {**KNOWS, "order_number_at_first": "B2", "wants": "a replacement", "wants_at_first": "a refund for it"}
    at = seat(knows=knows, conversation_strategy="contradictory")
    assert "refund" in (await speak(at)).text
    ask = "What is your order number?"
    assert "B2" in (await speak(at, ask)).text
    assert "A1001, not B2" in (await speak(at, ask, "Thanks.")).text
    changed = await speak(at, ask, "Thanks.", "Shall I refund order A1001?")
    assert changed.text.startswith("No")
    assert "a replacement" in changed.text


async def test_a_contradictory_user_without_a_script_hesitates_once() -> None:
    at = seat(conversation_strategy="contradictory")
    assert (await speak(at, "Shall I refund it?")).text.startswith("No, wait")
    assert (await speak(at, "Shall I refund it?", "Shall I refund the kettle now?")).text.startswith("Yes")


@pytest.mark.parametrize("strategy", [s for s in ConversationStrategy if s is not ConversationStrategy.COOPERATIVE])
async def test_every_strategy_sounds_different_from_a_cooperative_user(strategy: ConversationStrategy) -> None:
    lines = ["How can I help?", "What is your order number?", "Shall I refund it?"]

    async def words(at: Seat) -> list[str]:
        return [(await speak(at, *lines[:n])).text for n in range(len(lines) + 1)]

    assert await words(seat(conversation_strategy=strategy)) != await words(seat())


async def test_an_evasive_user_tells_on_the_second_asking() -> None:
    at = seat(conversation_strategy="evasive")
    ask = "What is your order number?"
    assert "A1001" not in (await speak(at, ask)).text
    assert "A1001" in (await speak(at, ask, ask)).text


# ---------------------------------------------------------------- any agent, any time


async def test_the_same_seed_says_the_same_and_seeds_differ() -> None:
    async def words(seed: int) -> list[str]:
        return [
            reply.text for reply in await talk(seat(seed=seed), lambda n: ["Hm.", "Your order number?", "No."][n % 3])
        ]

    assert await words(5) == await words(5)
    assert len({tuple(await words(seed)) for seed in range(6)}) > 1


async def test_a_resumed_user_goes_on_with_the_same_words() -> None:
    at = seat()
    rows = [user("I want a refund"), assistant("What is your order number?")]
    one, two = offline_user(at), offline_user(at)
    await one.speak([])
    assert await one.speak(rows) == await two.speak(rows)


AGENT_WORDS = st.sampled_from([
    "I see.", "", "   ", "How can I help?", "What is your order number?", "Shall I refund it?", "I can't do that.",
    "Shall I send a replacement?", "¿Cuál es su número de pedido?", "您的订单号是什么\uff1f", "Is there anything else?",
    "```json\n{}\n```", "Could you confirm?", "Your parcel is on its way.", "Anything\nelse\n?",
]) | st.text(max_size=60)  # fmt: skip


@settings(max_examples=150)
@given(
    words=st.lists(AGENT_WORDS, min_size=1, max_size=4),
    seed=st.integers(0, 2**64 - 1),
    traits=st.fixed_dictionaries({name: st.floats(0, 1) for name in TRAITS}),
    strategy=st.sampled_from(ConversationStrategy),
    knows=st.sampled_from([KNOWS, {}, None, {"x": ""}, {"order_number": "A1", "order_number_at_first": "B2"}]),
)
def test_whatever_an_agent_says_the_user_speaks_and_comes_to_an_end(
    words: list[str], seed: int, traits: dict[str, float], strategy: ConversationStrategy, knows: dict[str, str] | None
) -> None:
    at = seat(seed, traits, conversation_strategy=strategy, knows=knows)
    said = anyio.run(talk, at, lambda n: words[n % len(words)])
    assert said[-1].stop
    assert len(said) <= 12
    assert [reply for reply in said if not reply.text.strip()] == []


def test_it_runs_on_trio_as_well() -> None:
    said = anyio.run(talk, seat(), lambda _: "I see.", backend="trio")
    assert said[-1].stop


# ---------------------------------------------------------------- hearing and wording


@pytest.mark.parametrize(
    ("goal", "wish"),
    [
        ("Get their money back.", "get my money back"),
        ("The customer wants to change their address", "change my address"),
        ("User tries to cancel the order they placed", "cancel the order I placed"),
        ("A refund for order A1", "get a refund for order A1"),
        ("VIP access", "VIP access"),
    ],
)
def test_a_goal_is_turned_into_a_wish(goal: str, wish: str) -> None:
    assert first_person(goal) == wish


def test_kinds_are_named_in_the_order_they_are_mentioned() -> None:
    assert kinds("No replacement; I want a refund or a supervisor") == ("replacement", "refund", "human")
    assert kinds("my e-mail address") == ()


def test_a_question_with_several_choices_is_no_offer() -> None:
    heard = hear("Would you like a refund, a replacement or something else?", [])
    assert heard.offers is None
    assert heard.open_question


def test_an_agent_that_says_nothing_of_use_is_heard_as_nothing() -> None:
    assert hear("I see.", KNOWS).nothing
    assert hear("", KNOWS).nothing
    assert hear("I'm so sorry, I completely understand your frustration.", KNOWS).nothing
