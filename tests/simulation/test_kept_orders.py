"""Cases that are made in several processes: whatever stops one, no answer is lost and none is paid for twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from anyio.lowlevel import checkpoint

from evaluatorq.errors import CallError
from evaluatorq.model.runs import RunPlan
from evaluatorq.model.spending import NO_SPENDING
from evaluatorq.ports import ChatReply, ChatRequest
from evaluatorq.simulation.generation import GeneratedDatapoints, run_generate
from evaluatorq.simulation.orders import GenerateConfig
from evaluatorq.store.paths import drafts_dir
from writing_models import USAGE, author

ORDER = {"agent_description": "Support of a shop for kettles.", "num_personas": 11, "num_scenarios": 2}


@pytest.fixture(autouse=True)
def store(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALUATORQ_DIR", str(tmp_path / "store"))


class Mortal:
    """Writes cases, the first answer of each kind unusable, and dies of its question number ``lives``."""

    name = "writer"
    written = author()

    def __init__(self, lives: int) -> None:
        self._left = lives
        self.answered = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        await checkpoint()
        if not self._left:
            raise RuntimeError("the power went")
        self._left -= 1
        self.answered += 1
        if "Your last answer" not in (request.tail or "") and request.prefix.answer is not None:
            if request.prefix.answer.name == "personas":
                return ChatReply(answer={"personas": []}, usage=USAGE)
            if request.prefix.answer.name == "scenarios":
                raise CallError("malformed_response", "no object", reask=True, usage=USAGE)
        return await self.written.complete(request)


async def make(model: Mortal, at_once: int) -> GeneratedDatapoints:
    config = GenerateConfig.parse({**ORDER, "generation_client": model, "llm_parallelism": at_once})
    delivered: list[Sequence[object]] = []

    async def prepared(plan: RunPlan) -> None:
        delivered.append(plan.datapoints)

    made = await run_generate(config, prepared=prepared)
    assert delivered == [tuple(made)]
    return made


@pytest.mark.parametrize("at_once", [1, 3])
async def test_wherever_it_dies_every_answer_is_used_once_and_counted_once(at_once: int):
    whole = Mortal(1000)
    made = await make(whole, at_once)
    assert (len(made), made.problems) == (22, [])
    assert made.spent.total.calls == whole.answered
    for lives in range(1, whole.answered):
        first, second = Mortal(lives), Mortal(1000)
        with pytest.raises((RuntimeError, ExceptionGroup)):
            await make(first, at_once)
        again = await make(second, at_once)
        assert (len(again), again.problems) == (22, [])
        assert first.answered + second.answered == whole.answered, f"after {lives} answers"
        assert again.spent.total.calls == whole.answered
        assert not drafts_dir().exists()


async def test_dying_at_every_answer_still_comes_to_an_end():
    total, spent = 0, NO_SPENDING
    for _ in range(200):
        model = Mortal(1)
        try:
            spent = (await make(model, 1)).spent
        except (RuntimeError, ExceptionGroup):
            total += model.answered
        else:
            total += model.answered
            break
    assert spent.total.calls == total
