"""Works suggestions into an agent's instructions: by a list of replacements, by a rewrite where none of those hold.

A replacement holds when the words it looks for stand in the text exactly once. Placeholders of templates must survive
either way. Nothing is written here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from evaluatorq.errors import CallError
from evaluatorq.model.usage import Usage
from evaluatorq.pacing.paid import PaidCalls
from evaluatorq.ports import ChatModel, ChatPrefix, ChatReply, ChatRequest
from evaluatorq.roles.asking import Asking, ask
from evaluatorq.roles.prompts_analyst import EDIT_SYSTEM, EDITS, REWRITE, edit_tail

_PLACEHOLDER = re.compile(r"\{\{?\s*[\w.]+\s*\}?\}|\$\{\w+\}|<%.*?%>")
_PATIENCE = 1


@dataclass(frozen=True, slots=True)
class Edited:
    """The text as it would be, and the numbers (from 0) of the suggestions that are in it."""

    text: str
    carried_out: tuple[int, ...]
    method: Literal["edits", "rewrite"]
    usage: Usage | None
    model: str | None = None


async def edit_prompt(model: ChatModel, calls: PaidCalls, prompt: str, suggestions: Sequence[str]) -> Edited:
    """The edited text. Raises ``CallError`` where neither way brings a usable one."""
    try:
        return await _edit(model, calls, prompt, suggestions)
    except CallError as error:
        if error.code != "malformed_response":
            raise
        return await _rewrite(model, calls, prompt, suggestions)


async def _edit(model: ChatModel, calls: PaidCalls, prompt: str, suggestions: Sequence[str]) -> Edited:
    prefix, asking = ChatPrefix(EDIT_SYSTEM, answer=EDITS), Asking()

    async def once() -> Edited:
        tail = edit_tail(prompt, suggestions, asking.about("edits"))
        reply, answer = await ask(model, ChatRequest(prefix, (), tail), asking, {"malformed_response": _PATIENCE})
        text, carried_out, problems = _with_edits(prompt, answer.get("edits"), len(suggestions))
        problems += _lost(prompt, text)
        if problems:
            raise _refusal(asking, " ".join(problems), reply)
        return Edited(text, carried_out, "edits", reply.usage, reply.model or model.name)

    return await calls.make("apply", once, reask=True)


async def _rewrite(model: ChatModel, calls: PaidCalls, prompt: str, suggestions: Sequence[str]) -> Edited:
    prefix, asking = ChatPrefix(EDIT_SYSTEM, answer=REWRITE), Asking()

    async def once() -> Edited:
        tail = edit_tail(prompt, suggestions, asking.about("rewrite"))
        reply, answer = await ask(model, ChatRequest(prefix, (), tail), asking, {"malformed_response": _PATIENCE})
        text = answer.get("text")
        if not isinstance(text, str) or not text.strip():
            raise _refusal(asking, "there is no text in it.", reply)
        lost = _lost(prompt, text)
        if lost:
            raise _refusal(asking, " ".join(lost), reply)
        ending = prompt[len(prompt.rstrip()) :]
        carried_out = tuple(range(len(suggestions)))
        return Edited(text.strip() + ending, carried_out, "rewrite", reply.usage, reply.model or model.name)

    return await calls.make("apply", once, reask=True)


def _with_edits(prompt: str, edits: JsonValue, count: int) -> tuple[str, tuple[int, ...], list[str]]:
    """The text after all edits, the suggestions they carry out, and what does not hold."""
    if not isinstance(edits, list) or not edits:
        return prompt, (), ["edits must be a list that holds at least one edit."]
    text, carried_out, problems = prompt, set[int](), list[str]()
    for number, edit in enumerate(edits, 1):
        entry = edit if isinstance(edit, dict) else {}
        find, replace, suggestion = entry.get("find"), entry.get("replace"), entry.get("suggestion")
        if not isinstance(find, str) or not isinstance(replace, str) or not (find or replace.strip()):
            problems.append(f"edit {number} needs find and replace as text.")
        elif find and text.count(find) != 1:
            problems.append(f"the words that edit {number} looks for stand there {text.count(find)} times, not once.")
        elif not isinstance(suggestion, int) or not 1 <= suggestion <= count:
            problems.append(f"edit {number} names no suggestion from 1 to {count}.")
        else:
            text = text.replace(find, replace) if find else _with_paragraph(text, replace)
            carried_out.add(suggestion - 1)
    return text, tuple(sorted(carried_out)), problems


def _with_paragraph(text: str, paragraph: str) -> str:
    body = text.rstrip()
    return f"{body}\n\n{paragraph.strip()}{text[len(body) :] or chr(10)}"


def _lost(before: str, after: str) -> list[str]:
    lost = sorted(set(_PLACEHOLDER.findall(before)) - set(_PLACEHOLDER.findall(after)))
    return [f"the placeholder {name} is gone." for name in lost]


def _refusal(asking: Asking, complaint: str, reply: ChatReply) -> CallError:
    error = CallError(
        "malformed_response",
        f"the edit cannot be used: {complaint}",
        usage=reply.usage,
        raw=reply.raw or reply.text,
        model=reply.model,
    )
    return asking.refuse(error, complaint, _PATIENCE)
