"""Fixtures of the integration tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reveal_analyzer.stream import origin
from reveal_analyzer.stream.origin import TokenOwner
from support.proven_streams import TOKEN, Owners
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


@pytest.fixture
def soon_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again about a pending token after 20 ms."""
    monkeypatch.setattr(origin, "_ASK_SECONDS", 0.02)


@pytest.fixture
def owners() -> Owners:
    return Owners({TOKEN: TokenOwner.NODE})
