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
        ("brokn.yaml", "cannot read brokn.yaml: no such file; did you mean broken.yaml?"),
        ("empty.yaml", "empty.yaml is empty; an agent is described by its url or its command"),
        ("lost.toml", "lost.toml is not TOML: Expected '=' after a key"),
        ("list.json", "list.json is no table"),
        ("broken.yaml", "broken.yaml:2: this is not YAML"),
    ],
)
def test_a_description_that_cannot_be_read_is_refused_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, said: str
) -> None:
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "broken.yaml").write_text("url: [")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "lost.toml").write_text("url")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^target:? ") as refused:
        config(target)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.yaml", f"url: {URL}\nrply: x\n", "a.yaml:2: rply: is no key here in an endpoint; did you mean reply?"),
        ("a.yaml", f"# mine\nurl: {URL}\n\ntimeout_s: soon\n", "a.yaml:4: timeout_s: is 'soon'; write a number"),
        ("a.yaml", "command: []\n", "a.yaml:1: command: is empty; give at least one"),
        (
            "a.yaml",
            "# mine\nurl: ftp://x/y\n",
            "a.yaml:2: url: a target's url starts with http:// or https://",
        ),
        (
            "a.yaml",
            "url: http://h/${NO_SUCH}\n",
            "a.yaml:1: url: the target's url needs the environment variable NO_SUCH",
        ),
        (
            "a.yaml",
            f"url: {URL}\nheaders:\n  A: b\n  Authorization: Bearer ${{NO_SUCH}}\n",
            "a.yaml:4: headers.Authorization: the header 'Authorization' needs the environment variable NO_SUCH, which",
        ),
        (
            "a.toml",
            'command = ["true"]\n[env]\nA = "b"\nKEY = "${NO_SUCH}"\n',
            "a.toml:4: env.KEY: the command's KEY needs the environment variable NO_SUCH, which is not set",
        ),
        ("a.yaml", "\ncommand: no-such-program x\n", "a.yaml:2: command: the command 'no-such-program' is not found"),
        ("a.yaml", f"url: {URL}\nbody:\n  text: '{{{{mesages}}}}'\n", "a.yaml:2: body: nothing fills {{mesages}}; "),
        (
            "a.yaml",
            "command: [python3]\ncwd: nowhere\n",
            "a.yaml:2: cwd: is 'nowhere', and there is no such folder in ",
        ),
        ("a.yaml", f"uri: {URL}\n", "a.yaml: a target given as a mapping has a 'url' or a 'command', not 'uri'; did"),
        ("a.toml", f'url = "{URL}"\n\nhistroy = "last"\n', "a.toml:3: histroy: is no key here in an endpoint; did you"),
        (
            "a.json",
            json.dumps({"command": ["python3"], "envv": 1, "stateful": "perhaps"}, indent=1),
            "a.json:6: stateful: is 'perhaps'; write true or false; a.json:5: envv: is no key here in a command; did",
        ),
    ],
)
def test_a_fault_in_a_description_is_told_like_one_in_a_case_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as refused:
        config(name)
    assert str(refused.value).startswith(f"target: {said}")


def test_a_key_in_a_description_is_not_kept_with_the_run() -> None:
    kept = json.dumps(config(json.dumps({"url": URL, "headers": {"x-api-key": "abcdefgh1234"}})).recorded())
    assert URL in kept
    assert "abcdefgh1234" not in kept
