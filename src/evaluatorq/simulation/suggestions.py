"""Works a run's suggestions into an agent's prompt file: shows the difference, and writes it only when told to.

What was applied is noted in the run file, so that the next call leaves it out. The prompt is written first: what is
noted and not there would never come back.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from evaluatorq.errors import CallError, ConfigError, SimulationError
from evaluatorq.model.base import Record
from evaluatorq.model.calls import LLMCallConfig
from evaluatorq.model.runs import SimulationRecommendation
from evaluatorq.model.spending import NO_SPENDING, Bill, Spending
from evaluatorq.pacing.paid import PaidCalls
from evaluatorq.roles.editor import edit_prompt
from evaluatorq.simulation.models import opened_models, smart_name
from evaluatorq.simulation.workshop import retry_of
from evaluatorq.store.amend import mark_applied
from evaluatorq.store.atomic import replace_file
from evaluatorq.store.runs import find_run, read_header


class ApplySuggestionsResult(Record):
    """What working suggestions into a prompt comes to.

    ``recommendations`` are the suggestions that were put to the model, ``carried_out`` those that are in
    ``new_instructions``, ``skipped`` those that an earlier call applied. ``applied`` says that the file was written.
    ``merge_failed`` says that replacements could not be had, so that the whole text was rewritten.
    """

    prompt_file: str
    recommendations: list[str] = Field(default_factory=list)
    carried_out: list[str] = Field(default_factory=list)
    skipped: list[str] = Field(default_factory=list)
    original_instructions: str = ""
    new_instructions: str = ""
    diff: str = ""
    method: Literal["edits", "rewrite"] | None = None
    applied: bool = False
    merge_failed: bool = False
    spent: Spending = NO_SPENDING


async def apply_suggestions(  # noqa: PLR0913  one fact each, keyword-only
    recommendations: Sequence[SimulationRecommendation],
    prompt_file: str | os.PathLike[str],
    *,
    llm_client: object = None,
    model: str | None = None,
    llm_config: LLMCallConfig | None = None,
    apply: bool = False,
    max_suggestions: int = 20,
    already_applied: Sequence[str] = (),
) -> ApplySuggestionsResult:
    """The prompt with the suggestions worked in, as a unified diff; the file changes only with ``apply``.

    Suggestions come in the order of ``recommendations``, at most ``max_suggestions`` of them. Raises ``ConfigError``
    for a file that cannot be read and ``SimulationError`` when no usable text could be had; the file is untouched then.
    """
    path = _resolved(prompt_file)
    before = _read(path)
    plain = before.replace("\r\n", "\n")
    wanted, skipped = _open_suggestions(recommendations, already_applied, max_suggestions)
    result = ApplySuggestionsResult(
        prompt_file=str(prompt_file), skipped=skipped, original_instructions=before, new_instructions=before
    )
    if not wanted:
        return result
    calls = llm_config or LLMCallConfig()
    async with opened_models(calls, 1, llm_client) as models:
        editor, paid = models.ours(model or calls.model or smart_name()), PaidCalls(retry_of(calls), Bill())
        try:
            edited = await edit_prompt(editor, paid, plain, wanted)
        except CallError as error:
            raise SimulationError(f"the suggestions could not be worked into {prompt_file}: {error.message}") from error
    carried_out = [wanted[number] for number in edited.carried_out]
    after = edited.text.replace("\n", "\r\n") if plain != before else edited.text
    written = apply and after != before
    if written:
        _write(path, before, after)
    found: dict[str, object] = {
        "recommendations": wanted, "carried_out": carried_out, "new_instructions": after,
        "diff": unified_diff(plain, edited.text, str(prompt_file)), "method": edited.method, "applied": written,
        "merge_failed": edited.method == "rewrite", "spent": paid.bill.spending,
    }  # fmt: skip
    return result.model_copy(update=found)


async def apply_run_suggestions(
    reference: str,
    prompt_file: str | os.PathLike[str],
    *,
    model: str | None = None,
    llm_config: LLMCallConfig | None = None,
    apply: bool = False,
    max_suggestions: int = 20,
) -> ApplySuggestionsResult:
    """``apply_suggestions`` for a saved run, which keeps note of what was applied without becoming the newest file."""
    path = find_run(reference)
    run = read_header(path)
    if not run.recommendations:
        raise ConfigError(
            f"{path} has no recommendations; they are made by a run with recommendations (--recommendations)"
        )
    result = await apply_suggestions(
        run.recommendations,
        prompt_file,
        model=model,
        llm_config=llm_config,
        apply=apply,
        max_suggestions=max_suggestions,
        already_applied=run.applied_suggestions,
    )
    if result.applied:
        mark_applied(path, result.carried_out)
    return result


def unified_diff(before: str, after: str, name: str) -> str:
    """The change as a patch; empty where there is none."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    whole = "\n\\ No newline at end of file\n"
    return "".join(line if line.endswith("\n") else line + whole for line in lines)


def _open_suggestions(
    recommendations: Sequence[SimulationRecommendation], already_applied: Sequence[str], most: int
) -> tuple[list[str], list[str]]:
    """What is still to be done, each once, and what an earlier call did."""
    done = {_plain(text) for text in already_applied}
    every = {_plain(text): text for item in reversed(recommendations) for text in reversed(item.suggestions)}
    ordered = dict.fromkeys(_plain(text) for item in recommendations for text in item.suggestions)
    wanted = [every[key] for key in ordered if key not in done]
    return wanted[:most], [every[key] for key in ordered if key in done]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _resolved(path: str | os.PathLike[str]) -> Path:
    return Path(path).resolve()


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read the prompt file {path}: {reason}") from None


def _write(path: Path, before: str, after: str) -> None:
    if _read(path) != before:
        raise SimulationError(f"{path} was changed by somebody else meanwhile; nothing was written")
    replace_file(path, [after.encode()], mode=path.stat().st_mode)
