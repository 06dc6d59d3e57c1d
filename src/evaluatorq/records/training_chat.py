"""Traces as chat messages with a ``train`` flag each, and as preference pairs from samples of one case.

A conversation whose tool calls and answers do not pair up is refused, because no chat template accepts it; so is one
for which a given ``render`` changes earlier text when a message is added, because then a mask points at other words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, takewhile

from pydantic import JsonValue

from evaluatorq.model.trace import Trace
from evaluatorq.records.training import Line, Row, lines_of, source_of

Render = Callable[[Sequence[Row]], str]
"""A chat template: the text of a list of messages."""


def chat_row(trace: Trace) -> Row:
    """One row: the messages with their flags, and where it comes from."""
    messages: list[JsonValue] = [_flagged(line) for line in lines_of(trace)]
    return {"messages": messages, **source_of(trace)}


def chat_fault(trace: Trace, render: Render | None) -> str | None:
    """Why a conversation cannot be a chat row."""
    if not _calls_pair_up(lines_of(trace)):
        return "tool calls without answers"
    if render is not None and not _grows(render, [_plain(line) for line in lines_of(trace)]):
        return "template rewrites earlier turns"
    return None


def _plain(line: Line) -> Row:
    row = line.message.to_chat_completion()
    return {key: value for key, value in row.items() if value is not None or key == "content"}


def _flagged(line: Line) -> Row:
    thought: Row = {"reasoning": line.reasoning} if line.reasoning else {}
    own_words = all(call.parsed_arguments() is not None for call in line.message.tool_calls or ())  # others become {}
    return {**_plain(line), **thought, "train": line.trainable and own_words and not line.redacted}


def _calls_pair_up(lines: Sequence[Line]) -> bool:
    waiting: list[str] = []
    for line in lines:
        if line.message.role == "tool":
            if line.message.tool_call_id not in waiting:
                return False
            waiting.remove(line.message.tool_call_id)
        elif waiting:
            return False
        else:
            waiting = [call.id for call in line.message.tool_calls or ()]
            if len(set(waiting)) != len(waiting):
                return False
    return not waiting


def _grows(render: Render, messages: Sequence[Row]) -> bool:
    texts = [render(messages[:count]) for count in range(1, len(messages) + 1)]
    return all(after.startswith(before) for before, after in pairwise(texts))


# ---------------------------------------------------------------- preferences


def preference_rows(better: Sequence[Trace], worse: Sequence[Trace]) -> Iterator[Row | str]:
    """A row for each pair of samples that part at words of the agent, or why a pair has none.

    ``prompt`` is what both have in common; ``chosen`` and ``rejected`` go on from there.
    """
    for good in better:
        for bad in worse:
            yield _pair(good, bad)


def _pair(good: Trace, bad: Trace) -> Row | str:
    chosen, rejected = lines_of(good), lines_of(bad)
    common = sum(1 for _ in takewhile(_same, zip(chosen, rejected, strict=False)))
    if common in (len(chosen), len(rejected)):
        return "one sample is the beginning of the other"
    if chosen[common].message.role != "assistant" or rejected[common].message.role != "assistant":
        return "samples part at the user or a tool"
    source = source_of(good)
    other = source_of(bad)
    prompt: list[JsonValue] = [{**_flagged(line), "train": False} for line in chosen[:common]]
    return {
        "prompt": prompt,
        "chosen": [_flagged(line) for line in chosen[common:]],
        "rejected": [_flagged(line) for line in rejected[common:]],
        "datapoint": source["datapoint"],
        "schema": source["schema"],
        "chosen_from": {key: source[key] for key in ("thread_id", "labels", "verdict")},
        "rejected_from": {key: other[key] for key in ("thread_id", "labels", "verdict")},
    }


def _same(pair: tuple[Line, Line]) -> bool:
    return pair[0].message == pair[1].message
