"""Facts that are in no file, and when drivers are asked for them."""

from __future__ import annotations

import pytest

from reveal_collector.facts import inventory
from reveal_collector.facts.device_queries import all_queries, card_sizes, queries_for
from reveal_collector.facts.gpus import NvmlAnswer
from reveal_collector.readers.source import Roots
from reveal_collector.sources import ethtool, nvml

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


def test_a_driver_that_hangs_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reveal_collector.facts.device_queries.query_nvml", lambda roots: ANSWER)
    drivers = {getattr(each, "driver", each.name) for each in nvml.sources(Roots())}
    cards = {each.name for each in ethtool.sources(Roots())}
    assert all_queries(Roots()).gpus() is ANSWER
    assert all_queries(Roots(), cards).gpus() is ANSWER
    assert not all_queries(Roots(), drivers).gpus().complete
    assert all_queries(Roots(), drivers).sizes is card_sizes
    assert all_queries(Roots(), cards).sizes is inventory.no_sizes
