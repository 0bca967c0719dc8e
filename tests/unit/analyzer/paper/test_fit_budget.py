"""The paper's detectors are fitted on demand, for few nodes in parallel, and then released."""

from __future__ import annotations

import gc

import pytest

from reveal_analyzer.paper.detector import PaperVerdict
from reveal_analyzer.paper.fit_budget import FitBudget
from reveal_analyzer.paper.methods import UNUSED_SLICES, PaperMethods, WindowSettings
from reveal_contract.time_units import NS_PER_SECOND
from support.synthetic_node import Node

WINDOW, WARMUP = 3, 60


def learned(node: Node, fits: FitBudget | None) -> PaperMethods:
    methods = PaperMethods(WindowSettings(WINDOW, warmup_s=WARMUP), budget=fits)
    _watch(methods, node, WARMUP)
    return methods


def _watch(methods: PaperMethods, node: Node, seconds: int) -> None:
    for _ in range(seconds):
        methods.push(node.slice(), node.table)


def _next(methods: PaperMethods, node: Node) -> PaperVerdict | None:
    _watch(methods, node, 1)
    return methods.verdict()


def test_a_second_apart_and_no_more_than_that_many() -> None:
    fits, nodes = FitBudget(most=2), [Node(seed=seed) for seed in range(3)]
    first, second, third = (learned(node, fits) for node in nodes)
    assert first.verdict()
    assert second.verdict() is None  # in the same second
    assert _next(second, nodes[1])
    for _ in range(3):
        assert _next(third, nodes[2]) is None
    del first
    gc.collect()
    assert _next(third, nodes[2])


def test_each_node_may_where_nothing_is_shared() -> None:
    assert all(learned(Node(seed=seed), None).verdict() for seed in range(3))


def test_unused_detectors_are_released_and_refitted_identically() -> None:
    asked, unasked = Node(), Node()
    kept, fits = learned(asked, None), FitBudget(most=1)
    methods = learned(unasked, fits)
    assert methods.verdict() == kept.verdict()
    for _ in range(UNUSED_SLICES):
        _next(kept, asked)
    _watch(methods, unasked, UNUSED_SLICES)
    assert fits.request(10**6 * NS_PER_SECOND, lambda: pytest.fail("one is held")) is None
    _watch(methods, unasked, 1)
    _watch(kept, asked, 1)
    assert methods.verdict() == kept.verdict()
