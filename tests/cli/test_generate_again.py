"""``sim generate`` loses nothing that was paid for: however it ends, the same command goes on from there."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cli.conftest import Cli
from cli.test_made_cases import ABOUT, asked_for, writes
from llm.fake_endpoint import FakeEndpoint, Seen, Served, completion, serving, tool_answer
from mock_server.shell import killed_on_failure
from writing_models import persona, scenario

COUNTS = ("--num-personas", "1", "--num-scenarios", "2")
GENERATE = ("sim", "generate", *ABOUT, *COUNTS, "-d", "cases.jsonl", "-y")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEndpoint]:
    with serving() as fake:
        fake.answer = writes
        monkeypatch.setenv("OPENAI_BASE_URL", fake.base_url)
        yield fake


def drafts(folder: Path) -> list[Path]:
    return list((folder / ".evaluatorq" / "drafts").rglob("draft.jsonl"))


class Paying:
    """Answers and writes down what for; a wish in ``hangs`` is heard and never answered."""

    def __init__(self, hangs: str = "") -> None:
        self.hangs = hangs
        self.hung = threading.Event()
        self.paid: list[str] = []

    def __call__(self, seen: Seen) -> Served:
        wish = asked_for(seen)
        if wish == self.hangs:
            self.hung.set()
            return Served(hang=True)
        self.paid.append(wish)
        return writes(seen)


def started(cli: Cli, endpoint: FakeEndpoint, *words: str, **more: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        cli.command(*words), cwd=cli.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=cli.environment(OPENAI_BASE_URL=endpoint.base_url, PYTHONDONTWRITEBYTECODE="1"), **more,
    )  # type: ignore[call-overload]  # fmt: skip


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_however_it_is_stopped_the_same_command_asks_only_what_is_missing_and_counts_all(
    cli: Cli, folder: Path, inside, endpoint: FakeEndpoint, how: signal.Signals
):
    endpoint.answer = first = Paying(hangs="user_message")
    with started(cli, endpoint, *GENERATE) as process, killed_on_failure(process):
        assert first.hung.wait(30)
        process.send_signal(how)
        _, said = process.communicate(timeout=30)
    if how != signal.SIGKILL:
        assert process.returncode == 130
        assert "Interrupted. No file was written." in said
        assert "what was paid for so far is kept; the same command goes on from there" in said
    assert sorted(first.paid) == ["personas", "scenarios"]
    assert not (folder / "cases.jsonl").exists()

    endpoint.answer = second = Paying()
    again = inside(*GENERATE)
    assert (again.code, again.out) == (0, "2 cases written to cases.jsonl\n")
    assert second.paid == ["user_message"] * 2
    assert "Going on with these cases where it was stopped: 30 tokens are paid already" in again.err
    assert "Made 1 persona and 2 scenarios: 2 cases, 60 tokens" in again.err
    assert drafts(folder) == []

    endpoint.answer = third = Paying()
    assert inside(*GENERATE, "--force").code == 0
    assert len(third.paid) == 4, "what was written is done with: the same command makes others"


def test_another_order_is_not_gone_on_with(cli: Cli, folder: Path, inside, endpoint: FakeEndpoint):
    endpoint.answer = first = Paying(hangs="user_message")
    with started(cli, endpoint, *GENERATE) as process, killed_on_failure(process):
        assert first.hung.wait(30)
        process.kill()
    endpoint.answer = other = Paying()
    ran = inside(*GENERATE, "--generation-instructions", "All of them are left-handed.")
    assert (ran.code, sorted(other.paid)) == (0, ["personas", "scenarios", "user_message", "user_message"])
    assert "Going on" not in ran.err
    (kept,) = drafts(folder)
    endpoint.answer = same = Paying()
    assert inside(*GENERATE[:-3], "-d", "elsewhere.jsonl").code == 0
    assert same.paid == ["user_message"] * 2, "where the cases go does not make them others"
    assert not kept.exists()


def test_two_at_once_make_cases_each_for_itself(cli: Cli, folder: Path, inside, endpoint: FakeEndpoint):
    endpoint.answer = first = Paying(hangs="user_message")
    with started(cli, endpoint, *GENERATE) as process, killed_on_failure(process):
        assert first.hung.wait(30)
        endpoint.answer = second = Paying()
        assert inside(*GENERATE[:-3], "-d", "second.jsonl").code == 0
        assert sorted(second.paid[-4:]) == ["personas", "scenarios", "user_message", "user_message"]
        assert len(drafts(folder)) == 1
        process.kill()


def full(size: int) -> Callable[[], None]:
    """Files end at ``size`` bytes, as on a disk that is full: also the interpreter's own, which must not write any."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [100, 3000])
def test_on_a_full_disk_what_was_written_is_kept_and_nothing_half_stands_in_its_place(
    cli: Cli, folder: Path, inside, endpoint: FakeEndpoint, size: int
):
    endpoint.answer = first = Paying()
    with started(cli, endpoint, *GENERATE, preexec_fn=full(size)) as process, killed_on_failure(process):
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, ""), said
    assert "cannot write" in said
    assert "Traceback" not in said
    assert not (folder / "cases.jsonl").exists()
    assert not list(folder.glob("*.tmp")) + list(folder.glob(".*.tmp"))
    endpoint.answer = second = Paying()
    ran = inside(*GENERATE)
    assert ran.code == 0
    assert len((folder / "cases.jsonl").read_text().splitlines()) == 2
    assert len(first.paid) + len(second.paid) <= 4 + 3, "at most what was being written when the disk was full"


def test_a_file_that_cannot_be_written_in_the_end_costs_nothing_the_next_time(
    inside, folder: Path, endpoint: FakeEndpoint
):
    words = ("sim", "generate", *ABOUT, *COUNTS, "-y", "-d")
    out = folder / "out"

    def loses_its_folder(seen: Seen) -> Served:
        if out.is_dir():
            out.rmdir()
            out.write_text("a file in its place")
        return writes(seen)

    endpoint.answer = loses_its_folder
    failed = inside(*words, "out/cases.jsonl")
    assert failed.code == 1
    assert "out/cases.jsonl" in failed.err
    before = len(endpoint.seen)
    again = inside(*words, "cases.jsonl")
    assert (again.code, len(endpoint.seen)) == (0, before)
    assert len((folder / "cases.jsonl").read_text().splitlines()) == 2


def test_what_cannot_be_written_is_refused_before_anything_is_paid(inside, folder: Path, endpoint: FakeEndpoint):
    (folder / "there.jsonl").write_text("mine\n")
    for path, told in (
        ("there.jsonl", "there.jsonl exists"),
        ("agents.py/cases.jsonl", "cannot"),
        (".", "it is a folder"),
        ("/proc/cases.jsonl", "cannot write /proc/cases.jsonl"),
    ):
        ran = inside("sim", "generate", *ABOUT, "-d", path)
        assert (ran.code, ran.out) == (2, "")
        assert told in ran.err
    assert endpoint.seen == []
    assert (folder / "there.jsonl").read_text() == "mine\n"
    assert drafts(folder) == []


def test_what_goes_to_standard_output_is_cases_alone(cli: Cli, folder: Path, endpoint: FakeEndpoint):
    words = ("sim", "generate", *ABOUT, *COUNTS, "-y", "-d", "/dev/stdout")
    ran = cli(*words, OPENAI_BASE_URL=endpoint.base_url)
    assert ran.code == 0, ran.err
    assert [json.loads(line)["persona"]["name"] for line in ran.out.splitlines()] == ["Person 0"] * 2
    assert "2 cases written to /dev/stdout" in ran.err


def test_a_pipe_whose_reader_has_gone_keeps_what_was_paid(cli: Cli, folder: Path, inside, endpoint: FakeEndpoint):
    read, write = os.pipe()
    os.close(read)
    words = ("sim", "generate", *ABOUT, *COUNTS, "-y", "-q", "-d")
    process = subprocess.run(
        cli.command(*words, "/dev/stdout"), cwd=folder, env=cli.environment(OPENAI_BASE_URL=endpoint.base_url),
        stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    os.close(write)
    assert process.returncode != 0
    assert "Traceback" not in process.stderr
    before = len(endpoint.seen)
    assert before == 4
    assert inside(*words, "cases.jsonl").code == 0
    assert len(endpoint.seen) == before


# ---------------------------------------------------------------- what models do


def making(kind: str, answer: Callable[[int], Served]) -> Callable[[Seen], Served]:
    """Answers as always, but where ``kind`` is asked for; the number of that request is given."""
    asked = iter(range(1000))
    return lambda seen: answer(next(asked)) if asked_for(seen) == kind else writes(seen)


def gives(kind: str, value: object) -> Callable[[int], Served]:
    return lambda _number: tool_answer(kind, json.dumps(value))


HOPELESS: dict[str, tuple[Callable[[int], Served], str]] = {
    "rubbish": (lambda _n: tool_answer("scenarios", "{{{"), "no JSON object"),
    "prose": (lambda _n: completion({"content": "I would rather not."}), "no JSON object"),
    "nothing": (lambda _n: completion({"content": ""}), "answered with nothing"),
    "none": (gives("scenarios", {"scenarios": []}), "2 were asked for and 0 came"),
    "no list": (gives("scenarios", {"scenarios": "two"}), "2 were asked for and 0 came"),
    "things that are no cases": (gives("scenarios", {"scenarios": [1, None]}), "scenario 1"),
    "cases that break a rule": (gives("scenarios", {"scenarios": [scenario("S", goal=" ")] * 2}), "goal"),
    "a cut": (lambda _n: completion({"content": '{"scenarios": ['}, finish="length"), "cut at the token limit"),
    "a refusal": (lambda _n: completion({"content": None, "refusal": "No."}), "refused"),
}


@pytest.mark.parametrize("what", HOPELESS)
def test_a_model_that_makes_nothing_is_named_and_asked_anew_the_next_time(
    inside, folder: Path, endpoint: FakeEndpoint, what: str
):
    answer, told = HOPELESS[what]
    endpoint.answer = making("scenarios", answer)
    ran = inside(*GENERATE)
    assert (ran.code, ran.out) == (1, "")
    said = " ".join(ran.err.split())
    assert "could not be made" in said
    assert told in said
    assert not (folder / "cases.jsonl").exists()
    endpoint.answer = better = Paying()
    again = inside(*GENERATE)
    assert again.code == 0, again.err
    assert better.paid == ["scenarios", "user_message", "user_message"], "the persona was paid for"
    spent = len(endpoint.seen) * 15
    assert f"2 cases, {spent:,} tokens" in again.err


def test_ten_times_as_many_and_twins_give_what_was_ordered_under_names_of_their_own(
    inside, folder: Path, endpoint: FakeEndpoint
):
    endpoint.answer = making("scenarios", gives("scenarios", {"scenarios": [scenario("The same")] * 20}))
    assert inside(*GENERATE).code == 0
    rows = [json.loads(line) for line in (folder / "cases.jsonl").read_text().splitlines()]
    assert [row["scenario"]["name"] for row in rows] == ["The same", "The same (2)"]
    assert inside("sim", "validate", "cases.jsonl").code == 0


def test_an_answer_cut_by_the_token_limit_is_asked_for_in_smaller_parts(inside, folder: Path, endpoint: FakeEndpoint):
    def cut_when_many(seen: Seen) -> Served:
        if asked_for(seen) != "personas":
            return writes(seen)
        if "Make 1 persona," not in str(seen.body["messages"]):
            return completion({"content": '{"personas": [{"name": "An'}, finish="length")
        return tool_answer("personas", json.dumps({"personas": [persona(f"Person {len(endpoint.seen)}")]}))

    endpoint.answer = cut_when_many
    ran = inside("sim", "generate", *ABOUT, "--num-personas", "4", "--num-scenarios", "1", "-d", "cases.jsonl")
    assert (ran.code, ran.out) == (0, "4 cases written to cases.jsonl\n")


def test_some_that_could_not_be_made_are_named_and_the_others_are_written(inside, folder: Path, endpoint: FakeEndpoint):
    def no_second(seen: Seen) -> Served:
        many = "Make 2 scenarios," in str(seen.body["messages"])
        made = [scenario("Good"), scenario("Bad", goal="")] if many else [scenario("Bad", goal="")]
        return (
            tool_answer("scenarios", json.dumps({"scenarios": made}))
            if asked_for(seen) == "scenarios"
            else writes(seen)
        )

    endpoint.answer = no_second
    ran = inside(*GENERATE)
    assert (ran.code, ran.out) == (0, "1 case written to cases.jsonl\n")
    assert "Not made: scenario 2 of 2 could not be made: scenario 1: goal" in ran.err
