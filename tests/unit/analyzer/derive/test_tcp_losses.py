"""Patterns of TCP loss from ticks: recorded and synthetic traces of lossy paths and full queues."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.derive.tcp_losses import (
    METRICS,
    LossCounters,
    Losses,
    LossWatch,
    loss_counters,
    measure,
)
from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingUpdate
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import Message
from support.property_tests import examples
from support.synthetic_node import QUIET, TABLE, Node

TRACES = Path(__file__).parents[3] / "fixtures/tcp_losses.txt"
_FIELDS = (
    "network.tcp.out_segs", "network.tcp_ext.tcp_orig_data_sent", "network.tcp.retrans_segs",
    "network.tcp_ext.tcp_fast_retrans", "network.tcp_ext.tcp_timeouts",
    "network.tcp_ext.tcp_slow_start_retrans", "network.tcp_ext.tcp_sack_recovery",
    "network.tcp_ext.tcpdsack_recv", "network.tcp_ext.tcp_loss_probes",
    "network.tcp_ext.tcp_lost_retransmit",
)  # fmt: skip
_EXTRA = [Channel(name, "", Kind.COUNTER, 1.0) for name in _FIELDS]
_KNOWN = {channel.metric for channel in TABLE.fast}
TCP = ChannelTable((*TABLE.fast, *(c for c in _EXTRA if c.metric not in _KNOWN)), TABLE.slow)
INDICES = [next(k for k, c in enumerate(TCP.fast) if c.metric == name) for name in _FIELDS]


def traces() -> dict[str, np.ndarray]:
    """Return counts for each tick in the order of ``_FIELDS``, by name; the file explains them."""
    found: dict[str, list[list[int]]] = {}
    for line in TRACES.read_text().splitlines():
        if line.startswith("== "):
            rows = found.setdefault(line[3:], [])
        elif line and not line.startswith("#"):
            rows.append([int(word) for word in line.split()])
    return {name: np.array(rows) for name, rows in found.items()}


RECORDED = traces()
SCATTERED = [name for name in RECORDED if "loss" in name]
QUEUED = [name for name in RECORDED if "loss" not in name]


def figures(ticks: np.ndarray) -> Losses:
    """Return the figures of the ten seconds with the most loss."""
    lost = np.convolve(ticks[:, 2], np.ones(100), "valid") if len(ticks) > 100 else np.zeros(1)
    begin = int(lost.argmax())
    part = ticks[begin : begin + 100].astype(float)
    return measure(part[:, 1], part[:, 2], part[:, 6] + part[:, 4])


@pytest.mark.parametrize("name", SCATTERED)
def test_a_lossy_path_loses_single_segments(name: str) -> None:
    measured = figures(RECORDED[name])
    assert measured.recovery_length < 4
    assert measured.clumping < 8
    if "bursty" in name:
        assert measured.in_bursts > 700_000
    if "steady" in name:
        assert measured.in_bursts < 100_000


@pytest.mark.parametrize("name", QUEUED)
def test_a_full_queue_drops_the_tails_of_bursts(name: str) -> None:
    measured = figures(RECORDED[name])
    assert measured.recovery_length > 4
    assert measured.clumping > 8
    assert measured.in_bursts > 900_000


def test_few_retransmissions_are_no_pattern() -> None:
    constant = np.ones(100)
    assert np.isnan(astuple(measure(1000 * constant, np.eye(100)[3] * 9, constant))).all()
    assert not np.isnan(astuple(measure(1000 * constant, np.eye(100)[3] * 10, constant))[1])
    silent = measure(0 * constant, constant, 0 * constant)
    assert np.isnan([silent.clumping, silent.recovery_length]).all()
    assert silent.in_bursts == 0


@examples(60)
@given(
    st.lists(st.integers(0, 3000), min_size=20, max_size=100),
    st.floats(0.002, 0.08),
    st.integers(0, 1000),
)
def test_losses_of_every_segment_alike_never_clump(
    load: list[int], probability: float, seed: int
) -> None:
    sent = np.array(load, float)
    again = np.random.default_rng(seed).binomial(np.array(load), probability).astype(float)
    measured = measure(sent, again, again)
    if again.sum() >= 60 and np.isfinite(measured.clumping):
        assert measured.clumping < 6
        assert measured.recovery_length == 1


@examples(40)
@given(st.integers(1, 9), st.integers(100, 2000), st.integers(0, 1000))
def test_how_fine_segments_are_counted_does_not_matter(factor: int, base: int, seed: int) -> None:
    """Sending ten times as much and losing as many leaves all three as they are."""
    random = np.random.default_rng(seed)
    sent = base * random.integers(0, 4, 100).astype(float)
    again = random.integers(0, 5, 100).astype(float)
    recoveries = np.minimum(again, 1.0)
    assert astuple(measure(factor * sent, again, recoveries)) == pytest.approx(
        astuple(measure(sent, again, recoveries)), nan_ok=True
    )


def test_losses_up_to_two_ticks_after_a_burst_are_of_it() -> None:
    sent = np.full(100, 10.0)
    sent[::10] = 1000
    for lag, share in ((0, 1e6), (2, 1e6), (3, 0.0)):
        again = np.roll(np.where(sent == 1000, 5.0, 0.0), lag)
        assert measure(sent, again, again).in_bursts == share


def message(node: Node, ticks: np.ndarray) -> Message:
    """Return a slice of a node with these ten ticks of TCP counters."""
    sent_slice = node.slice()
    sent_slice.fast[:, INDICES] = ticks
    return sent_slice


def test_a_watch_covers_the_last_ten_seconds() -> None:
    watch, node = LossWatch(), Node(TCP)
    where = loss_counters(TCP.fast)
    assert where == LossCounters(INDICES[1], INDICES[2], (INDICES[6], INDICES[4]))
    ticks = RECORDED["bursty-loss-cubic"]
    for begin in range(0, 100, 10):
        figures_of_watch = watch.push(message(node, ticks[begin : begin + 10]), where)
    part = ticks[:100].astype(float)
    whole = astuple(measure(part[:, 1], part[:, 2], part[:, 6] + part[:, 4]))
    assert figures_of_watch == pytest.approx(whole)
    watch.reset()
    assert np.isnan(watch.push(message(node, ticks[:10]), where)).all()


def steady(node: Node) -> Message:
    """Return a slice of a steady sender with losses."""
    ticks = np.zeros((10, len(_FIELDS)), np.int64)
    ticks[:, [1, 2, 6]] = 500, 5, 5
    return message(node, ticks)


def test_ticks_that_were_not_read_are_left_out() -> None:
    watch, node = LossWatch(), Node(TCP)
    where = loss_counters(TCP.fast)
    assert where is not None
    sent_slice = steady(node)
    sent_slice.fast_missing[5:, INDICES] = True
    sent_slice.fast[5:, INDICES] = -1
    assert watch.push(sent_slice, where) == pytest.approx((0.0, 1.0, 0.0))


@pytest.mark.parametrize("field", [1, 2, 6])
def test_a_counter_that_was_not_read_leaves_no_pattern(field: int) -> None:
    """What was not read is not 0: neither segments, nor their losses, nor their recoveries."""
    watch, node = LossWatch(), Node(TCP)
    where = loss_counters(TCP.fast)
    assert where is not None
    for _ in range(12):
        sent_slice = steady(node)
        sent_slice.fast_missing[:, INDICES[field]] = True
        assert np.isnan(watch.push(sent_slice, where)).all()


def test_a_second_that_was_not_read_repeats_no_pattern() -> None:
    watch, node = LossWatch(), Node(TCP)
    where = loss_counters(TCP.fast)
    assert where is not None
    assert watch.push(steady(node), where) == pytest.approx((0.0, 1.0, 0.0))
    unread = steady(node)
    unread.fast_missing[:, INDICES] = True
    assert np.isnan(watch.push(unread, where)).all()


def test_a_node_without_the_counters_has_no_loss_columns() -> None:
    fewer = ChannelTable(tuple(c for c in TCP.fast if c.metric != _FIELDS[2]), TCP.slow)
    assert loss_counters(fewer.fast) is None
    node, deriver = Node(fewer), Deriver()
    labels = deriver.second(node.slice(), fewer).plan.labels
    assert not [label for label in labels if label.startswith(METRICS)]
    with_all = Deriver().second(Node(TCP).slice(), TCP).plan.labels
    assert [label.partition("__")[0] for label in with_all[-3:]] == list(METRICS)
    assert all(catalogue.find(name).subsystem is Subsystem.NETWORK for name in METRICS)


QUIET_TICKS = 70 * 10


def found(name: str) -> Finding:
    """Return the finding of a trace that follows a minute of the same sender without losses."""
    ticks = RECORDED[name]
    losing = int(np.flatnonzero(ticks[:, 2] > 2)[0]) // 10 * 10
    before = ticks[max(losing - 50, 0) : losing] if losing >= 10 else np.array([])
    calm = before if len(before) else lossless(ticks)
    node = Node(TCP)
    judge = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    quiet = np.resize(calm[: len(calm) // 10 * 10], (QUIET_TICKS, calm.shape[1]))
    lossy = np.resize(ticks[losing : losing + 50], (150, ticks.shape[1]))
    played = np.concatenate([quiet, lossy])
    updates = analyzed(judge, node, played)
    assert updates, QUIET
    return updates[-1].finding


def analyzed(judge: NodeAnalyzer, node: Node, ticks: np.ndarray) -> list[FindingUpdate]:
    """Return what an analyzer reports of ticks."""
    slices = (message(node, ticks[begin : begin + 10]) for begin in range(0, len(ticks), 10))
    return [update for each in slices for update in judge.analyze(each, node.table)]


def lossless(ticks: np.ndarray) -> np.ndarray:
    """Return the same sends without retransmissions."""
    ticks_without_loss = ticks[:50].copy()
    ticks_without_loss[:, 2:] = 0
    return ticks_without_loss


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("steady-loss-cubic", "PacketLoss"),
        ("steady-loss-bbr", "PacketLoss"),
        ("bursty-loss-cubic", "PacketLoss"),
        ("bursty-queue-cubic", "IntrinsicRetransmission"),
        ("bursty-queue-bbr", "IntrinsicRetransmission"),
        ("growing-queue-bbr", "IntrinsicRetransmission"),
        ("incast-bbr", "IntrinsicRetransmission"),
    ],
)
def test_the_analyzer_separates_fault_induced_from_intrinsic_loss(name: str, cause: str) -> None:
    finding = found(name)
    assert finding.subsystem is Subsystem.NETWORK
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == cause
    assert finding.hypothesis.confidence_percent >= 55


# Counted each second for the retransmissions, timeouts, segments in slow start and loss probes of
# the host (measured on Linux 6.18): twenty requesters whose path loses 0.5 %, ten connections to a
# peer that is gone, and 104 whose link was down for 15 s and is back.
_SCATTERED = np.array([(4, 0, 0, 4), (7, 0, 0, 7), (6, 0, 0, 6), (4, 0, 0, 4), (3, 0, 0, 3)])
_GONE = np.array([
    (30, 20, 0, 10), (10, 10, 0, 0), (2, 2, 0, 0), (10, 10, 0, 0), (3, 3, 0, 0), (5, 5, 0, 0),
])  # fmt: skip
_RETURNED = np.array([(364, 4, 360, 0), (100, 55, 45, 0), (100, 39, 61, 0), (100, 5, 95, 0)])
_COUNTED = [2, 4, 5, 8]  # indices in ``_FIELDS``


def requests(losses: np.ndarray, seconds: int) -> np.ndarray:
    """Return the ticks of small requests, 2,000 segments a second, with these losses a second."""
    ticks = np.zeros((seconds * 10, len(_FIELDS)), np.int64)
    ticks[:, :2] = 200
    for second in range(seconds if len(losses) else 0):
        counts = losses[second % len(losses)]
        # each tick has its share, so that they add up to the counts of the second
        shares = np.diff(np.arange(11)[:, None] * counts // 10, axis=0)
        ticks[second * 10 : second * 10 + 10, _COUNTED] = shares
    return ticks


@pytest.mark.parametrize(
    ("losses", "lossy"), [(_SCATTERED, True), (_GONE, False), (_RETURNED, False)]
)
def test_retransmissions_to_a_peer_that_is_or_was_gone_are_no_loss(
    losses: np.ndarray, lossy: bool
) -> None:
    """They follow timeouts; what a path loses is answered to a probe or by an acknowledgement."""
    node, judge = Node(TCP), NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    analyzed(judge, node, requests(np.array([]), 70))
    updates = analyzed(judge, node, requests(losses, 20))
    causes = {each.finding.hypothesis and each.finding.hypothesis.name for each in updates}
    assert ("PacketLoss" in causes) is lossy, causes
