"""Parts of slices: fewer channels, fewer samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.evidence.excerpt import Excerpt, encode, single_sample
from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from support.synthetic_node import TABLE, Node

NAMES = {("cpu.pressure.some", ""), ("cpu.procs_running", ""), ("cpu.idle", ""), ("no.such", "x")}


def test_an_excerpt_has_the_named_channels_with_the_same_values() -> None:
    message = Node().slice()
    excerpt = Excerpt.of(TABLE, NAMES)
    part = excerpt.apply(message)
    assert [c.metric for c in excerpt.table.fast] == ["cpu.pressure.some", "cpu.procs_running"]
    assert [c.metric for c in excerpt.table.slow] == ["cpu.idle"]
    restored = wire.decode(encode(part, excerpt.table), wire.gauges(excerpt.table))
    np.testing.assert_array_equal(restored.fast, message.fast[:, [3, 4]])
    np.testing.assert_array_equal(restored.slow, message.slow[[1]])
    assert (restored.node, restored.start_ns) == (message.node, message.start_ns)


def test_a_single_sample_has_the_same_value_of_the_second() -> None:
    message = Node().slice()
    short = single_sample(message, TABLE)
    assert (len(short.fast), short.tick_us) == (1, 1_000_000)
    whole, single = (Deriver().second(each, TABLE).channels for each in (message, short))
    scale = [channel.scale for channel in (*TABLE.fast, *TABLE.slow)]
    np.testing.assert_allclose(single, whole, atol=max(scale), rtol=1e-6)


def test_what_was_not_read_counts_as_the_mean_of_the_others_or_is_missing() -> None:
    table = ChannelTable(
        (Channel("cpu.user", "", Kind.COUNTER), Channel("memory.free", "", Kind.GAUGE),
         Channel("network.nic.up", "e", Kind.STATE), Channel("cpu.nice", "", Kind.COUNTER)), (),
    )  # fmt: skip
    base = Node(table).slice()
    fast = np.tile(np.array([[5, 100, 1, 7]], np.int64), (10, 1))
    fast[8, 2] = 0
    missing = np.zeros(fast.shape, bool)
    missing[:5, 0] = missing[9, 2] = missing[:, 3] = True
    short = single_sample(replace(base, fast=fast, fast_missing=missing), table)
    assert short.fast[0, :3].tolist() == [50, 100, 0]
    assert short.fast_missing[0].tolist() == [False, False, False, True]


def test_a_large_counter_keeps_its_last_digit() -> None:
    table = ChannelTable((Channel("cpu.user", "", Kind.COUNTER),), ())
    message = replace(Node(table).slice(), fast=np.array([[2**60], [1]], np.int64))
    message = replace(message, fast_missing=np.zeros((2, 1), bool))
    assert single_sample(message, table).fast[0, 0] == 2**60 + 1
