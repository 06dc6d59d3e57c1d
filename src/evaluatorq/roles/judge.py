"""The judge with a model behind it: asks for a verdict, holds every occurrence to its quote, asks again, gives up.

An unusable answer is asked for again three times, whatever was wrong with it, and each time the judge is told what. If
then only single criteria do not hold, the rest of the verdict counts and those criteria stay unaudited, by name; if the
answer as a whole does not hold, the judge has failed. Neither is ever a verdict on the agent. Where only numbers do
not hold, nothing is asked again (the next answer might quote worse): they are unknown, by name, the verdict counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from evaluatorq.errors import CallError
from evaluatorq.llm.encode import LineCache
from evaluatorq.model.events import CallFailed
from evaluatorq.model.messages import Message
from evaluatorq.ports import ChatModel, ChatPrefix, ChatReply, ChatRequest, JudgeFactory, JudgeReply, Seat
from evaluatorq.roles.asking import Asking, ask
from evaluatorq.roles.prompts_judge import judge_system, judge_tail, judged_criteria, shown_to_judge, verdict_spec
from evaluatorq.roles.verdicts import Reading, read_verdict


class JudgeRole:
    """A ``Judge`` for one conversation, strict about quotes."""

    def __init__(self, model: ChatModel, seat: Seat) -> None:
        scenario = seat.datapoint.scenario
        self._model = model
        self._criteria = judged_criteria(scenario)
        self._prefix = ChatPrefix(judge_system(scenario), answer=verdict_spec(tuple(self._criteria)))
        self._transcript = LineCache(shown_to_judge)
        self._asking = Asking()

    def remind(self, failures: Sequence[CallFailed]) -> None:
        """Unusable answers that an earlier process got count among the re-asks."""
        self._asking.remind(failures)

    async def judge(self, messages: Sequence[Message], open_criteria: Sequence[str], *, final: bool) -> JudgeReply:
        """A verdict; ``refused`` names criteria whose verdict did not hold even after three re-asks.

        Raises ``CallError`` with ``reask`` for an answer that does not hold, and without once that was asked too often.
        """
        open_ids = tuple(key for key in open_criteria if key in self._criteria)
        complaint = self._asking.about((len(messages), open_ids, final))
        tail = judge_tail(open_ids, final=final, complaint=complaint)
        request = ChatRequest(self._prefix, self._transcript.lines(messages), tail)
        reply, answer = await ask(self._model, request, self._asking, {})
        reading = read_verdict(answer, self._criteria, open_ids, messages)
        if reading.judgment is None or (reading.refused and not self._asking.is_last):
            raise self._refusal(reading, reply)
        return JudgeReply(
            reading.judgment,
            usage=reply.usage,
            model=reply.model or self._model.name,
            refused=reading.refused,
            unknown_scores=reading.unknown_scores,
        )

    def _refusal(self, reading: Reading, reply: ChatReply) -> CallError:
        error = CallError(
            "bad_verdict",
            f"the verdict does not hold: {reading.problems}",
            usage=reply.usage,
            raw=reply.raw,
            model=reply.model or self._model.name,
        )
        return self._asking.refuse(error, reading.problems)


def model_judge(model: ChatModel) -> JudgeFactory:
    """Judges that ask ``model``, one for each conversation."""
    return lambda seat: JudgeRole(model, seat)
