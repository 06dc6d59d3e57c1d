"""Reads an answer of a Responses endpoint, a mapping or a vendor's object, as the fields of an ``AgentResponse``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evaluatorq.model.usage import Usage


def fields_of(response: object) -> dict[str, object]:
    """What it says. An answer with status ``failed`` is an error; what nobody wrote is left out."""
    items = _items(response, "output")
    returned = {_text(item, "call_id"): _text(item, "output") for item in items if _is(item, "function_call_output")}
    usage, status = _member(response, "usage"), _text(response, "status")
    refusals = [
        part for item in items if _is(item, "message") for part in _items(item, "content") if _is(part, "refusal")
    ]
    found: dict[str, object] = {
        "output": [part for item in items for part in _read(item, returned)],
        "usage": None if usage is None else Usage.extract(usage),
        "model": _text(response, "model"),
        "response_id": _text(response, "id"),
        "finish_reason": status,
        "refusal": _text(refusals[0], "refusal") if refusals else None,
    }
    error = _member(response, "error")
    if status == "failed" or error is not None:
        message = _text(error, "message") or "the answer failed and does not say why"
        found["error"] = {"message": message, "code": _text(error, "code")}
    return found


def _read(item: object, returned: Mapping[str | None, str | None]) -> Iterator[dict[str, object]]:
    """One item of the output, as ours."""
    match _text(item, "type"):
        case "message":
            for part in _items(item, "content"):
                said = _text(part, "text") if _is(part, "output_text") else _text(part, "refusal")
                if said is not None:
                    yield {"type": "output_text", "text": said}
        case "function_call":
            call = _text(item, "call_id") or _text(item, "id") or ""
            name, arguments = _text(item, "name") or "", _text(item, "arguments") or "{}"
            yield {
                "type": "function_call",
                "id": call,
                "name": name,
                "arguments": arguments,
                "result": returned.get(call),
            }
        case "reasoning":
            thought = "\n".join(filter(None, (_text(part, "text") for part in _items(item, "summary"))))
            if thought:
                yield {"type": "reasoning", "text": thought}


def _member(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)


def _text(value: object, key: str) -> str | None:
    found = _member(value, key)
    return str(found) if isinstance(found, str) else None


def _items(value: object, key: str) -> Sequence[object]:
    found = _member(value, key)
    return found if isinstance(found, list | tuple) else ()


def _is(item: object, kind: str) -> bool:
    return _text(item, "type") == kind
