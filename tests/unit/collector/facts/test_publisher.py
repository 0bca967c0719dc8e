"""The thread that reads the facts: what hangs is stated, and leaves the other facts."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from reveal_collector.facts.gpus import NvmlAnswer
from reveal_collector.facts.inventory import DeviceQueries, FactsReader
from reveal_collector.facts.publisher import FactsPublisher
from support.hosts.tree import Tree
from support.polling import wait_until


def test_a_read_of_facts_under_way_has_a_time_since_when(server: Tree) -> None:
    during = []

    def query() -> NvmlAnswer:
        during.append(watch.hung_since_ns)
        return NvmlAnswer()

    watch = FactsPublisher(FactsReader("n", server.roots, DeviceQueries(gpus=query)))
    watch.refresh()
    assert during[0] > 0
    assert watch.hung_since_ns == 0


def test_a_gpu_driver_that_hangs_leaves_all_other_facts(
    server: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_collector.facts.inventory._TIMEOUT_S", 0.5)
    before, released = FactsReader("n", server.roots).read(), threading.Event()
    asked = []

    def query() -> NvmlAnswer:
        asked.append(1)
        released.wait(30)
        return NvmlAnswer()

    reader = FactsReader("n", server.roots, DeviceQueries(gpus=query))
    watch = FactsPublisher(reader)
    found = reader.read()
    watch.refresh()
    assert replace(found, unread=()) == replace(before, unread=())
    assert "processes" in found.unread
    assert watch.hung_since_ns > 0
    assert len(asked) == 1  # no second thread hangs
    released.set()
    wait_until(lambda: not watch.hung_since_ns)
    reader.read()
    assert len(asked) == 2
