"""Whom a TLS connection trusts, read when the first one is made: a run over plain HTTP never loads it."""

from __future__ import annotations

import os
import ssl

import certifi

from evaluatorq.errors import CallError


class Certificates:
    """The authorities of one run: those of ``SSL_CERT_FILE``, of ``SSL_CERT_DIR``, or certifi's, as httpx has it."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The same context each time. Raises ``CallError`` when the file or folder cannot be read."""
        if self._context is None:
            file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
            try:
                if folder and not file:
                    self._context = ssl.create_default_context(capath=folder)
                else:
                    self._context = ssl.create_default_context(cafile=file or certifi.where())
            except OSError as error:
                named = f"SSL_CERT_FILE={file}" if file else f"SSL_CERT_DIR={folder}" if folder else certifi.where()
                raise CallError(
                    "network_error", f"no certificates can be read from {named}: {error}", component="infrastructure"
                ) from error
        return self._context
