"""A simulated user without a model: it hears what the agent said and answers it, from a case's own facts.

Everything is read off the transcript, so the same transcript and seed give the same words, also after a resume. It
answers what it is asked from ``scenario.knows``, agrees to what it wants and declines what it does not, insists after a
refusal as often as its traits allow, and says goodbye when it got what it came for or has had enough. It works against
any agent: what it cannot make sense of it meets with its wish in other words, and never for ever.

Some keys of ``knows`` steer it instead of being told. ``wants`` is what would satisfy it ("a replacement"), in place of
the goal; ``accepts`` what it would settle for ("a colleague looks into it"); ``order_number_at_first`` (any key with
that ending) what a user with the contradictory strategy says first and then takes back.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.model.cases import ConversationStrategy, Scenario
from evaluatorq.model.messages import Message
from evaluatorq.model.usage import NO_USAGE
from evaluatorq.ports import Seat, UserReply, UserSimulator
from evaluatorq.roles.scripted_hearing import Heard, hear, kinds
from evaluatorq.roles.scripted_voice import Voice, first_person

_AT_FIRST = "_at_first"
_STEERING = ("wants", "accepts")
Facts = list[tuple[str, str]]


class OfflineUser:
    """One simulated user. Its replies cost nothing, and that is known: usage is zero."""

    def __init__(self, seat: Seat) -> None:
        self._seat = seat

    async def speak(self, messages: Sequence[Message]) -> UserReply:
        """The next words; with ``stop`` when the wish is fulfilled or given up."""
        text, stop = _Talk(self._seat, messages).next_words()
        return UserReply(text, stop=stop, usage=NO_USAGE)


def offline_user(seat: Seat) -> UserSimulator:
    """Makes a user without a model."""
    return OfflineUser(seat)


class _Talk:
    """One look at one conversation from the user's side."""

    def __init__(self, seat: Seat, messages: Sequence[Message]) -> None:
        self.scenario: Scenario = seat.datapoint.scenario
        self.persona = seat.datapoint.persona
        self.strategy = self.scenario.conversation_strategy or ConversationStrategy.COOPERATIVE
        knows = self.scenario.knows or {}
        self.knows = knows
        self.facts = {
            key: value for key, value in knows.items() if not key.endswith(_AT_FIRST) and key not in _STEERING
        }
        self.said = [message.text for message in messages if message.role == "user"]
        self.heard = [hear(text, self.facts) for text in _agent_turns(messages)]
        self.voice = Voice(self.persona, self.scenario, seat.seed, len(self.said))
        self.wish = first_person(self.scenario.goal)
        self.wants = frozenset(kinds(knows.get("wants", self.scenario.goal))[:1])
        self.accepts = frozenset(kinds(knows.get("accepts", "")))

    def next_words(self) -> tuple[str, bool]:
        """What to say, and whether to leave it at that."""
        if not self.said:
            return self._opening(), False
        latest = self.heard[-1] if self.heard else Heard()
        correction = self._correction(latest)
        if correction is not None:
            return correction, False
        if self._is_done(latest):
            return self.voice.thanks(), True
        agrees = latest.offers is not None and self._agrees(latest.offers)
        if self._has_had_enough() and not (agrees and self._gets_somewhere(len(self.heard) - 1)):
            return self.voice.give_up(), True
        if agrees:
            return self._first_doubt() or self.voice.yes(), False
        return self._flavoured(self._reaction(latest)), False

    # ------------------------------------------------------------ judging the agent's turn

    def _is_done(self, latest: Heard) -> bool:
        """The agent says that it did what was wanted, told the news that was wanted, or twice told something at all."""
        if latest.did is not None:
            agreed_before = len(self.heard) > 1 and self.heard[-2].offers is not None
            if latest.did & (self.wants | self.accepts) or (not latest.did and agreed_before) or not self.wants:
                return True
        if "news" in self.wants:
            return latest.news
        told = [heard for heard in self.heard if heard.nothing and heard.said >= 60]
        return not self.wants and latest.nothing and len(told) >= 2

    def _agrees(self, offers: frozenset[str]) -> bool:
        welcome = self.wants | self.accepts
        if not offers or not welcome or offers & welcome:
            return True
        return "human" in offers and self._refusals() >= self._pushes()

    def _refusals(self) -> int:
        """How often the agent said no, or did something that nobody had asked for."""
        return sum(
            1
            for heard in self.heard
            if (heard.refuses and not heard.asks) or (heard.did and not heard.did & (self.wants | self.accepts))
        )

    def _pushes(self) -> int:
        """How many refusals this user meets with insistence."""
        return max(1, round(3 * self.persona.assertiveness))

    def _has_had_enough(self) -> bool:
        stuck = sum(1 for index in range(len(self.heard)) if not self._gets_somewhere(index))
        return (
            self._refusals() > self._pushes()
            or stuck > 1 + round(3 * self.persona.patience)
            or len(self.said) >= 6 + round(4 * self.persona.patience)
        )

    def _gets_somewhere(self, index: int) -> bool:
        """The agent's turn was more than nothing, and more than the same question or offer once again."""
        heard = self.heard[index]
        asked = {key for earlier in self.heard[:index] for key in earlier.asks}
        if heard.nothing or (heard.asks and asked.issuperset(heard.asks)):
            return False
        before = self.heard[index - 1] if index else Heard()
        same_offer = heard.offers is not None and (heard.offers, heard.orders) == (before.offers, before.orders)
        return not same_offer and not (heard.open_question and before.open_question and not heard.asks)

    # ------------------------------------------------------------ answering

    def _opening(self) -> str:
        volunteered = [
            (key, value) for key, value in self.facts.items() if key == "order_number" and self._at_first(key) is None
        ]
        told = volunteered if self.persona.technical_level >= 0.7 else []
        match self.strategy:
            case ConversationStrategy.AMBIGUOUS:
                return self.voice.opening(None, [])
            case ConversationStrategy.MULTI_INTENT:
                return f"{self.voice.opening(self.wish, told)} {self.voice.aside()}"
            case ConversationStrategy.CONTRADICTORY if "wants_at_first" in self.knows:
                return self.voice.opening(f"get {self.knows['wants_at_first']}", told)
            case ConversationStrategy.EVASIVE:
                return self.voice.opening(self.wish, [])
            case _:
                return self.voice.opening(self.wish, told)

    def _reaction(self, latest: Heard) -> str:
        if latest.asks:
            return self._answer(latest.asks)
        if latest.offers is not None:
            declined = self.voice.no(self.knows.get("wants"))
            return f"No. {self.voice.insist(self.wish)}" if latest.refuses else declined
        if latest.refuses or latest.did is not None:
            return self.voice.insist(self.wish)
        untold = self._untold()
        if latest.open_question and not untold and self._was_open_before():
            return f"{self.voice.unknown()} {self.voice.repeat(self.wish, [])}"
        return self.voice.repeat(self.wish, untold[:1])

    def _answer(self, asks: tuple[str, ...]) -> str:
        first_time = not any(heard.asks for heard in self.heard[:-1])
        if self.strategy is ConversationStrategy.EVASIVE and first_time:
            return self.voice.dodge()
        facts = [(key, self._at_first(key) or self.facts[key]) for key in asks]
        return self.voice.answer(facts, again=all(self._was_said(value) for _, value in facts))

    def _flavoured(self, words: str) -> str:
        """The strategy's own habit on top."""
        if self.strategy is ConversationStrategy.TOPIC_SWITCHING and len(self.said) % 2:
            return f"{words} {self.voice.aside()}"
        if self.strategy is ConversationStrategy.REPETITIVE and self.wish not in words:
            return f"{words} As I said, I want to {self.wish}."
        return words

    def _correction(self, latest: Heard) -> str | None:
        """Puts right what was said at first, or an order number that the agent got wrong."""
        for key, value in self.facts.items():
            first = self._at_first(key)
            if first is not None and self._was_said(first):
                return self.voice.correct(key, first, value)
        known = self.facts.get("order_number")
        if latest.offers is not None and known and latest.orders and known.upper() not in latest.orders:
            return self.voice.correct("order_number", min(latest.orders), known)
        return None

    def _first_doubt(self) -> str | None:
        """A contradictory user hesitates before the first yes, where the case names nothing else to take back."""
        offers = sum(1 for heard in self.heard if heard.offers is not None)
        scripted = any(key.endswith(_AT_FIRST) for key in self.knows)
        if self.strategy is ConversationStrategy.CONTRADICTORY and not scripted and offers == 1:
            return self.voice.no(None)
        return None

    def _at_first(self, key: str) -> str | None:
        """What a contradictory user says before the truth, until the truth is out."""
        first = self.knows.get(key + _AT_FIRST)
        if first is None or self.strategy is not ConversationStrategy.CONTRADICTORY or self._was_said(self.facts[key]):
            return None
        return first

    def _was_said(self, value: str) -> bool:
        return any(value.casefold() in text.casefold() for text in self.said)

    def _untold(self) -> Facts:
        """What this user would tell unasked."""
        if self.strategy is ConversationStrategy.EVASIVE:
            return []
        return [(key, self._at_first(key) or value) for key, value in self.facts.items() if not self._was_said(value)]

    def _was_open_before(self) -> bool:
        return any(heard.open_question for heard in self.heard[:-1])


def _agent_turns(messages: Sequence[Message]) -> list[str]:
    """What the agent said after each user message, one text for each, ``""`` where it said nothing."""
    turns: list[list[str]] = []
    for message in messages:
        if message.role == "user":
            turns.append([])
        elif message.role == "assistant" and turns and message.is_spoken:
            turns[-1].append(message.text)
    return ["\n".join(rows) for rows in turns]
