"""Makes cases with a model: personas and scenarios held to the rules of case files, and what each pair says first.

A first message is the simulated user's own first line: the same prompt, the same guard, asked for ahead of time. A pair
for which none could be had keeps an empty one, and the simulated user speaks first when the conversation begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evaluatorq.errors import CallError, SimulationError
from evaluatorq.generate.kinds import M, Rule, persona_kind, scenario_kind
from evaluatorq.generate.making import HOPELESS, Made, Writer, make
from evaluatorq.generate.prompts import About
from evaluatorq.generate.slots import Slot
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.model.cases import Persona, Scenario, SimulationDatapoint
from evaluatorq.model.spending import Bill
from evaluatorq.pacing.paid import PaidCalls
from evaluatorq.pacing.retry import RetryPolicy
from evaluatorq.pacing.window import work_through
from evaluatorq.ports import ChatModel, Seat, UserReply
from evaluatorq.roles.user import model_user
from evaluatorq.simulation.datapoints import generate_datapoint
from evaluatorq.store.case_rules import Rule as CaseRule
from evaluatorq.store.case_rules import persona_rule, scenario_rule
from evaluatorq.store.cases import product

_QUOTES = (('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u00ab", "\u00bb"))


def _sentences(rule: CaseRule) -> Rule:
    return lambda value: [
        ".".join(map(str, problem.keys)) + f" {problem.reason}" if problem.keys else problem.reason
        for problem in rule(value)
    ]


PERSONAS = persona_kind(_sentences(persona_rule))
SCENARIOS = scenario_kind(_sentences(scenario_rule))


@dataclass(slots=True)
class Openings:
    """First messages in the order of the pairs, ``""`` where there is none, and what went wrong."""

    texts: list[str]
    problems: list[str] = field(default_factory=list)


class Workshop:
    """A model that makes cases, and the ``speaker`` of their first messages, the same unless another is given.

    ``bill`` runs on over everything that is made.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        retry: RetryPolicy,
        at_once: int = 10,
        seed: int = 0,
        bill: Bill | None = None,
        speaker: ChatModel | None = None,
    ) -> None:
        self.bill = bill or Bill()
        self._speaker = speaker or model
        self._calls = PaidCalls(retry, self.bill, seed=seed)
        self._writer = Writer(model, self._calls, at_once)

    async def personas(self, about: About, slots: Sequence[Slot]) -> Made[Persona]:
        """A persona for each slot, as far as they can be had."""
        return await make(PERSONAS, about, slots, self._writer)

    async def scenarios(self, about: About, slots: Sequence[Slot]) -> Made[Scenario]:
        """A scenario for each slot, as far as they can be had."""
        return await make(SCENARIOS, about, slots, self._writer)

    async def openings(self, pairs: Sequence[SimulationDatapoint]) -> Openings:
        """What each pair says first. Nothing is asked where the case fixes it."""
        found = Openings([pair.first_message for pair in pairs])
        await self.open(pairs, found)
        return found

    async def open(self, pairs: Sequence[SimulationDatapoint], found: Openings) -> None:
        """Writes down in ``found`` what each pair says first, as the answers come."""
        hopeless: list[CallError] = []

        async def open_one(place: int) -> None:
            if not hopeless:
                try:
                    found.texts[place] = await self.opening(pairs[place])
                except CallError as error:
                    who = f"{pairs[place].persona.name} / {pairs[place].scenario.name}"
                    found.problems.append(f"no first message for {who}, left to the simulated user: {error.message}")
                    if error.code in HOPELESS:
                        hopeless.append(error)

        waiting = [place for place, pair in enumerate(pairs) if not _fixed(pair)]
        await work_through(waiting, self._writer.at_once, open_one)
        unasked = sum(not found.texts[place] for place in waiting) - len(found.problems)
        if unasked:
            found.problems.append(f"{unasked} more pairs have no first message, for the same reason")

    async def opening(self, pair: SimulationDatapoint) -> str:
        """What the simulated user of one pair says first. Raises ``CallError`` after as many attempts as allowed."""
        role = model_user(self._speaker)(Seat(pair, thread_id=pair.id, seed=0, max_turns=1))

        async def speak() -> UserReply:
            return await role.speak(())

        return unquoted((await self._calls.make("first_messages", speak, reask=True)).text)


def paired(personas: Sequence[Persona], scenarios: Sequence[Scenario]) -> list[SimulationDatapoint]:
    """Each persona with each scenario, still without a first message."""
    return [generate_datapoint(pair.persona, pair.scenario) for pair in product(personas, scenarios)]


def spoken(pairs: Sequence[SimulationDatapoint], first_messages: Sequence[str]) -> list[SimulationDatapoint]:
    """The pairs as the cases that they are with their first messages."""
    return [
        generate_datapoint(pair.persona, pair.scenario, text) for pair, text in zip(pairs, first_messages, strict=True)
    ]


def some(made: Made[M]) -> list[M]:
    """What was made. Raises ``SimulationError`` with the reasons when that is nothing."""
    if not made.by_slot:
        raise SimulationError("; ".join(made.problems) or "nothing was asked for")
    return made.items


def retry_of(calls: LLMCallConfig | None) -> RetryPolicy:
    """How often the simulation's side asks again."""
    return RetryPolicy(attempts=(calls or LLMCallConfig()).retry_count + 1)


def _fixed(pair: SimulationDatapoint) -> bool:
    scenario = pair.scenario
    return bool(pair.first_message) or scenario.opens == "agent" or bool(scenario.script and scenario.script[0])


def unquoted(text: str) -> str:
    """The text without the one pair of quotation marks that a model put around all of it."""
    plain = text.strip()
    for opening, closing in _QUOTES:
        inner = plain[1:-1]
        if len(plain) > 2 and plain[0] == opening and plain[-1] == closing and not {opening, closing} & set(inner):
            return inner.strip()
    return plain
