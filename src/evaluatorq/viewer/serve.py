"""Listens on this machine and serves the viewer until Ctrl-C."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import uvicorn

from evaluatorq.errors import ConfigError
from evaluatorq.viewer.app import viewer_app
from evaluatorq.viewer.site import Site

_LEAVING_S = 1


def listener_on(host: str, port: int) -> socket.socket:
    """A socket that listens; ``ConfigError`` where the port is taken or the address is not this machine's."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ConfigError(f"cannot listen on {host!r}: {error.strerror}") from error
    listener = socket.socket(found[0], socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(found[4])
        listener.listen(128)
    except OSError as error:
        listener.close()
        advice = "choose another with --port N (0: any that is free)"
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror}; {advice}") from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The address to type into a browser."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}/"


def serve(folder: Path, listener: socket.socket, host: str) -> None:
    """Serves the runs in ``folder`` until Ctrl-C (``KeyboardInterrupt``)."""
    site = Site(folder)
    config = uvicorn.Config(
        viewer_app(folder, host, site), lifespan="off", log_config=None, access_log=False, server_header=False,
        ws="none", timeout_graceful_shutdown=_LEAVING_S,
    )  # fmt: skip
    with closing(site.library):
        uvicorn.Server(config).run(sockets=[listener])
