"""The slices that a bench sends for many nodes are messages like any collector's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysisbench.slice_load import restamped
from reveal_contract import wire
from support.synthetic_node import Node

NAMES = st.text("abcdefghij-0123456789", min_size=4, max_size=4)


@given(NAMES, st.integers(0, 2**40), st.integers(0, 2**62))
def test_a_message_takes_another_nodes_name_and_time(name: str, sequence: int, start: int) -> None:
    node = Node()
    original = replace(node.slice({"cpu.user": 70.0}), node="node")
    gauges = wire.gauges(node.table)
    renamed = restamped(wire.encode(original, gauges), name, sequence, start)
    read = wire.decode(renamed, gauges)
    assert (read.node, read.sequence, read.start_ns) == (name, sequence, start)
    np.testing.assert_array_equal(read.fast, original.fast)
    np.testing.assert_array_equal(read.slow, original.slow)
