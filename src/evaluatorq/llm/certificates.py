"""Whom a TLS connection trusts, read when the first one is made: a run over plain HTTP never loads it."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import certifi

from evaluatorq.errors import CallError, ConfigError
from evaluatorq.model.usage import NO_USAGE


class Certificates:
    """The authorities of one run: those of ``SSL_CERT_FILE``, of ``SSL_CERT_DIR``, or certifi's, as httpx has it.

    ``ConfigError`` when the environment names what is not there.
    """

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None
        self._file, self._folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        if self._file and not Path(self._file).is_file():
            raise ConfigError(f"SSL_CERT_FILE={self._file} is no file; name one with certificates, or unset it")
        if self._folder and not self._file and not Path(self._folder).is_dir():
            raise ConfigError(f"SSL_CERT_DIR={self._folder} is no folder; name one with certificates, or unset it")

    def context(self) -> ssl.SSLContext:
        """The same context each time. Raises ``CallError`` when the certificates cannot be read."""
        if self._context is None:
            try:
                if self._folder and not self._file:
                    self._context = ssl.create_default_context(capath=self._folder)
                else:
                    self._context = ssl.create_default_context(cafile=self._file or certifi.where())
            except OSError as error:
                named = self._file or certifi.where()
                text = f"no certificates can be read from {named}: {error}"
                raise CallError("network_error", text, component="infrastructure", usage=NO_USAGE) from error
        return self._context
