"""An OpenAI-compatible endpoint on loopback that counts what it gives and fails on request. Standard library only.

    python tests/mock_server/serve.py [--port N] [--knobs JSON]      prints its base URL, then serves until killed

What it answers depends on the request alone. The model's name says which role asks (``mock-user``, ``mock-target``,
``mock-judge``); ``POST /agent`` is the same target behind a plain HTTP interface. A conversation is known by the
``CASE-0000`` in its texts. ``GET /stats`` tells what was asked, answered and charged; ``POST /knobs`` changes a knob.

A fault is ``{"role": …, "kind": …}`` with one of ``first`` (so many first attempts of each question), ``rate`` (drawn
from question and attempt), ``in_all`` (so many requests) or nothing (always), and for 429 and 503 ``retry_after``:
seconds, or ``"date"``. Kinds: a status, ``quota``, ``hang``, ``drop``, ``slow``, ``cut``, ``malformed``, ``empty``.
Answers that were spoiled on their way are charged all the same, as a provider would. What is named in ``refused`` (a
field, ``json_schema``, or ``role:NAME``) is refused wherever it is sent, with the parameter's name; what is named in
``breaks``, with nothing but status 500. ``streams`` sends events also when nobody asked for them; ``watched`` are texts
to count requests with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import time
import zlib
from collections import Counter, defaultdict
from email.utils import formatdate

CASE = re.compile(r"CASE-\d{4}")
USER_WORDS = (
    "my kettle arrived with a broken lid",
    "the second parcel never turned up at all",
    "somebody on the phone promised me a call",
    "which documents would you still need from me",
    "could this be settled before the weekend",
    "an invoice came although nothing was sent",
    "please look at the photo that I attached",
    "I would rather have the money than a voucher",
)
AGENT_WORDS = (
    "I have opened a file and noted the details that you gave",
    "the warehouse confirms that the item left on Monday",
    "a new label is on its way to the address we have",
    "our records show one payment and no second order",
)
KINDS = ("real", "fake", "user", "none", "abstain")
"""A judge saw it and quotes the agent, nobody, or the user; did not see it; or does not say."""


class Mock:
    def __init__(self, **knobs):
        self.knobs = {
            "latency_ms": 0.0,
            "finish_turn": 3,
            "user_stops": 0,
            "quote": "real",
            "faults": [],
            "slow_s": 1.0,
            "hang_s": 3600.0,
            "echo_header": "",
            "refused": [],
            "breaks": [],
            "streams": False,
            "watched": [],
        }
        self.set(knobs)
        self.reset()

    def set(self, knobs):
        unknown = set(knobs) - set(self.knobs)
        if unknown:
            raise ValueError(f"unknown knobs: {unknown}")
        self.knobs.update(knobs)

    def reset(self):
        self.roles = defaultdict(Counter)
        self.cases = defaultdict(lambda: defaultdict(Counter))
        self.faults = Counter()
        self.attempts = Counter()
        self.bodies = set()
        self.repeats = Counter()
        self.verdicts = defaultdict(dict)
        self.watched = defaultdict(Counter)
        self.streamed = 0
        self.in_flight = self.peak = 0

    def stats(self):
        return {
            "roles": self.roles,
            "cases": self.cases,
            "faults": self.faults,
            "repeats": self.repeats,
            "verdicts": self.verdicts,
            "watched": self.watched,
            "streamed": self.streamed,
            "requests": sum(role["requests"] for role in self.roles.values()),
            "peak": self.peak,
        }

    # ---------------------------------------------------------------- one question

    def answer(self, path, headers, body):
        """Status, headers, body, how it is sent, and what to call when a slow one was read after all."""
        text = body.decode()
        doc = json.loads(text)
        role = "target" if path == "/agent" else next(r for r in ("user", "judge", "target") if r in doc["model"])
        case = (CASE.findall(text) or ["CASE-0000"])[0]
        for word in self.knobs["watched"]:
            self.watched[word][role] += word in text
        for part in self.knobs["breaks"]:
            if place_of(part, doc) is not None:
                return 500, {}, error("server_error", "list index out of range"), "whole", lambda: None
        for part in self.knobs["refused"]:
            place = place_of(part, doc)
            if place is not None:
                return 400, {}, error("unsupported_parameter", "Not here.", place), "whole", lambda: None
        digest = zlib.crc32(body)
        self.repeats[case] += digest in self.bodies
        self.bodies.add(digest)
        rows = doc["messages"] if role == "target" else doc["messages"][:-1]  # the last says what was wrong before
        said = [row["content"] for row in (rows if role == "target" else rows[1:])]  # the first says how to answer
        question = zlib.crc32(json.dumps([role, case, said]).encode())
        attempt = self.attempts[question]
        self.attempts[question] += 1
        fault = self.fault(role, question, attempt)
        prompt = len(body) // 4
        for book in (self.roles[role], self.cases[case][role]):
            book["requests"] += 1
        if fault is not None:
            self.faults[f"{role}:{fault['kind']}"] += 1
            refusal = self.refusal(fault, headers)
            if refusal is not None:
                return *refusal, "whole", lambda: None
        said = {"user": self.user, "judge": self.judge, "target": self.target}[role](doc, text, case)
        kind = fault["kind"] if fault else ""
        if kind == "empty":
            said = ""
        out = json.dumps(said) if isinstance(said, dict) else said
        completion = max(1, len(out) // 4)
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        payload = {"reply": said, "usage": usage} if path == "/agent" else completed(doc, said, out, usage, digest)
        streams = path != "/agent" and (self.knobs["streams"] or doc.get("stream", False))
        self.streamed += streams
        more = {"content-type": "text/event-stream"} if streams else {}
        data = events(payload) if streams else json.dumps(payload).encode()
        if kind == "malformed":
            data = data[: len(data) // 2]

        how = kind if kind in ("hang", "drop", "slow", "cut") else "whole"
        for counter in (self.roles[role], self.cases[case][role]):
            counter.update(charged=usage["total_tokens"], prompt=prompt, completion=completion)
            if how in ("hang", "drop", "slow", "cut") or kind == "malformed":
                counter.update(spoiled=usage["total_tokens"], spoiled_answers=1)

        def read():
            for counter in (self.roles[role], self.cases[case][role]):
                counter.subtract(spoiled=usage["total_tokens"], spoiled_answers=1)

        return 200, more, data, how, read

    def fault(self, role, question, attempt):
        for fault in self.knobs["faults"]:
            if fault.get("role", role) != role:
                continue
            if "first" in fault and attempt >= fault["first"]:
                continue
            if "in_all" in fault and self.faults.total() >= fault["in_all"]:
                continue
            if "rate" in fault and zlib.crc32(b"%d/%d" % (question, attempt)) / 2**32 >= fault["rate"]:
                continue
            return fault
        return None

    def refusal(self, fault, headers):
        kind, after = fault["kind"], fault.get("retry_after")
        more = {} if after is None else {"retry-after": str(after)}
        if after == "date":
            now = time.time()
            more = {"date": formatdate(now, usegmt=True), "retry-after": formatdate(now + 1, usegmt=True)}
        echo = headers.get(self.knobs["echo_header"], "")
        if kind == "quota":
            return 429, more, error("insufficient_quota", f"You exceeded your quota. {echo}")
        if kind.isdigit():
            return int(kind), more, error({"429": "rate_limit_exceeded"}.get(kind, "server_error"), f"Refused. {echo}")
        return None

    # ---------------------------------------------------------------- the roles

    def user(self, doc, text, case):
        turn = sum(message["role"] == "assistant" for message in doc["messages"])
        words = f"{case} here, message {turn + 1}: {USER_WORDS[turn % len(USER_WORDS)]}"
        return {"reply": words, "end_conversation": 0 < self.knobs["user_stops"] <= turn + 1}

    def target(self, doc, text, case):
        turn = sum(message["role"] == "user" for message in doc["messages"])
        return f"ANSWER-{turn} for {case}. {AGENT_WORDS[turn % len(AGENT_WORDS)]}"

    def judge(self, doc, text, case):
        turn = max((int(n) for n in re.findall(r"ANSWER-(\d+)", text)), default=0)
        finished = turn >= self.knobs["finish_turn"]
        verdicts = []
        for key in re.findall(r"criteria_\d+", doc["messages"][-1]["content"].split("\n")[0]):
            index = int(key.removeprefix("criteria_"))
            kind = self.knobs["quote"]
            kind = KINDS[(int(case[-4:]) + index) % len(KINDS)] if kind == "mixed" else kind
            self.verdicts[case][key] = kind
            verdicts.append(verdict(key, kind, text))
        return {
            "reason": "The agent's answers were read one by one.",
            "criteria_verdicts": verdicts,
            "response_quality": 0.75,
            "hallucination_risk": 0.25,
            "tone_appropriateness": 1.0,
            "factual_accuracy": None,
            "goal_achieved": finished,
            "goal_completion_score": 1.0 if finished else 0.25,
            "should_terminate": finished,
        }


def place_of(part, doc):
    """Where a request holds it, ``None`` where it does not."""
    if part.startswith("role:"):
        rows = enumerate(doc.get("messages", ()))
        return next((f"messages[{i}].role" for i, row in rows if row["role"] == part.removeprefix("role:")), None)
    if part == "json_schema":
        return "response_format" if doc.get("response_format", {}).get("type") == part else None
    return part if part in doc else None


def events(payload):
    """A completion as server-sent events: its words and its calls in pieces, usage last."""
    (choice,) = payload["choices"]
    message = choice["message"]
    deltas = [{"role": "assistant"}]
    deltas += [{"content": message["content"][at : at + 7]} for at in range(0, len(message["content"] or ""), 7)]
    for call in message.get("tool_calls") or ():
        said = call["function"]["arguments"]
        named = {"index": 0, "id": call["id"], "type": "function", "function": {"name": call["function"]["name"]}}
        deltas.append({"tool_calls": [named]})
        deltas += [
            {"tool_calls": [{"index": 0, "function": {"arguments": said[at : at + 7]}}]}
            for at in range(0, len(said), 7)
        ]
    head = {"id": payload["id"], "model": payload["model"]}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    chunks.append({**head, "choices": [], "usage": payload["usage"]})
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def verdict(key, kind, text):
    quote = {
        "real": (re.findall(r"ANSWER-\d+ for CASE-\d{4}\. [\w ]+", text) or [""])[-1],
        "user": (re.findall(r"CASE-\d{4} here, message \d+: [\w ]+", text) or [""])[-1],
        "fake": "we hereby give you a golden pony and a castle",
    }.get(kind, "")
    return {"criterion_id": key, "evidence": quote, "occurred": None if kind == "abstain" else kind != "none"}


def completed(doc, said, out, usage, digest):
    message = {"role": "assistant", "content": out, "refusal": None}
    if isinstance(said, dict) and "tool_choice" in doc:
        name = doc["tool_choice"]["function"]["name"]
        call = {"id": f"call_{digest:08x}", "type": "function", "function": {"name": name, "arguments": out}}
        message.update(content=None, tool_calls=[call])
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": f"chatcmpl-{digest:08x}", "model": doc["model"], "choices": [choice], "usage": usage}


def error(code, message, param=None):
    return json.dumps({"error": {"message": message, "type": code, "param": param, "code": code}}).encode()


# ---------------------------------------------------------------- HTTP


async def connection(mock, reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, path, _ = head[0].split(" ")
            path = path.partition("?")[0]
            if path.endswith("/chat/completions") or path == "/agent":
                raw = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
                if not await respond(mock, writer, *mock.answer(path, {k.lower(): v for k, v in raw.items()}, body)):
                    return
            else:
                if method == "POST":
                    mock.reset() if path == "/reset" else mock.set(json.loads(body))
                await send(writer, 200, {}, json.dumps(mock.stats()).encode())
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def respond(mock, writer, status, headers, data, how, read):
    """Sends the answer as ``how`` says; ``False`` when the connection is of no more use."""
    mock.in_flight += 1
    mock.peak = max(mock.peak, mock.in_flight)
    try:
        await asyncio.sleep(mock.knobs["hang_s"] if how == "hang" else mock.knobs["latency_ms"] / 1000)
        if how == "slow":
            writer.write(head_of(status, headers, len(data)))
            size = len(data) // 4 + 1
            for place in range(0, len(data), size):
                await asyncio.sleep(mock.knobs["slow_s"] / 4)
                writer.write(data[place : place + size])
                await writer.drain()
            read()
        elif how == "cut":
            writer.write(head_of(status, headers, len(data)) + data[: len(data) // 2])
            await writer.drain()
        elif how == "whole":
            await send(writer, status, headers, data)
    except ConnectionError:
        return False
    finally:
        mock.in_flight -= 1
    return how in ("whole", "slow")


def head_of(status, headers, length):
    lines = {"content-type": "application/json", "content-length": str(length), **headers}
    return (f"HTTP/1.1 {status} X\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n").encode()


async def send(writer, status, headers, data):
    writer.write(head_of(status, headers, len(data)) + data)
    await writer.drain()


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--knobs", type=json.loads, default={})
    args = parser.parse_args()
    mock = Mock(**args.knobs)
    server = await asyncio.start_server(
        lambda reader, writer: connection(mock, reader, writer), "127.0.0.1", args.port, backlog=4096, limit=2**24
    )
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
