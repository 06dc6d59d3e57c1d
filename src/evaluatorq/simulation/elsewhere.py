"""Published options that belong elsewhere: accepted with a warning where they change nothing, else refused with a way.

What they meant is the Orq platform, which this package does not talk to, or a habit that it does not have.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluatorq.simulation.config import SimulationConfig

ELSEWHERE = {
    "dataset_id": "data sets of the Orq platform cannot be read; export it as JSON Lines and give input",
    "experiment_id": "experiments of the Orq platform cannot be read; export the cases and give input",
    "experiment_run_id": "is part of experiment_id, and experiments of the Orq platform cannot be read; give input",
    "memory_entity_id": "belongs to an Orq agent as the target, which cannot be reached",
}
"""Why an option is refused, and what to do instead."""

_NO_EFFECT = {
    "upload_results": "nothing is uploaded; the run store and results hold everything",
    "experiment_description": "nothing is uploaded that it could describe",
    "orq_folder_path": "nothing is uploaded that it could place",
    "max_tool_result_chars": "simulated users never see what tools answer",
}
_OF_A_MODEL = (
    "openai_base_url",
    "target_system_prompt",
    "target_temperature",
    "target_max_tokens",
    "target_reasoning_effort",
)


def warn_of_no_effect(config: SimulationConfig) -> None:
    """Warns of options that were given and change nothing."""
    reasons = {name: why for name, why in _NO_EFFECT.items() if getattr(config, name)}
    if config.openai_model is None:
        reasons |= {name: "the agent is no model" for name in _OF_A_MODEL if getattr(config, name) is not None}
    if config.llm_config is not None and config.llm_config.api == "responses":
        reasons["llm_config.api"] = "models are asked by chat completions"
    for name, why in reasons.items():
        warnings.warn(f"{name} has no effect: {why}", UserWarning, stacklevel=4)


def warn_of_unstored(config: SimulationConfig) -> None:
    """Warns that what would be thrown away is not made: there is no run file for it."""
    asked = [name for name in ("executive_summary", "recommendations") if getattr(config, name)]
    if asked and not config.is_stored:
        text = f"{' and '.join(asked)} not made: the run is not stored (save=True or report_path)"
        warnings.warn(text, UserWarning, stacklevel=3)
