"""The viewer on a loopback port, over runs of the demo agents, as a browser and a script reach it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn

from evaluatorq.viewer.app import viewer_app
from evaluatorq.viewer.books import Library
from evaluatorq.viewer.serve import listener_on, url_of
from evaluatorq.viewer.site import Site


@dataclass(frozen=True)
class Viewer:
    """A viewer that serves. ``get`` returns a page's text and insists that it came."""

    url: str
    site: Site
    client: httpx.Client

    @property
    def folder(self) -> Path:
        return self.site.folder

    def key(self, name: str) -> str:
        return next(self.folder.glob(f"{name}_*.json")).stem

    def get(self, address: str, status: int = 200) -> str:
        answer = self.client.get(address, follow_redirects=True)
        assert answer.status_code == status, answer.text
        return answer.text

    def label(self, name: str, number: int, **fields: str) -> httpx.Response:
        given = {"token": self.site.forms.token, "subject": "criteria_0", "say": "agree", **fields}
        return self.client.post(f"/runs/{self.key(name)}/{number}/labels", data=given)


@contextmanager
def serving(folder: Path, host: str = "127.0.0.1", patience_s: float = 30) -> Iterator[Viewer]:
    listener = listener_on("127.0.0.1", 0)
    site = Site(folder, Library(patience_s))
    server = uvicorn.Server(
        uvicorn.Config(viewer_app(folder, host, site), lifespan="off", log_config=None, access_log=False, ws="none")
    )
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    url = url_of(listener)
    try:
        with httpx.Client(base_url=url, timeout=60) as client:
            yield Viewer(url, site, client)
    finally:
        server.should_exit = True
        thread.join()
        site.library.close()
        listener.close()


def unfinished(folder: Path) -> str:
    """Makes the flawed run one whose process died before it wrote the file; returns its id."""
    file = next(folder.glob("flawed_*.json"))
    run_id = json.loads(file.read_bytes())["run_id"]
    file.unlink()
    manifest = folder / ".manifests" / f"{run_id}.json"
    told = json.loads(manifest.read_bytes())
    told |= {"status": "running", "report_path": None, "summary": None, "pid": 2**22 - 3}
    manifest.write_text(json.dumps(told))
    return str(run_id)
