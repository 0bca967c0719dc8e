"""The whole sink with an API in memory, and pauses that no test waits for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_analyzer.sinks.kube import backoff
from support.kube_sink_harness import SinkHarness


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.01)
    monkeypatch.setattr(backoff, "REFUSED_FIRST_S", 0.01)
    monkeypatch.setattr(backoff, "LONGEST_S", 0.05)
    monkeypatch.setattr("reveal_analyzer.sinks.kube.sink.ROUND_SECONDS", 0.01)


@pytest.fixture
def bench(hurried: None, tmp_path: Path) -> Iterator[SinkHarness]:
    result = SinkHarness(tmp_path)
    yield result
    result.sink.close()
