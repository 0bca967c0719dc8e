"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.redis_streams import Stream


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def stream(redis_server: Path, stack: ExitStack) -> Stream:
    stream = Stream(f"unix://{redis_server}", stack)
    stream.announce()
    return stream
