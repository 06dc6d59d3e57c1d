"""``view``: runs as pages for a browser on this machine."""

from __future__ import annotations

import argparse
import webbrowser
from importlib.util import find_spec
from pathlib import Path

from evaluatorq.cli.console import say
from evaluatorq.cli.parsing import Parser
from evaluatorq.errors import ConfigError
from evaluatorq.store.paths import get_sim_runs_dir, journals_dir

DEFAULT_PORT, LOCAL = 8642, "127.0.0.1"
_NEEDED = ("jinja2", "starlette", "uvicorn")


def configure(parser: Parser) -> None:
    """The options of ``view``."""
    parser.add_argument("folder", nargs="?", metavar="DIR", default=None, help="folder of saved runs, or a store")
    parser.add_argument(
        "--port", metavar="N", default=str(DEFAULT_PORT), help=f"port to listen on; 0: any (default: {DEFAULT_PORT})"
    )
    parser.add_argument("--host", metavar="ADDRESS", default=LOCAL, help=f"address to listen on (default: {LOCAL})")
    parser.add_argument("--open", action="store_true", default=False, help="open the page in a browser")


def run(args: argparse.Namespace) -> int:
    """Serves until Ctrl-C."""
    folder, port = _folder(args.folder), _port(args.port)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigError(f"the viewer needs the extra: pip install 'evaluatorq[web]' ({missing[0]} is missing)")
    from evaluatorq.viewer.guard import is_loopback  # noqa: PLC0415  needs an extra
    from evaluatorq.viewer.serve import listener_on, serve, url_of  # noqa: PLC0415  needs an extra

    with listener_on(args.host, port) as listener:
        url = url_of(listener)
        if not is_loopback(args.host):
            say(f"Warning: {args.host} can be reached from other machines; whoever reaches it reads and labels runs.")
        if not (any(folder.glob("*.json")) or journals_dir(folder).is_dir()):
            say(f"There are no runs in {folder} yet; make one: evaluatorq sim simulate")
        say(f"Runs in {folder}: {url}\nCtrl-C ends it.")
        if args.open:
            webbrowser.open(url)
        try:
            serve(folder, listener, args.host)
        except KeyboardInterrupt:
            say("Stopped.")
    return 0


def _folder(given: str | None) -> Path:
    """The folder of runs; a store is accepted for the runs in it."""
    if given is None:
        return get_sim_runs_dir()
    folder = Path(given)
    if not folder.is_dir():
        raise ConfigError(
            f"there is no folder {given}; name one with saved runs, or make a run: evaluatorq sim simulate"
        )
    inside = folder / "sim-runs"
    return inside if inside.is_dir() else folder


def _port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 65535:
        raise ConfigError(f"--port is a number from 0 to 65535, not {text!r}")
    return int(text)
