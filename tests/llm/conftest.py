"""The ``fake`` endpoint of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_endpoint import FakeEndpoint, serving


@pytest.fixture
def fake() -> Iterator[FakeEndpoint]:
    with serving() as endpoint:
        yield endpoint
