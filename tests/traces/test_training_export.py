"""A corpus trains on exactly the agent's words, is the same bytes every time, and says what it holds and what not."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from trace_samples import SAMPLES, Sample, checked, made

from evaluatorq.errors import ConfigError
from evaluatorq.export import Wanted, load_template, to_training_jsonl
from evaluatorq.model.trace import TargetStep, Trace
from evaluatorq.ports import TargetReply
from evaluatorq.records.trace import trace_of
from evaluatorq.records.training import pieces_of
from evaluatorq.records.training_tagged import Template, parse_tagged, same_pieces, tagged_row
from evaluatorq.testing import a_datapoint, a_plan, crew_of, verdict

Row = dict[str, JsonValue]
TEMPLATE = load_template()


def every() -> list[Trace]:
    return [named(name, row) for row, name in enumerate(SAMPLES)]


def named(name: str, row: int) -> Trace:
    return made(name).model_copy(update={"row": row, "thread_id": f"run:{row}"})


def rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def trained(row: Row) -> list[str]:
    text = str(row["text"])
    return [TEMPLATE.unescaped(text[s["start"] : s["end"]]) for s in row["segments"] if not s["loss_mask"]]


def agents_words(trace: Trace) -> list[str]:
    """What the agent wrote, straight from the steps: thoughts, words, calls."""
    broken = trace.totals.turns + 1 if trace.outcome.failed_component == "target" else None
    words: list[str] = []
    for step in trace.steps:
        if isinstance(step, TargetStep) and step.message and not step.abandoned and step.turn != broken:
            words += [step.message.text] if step.message.text else []
            words += [f"{c.function.name} {c.function.arguments}" for c in step.message.tool_calls or ()]
    return words


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_trained_on_is_exactly_what_the_agent_wrote(name: str) -> None:
    trace = made(name)
    row = tagged_row(trace, TEMPLATE)
    assert trained(row) == agents_words(trace)
    assert same_pieces(row, trace, TEMPLATE)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_character_has_one_segment(name: str) -> None:
    row = tagged_row(made(name), TEMPLATE)
    edges = [0, *(segment["end"] for segment in row["segments"])]
    assert [segment["start"] for segment in row["segments"]] == edges[:-1]
    assert edges[-1] == len(str(row["text"]))


def test_the_text_of_a_conversation_with_tools() -> None:
    text = tagged_row(made("refund"), TEMPLATE)["text"]
    assert text == (
        "<perceive>Refund A1 please</perceive>\n"
        '<act>look_up {"order": "A1"}<observe>delivered</observe></act>\n'
        '<act>refund {"order": "A1"}<observe>done</observe></act>\n'
        "<narrate>I have refunded order A1 for you.</narrate>"
    )


tags = st.sampled_from(
    ["<act>", "</act>", "<observe>", "<\\act>", "<\\\\/narrate>", "<", ">", "\\", "</perceive>", "é\U0001f600"]
)
content = st.lists(tags | st.text(max_size=5), min_size=1, max_size=8).map("".join)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(content.filter(bool), min_size=1, max_size=4))
def test_content_that_looks_like_tags_reads_back_as_it_was(texts: list[str]) -> None:
    from evaluatorq.model.messages import assistant

    trace = made("refund")
    base = next(step for step in trace.steps if isinstance(step, TargetStep) and step.message)
    steps = [base.model_copy(update={"message": assistant(text), "event": i}) for i, text in enumerate(texts)]
    row = tagged_row(trace.model_copy(update={"steps": tuple(steps)}), TEMPLATE)
    assert list(parse_tagged(str(row["text"]), TEMPLATE)) == [("said", text) for text in texts]
    assert trained(row) == texts


def test_reasoning_and_parallel_calls_are_written_in_the_order_they_were_seen() -> None:
    from evaluatorq.model.messages import assistant, tool_call, tool_result

    calls = [tool_call("a", "one", {}), tool_call("b", "two", {})]
    reply = TargetReply(
        (assistant("Both.", calls), tool_result("b", "2", "two"), tool_result("a", "1", "one"), assistant("Done.")),
        reasoning="I need both.",
    )
    sample = Sample(a_datapoint(), crew_of(target=[reply], judge=[verdict(stop=True)]))
    trace = checked(trace_of(sample.plan, 0, sample.events()))
    assert tagged_row(trace, TEMPLATE)["text"] == (
        "<perceive>I want a refund.</perceive>\n<reason>I need both.</reason>\n<narrate>Both.</narrate>\n"
        "<act>one {}</act>\n<act>two {}<observe>2</observe><observe>1</observe></act>\n<narrate>Done.</narrate>"
    )


# ---------------------------------------------------------------- the corpus and its card


def test_the_same_traces_in_any_order_give_the_same_bytes(tmp_path: Path) -> None:
    for style in ("tagged", "chat"):
        files = []
        for number, traces in enumerate((every(), every()[::-1])):
            out = tmp_path / f"{style}{number}" / "corpus.jsonl"
            to_training_jsonl(traces, out=out, format=style)
            files.append([path.read_bytes() for path in sorted(out.parent.iterdir())])
        assert files[0] == files[1]
        assert len(files[0]) == 3


def test_the_card_counts_everything_that_went_in(tmp_path: Path) -> None:
    out = tmp_path / "corpus.jsonl"
    card = to_training_jsonl(every(), out=out, min_outcome={"workflow_completed": True})
    left_out = card["traces_left_out"]
    assert isinstance(left_out, dict)
    assert card["traces_read"] == len(SAMPLES) == card["rows"] + card["duplicates_removed"] + sum(left_out.values())
    assert left_out["label workflow_completed"] == 6
    assert card["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert card == json.loads(out.with_suffix(".card.json").read_text(encoding="utf-8"))
    assert card["labels"]["workflow_completed=true"] == card["rows"]
    assert card["redaction"] == {"not redacted": card["rows"]}
    markdown = out.with_suffix(".card.md").read_text(encoding="utf-8")
    assert "| label workflow_completed | 6 |" in markdown
    masked = sum(s["end"] - s["start"] for row in rows(out) for s in row["segments"] if s["loss_mask"])
    assert card["characters"]["masked"] == masked


def test_equal_conversations_are_one_row_and_counted(tmp_path: Path) -> None:
    card = to_training_jsonl([named("refund", 3), named("refund", 1), named("refund", 2)], out=tmp_path / "c.jsonl")
    assert (card["rows"], card["duplicates_removed"]) == (1, 2)
    assert [row["thread_id"] for row in rows(tmp_path / "c.jsonl")] == ["run:1"]


@pytest.mark.parametrize(
    ("wanted", "name", "reason"),
    [
        (Wanted(labels={"goal_state_reached": True}), "own_tools", "label goal_state_reached absent"),
        (Wanted(labels={"errors": 0}), "retried", "label errors"),
        (Wanted(labels={"errors": False}), "own_tools", "label errors"),
        (Wanted(verdicts=("passed",)), "judge_trouble", "verdict failed"),
        (Wanted(scores={"mine": 0.5}), "scored", "score mine absent"),
        (Wanted(scores={"goal_achieved": 1.5}), "scored", "score goal_achieved"),
        (Wanted(simulator_faults=0), "lost_user", "simulator faults"),
        (Wanted(caveats=("restarted",)), "restarted", "caveat restarted"),
    ],
)
def test_a_filter_says_why_it_left_a_trace_out(tmp_path: Path, wanted: Wanted, name: str, reason: str) -> None:
    card = to_training_jsonl([made(name)], out=tmp_path / "c.jsonl", where=wanted)
    assert card["traces_left_out"] == {reason: 1}
    assert (tmp_path / "c.jsonl").read_bytes() == b""


def test_an_interrupted_conversation_is_left_out_unless_it_is_asked_for(tmp_path: Path) -> None:
    half = made("refund", 5)
    assert to_training_jsonl([half], out=tmp_path / "c.jsonl")["traces_left_out"] == {"incomplete": 1}
    card = to_training_jsonl([half], out=tmp_path / "c.jsonl", where=Wanted(complete=False))
    assert card["rows"] == 1


def test_options_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "c.jsonl"
    with pytest.raises(ConfigError, match="a preference needs min_outcome"):
        to_training_jsonl([], out=out, format="preference")
    with pytest.raises(ConfigError, match="no such format: 'parquet'"):
        to_training_jsonl([], out=out, format="parquet")
    with pytest.raises(ConfigError, match="a file of tags goes with 'tagged'"):
        to_training_jsonl([], out=out, format="chat", template="x.json")
    with pytest.raises(ConfigError, match="cannot read the template"):
        to_training_jsonl([], out=out, template=tmp_path / "none.json")
    (tmp_path / "t.json").write_text('{"name": "x", "tags": {"user": "a"}}', encoding="utf-8")
    with pytest.raises(ConfigError, match="give each of user, reasoning, said, call, result a tag"):
        to_training_jsonl([], out=out, template=tmp_path / "t.json")
    assert not out.exists()


def test_a_template_of_ones_own_may_train_on_the_tags_too() -> None:
    own = Template(
        name="own",
        tags={"user": "in", "reasoning": "think", "said": "say", "call": "do", "result": "got"},
        separator="",
        train_tags=True,
    )
    row = tagged_row(made("refund"), own)
    text = str(row["text"])
    masked = "".join(text[s["start"] : s["end"]] for s in row["segments"] if s["loss_mask"])
    assert masked == "<in>Refund A1 please</in><got>delivered</got></do><got>done</got></do>".replace("<got>", "<got>")
    assert same_pieces(row, made("refund"), own)


# ---------------------------------------------------------------- chat


def test_only_the_agents_messages_are_trained_on_in_a_chat(tmp_path: Path) -> None:
    to_training_jsonl(every(), out=tmp_path / "c.jsonl", format="chat")
    for row in rows(tmp_path / "c.jsonl"):
        for message in row["messages"]:
            assert message["train"] is False or message["role"] == "assistant"
    messages = rows(tmp_path / "c.jsonl")[0]["messages"]
    assert [(m["role"], m["train"]) for m in messages] == [
        ("user", False),
        ("assistant", True),
        ("tool", False),
        ("assistant", True),
        ("tool", False),
        ("assistant", True),
    ]


def test_a_turn_that_the_agent_broke_is_not_trained_on(tmp_path: Path) -> None:
    trace = made("tool_cap")
    assert not any(piece.trainable for piece in pieces_of(trace))
    card = to_training_jsonl([trace], out=tmp_path / "c.jsonl", format="chat")
    assert card["traces_left_out"] == {"tool calls without answers": 1}


def grows(messages: Sequence[Row]) -> str:
    return "".join(f"<|{m['role']}|>{m['content']}\n" for m in messages)


def rewrites(messages: Sequence[Row]) -> str:
    """A template that drops the tools' answers once the agent has spoken."""
    spoken = messages[-1]["role"] == "assistant" and messages[-1]["content"]
    return grows([m for m in messages if m["role"] != "tool" or not spoken])


def test_a_template_that_rewrites_earlier_turns_is_refused(tmp_path: Path) -> None:
    fine = to_training_jsonl([made("refund")], out=tmp_path / "a.jsonl", format="chat", template=grows)
    refused = to_training_jsonl([made("refund")], out=tmp_path / "b.jsonl", format="chat", template=rewrites)
    assert (fine["rows"], refused["rows"]) == (1, 0)
    assert refused["traces_left_out"] == {"template rewrites earlier turns": 1}


# ---------------------------------------------------------------- preferences


def sample_of_a_case(row: int, *words: str, user: Sequence[str] = ("hello", "more")) -> Trace:
    stops = [verdict(stop=word == "good") for word in words]
    case = Sample(a_datapoint(), crew_of(target=words, user=user, judge=stops))
    trace = checked(trace_of(a_plan(case.datapoint, limits=case.limits), 0, case.events()))
    return trace.model_copy(update={"row": row, "thread_id": f"run:{row}"})


def test_a_preference_pairs_samples_of_a_case_that_part_at_the_agents_words(tmp_path: Path) -> None:
    good = sample_of_a_case(0, "same", "good")
    bad = sample_of_a_case(1, "same", "bad", "worse", "w", "w")
    other = sample_of_a_case(2, "same", "bad", "w", user=("hello", "different"))
    only = made("user_stops").model_copy(
        update={"datapoint": made("user_stops").datapoint.model_copy(update={"fingerprint": "x"})}
    )
    card = to_training_jsonl(
        [bad, other, only, good],
        out=tmp_path / "p.jsonl",
        format="preference",
        min_outcome={"workflow_completed": True},
    )
    (row,) = rows(tmp_path / "p.jsonl")
    assert [m["content"] for m in row["prompt"]] == ["hello", "same", "more"]
    assert not any(m["train"] for m in row["prompt"])
    assert [m["content"] for m in row["chosen"]] == ["good"]
    assert row["rejected"][0] == {"role": "assistant", "content": "bad", "train": True}
    assert row["chosen_from"]["labels"]["workflow_completed"] is True
    assert card["traces_left_out"] == {
        "all samples have one outcome": 1,
        "pair: samples part at the user or a tool": 1,
    }


# ---------------------------------------------------------------- other people's readers


@pytest.fixture
def datasets_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    import datasets

    return lambda path: datasets.load_dataset(
        "json", data_files=str(path), split="train", cache_dir=str(tmp_path / "hf")
    )


def test_tokens_that_are_trained_on_are_the_agents_words_to_the_letter(tmp_path: Path, datasets_json: object) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    out = tmp_path / "c.jsonl"
    traces = [trace for trace in every() if list(pieces_of(trace))]
    to_training_jsonl(traces, out=out)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [str(row["text"]) for row in rows(out)]
    tokenizer.train_from_iterator(
        texts, trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    )
    by_thread = {trace.thread_id: trace for trace in traces}
    read = datasets_json(out)
    assert len(read) == len(texts)
    for row in read:
        words: list[str] = []
        for segment in row["segments"]:
            ids = tokenizer.encode(row["text"][segment["start"] : segment["end"]]).ids
            labels = [-100 if segment["loss_mask"] else token for token in ids]
            kept = [token for token in labels if token != -100]
            if kept:
                words.append(TEMPLATE.unescaped(tokenizer.decode(kept)))
        assert words == agents_words(by_thread[row["thread_id"]])
