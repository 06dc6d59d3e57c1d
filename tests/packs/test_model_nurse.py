"""A model as the nurse: told who it is and what its tools are for, assessed by the calls that it makes."""

from __future__ import annotations

from pydantic import JsonValue

from evaluatorq.environments.registry import environment_for
from evaluatorq.model.messages import tool_call
from evaluatorq.model.usage import Usage
from evaluatorq.packs import find_pack
from evaluatorq.packs.triage.nurse import nurse_instructions
from evaluatorq.packs.triage.patient import triage_patient
from evaluatorq.ports import ChatReply, ChatRequest
from evaluatorq.records.artifact import to_artifact
from evaluatorq.roles.checks import check_judge
from evaluatorq.run.crew import Crew
from evaluatorq.targets.openai import openai_target
from evaluatorq.testing import converse

USAGE = Usage(calls=1, input_tokens=1, output_tokens=1, total_tokens=2)


class Nurse:
    """A model that looks, speaks, changes its mind and ends with words beside the call."""

    name = "nurse-model"

    def __init__(self) -> None:
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request)
        moves = (
            "Good day. What is wrong?",
            ("check_vital", {"vital": "pulse", **held(3)}, ""),
            ("assess", held(2), ""),
            "Since when?",
            ("log_red_flag", {"red_flags": ["Chest pain", "chest  pain"], **held(2)}, ""),
            ("end_triage", held(2), "Please take a seat."),
        )
        move = moves[len(self.asked) - 1]
        if isinstance(move, str):
            return ChatReply(text=move, usage=USAGE)
        name, arguments, words = move
        call = tool_call(f"c{len(self.asked)}", name, arguments)
        return ChatReply(text=words, tool_calls=(call,), usage=USAGE)


def held(level: int) -> dict[str, JsonValue]:
    return {"triage": level, "confidence": "medium", "explanation": f"held {level}"}


async def test_a_model_is_the_nurse_and_its_steps_are_read_off_its_calls() -> None:
    [case] = [one for one in find_pack("triage:ats").cases(0) if one.id == "chest-pain-arm-ats"]
    model = Nurse()
    crew = Crew(
        target=openai_target(model, system_prompt=nurse_instructions),
        user=triage_patient,
        judge=check_judge,
        environment=environment_for,
    )
    result = await converse(case, crew)
    assert (result.ended_by, result.turn_count, result.goal_achieved) == ("agent", 2, True)
    prompt = model.asked[0].prefix.system
    assert "Australasian Triage Scale" in prompt
    assert "In doubt you choose" in prompt
    assert [spec.name for spec in model.asked[0].prefix.tools] == [
        "check_vital",
        "log_red_flag",
        "assess",
        "end_triage",
    ]

    made = to_artifact(result)
    assert [(row["action"]["type"], row["triage"]) for row in made["trace"]] == [
        ("utterance", None),
        ("check_vital", 3),
        ("assess", 2),
        ("utterance", 2),
        ("log_red_flag", 2),
        ("utterance", 2),
        ("end", 2),
    ]
    assert made["red_flags"] == ["Chest pain"]
    assert made["belief"]["vitals_known"] == ["heartrate"]
    assert made["history"][-2:] == [
        {"turn": 2, "actor": "nurse", "utterance": "Please take a seat.", "triage": 2},
        {"turn": 2, "actor": "system", "event": "triage_end"},
    ]
