"""Text as it enters the record: half surrogates become U+FFFD, so that every JSON reader can open what we write."""

from __future__ import annotations

import re

from evaluatorq.model.messages import InputText, Message

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """The text with each lone surrogate replaced by U+FFFD; everything else, NUL included, is kept."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def clean_messages(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Transcript rows with their text cleaned; rows that need nothing are the same objects."""
    return tuple(_clean(message) for message in messages)


def _clean(message: Message) -> Message:
    update: dict[str, object] = {}
    if isinstance(message.content, str):
        content = clean_text(message.content)
        if content != message.content:
            update["content"] = content
    elif message.content is not None:
        update["content"] = [
            part.model_copy(update={"text": clean_text(part.text)}) if isinstance(part, InputText) else part
            for part in message.content
        ]
    if message.tool_calls and any(not call.function.arguments.isascii() for call in message.tool_calls):
        update["tool_calls"] = [
            call.model_copy(
                update={"function": call.function.model_copy(update={"arguments": clean_text(call.function.arguments)})}
            )
            for call in message.tool_calls
        ]
    return message.model_copy(update=update) if update else message
