"""Facts that are in no file, and when drivers are asked for them."""

from __future__ import annotations

import pytest

from reveal_collector.facts.device_queries import queries_for
from reveal_collector.facts.gpus import NvmlAnswer
from reveal_collector.readers.source import Roots

ANSWER = NvmlAnswer()


def test_nvml_is_asked_only_while_the_collector_has_it_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reveal_collector.facts.device_queries.query_nvml", lambda roots: ANSWER)
    is_open: list[int] = []
    queries = queries_for(Roots(), lambda: bool(is_open))
    assert not queries.gpus().complete
    is_open.append(1)
    assert queries.gpus() is ANSWER
