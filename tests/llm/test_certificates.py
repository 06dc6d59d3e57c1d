"""Whom a connection trusts, over real TLS sockets."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import anyio
import pytest
from anyio.streams.tls import TLSListener

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.llm.exchange import Answer, Call
from evaluatorq.llm.transport import open_wire
from evaluatorq.model.usage import NO_USAGE

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"


@pytest.fixture
def own_certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 that signs itself, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    path = tmp_path / "own.pem"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=loopback"
    subprocess.run(
        [*words.split(), "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", tmp_path / "key", "-out", path],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + (tmp_path / "key").read_text())
    return path


async def asked(certificate: Path, *, plain: bool, said: bytes = ANSWER, polite: bool = False) -> Answer | CallError:
    """What comes of asking a server with this certificate."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    tcp = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = tcp.extra(anyio.abc.SocketAttribute.local_port)

    async def answer(stream: anyio.abc.ByteStream) -> None:
        async with stream:
            while not (await stream.receive()).endswith(b"{}"):
                pass
            await stream.send(said)

    async with TLSListener(tcp, tls, standard_compatible=polite) as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        try:
            async with open_wire(2, 5.0, plain=plain) as wire:
                return await wire.send(Call(f"https://127.0.0.1:{port}/", {}, b"{}", "it"))
        except CallError as error:
            return error
        finally:
            group.cancel_scope.cancel()


@pytest.mark.parametrize("plain", [False, True])
async def test_a_server_is_trusted_by_the_file_that_the_environment_names(
    own_certificate: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(own_certificate))
    answer = await asked(own_certificate, plain=plain)
    assert isinstance(answer, Answer)
    assert answer.body == b"{}"


@pytest.mark.parametrize("plain", [False, True])
async def test_a_server_that_nobody_vouches_for_is_not_asked(own_certificate: Path, plain: bool) -> None:
    error = await asked(own_certificate, plain=plain)
    assert isinstance(error, CallError)
    assert (error.code, error.retryable) == ("network_error", False)
    assert "its certificate is not accepted" in error.message


@pytest.mark.parametrize("plain", [False, True])
async def test_a_file_without_certificates_is_named_and_nothing_is_asked(
    own_certificate: Path, monkeypatch: pytest.MonkeyPatch, plain: bool
) -> None:
    empty = own_certificate.parent / "empty.pem"
    empty.touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(empty))
    error = await asked(own_certificate, plain=plain)
    assert isinstance(error, CallError)
    assert (error.component, error.retryable, error.usage) == ("infrastructure", False, NO_USAGE)
    assert str(empty) in error.message


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_certificates_that_are_not_there_are_refused_before_anything_is_asked(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv(variable, "/nowhere/own")
    with pytest.raises(ConfigError, match=f"{variable}=/nowhere/own is no"):
        async with open_wire(2, 5.0):
            pass


@pytest.mark.parametrize("polite", [False, True])
async def test_an_answer_that_ends_with_its_connection_is_whole_where_tls_says_so(
    own_certificate: Path, monkeypatch: pytest.MonkeyPatch, polite: bool
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(own_certificate))
    answer = await asked(own_certificate, plain=False, said=b"HTTP/1.1 200 OK\r\n\r\n{}", polite=polite)
    if polite:
        assert isinstance(answer, Answer)
        assert (answer.body, answer.whole) == (b"{}", True)
    else:
        assert isinstance(answer, CallError)
        assert answer.code == "truncated_response"
