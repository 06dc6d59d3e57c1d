"""What the viewer refuses, what it never shows as markup, and what it leaves alone on disk."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest
from viewing import Viewer, serving

from evaluatorq.store.labels import LabelFile
from evaluatorq.store.runs import run_parts
from evaluatorq.viewer.guard import LARGEST_FORM, is_loopback
from made_runs import datapoints, header, talk

PAGES = ("", "/overview", "/labels", "/4", "/4/events")


def port_of(viewer: Viewer) -> str:
    return viewer.url.rstrip("/").rpartition(":")[2]


# ---------------------------------------------------------------- who may ask


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_a_foreign_name_is_refused_whatever_is_asked(viewer: Viewer, host: str) -> None:
    for address in ("/", "/static/viewer.css", f"/runs/{viewer.key('good')}/4/record.json"):
        assert viewer.client.get(address, headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:9", "[::1]:80"])
def test_every_name_of_this_machine_is_answered(viewer: Viewer, host: str) -> None:
    assert viewer.client.get("/", headers={"host": host}).status_code == 200


def test_where_others_reach_it_only_addresses_and_its_own_name_are_answered(made: Path) -> None:
    with serving(made, host="0.0.0.0") as public:
        assert public.client.get("/", headers={"host": "192.0.2.7:8642"}).status_code == 200
        assert public.client.get("/", headers={"host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_another_site_may_not_write_even_with_the_token(own_viewer: Viewer, origin: str) -> None:
    data = {"token": own_viewer.site.forms.token, "subject": "goal", "say": "agree"}
    address = f"/runs/{own_viewer.key('good')}/4/labels"
    assert own_viewer.client.post(address, data=data, headers={"origin": origin}).status_code == 403
    assert not list(own_viewer.folder.glob("*.labels.jsonl"))


def test_another_sites_page_may_not_load_ours_but_may_link_to_it(viewer: Viewer) -> None:
    loaded = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    linked = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert viewer.client.get("/", headers=loaded).status_code == 403
    assert viewer.client.get("/", headers=linked).status_code == 200


@pytest.mark.parametrize("token", ["", "guess", "é"])
def test_nothing_is_written_without_the_token(own_viewer: Viewer, token: str) -> None:
    assert own_viewer.label("good", 4, token=token).status_code == 403
    assert not list(own_viewer.folder.glob("*.labels.jsonl"))


def test_the_token_is_another_one_in_every_viewer(made: Path, viewer: Viewer) -> None:
    with serving(made) as other:
        assert other.site.forms.token != viewer.site.forms.token
        assert len(other.site.forms.token) >= 32


def test_labels_are_written_by_post_only(viewer: Viewer) -> None:
    address = f"/runs/{viewer.key('good')}/4/labels"
    for method in ("GET", "PUT", "DELETE", "PATCH"):
        assert viewer.client.request(method, address).status_code == 405
    assert viewer.client.post("/").status_code == 405


def test_a_form_that_is_too_long_is_refused(own_viewer: Viewer) -> None:
    assert own_viewer.label("good", 4, note="x" * LARGEST_FORM).status_code == 413


# ---------------------------------------------------------------- which files


@pytest.mark.parametrize(
    "name",
    ["../config", "..%2fconfig", "%2e%2e%2fsecret", "%2fetc%2fpasswd", "..%5csecret", ".manifests", "a%00b",
     ".journal%2f0001", "%2e%2e"],
)  # fmt: skip
def test_no_address_leads_out_of_the_folder(own_viewer: Viewer, name: str) -> None:
    secret = own_viewer.folder.parent / "secret.json"
    good = next(own_viewer.folder.glob("good_*.json"))
    secret.write_bytes(good.read_bytes().replace(b"Blunt engineer", b"TOP SECRET"))
    for tail in ("", "/0", "/labels.jsonl", "/0/events"):
        answer = own_viewer.client.get(f"/runs/{name}{tail}", follow_redirects=True)
        assert answer.status_code == 404
        assert "TOP SECRET" not in answer.text


@pytest.mark.parametrize("name", ["../app.py", "..%2fguard.py", "report.html.j2", "nope.css"])
def test_only_the_files_of_pages_are_served(viewer: Viewer, name: str) -> None:
    assert viewer.client.get(f"/static/{name}").status_code == 404


def test_a_label_never_touches_the_run_and_is_its_owners_alone(own_viewer: Viewer) -> None:
    path = next(own_viewer.folder.glob("good_*.json"))
    before = path.read_bytes(), path.stat().st_mtime_ns
    assert own_viewer.label("good", 4).status_code == 303
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert stat.S_IMODE(LabelFile.beside(path).path.stat().st_mode) == 0o600
    assert len(re.findall(r'class="name" href="/runs/', own_viewer.get("/"))) == 2


def test_a_credential_in_a_note_is_taken_out_before_it_is_written(own_viewer: Viewer) -> None:
    own_viewer.label("good", 4, note="the key is sk-abcdef0123456789abcdef, password: hunter22 \x1b[31m")
    [label] = LabelFile.beside(next(own_viewer.folder.glob("good_*.json"))).read().values()
    assert "[hidden]" in label.note
    assert "sk-abcdef" not in label.note
    assert "hunter22" not in label.note


def test_a_note_is_redacted_by_the_rules_of_its_run(tmp_path: Path) -> None:
    about = header(run_name="private", total_results=1, config={"redact": ["email"]})
    path = tmp_path / "private_20260101-000000.json"
    result = talk(datapoints(1)[0], 0).model_dump_json(indent=2).encode()
    path.write_bytes(b"".join(run_parts(about, [result])))
    with serving(tmp_path) as started:
        assert started.label("private", 0, note="ask mara.lind@example.com").status_code == 303
    [label] = LabelFile.beside(path).read().values()
    assert re.fullmatch(r"ask \[email:[0-9a-f]{8}\]", label.note)


# ---------------------------------------------------------------- what pages hold


def hostile(folder: Path) -> str:
    """A run in which everybody tries to become markup."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'><b>&\x1b[31m\u202e"
    [point] = datapoints(1)
    result = talk(point, 0, (True, False), said=evil, scores={evil: 0.5})
    result.metadata |= {"persona": evil, "scenario": evil, "scenario_goal": evil}
    for meta in result.metadata["criteria_meta"]:
        meta["description"] = evil
    result.reason = evil
    about = header(run_name=evil, target=evil, total_results=1, executive_summary=evil)
    folder.mkdir(exist_ok=True)
    path = folder / "evil_20260101-000000.json"
    path.write_bytes(b"".join(run_parts(about, [result.model_dump_json(indent=2).encode()])))
    (folder / "<script>alert(2)<.json").write_text("{")
    return path.stem


def test_nothing_that_was_said_becomes_markup(tmp_path: Path) -> None:
    key = hostile(tmp_path / "runs")
    with serving(tmp_path / "runs") as started:
        started.label("evil", 0, note="<script>alert(3)</script>")
        addresses = [f"/runs/{key}{page.replace('4', '0')}" for page in PAGES]
        addresses += ["/", f"/runs/{key}?q=<script>", f"/compare?a={key}&b={key}", "/?name=<script>alert(4)"]
        addresses += [f"/compare/talks?a={key}&b={key}&left=0&right=0", f"/compare?run={key}"]
        for address in addresses:
            page = started.get(address)
            assert not re.search(r"<(script|img|b)\b(?! src=\"/static/)[^>]*(alert|onerror|src=x)", page)
            assert page.count("<script") == 1
            assert "\x1b" not in page
            assert "\u202e" not in page


def test_every_page_forbids_inline_code_and_needs_none(viewer: Viewer) -> None:
    key = viewer.key("flawed")
    for address in ("/", "/compare", *(f"/runs/{key}{page}" for page in PAGES), "/runs/none"):
        answer = viewer.client.get(address)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! src=\"/static/)", answer.text)


@pytest.mark.parametrize(
    ("host", "only_here"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("0.0.0.0", False), ("::", False),
     ("192.168.1.4", False), ("my-laptop", False)],
)  # fmt: skip
def test_only_loopback_counts_as_this_machine_alone(host: str, only_here: bool) -> None:
    assert is_loopback(host) is only_here
