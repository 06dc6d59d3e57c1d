"""What people write in case files, right and wrong: a typo is an error with its place, never another test set."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluatorq.errors import CaseError
from evaluatorq.model.cases import CommunicationStyle, Persona
from evaluatorq.store.cases import (
    bundled,
    check_files,
    load_datapoints,
    load_personas,
    load_scenarios,
    read_cases,
    validate_paths,
)
from evaluatorq.store.yaml_reader import PARSERS, read_yaml

PERSONA = """\
name: Anna
patience: 0.2
assertiveness: 0.8
politeness: 0.4
technical_level: 0.3
communication_style: terse
background: Got the wrong colour
"""
SCENARIO = """\
name: Late parcel
goal: Get a delivery date
"""

Write = Callable[[str, str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file and returns its path."""

    def written(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return written


# ---------------------------------------------------------------- what is wrong is said with its place


def persona(old: str, new: str) -> str:
    assert old in PERSONA
    return PERSONA.replace(old, new)


def scenario(more: str) -> str:
    return SCENARIO + more


WRONG: list[tuple[str, str, str | bytes, int | None, str | None, tuple[str, ...]]] = [
    # what, file, content, line, field, words of the message
    ("a trait above 1", "p.yaml", persona("0.2", "2.5"), 2, "patience", ("2.5", "0 to 1")),
    ("a trait below 0", "p.yaml", persona("0.2", "-1"), 2, "patience", ("-1", "0 to 1")),
    ("a trait in words", "p.yaml", persona("0.2", "low"), 2, "patience", ("'low'", "number from 0 to 1")),
    ("a trait in quotes", "p.yaml", persona("0.2", '"0.2"'), 2, "patience", ("'0.2'", "number")),
    ("a trait that is true", "p.yaml", persona("0.2", "true"), 2, "patience", ("true", "number from 0 to 1")),
    ("a trait that is no number", "p.json", '{"name": "A", "patience": NaN}', 1, None, ("NaN", "finite")),
    ("an infinite trait", "p.json", '{"name": "A",\n "patience": 1e999}', 2, None, ("1e999", "finite")),
    ("a missing trait", "p.yaml", persona("patience: 0.2\n", ""), 1, "patience", ("missing",)),
    ("a null trait", "p.yaml", persona("patience: 0.2", "patience:"), 2, "patience", ("missing",)),
    ("a typo in a key", "p.yaml", persona("politeness", "politenes"), 4, "politenes", ("did you mean politeness",)),
    ("an unknown key", "p.yaml", PERSONA + "zzz: 1\n", 8, "zzz", ("no key of a persona", "known are name, patience")),
    ("a blank name", "p.yaml", persona("Anna", '"  "'), 1, "name", ("blank",)),
    ("a name that YAML makes a number", "p.yaml", persona("Anna", "7"), 1, "name", ("7", "quotes")),
    ("a style that is none", "p.yaml", persona("terse", "ters"), 6, "communication_style",
     ("formal, casual, terse, verbose", "did you mean terse")),
    ("yes without quotes", "p.yaml", persona("Got the wrong colour", "yes"), 7, None, ("'yes'", "quote")),
    ("a leading zero", "p.yaml", persona("Anna", "007"), 1, None, ("'007'", "quote")),
    ("an order number like a power of ten", "p.yaml", persona("Anna", "12E4"), 1, None, ("12E4", "quote")),
    ("a number with underscores", "p.yaml", persona("Anna", "1_000"), 1, None, ("'1_000'", "quote")),
    ("a colon in a text", "p.yaml", persona("Got", "Got: this:"), 7, None, ("':'", "quotes")),
    ("a text cut off by a hash", "s.yaml", "name: Late\ngoal: Find order #123 now\n", 2, None, ("#", "quotes")),
    ("a key twice", "p.yaml", PERSONA + "patience: 0.3\n", 8, None, ("'patience'", "twice", "line 2")),
    ("a key twice in JSON", "p.json", '{"name": "A",\n"name": "B"}', 2, None, ("'name'", "twice", "line 1")),
    ("a tab", "s.yaml", "name: A\ngoal: B\ncriteria:\n\t- must_happen: C\n", 4, None, ("tab", "spaces")),
    ("a tag", "p.yaml", persona("Anna", "!!python/name:os.system"), 1, None, ("tag", "python")),
    ("code", "p.yaml", persona("Anna", '!!python/object/apply:os.system ["true"]'), 1, None, ("tag",)),
    ("a second document", "p.yaml", PERSONA + "---\n" + PERSONA, 8, None, ("second document", "list")),
    ("an alias of nothing", "p.yaml", persona("Anna", "*nobody"), 1, None, ("anchored", "nobody")),
    ("an alias of itself", "s.yaml", scenario("setup: &a\n  b: *a\n"), 4, None, ("anchored",)),
    ("an empty file", "p.yaml", "", None, None, ("empty", "at least one")),
    ("only white space", "p.jsonl", "\n \n", None, None, ("empty",)),
    ("only comments", "p.yaml", "# nothing\n# here\n", None, None, ("only comments",)),
    ("an empty list", "p.yaml", "[]\n", 1, None, ("empty", "at least one")),
    ("an empty list under its key", "p.yaml", "personas: []\n", 1, None, ("empty",)),
    ("no criteria in the list", "s.yaml", scenario("criteria: []\n"), 3, "criteria", ("empty", "leave it out")),
    ("criteria that are no list", "s.yaml", scenario("criteria: be nice\n"), 3, "criteria", ("list of criteria",)),
    ("a criterion without text", "s.yaml", scenario("criteria:\n- must_happen:\n"), 4, "criteria[0].must_happen",
     ("missing",)),
    ("a blank criterion", "s.yaml", scenario('criteria:\n- must_happen: ""\n'), 4, "criteria[0].must_happen",
     ("blank",)),
    ("a criterion that is bare text", "s.yaml", scenario("criteria:\n- be nice\n"), 4, "criteria[0]",
     ("'be nice'", "must_happen:")),
    ("a criterion cut by its colon", "s.yaml", scenario("criteria:\n- Agent asks: which one\n"), 4, "criteria[0]",
     ("Agent asks", "quotes")),
    ("a criterion of two types", "s.yaml", scenario("criteria:\n- must_happen: a\n  must_not_happen: b\n"), 4,
     "criteria[0]", ("must_happen and must_not_happen",)),
    ("a criterion of an unknown type", "s.yaml", scenario("criteria:\n- type: must_hapen\n  description: a\n"), 4,
     "criteria[0].type", ("did you mean must_happen", "allowed are must_happen, must_not_happen")),
    ("a typo in the short form", "s.yaml", scenario("criteria:\n- must_hapen: a\n"), 4, "criteria[0]",
     ("did you mean must_happen",)),
    ("a text that YAML makes a mapping", "s.yaml", scenario("criteria:\n- must_happen:\n    Agent asks: which\n"), 4,
     "criteria[0].must_happen", ("colon", "quotes")),
    ("a bad regular expression", "s.yaml",
     scenario("criteria:\n- must_happen: a\n  check:\n    agent_says: 'order ('\n"), 6,
     "criteria[0].check.agent_says", ("regular expression", "position")),
    ("a pattern that always holds", "s.yaml", scenario("goal_check: {agent_says: 'refund|'}\n"), 3,
     "goal_check.agent_says", ("always holds",)),
    ("a check of nothing", "s.yaml", scenario("criteria:\n- must_happen: a\n  check: {}\n"), 5, "criteria[0].check",
     ("gives nothing", "exactly one of agent_says")),
    ("a check of two facts", "s.yaml", scenario("goal_check: {agent_says: a, user_says: b}\n"), 3, "goal_check",
     ("agent_says and user_says", "exactly one")),
    ("a check of an unknown fact", "s.yaml", scenario("goal_check:\n  agent_said: a\n"), 4, "goal_check.agent_said",
     ("did you mean agent_says",)),
    ("a pointer without a slash", "s.yaml", scenario("goal_state:\n- pointer: orders\n  equals: 1\n"), 4,
     "goal_state[0].pointer", ("starts with '/'",)),
    ("a pointer with a bare tilde", "s.yaml", scenario("goal_state:\n- {pointer: /a~b, equals: 1}\n"), 4,
     "goal_state[0].pointer", ("~0",)),
    ("a claim too many", "s.yaml", scenario("goal_state:\n- {pointer: /a, equals: 1, one_of: [2]}\n"), 4,
     "goal_state[0]", ("equals and one_of", "exactly one")),
    ("no claim", "s.yaml", scenario("goal_state:\n- pointer: /a\n"), 4, "goal_state[0]", ("exactly one of equals",)),
    ("an outcome that is none", "s.yaml", scenario("goal_check: {tool_called: {name: refund, outcome: ok}}\n"), 3,
     "goal_check.tool_called.outcome", ("accepted, rejected",)),
    ("two ways to decide the goal", "s.yaml",
     scenario("goal_check: {agent_says: a}\ngoal_state: [{pointer: /a, equals: 1}]\n"), 4, "goal_state",
     ("goal_check",)),
    ("a module as environment", "s.yaml", scenario("environment: shop.orders:build\n"), 3, "environment",
     ("registered", "no module")),
    ("a path as environment", "s.yaml", scenario("environment: ../../orders\n"), 3, "environment", ("no path",)),
    ("a blank scripted line", "s.yaml", scenario('script: ["Hello", ""]\n'), 3, "script[1]", ("blank",)),
    ("a fact that is a number", "s.yaml", scenario("knows:\n  order: 12\n"), 4, "knows.order", ("12", "quotes")),
    ("an emotion that is none", "s.yaml", scenario("starting_emotion: angry\n"), 3, "starting_emotion",
     ("neutral, frustrated, confused, happy, urgent",)),
    ("a strategy in a list", "s.yaml", scenario("conversation_strategy: [evasive]\n"), 3, "conversation_strategy",
     ("a list", "cooperative")),
    ("an edge case in words", "s.yaml", scenario("is_edge_case: maybe\n"), 3, "is_edge_case", ("true or false",)),
    ("a party that is none", "s.yaml", scenario("opens: bot\n"), 3, "opens", ("agent, user",)),
    ("keys beside the wrapper", "s.yaml", "scenarios:\n- name: A\n  goal: B\nversion: 1\n", 1, "scenarios",
     ("nothing else",)),
    ("something else entirely", "p.yaml", "just words\n", 1, None, ("'just words'", "persona")),
    ("broken JSON", "p.json", '{"name": "A",\n "patience" 1}', 2, None, ("not JSON", "delimiter")),
    ("JSON with a comma too many", "p.json", '{"name": "A",}', 1, None, ("not JSON",)),
    ("broken YAML", "p.yaml", "name: [A\nx: 1\n", 2, None, ("not YAML", "brackets")),
    ("UTF-16", "p.yaml", PERSONA.encode("utf-16"), 1, None, ("UTF-16", "UTF-8")),
    ("Latin-1", "p.yaml", persona("Anna", "Ann\xe9").encode("latin-1"), 1, None, ("not UTF-8",)),
    ("a control character", "p.yaml", persona("colour", "col\x00our"), 7, None, ("control character", "remove")),
    ("half a character", "p.json", '{"name":\n "\\ud83d"}', 2, None, ("surrogate",)),
    ("too many digits", "p.json", '{"patience": ' + "9" * 5000 + "}", 1, None, ("digits",)),
    ("too many digits in YAML", "p.yaml", persona("0.2", "9" * 5000), 2, None, ("5000 digits",)),
    ("a huge number", "p.yaml", persona("0.2", "9" * 400), 2, "patience", ("400 digits", "0 to 1")),
    ("JSON nested without end", "p.json", "[" * 100_000, 1, None, ("nested",)),
    ("JSON nested too deeply", "p.json", '{"setup": ' + "[" * 70 + "]" * 70 + "}", 1, None, ("64 levels",)),
    ("YAML nested too deeply", "p.yaml", "setup: " + "[" * 70 + "]" * 70, 1, None, ("64 levels",)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "line", "field", "words"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_a_fault_is_reported_with_file_line_field_and_what_would_be_right(
    write: Write, name: str, content: str, line: int | None, field: str | None, words: tuple[str, ...]
) -> None:
    path = write(name, content)
    kind = "scenarios" if name.startswith("s") else "personas"
    matching = [e for e in check_files([path], kind) if (e.file, e.line, e.field) == (str(path), line, field)]
    assert matching, [str(e) for e in check_files([path], kind)]
    for word in words:
        assert word in matching[0].reason
    assert "\n" not in str(matching[0])
    assert len(str(matching[0])) < len(str(path)) + 300


ROWS: list[tuple[str, str, int, str | None, tuple[str, ...]]] = [
    ("a row of something else", '{"a": 1}', 1, None, ("no case", "persona")),
    ("a line that is not JSON", '\n{"id": "d1", persona}', 2, None, ("not JSON",)),
    ("a line that is a list", "[1]", 1, None, ("no case",)),
    ("an envelope without a mapping", '{"inputs": "x"}', 1, "inputs", ("persona and scenario",)),
    ("an envelope without a scenario", '{"inputs": {"persona": {}}}', 1, "inputs.scenario", ("missing",)),
    ("an envelope with text that is no JSON", '{"inputs": {"persona": "Anna", "scenario": "{}"}}', 1, "inputs.persona",
     ("not JSON", "JSON text")),
    ("an envelope with a wrong persona", '{"inputs": {"persona": "{\\"patience\\": 3}", "scenario": "{}"}}', 1,
     "inputs.persona.patience", ("0 to 1",)),
    ("a typo in an envelope", '{"inputs": {"first_mesage": "Hi"}}', 1, "inputs.first_mesage",
     ("did you mean first_message",)),
    ("a legacy flat row", '{"persona_name": "A", "scenario_name": "B", "goal": "C"}', 1, None, ("flat row", "legacy")),
    ("a persona by name with none to look it up", '{"persona": "Anna", "scenario": {"name": "S", "goal": "G"}}', 1,
     "persona", ("'Anna'", "write it out")),
]  # fmt: skip


@pytest.mark.parametrize(("content", "line", "field", "words"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_a_wrong_row_is_an_error_with_its_line_and_never_another_case(
    write: Write, content: str, line: int, field: str | None, words: tuple[str, ...]
) -> None:
    path = write("d.jsonl", content)
    report = validate_paths([path])
    matching = [e for e in report.errors if (e.file, e.line, e.field) == (str(path), line, field)]
    assert matching, [str(e) for e in report.errors]
    for word in words:
        assert word in matching[0].reason
    assert report.valid == 0
    with pytest.raises(CaseError):
        load_datapoints(path)


def test_every_error_of_a_set_of_files_is_collected(write: Write) -> None:
    first = write("a.yaml", persona("0.2", "3").replace("terse", "loud"))
    second = write("b.yaml", scenario("criteria: []\nopens: bot\n"))
    third = write("c.yaml", "name: [")
    errors = check_files([first, second, third, second.with_name("d.yaml")])
    assert [(Path(str(e.file)).name, e.line, e.field) for e in errors] == [
        ("a.yaml", 2, "patience"),
        ("a.yaml", 6, "communication_style"),
        ("b.yaml", 3, "criteria"),
        ("b.yaml", 4, "opens"),
        ("c.yaml", errors[4].line, None),
        ("d.yaml", None, None),
    ]


def test_loading_raises_the_first_error_and_notes_how_many_more_there_are(write: Write) -> None:
    path = write("a.yaml", persona("0.2", "3").replace("terse", "loud"))
    with pytest.raises(CaseError, match="patience") as caught:
        load_personas(path)
    assert "1 more" in caught.value.__notes__[0]
    assert str(caught.value).startswith(f"{path}:2: patience: ")


# ---------------------------------------------------------------- names are unique


def test_equal_names_are_refused_across_files_with_both_places(write: Write) -> None:
    first, second = write("a.yaml", PERSONA), write("b.yaml", PERSONA)
    (error,) = check_files([first.parent])
    assert (error.file, error.line, error.field) == (str(second), 1, "name")
    assert f"{first}:1" in error.reason


def test_a_persona_and_a_scenario_may_share_a_name(write: Write) -> None:
    write("a.yaml", PERSONA)
    write("b.yaml", SCENARIO.replace("Late parcel", "Anna"))
    assert validate_paths([write("c.yaml", SCENARIO).parent]).errors == []


def test_equal_ids_of_datapoints_are_refused(write: Write) -> None:
    row = json.dumps({"id": "d1", "persona": "Anna", "scenario": "Late parcel"})
    path = write("d.jsonl", f"{row}\n{row}\n")
    personas, scenarios = load_personas(write("p.yaml", PERSONA)), load_scenarios(write("s.yaml", SCENARIO))
    with pytest.raises(CaseError, match="'d1' is also a datapoint") as caught:
        load_datapoints(path, personas=personas, scenarios=scenarios)
    assert (caught.value.line, caught.value.field) == (2, "id")


def test_criteria_with_equal_texts_are_allowed_because_their_ids_differ(write: Write) -> None:
    (loaded,) = load_scenarios(write("s.yaml", scenario("criteria:\n- must_happen: a\n- must_not_happen: a\n")))
    assert [c.type for c in loaded.criterion_list] == ["must_happen", "must_not_happen"]


# ---------------------------------------------------------------- what may be written


@pytest.mark.parametrize("wrap", ["{}", "- {}", "personas:\n- {}", "personas:\n  {}"])
def test_a_yaml_file_holds_one_case_a_list_or_a_list_under_its_key(write: Write, wrap: str) -> None:
    prefix, _ = wrap.split("{}")
    indent = "\n" + " " * (len(prefix) - prefix.rfind("\n") - 1)
    path = write("p.yaml", prefix + PERSONA.strip().replace("\n", indent) + "\n")
    assert [p.name for p in load_personas(path)] == ["Anna"]


def test_yaml_json_and_json_lines_say_the_same(write: Write) -> None:
    (from_yaml,) = load_personas(write("a.yaml", PERSONA))
    dumped = from_yaml.model_dump(mode="json", exclude_none=True)
    assert load_personas(write("b.json", json.dumps(dumped, indent=2))) == [from_yaml]
    assert load_personas(write("c.json", json.dumps({"personas": [dumped]}))) == [from_yaml]
    assert load_personas(write("d.jsonl", json.dumps(dumped) + "\n")) == [from_yaml]
    assert load_personas(write("e.yml", json.dumps(dumped))) == [from_yaml]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xef\xbb\xbf" + PERSONA.encode(), id="byte order mark"),
        pytest.param(PERSONA.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(PERSONA.encode().rstrip(), id="no newline at the end"),
        pytest.param(b"# who\n\n" + PERSONA.encode() + b"# end\n", id="comments"),
        pytest.param(b"---\n" + PERSONA.encode() + b"...\n", id="document marks"),
    ],
)
def test_usual_ways_to_save_a_file_are_read(write: Write, content: bytes) -> None:
    assert load_personas(write("p.yaml", content))[0].communication_style is CommunicationStyle.TERSE


def test_json_lines_are_cut_at_newlines_only(write: Write) -> None:
    (anna,) = load_personas(write("p.yaml", PERSONA))
    odd = anna.model_copy(update={"background": "one\u2028two\x85three"})
    line = json.dumps(odd.model_dump(mode="json"), ensure_ascii=False)
    assert load_personas(write("p.jsonl", f"\n{line}\r\n\n")) == [odd]


def test_a_folder_gives_its_case_files_sorted_and_a_glob_those_that_match(write: Write) -> None:
    for name in ("b.yaml", "a.jsonl", "c.yml", "notes.md", ".hidden.yaml", "deep/d.yaml"):
        one = {**json.loads(as_json(PERSONA)), "name": name}
        write(f"cases/{name}", json.dumps(one))
    folder = write("cases/readme.txt", "not a case").parent
    assert [p.name for p in load_personas(folder)] == ["a.jsonl", "b.yaml", "c.yml"]
    assert [p.name for p in load_personas(str(folder / "*.y*ml"))] == ["b.yaml", "c.yml"]
    assert [p.name for p in load_personas(str(folder / "**" / "*.yaml"))] == ["b.yaml", "deep/d.yaml"]
    assert [p.name for p in load_personas(folder / "c.yml", folder / "b.yaml")] == ["c.yml", "b.yaml"]


def as_json(text: str) -> str:
    import yaml

    return json.dumps(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("empty", "no case files in this folder"),
        ("empty/*.yaml", "no case file matches"),
        ("persnas.yaml", "did you mean"),
        ("notes.txt", "ends in one of .yaml"),
    ],
)
def test_paths_that_hold_no_cases_are_refused(write: Write, tmp_path: Path, path: str, words: str) -> None:
    write("personas.yaml", PERSONA)
    write("notes.txt", "x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CaseError, match=words) as caught:
        load_personas(tmp_path / path)
    assert caught.value.file == str(tmp_path / path)


def test_a_file_of_another_kind_is_named_as_such(write: Write) -> None:
    with pytest.raises(CaseError, match="looks like a scenario, not a persona"):
        load_personas(write("a.yaml", SCENARIO))
    with pytest.raises(CaseError, match="holds scenarios, not personas"):
        load_personas(write("b.yaml", "scenarios:\n- {name: A, goal: B}\n"))


def test_the_short_form_takes_a_check_and_whom_it_is_about(write: Write) -> None:
    text = """\
    criteria:
      - must_happen: "Agent asks: which order?"
        check: {agent_says: 'order (number|id)'}
      - must_not_happen: The customer gives a password
        about: user
      - must_happen: Agent refunds
        check:
          tool_called: refund
      - must_not_happen: Agent refunds twice
        check: {state: {pointer: "/orders/A1/refunds", one_of: [2, 3]}}
      - {type: must_happen, description: Long form, evaluator: null}
    """.replace("\n    ", "\n").replace("    criteria", "criteria")
    (loaded,) = load_scenarios(write("s.yaml", scenario(text)))
    rows = [criterion.model_dump(exclude_defaults=True) for criterion in loaded.criterion_list]
    assert rows == [
        {
            "type": "must_happen",
            "description": "Agent asks: which order?",
            "check": {"agent_says": "order (number|id)"},
        },
        {"type": "must_not_happen", "description": "The customer gives a password", "about": "user"},
        {"type": "must_happen", "description": "Agent refunds", "check": {"tool_called": {"name": "refund"}}},
        {
            "type": "must_not_happen",
            "description": "Agent refunds twice",
            "check": {"state": {"pointer": "/orders/A1/refunds", "one_of": [2, 3]}},
        },
        {"type": "must_happen", "description": "Long form"},
    ]


def test_anchors_and_merges_save_repetition_without_being_keys_twice(write: Write) -> None:
    text = f"""\
    personas:
      - &anna
        {PERSONA.strip().replace(chr(10), chr(10) + " " * 8)}
      - <<: *anna
        name: Berta
        patience: 0.9
    """
    anna, berta = load_personas(write("p.yaml", text))
    assert berta == anna.model_copy(update={"name": "Berta", "patience": 0.9})


def test_a_fault_in_a_merged_mapping_has_the_line_where_it_was_written(write: Write) -> None:
    text = "- &a\n  name: A\n  patience: 7\n- <<: *a\n  name: B\n"
    errors = [e for e in check_files([write("p.yaml", text)], "personas") if e.field == "patience"]
    assert [e.line for e in errors] == [3, 3]


def test_aliases_that_would_expand_without_end_are_refused_quickly(write: Write) -> None:
    lines = ["setup:", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    (error,) = check_files([write("s.yaml", scenario("\n".join(lines) + "\n"))], "scenarios")
    assert "1,000,000 values" in error.reason


def test_words_that_other_yaml_readers_turn_into_something_else_are_text_here(write: Write) -> None:
    facts = "knows:\n  time: 12:30\n  day: 2024-01-31\n  weight: 1.5kg\n  answer: 'yes'\n  code: \"007\"\n"
    (loaded,) = load_scenarios(write("s.yaml", scenario(facts)))
    assert loaded.knows == {
        "time": "12:30", "day": "2024-01-31", "weight": "1.5kg", "answer": "yes", "code": "007",
    }  # fmt: skip


def test_a_comment_after_a_text_is_no_fault(write: Write) -> None:
    (loaded,) = load_scenarios(write("s.yaml", "name: Late # as in late\ngoal: A # b\n"))
    assert (loaded.name, loaded.goal) == ("Late", "A")


def test_null_stands_for_an_optional_field_that_is_left_out(write: Write) -> None:
    (loaded,) = load_scenarios(write("s.yaml", scenario("criteria: null\ncontext: ~\nscript: [Hello, null]\n")))
    assert (loaded.criteria, loaded.context) == (None, None)
    assert loaded.script == ["Hello", None]


def test_equals_null_is_a_claim_about_the_state(write: Write) -> None:
    text = scenario("goal_state:\n- {pointer: /a, equals: null}\n- {pointer: /b, equals: null, absent: true}\n")
    (loaded,) = load_scenarios(write("s.yaml", text))
    assert loaded.goal_state is not None
    assert [check.absent for check in loaded.goal_state] == [None, True]


# ---------------------------------------------------------------- a shipped set, and any set, loads and validates alike


@pytest.mark.parametrize("file", sorted(bundled("personas").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_persona_loads(file: Path) -> None:
    assert load_personas(file)


@pytest.mark.parametrize("file", sorted(bundled("scenarios").glob("*.yaml")), ids=lambda file: file.stem)
def test_every_shipped_scenario_loads_and_says_what_must_happen(file: Path) -> None:
    assert all(one.criterion_list for one in load_scenarios(file))


def test_the_shipped_set_is_large_enough_and_valid_as_a_whole() -> None:
    report = validate_paths([bundled("personas"), bundled("scenarios")])
    assert report.errors == []
    assert report.counts["personas"] >= 6
    assert report.counts["scenarios"] >= 8
    assert report.valid == sum(report.counts.values())


def test_validating_and_loading_agree_on_every_wrong_file(write: Write) -> None:
    for what, name, content, *_ in WRONG:
        path = write(name, content)
        loader = load_scenarios if name.startswith("s") else load_personas
        with pytest.raises(CaseError):
            loader(path)
        assert validate_paths([path]).errors, what


def test_an_empty_set_of_files_is_not_valid(tmp_path: Path) -> None:
    report = validate_paths([tmp_path])
    assert (report.valid, len(report.errors)) == (0, 1)


def test_one_pass_tells_the_kinds_apart_and_lets_datapoints_name_the_others(write: Write) -> None:
    write("a.yaml", "datapoints:\n- {persona: Anna, scenario: Late parcel, first_message: Hello}\n")
    write("b.yaml", PERSONA)
    folder = write("c.yaml", SCENARIO).parent
    cases = read_cases([folder])
    assert cases.errors == []
    assert (len(cases.personas), len(cases.scenarios), len(cases.datapoints)) == (1, 1, 1)
    assert isinstance(cases.datapoints[0].persona, Persona)


def test_line_ends_that_only_yaml_knows_do_not_confuse_it(write: Write) -> None:
    path = write("s.yaml", "name: one\u2028  two\x85  three\ngoal: A #b\n")
    (error,) = check_files([path], "scenarios")
    assert "quotes" in error.reason


def test_both_yaml_parsers_read_the_same_values_and_find_the_same_faults() -> None:
    def read(content: str | bytes, parser: type) -> object:
        try:
            document = read_yaml(content if isinstance(content, str) else PERSONA, "p.yaml", parser=parser)
        except CaseError as error:
            return error.line
        return document.value, [str(fault) for fault in document.faults]

    fast, plain = PARSERS
    for what, name, content, *_ in WRONG:
        if name.endswith(".yaml") and content != b"":
            assert read(content, fast) == read(content, plain), what
