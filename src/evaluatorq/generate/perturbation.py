"""Spoils messages as the world does: noise, cuts, markup, code, other languages. The same seed gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from random import Random

from evaluatorq.errors import ConfigError


class PerturbationType(StrEnum):
    """How a message is spoiled."""

    UNICODE_NOISE = "unicode_noise"
    TRUNCATE = "truncate"
    MARKDOWN_INJECTION = "markdown_injection"
    CODE_INJECTION = "code_injection"
    MIXED_LANGUAGE = "mixed_language"


_NOISE = (
    "\u200b",  # zero-width space
    "\u200d",  # zero-width joiner
    "\u2060",  # word joiner
    "\u00ad",  # soft hyphen
    "\u0301",  # combining acute accent
    "\u202f",  # narrow no-break space
    "\ufffd",  # replacement character
)
_SHORTEST_CUT = 10
_MARKDOWN = (
    "**URGENT**", "# Important", "[see here](https://example.com/x)", "> quoted from your last mail",
    "| order | state |\n|---|---|\n| 1 | ? |", "- [ ] open\n- [x] done", "![photo](photo.png)",
)  # fmt: skip
_CODE = (
    "`SELECT * FROM orders;`", "<script>alert(1)</script>", "{{ user.name }}", "${HOME}", "'; DROP TABLE orders; --",
    '```json\n{"status": "refunded"}\n```', "<b>bold</b>",
)  # fmt: skip
_OTHER_LANGUAGES = (
    "por favor", "s'il vous plaît", "bitte schnell", "per favore", "お願いします", "пожалуйста", "من فضلك", "谢谢",
)  # fmt: skip
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def apply_perturbation(message: str, perturbation_type: PerturbationType | str, *, seed: int | None = None) -> str:
    """The message, spoiled in one way. Without ``seed`` it is another one each time; the text itself stays readable.

    Messages of ten characters or fewer are not cut. ``ConfigError`` for a type that does not exist.
    """
    return _SPOIL[_type_of(perturbation_type)](message, _random(seed))


def apply_random_perturbation(message: str, *, seed: int | None = None) -> tuple[str, PerturbationType]:
    """The message, spoiled in a way that chance picks, and that way."""
    random = _random(seed)
    chosen = random.choice(list(PerturbationType))
    return _SPOIL[chosen](message, random), chosen


def apply_perturbations_batch(
    messages: Sequence[str], perturbation_rate: float = 0.3, *, seed: int | None = None
) -> list[tuple[str, PerturbationType | None]]:
    """Each message with how it was spoiled, ``None`` where it was left alone; each is spoiled with the given chance."""
    if not 0 <= perturbation_rate <= 1:
        raise ConfigError(f"perturbation_rate is a share from 0 to 1, not {perturbation_rate}")
    random = _random(seed)
    spoiled: list[tuple[str, PerturbationType | None]] = []
    for message in messages:
        if random.random() >= perturbation_rate:
            spoiled.append((message, None))
            continue
        chosen = random.choice(list(PerturbationType))
        spoiled.append((_SPOIL[chosen](message, random), chosen))
    return spoiled


def _random(seed: int | None) -> Random:
    return Random(seed)  # noqa: S311  test data, not secrets


def _type_of(name: PerturbationType | str) -> PerturbationType:
    try:
        return PerturbationType(name)
    except ValueError:
        known = ", ".join(PerturbationType)
        raise ConfigError(f"there is no perturbation {name!r}; there are {known}") from None


# ---------------------------------------------------------------- the five ways


def _unicode_noise(message: str, random: Random) -> str:
    letters = list(message)
    for _ in range(max(1, len(message) // 20)):
        letters.insert(random.randint(0, len(letters)), random.choice(_NOISE))
    return "".join(letters)


def _truncate(message: str, random: Random) -> str:
    if len(message) <= _SHORTEST_CUT:
        return message
    return message[: int(len(message) * random.uniform(0.4, 0.8))]


def _between_sentences(snippets: Sequence[str]) -> Callable[[str, Random], str]:
    def spoil(message: str, random: Random) -> str:
        sentences = _SENTENCE_END.split(message)
        sentences.insert(random.randint(0, len(sentences)), random.choice(snippets))
        return " ".join(sentence for sentence in sentences if sentence)

    return spoil


def _at_an_edge(message: str, random: Random) -> str:
    snippet = random.choice(_CODE)
    return f"{snippet} {message}" if random.random() < 0.5 else f"{message} {snippet}"


def _between_words(message: str, random: Random) -> str:
    words = message.split(" ")
    words.insert(random.randint(0, len(words)), random.choice(_OTHER_LANGUAGES))
    return " ".join(words)


_SPOIL: Mapping[PerturbationType, Callable[[str, Random], str]] = {
    PerturbationType.UNICODE_NOISE: _unicode_noise,
    PerturbationType.TRUNCATE: _truncate,
    PerturbationType.MARKDOWN_INJECTION: _between_sentences(_MARKDOWN),
    PerturbationType.CODE_INJECTION: _at_an_edge,
    PerturbationType.MIXED_LANGUAGE: _between_words,
}

__all__ = ["PerturbationType", "apply_perturbation", "apply_perturbations_batch", "apply_random_perturbation"]
