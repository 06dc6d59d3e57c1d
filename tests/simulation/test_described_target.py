"""An agent described in JSON or in a file: read where options are read, hidden where they are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluatorq.errors import ConfigError
from evaluatorq.simulation.config import SimulationConfig
from evaluatorq.targets.resolve import resolve_target

URL = "https://agent.example/chat"


def config(target: object) -> SimulationConfig:
    return SimulationConfig.parse({"target": target, "offline": True})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agent.json", json.dumps({"url": URL, "reply": "answer.text"})),
        ("agent.yaml", f"url: {URL}\nreply: answer.text\n"),
        ("agent.yml", f"url: {URL}\nreply: answer.text\n"),
        ("agent.toml", f'url = "{URL}"\nreply = "answer.text"\n'),
    ],
)
def test_a_file_describes_an_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    target = config(name).target
    assert target == {"url": URL, "reply": "answer.text"}
    assert resolve_target(target).name == URL


def test_json_on_the_spot_describes_an_agent() -> None:
    assert resolve_target(config('{"command": "python3 agent.py"}').target).type == "CommandTarget"


@pytest.mark.parametrize("target", ["demo", "agents.yaml:answer", f"{URL}/data.json", "command:agent.json"])
def test_other_targets_are_left_as_they_are(target: str) -> None:
    assert config(target).target == target


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("nowhere.yaml", "cannot read nowhere.yaml"),
        ("{not json", "target: it is not JSON"),
        ("list.json", "list.json is no table"),
        ("broken.yaml", "broken.yaml is not YAML"),
    ],
)
def test_a_description_that_cannot_be_read_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, said: str
) -> None:
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "broken.yaml").write_text("url: [")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^target:? ") as refused:
        config(target)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_key_in_a_description_is_not_kept_with_the_run() -> None:
    kept = json.dumps(config(json.dumps({"url": URL, "headers": {"x-api-key": "abcdefgh1234"}})).recorded())
    assert URL in kept
    assert "abcdefgh1234" not in kept
