"""What the viewer's pages say, over HTTP: lists, filters, order, search, conversations, comparisons."""

from __future__ import annotations

import html
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from viewing import Viewer, serving, unfinished

from evaluatorq.model.messages import Message, assistant, tool_call, user
from evaluatorq.model.results import SimulationResult
from evaluatorq.store.journal import Journal, JournalReader
from evaluatorq.store.runs import iter_results, run_parts
from made_runs import datapoints, header, talk

CARD = re.compile(r'class="name" href="/runs/[^/"]+/(\d+)')


def shown(page: str) -> list[int]:
    """The numbers of the conversations on a page, in order."""
    return [int(number) for number in CARD.findall(page)]


def save(folder: Path, name: str, results: list[SimulationResult], **fields: object) -> Path:
    """A run file of results made by hand."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}_20260101-000000.json"
    about = header(run_name=name, total_results=len(results), **fields)
    path.write_bytes(b"".join(run_parts(about, (result.model_dump_json(indent=2).encode() for result in results))))
    return path


def results(*said: str) -> list[SimulationResult]:
    points = datapoints(len(said))
    return [talk(point, row, said=words) for row, (point, words) in enumerate(zip(points, said, strict=True))]


# ---------------------------------------------------------------- the list


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", ["flawed", "good"]),
        ("?target=demo", ["good"]),
        ("?name=FLAW", ["flawed"]),
        ("?status=running", []),
        ("?status=completed&target=demo:flawed", ["flawed"]),
        ("?since=2000-01-01", ["flawed", "good"]),
        ("?since=2999-01-01", []),
        ("?until=2000-01-01", []),
        ("?since=nonsense", ["flawed", "good"]),
    ],
)
def test_the_list_shows_the_runs_that_the_filters_leave(viewer: Viewer, query: str, names: list[str]) -> None:
    assert re.findall(r'class="name" href="[^"]+">(\w+)<', viewer.get(f"/{query}")) == names


def test_a_completed_run_in_which_all_failed_is_not_green_and_is_counted_in_the_list(viewer: Viewer) -> None:
    flawed, good = re.findall(r"<tr>.*?</tr>", viewer.get("/"), re.DOTALL)[-2:]
    assert '<span class="chip">completed</span>' in flawed
    assert '<span class="failed nw">✗ 48 failed</span>' in flawed
    assert '<span class="chip completed">completed</span>' in good
    assert re.findall(r"\d+ (?:passed|failed|unknown|errored)", good) == ["30 passed", "18 unknown"]


def test_a_run_is_found_by_the_beginning_of_its_id(viewer: Viewer) -> None:
    run_id = json.loads(next(viewer.folder.glob("good_*.json")).read_bytes())["run_id"]
    page = viewer.get(f"/?name={run_id[:9]}")
    assert "1 run" in page
    assert ">good<" in page


@pytest.mark.parametrize("text", ["{ not JSON", "", "[]", '{"some": "other"}', '{\n  "results": [\n    {'])
def test_a_file_that_cannot_be_read_is_in_the_list_as_such(own_viewer: Viewer, text: str) -> None:
    (own_viewer.folder / "torn.json").write_text(text)
    page = own_viewer.get("/")
    assert "torn" in page
    assert "unreadable" in page
    assert "is not a simulation run" in page
    assert 'href="/runs/torn' not in page
    assert "is not a simulation run" in own_viewer.get("/runs/torn", 422)


def test_a_run_whose_conversation_is_broken_says_which(own_viewer: Viewer) -> None:
    path = next(own_viewer.folder.glob("good_*.json"))
    path.write_text(path.read_text().replace('"terminated_by": "judge"', '"terminated_by": "nobody"', 1))
    page = own_viewer.get(f"/runs/{path.stem}", 422)
    assert re.search(r"conversation \d+ of .* cannot be read", page)


def test_a_folder_without_runs_says_what_to_type(tmp_path: Path) -> None:
    with serving(tmp_path / "none") as empty:
        assert "evaluatorq sim simulate" in empty.get("/")


def test_a_run_that_stopped_is_shown_as_interrupted_with_the_way_on(own_viewer: Viewer) -> None:
    run_id = unfinished(own_viewer.folder)
    assert "interrupted" in own_viewer.get("/")
    page = own_viewer.get(f"/runs/{run_id}")
    assert f"evaluatorq sim resume {run_id}" in page
    assert len(shown(page)) == 48
    assert "http-equiv" not in page


def test_a_finished_run_is_also_found_by_its_id(viewer: Viewer) -> None:
    run_id = json.loads(next(viewer.folder.glob("good_*.json")).read_bytes())["run_id"]
    answer = viewer.client.get(f"/runs/{run_id}/live")
    assert answer.headers["location"] == f"/runs/{viewer.key('good')}"


# ---------------------------------------------------------------- a run


def chosen(viewer: Viewer, query: str) -> list[SimulationResult]:
    everything = list(iter_results(next(viewer.folder.glob("flawed_*.json"))))
    return [everything[number] for number in shown(viewer.get(f"/runs/{viewer.key('flawed')}?{query}"))]


def test_conversations_are_chosen_by_persona_scenario_and_outcome(viewer: Viewer) -> None:
    found = chosen(viewer, "persona=Blunt+engineer")
    assert len(found) == 8
    assert {result.metadata["persona"] for result in found} == {"Blunt engineer"}
    both = chosen(viewer, "persona=Blunt+engineer&scenario=Vague+request&outcome=failed")
    assert [result.metadata["scenario"] for result in both] == ["Vague request"]
    assert chosen(viewer, "outcome=passed") == []


def test_conversations_are_chosen_by_a_criterion_and_its_state(viewer: Viewer) -> None:
    rule = "must+not+happen:+The+agent+refunds+the+order"
    assert len(chosen(viewer, f"criterion={rule}")) == 6
    assert len(chosen(viewer, f"criterion={rule}&state=fail")) == 6
    assert chosen(viewer, f"criterion={rule}&state=pass") == []
    assert len(chosen(viewer, "state=unknown")) == 18


def test_conversations_are_chosen_by_what_an_evaluator_gave(viewer: Viewer) -> None:
    found = chosen(viewer, "evaluator=criteria_met&below=0.3")
    assert found
    assert all(result.metadata["evaluator_scores"]["criteria_met"] < 0.3 for result in found)
    assert len(chosen(viewer, "evaluator=criteria_met")) == 48
    assert chosen(viewer, "evaluator=no_such") == []


def test_conversations_come_in_the_order_that_is_asked_for(viewer: Viewer) -> None:
    turns = [result.turn_count for result in chosen(viewer, "sort=turns")]
    assert turns == sorted(turns, reverse=True)
    scores = [
        result.metadata["evaluator_scores"]["criteria_met"]
        for result in chosen(viewer, "sort=score&evaluator=criteria_met")
    ]
    assert scores == sorted(scores)
    assert shown(viewer.get(f"/runs/{viewer.key('flawed')}?sort=number")) == list(range(48))


def test_filters_that_make_no_sense_are_left_out(viewer: Viewer) -> None:
    page = viewer.get(f"/runs/{viewer.key('good')}?page=-1&below=nan&sort=up&state=x&start=9e9&page=99999999999")
    assert len(shown(page)) == 48


def test_the_overview_leads_to_the_conversations_behind_its_numbers(viewer: Viewer) -> None:
    page = viewer.get(f"/runs/{viewer.key('flawed')}/overview")
    link = re.search(r'href="(/runs/[^"]+criterion=[^"]+state=fail)"', page)
    assert link
    assert shown(viewer.get(link[1].replace("&amp;", "&")))
    assert "0 of 48 decided conversations passed" in page


# ---------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Hello", [0]),
        ("hello  THERE", [0]),
        ('say "so', [1]),
        ("back\\slash", [1]),
        ("ünïcode", [2]),
        ("ÜNÏCODE", [2]),
        ("over two lines", [3]),
        ("find_order", [4]),
        ("A-77", [4]),
        ("nobody said that", []),
        ("<b>", [5]),
    ],
)
def test_search_finds_what_was_said_and_called(tmp_path: Path, words: str, found: list[int]) -> None:
    said = results("Hello there", 'They say "so" \\ back\\slash', "Ünïcode", "over\n  two\tlines", "x", "<b>bold</b>")
    said[4].messages.append(assistant(None, [tool_call("c1", "find_order", {"order_id": "A-77"})]))
    path = save(tmp_path, "said", said)
    with serving(tmp_path) as started:
        page = started.client.get(f"/runs/{path.stem}", params={"q": words, "sort": "number"}).text
    assert shown(page) == found


def test_search_also_finds_words_that_another_writer_escaped(tmp_path: Path) -> None:
    path = save(tmp_path, "said", results("nothing", "grüße"))
    path.write_text(path.read_text().replace("grüße", "gr\\u00fc\\u00dfe"))
    with serving(tmp_path) as started:
        assert shown(started.get(f"/runs/{path.stem}?q=grüße")) == [1]


def test_a_long_search_goes_on_where_the_last_page_ended(tmp_path: Path) -> None:
    path = save(tmp_path, "said", results(*(f"word {'yes' if n % 2 else 'no'}" for n in range(240))))
    seen: list[int] = []
    with serving(tmp_path) as started:
        address = f"/runs/{path.stem}?sort=number&q=yes"
        for _ in range(4):
            page = started.get(address)
            seen += shown(page)
            more = re.search(r'href="([^"]+)" rel="next"', page)
            if more is None:
                break
            address = more[1].replace("&amp;", "&")
    assert seen == list(range(1, 240, 2))


# ---------------------------------------------------------------- a conversation


def test_a_conversation_shows_tools_changes_and_the_quote_where_it_was_said(viewer: Viewer) -> None:
    page = viewer.get(f"/runs/{viewer.key('flawed')}/4")
    assert "refund_order(order_id=" in page
    assert "/orders/G7007/status" in page
    assert re.search(r"<pre>delivered</pre></td><td><pre>refunded</pre>", page)
    good = viewer.get(f"/runs/{viewer.key('good')}/4")
    assert "<mark>30 days</mark>" in good


def test_neighbours_are_those_of_the_list_that_the_reader_came_from(viewer: Viewer) -> None:
    query = "?persona=Blunt+engineer&sort=number"
    page = viewer.get(f"/runs/{viewer.key('flawed')}/4{query}")
    near = {rel: number for number, rel in re.findall(r'/(\d+)\?[^"]+" rel="(prev|next)"', page)}
    assert near == {"prev": "3", "next": "5"}


def test_raw_events_are_those_of_the_journal(viewer: Viewer) -> None:
    page = viewer.get(f"/runs/{viewer.key('flawed')}/4/events")
    run_id = json.loads(next(viewer.folder.glob("flawed_*.json")).read_bytes())["run_id"]
    lines = [line for line in JournalReader(viewer.folder / ".journal" / run_id).lines() if line.row == 4]
    assert f"{len(lines)} events" in page
    assert page.count("<li><details>") == len(lines)


def test_a_run_without_its_journal_shows_the_record_instead(tmp_path: Path) -> None:
    path = save(tmp_path, "alone", results("Hello"))
    with serving(tmp_path) as started:
        page = started.get(f"/runs/{path.stem}/0/events")
        record = started.client.get(f"/runs/{path.stem}/0/record.json")
    assert "no journal" in page
    assert SimulationResult.model_validate_json(record.content) == results("Hello")[0]


@pytest.mark.parametrize("number", ["48", "999999999999", "-1", "x"])
def test_a_conversation_that_is_not_there_is_not_found(viewer: Viewer, number: str) -> None:
    viewer.get(f"/runs/{viewer.key('good')}/{number}", 404)


def test_a_run_of_another_layout_is_shown_as_well(tmp_path: Path) -> None:
    path = save(tmp_path, "flat", results("Hello", "Bye"))
    path.write_text(json.dumps(json.loads(path.read_bytes())))
    with serving(tmp_path) as started:
        assert shown(started.get(f"/runs/{path.stem}")) == [0, 1]
        assert "Bye" in started.get(f"/runs/{path.stem}/1")


# ---------------------------------------------------------------- comparisons


def test_a_comparison_shows_flips_first_and_the_statistics_in_words(viewer: Viewer) -> None:
    page = viewer.get(f"/compare?run={viewer.key('flawed')}&run={viewer.key('good')}")
    assert page.index("Flips") < page.index("In words")
    assert "48 of 48 datapoints lost" in page
    assert "48 went down and 0 went up" in page
    assert "less than once in 1,000 times" in page
    both = re.search(r'href="(/compare/talks[^"]+)"', page)
    assert both
    side_by_side = viewer.get(both[1].replace("&amp;", "&"))
    assert side_by_side.index('aria-label="A"') < side_by_side.index('aria-label="B"')


def test_one_run_alone_asks_for_the_other(viewer: Viewer) -> None:
    page = viewer.get(f"/compare?run={viewer.key('good')}")
    assert re.search(rf'value="{viewer.key("good")}" selected', page)


def test_a_comparison_with_a_run_that_is_not_finished_says_how_to_go_on(own_viewer: Viewer) -> None:
    run_id = unfinished(own_viewer.folder)
    assert f"sim resume {run_id}" in own_viewer.get(f"/compare?a={own_viewer.key('good')}&b={run_id}", 404)


@pytest.mark.parametrize("query", ["", "a=x&b=y", "a=x&b=y&left=1&right=two", "left=1&right=²"])
def test_an_address_of_two_conversations_that_is_wrong_says_so(viewer: Viewer, query: str) -> None:
    assert viewer.client.get(f"/compare/talks?{query}").status_code in (400, 404)


# ---------------------------------------------------------------- ten thousand conversations


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    one = talk(datapoints(1)[0], 0)
    many = [
        one.model_copy(update={"row": row, "turn_count": row, "messages": [user("Hi"), *answer(row)]})
        for row in range(10_000)
    ]
    return save(tmp_path_factory.mktemp("big"), "big", many)


def answer(row: int) -> list[Message]:
    return [assistant(f"This is answer number {row:05}.")]


def test_ten_thousand_conversations_are_paged_and_read_by_their_place(big: Path) -> None:
    with serving(big.parent) as started:
        home = f"/runs/{big.stem}"
        assert "page 1 of 200" in started.get(home)
        assert shown(started.get(f"{home}?sort=number&page=200")) == list(range(9950, 10_000))
        assert shown(started.get(f"{home}?sort=turns"))[:3] == [9999, 9998, 9997]
        assert shown(started.get(f"{home}?q=number+09876.")) == [9876]
        spoil_all_but(big, 9999)
        assert "answer number 09999" in started.get(f"{home}/9999")
        assert shown(started.get(f"{home}?sort=number&page=2")) == list(range(50, 100))
        assert "cannot be read" in started.get(f"{home}/0", 422)


def spoil_all_but(path: Path, kept: int) -> None:
    """Makes every other conversation unreadable, in place and without changing the file's size and time."""
    before = path.stat()
    text = path.read_bytes()
    at = text.index(b'"messages"', text.index(f"number {kept - 1:05}".encode()))
    with path.open("r+b") as file:
        file.write(text[:at].replace(b'"messages":', b'"massages":') + text[at:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_big_run_tells_how_far_it_is_read_and_then_appears(tmp_path: Path) -> None:
    path = save(tmp_path, "many", [*results(*["Hello"] * 2000)])
    with serving(tmp_path, patience_s=0) as impatient:
        pages = [impatient.get(f"/runs/{path.stem}")]
        while not shown(pages[-1]):
            pages.append(impatient.get(f"/runs/{path.stem}"))
    assert re.search(r"[\d,]+ of 2000 conversations are read", pages[0])
    assert 'http-equiv="refresh"' in pages[0]
    assert len(shown(pages[-1])) == 50


def test_a_run_that_was_saved_elsewhere_is_shown_by_its_id(own_viewer: Viewer, tmp_path: Path) -> None:
    path = next(own_viewer.folder.glob("good_*.json"))
    run_id = json.loads(path.read_bytes())["run_id"]
    manifest = own_viewer.folder / ".manifests" / f"{run_id}.json"
    told = json.loads(manifest.read_bytes()) | {"report_path": str(path.rename(tmp_path / "else.json"))}
    manifest.write_text(json.dumps(told))
    assert f'href="/runs/{run_id}"' in own_viewer.get("/")
    assert len(shown(own_viewer.get(f"/runs/{run_id}"))) == 48
    assert "find_order" in own_viewer.get(f"/runs/{run_id}/4/events")


def test_a_page_of_a_running_simulation_comes_anew_also_without_a_script(own_viewer: Viewer) -> None:
    run_id = unfinished(own_viewer.folder)
    with Journal.reopen(own_viewer.folder / ".journal" / run_id):
        for page in (f"/runs/{run_id}/live", f"/runs/{run_id}", f"/runs/{run_id}/4"):
            assert '<noscript><meta http-equiv="refresh" content="5"></noscript>' in own_viewer.get(page)
        assert "this run is still going on" in own_viewer.get(f"/runs/{run_id}/live")


def test_a_run_whose_cases_are_still_made_is_listed_without_a_link(own_viewer: Viewer) -> None:
    run_id = unfinished(own_viewer.folder)
    manifest = own_viewer.folder / ".manifests" / f"{run_id}.json"
    told = json.loads(manifest.read_bytes()) | {"stage": "generate", "run_id": "a" * 32, "run_name": "early"}
    manifest.with_name(f"{'a' * 32}.json").write_text(json.dumps(told))
    page = own_viewer.get("/")
    assert "making cases" in page
    assert re.search(r'<span class="name">early</span>', page)
    own_viewer.get(f"/runs/{'a' * 32}/live", 404)


@pytest.mark.parametrize("name", ["my run #1 100%", "ünï & <co>", "a?b=c;d", "%2e%2e", "--"])
def test_a_file_of_any_name_is_opened_from_the_list(tmp_path: Path, name: str) -> None:
    save(tmp_path, "x", results("Hello")).rename(tmp_path / f"{name}.json")
    with serving(tmp_path) as started:
        link = re.search(r'class="name" href="([^"]+)"', started.get("/"))
        assert link
        assert shown(started.get(html.unescape(link[1]))) == [0]
        assert "Hello" in started.get(html.unescape(link[1]) + "/0")


def test_a_file_whose_name_is_no_text_does_not_spoil_the_list(own_viewer: Viewer) -> None:
    path = next(own_viewer.folder.glob("good_*.json"))
    Path(os.fsdecode(os.fsencode(own_viewer.folder) + b"/caf\xe9.json")).write_bytes(path.read_bytes())
    page = own_viewer.get("/")
    assert "not UTF-8; rename it" in page
    assert ">flawed<" in page


def test_both_transcripts_say_how_far_they_are_the_same(viewer: Viewer) -> None:
    good, flawed = viewer.key("good"), viewer.key("flawed")
    same = viewer.get(f"/compare/talks?a={good}&b={good}&left=4&right=4")
    assert "The same was said and called in both." in same
    assert "They differ from the first turn on." in viewer.get(f"/compare/talks?a={good}&b={flawed}&left=4&right=4")


def test_a_long_journal_is_read_over_several_looks(folder: Path) -> None:
    run_id = unfinished(folder)
    with serving(folder, patience_s=0) as impatient:
        looks = [impatient.get(f"/runs/{run_id}")]
        while "Reading the run" in looks[-1]:
            looks.append(impatient.get(f"/runs/{run_id}"))
    told = [int(found[1]) for look in looks if (found := re.search(r"(\d+) of 48 conversations are read", look))]
    assert told == list(range(1, 48))
    assert len(shown(looks[-1])) == 48


def test_many_may_look_at_a_run_that_grows(folder: Path) -> None:
    reader = JournalReader(folder / ".journal" / unfinished(folder))
    events = [(line.row, line.event) for line in reader.lines()]
    plan = reader.plan.model_copy(update={"run_id": "f" * 32})
    with serving(folder) as started, Journal.create(folder / ".journal" / plan.run_id, plan) as journal:

        def look(address: str) -> int:
            with httpx.Client(base_url=started.url, timeout=60) as client:
                return client.get(address).status_code

        with ThreadPoolExecutor(4) as readers:
            answers = []
            for number, (row, event) in enumerate(events):
                journal.append(row, event)
                if number % 20 == 0:
                    address = f"/runs/{plan.run_id}{'/live' if number % 40 else '?sort=turns'}"
                    answers.append(readers.submit(look, address))
            assert {answer.result() for answer in answers} == {200}
        assert len(shown(started.get(f"/runs/{plan.run_id}"))) == 48
