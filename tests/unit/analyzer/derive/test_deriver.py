"""From a message to the values of a second."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Message

TABLE = ChannelTable(
    (Channel("cpu.context_switches", "", Kind.COUNTER),),
    (Channel("network.tcp.retrans_segs", "", Kind.COUNTER, lane=Lane.SLOW),),
)


@pytest.mark.parametrize("ticks", [10, 5, 1])
def test_the_last_slice_of_a_collector_has_the_rates_of_the_slices_before(ticks: int) -> None:
    """It may end after any tick; what it has of a slow counter covers a second all the same."""
    message = Message(
        "n1", bytes(16), 1, 10**18, 100_000, TABLE.key,
        np.full((ticks, 1), 100), np.array([1000]),
        np.zeros((ticks, 1), np.bool_), np.zeros(1, np.bool_),
    )  # fmt: skip
    second = Deriver().second(message, TABLE)
    rates = dict(zip(second.plan.labels, second.values.tolist(), strict=True))
    assert rates["cpu.context_switches__mean"] == pytest.approx(1000)
    assert rates["network.tcp.retrans_segs__mean"] == pytest.approx(1000)


GAUGES = tuple(Channel(name, "", Kind.GAUGE) for name in ("cpu.procs_running", "memory.mem_free"))
CHANGES = tuple(f"{gauge.metric}__mean_change" for gauge in GAUGES)


def second_of(deriver: Deriver, table: ChannelTable, level: int) -> dict[str, float]:
    """Return the columns of a second in which all channels have this level."""
    width = len(table.fast)
    message = Message(
        "n1", bytes(16), 1, 10**18, 100_000, table.key,
        np.full((10, width), level), np.array([], np.int64),
        np.zeros((10, width), np.bool_), np.zeros(0, np.bool_),
    )  # fmt: skip
    second = deriver.second(message, table)
    return dict(zip(second.plan.labels, second.values.tolist(), strict=True))


def test_a_change_since_a_second_that_was_not_read_is_missing() -> None:
    deriver, table = Deriver(), ChannelTable(GAUGES, ())
    assert np.isnan(second_of(deriver, table, 5)[CHANGES[0]])
    assert second_of(deriver, table, 7)[CHANGES[0]] == 2
    deriver.reset()
    assert np.isnan(second_of(deriver, table, 9)[CHANGES[0]])


def test_another_table_hides_no_change() -> None:
    deriver = Deriver()
    second_of(deriver, ChannelTable(GAUGES[:1], ()), 5)
    after = second_of(deriver, ChannelTable(GAUGES[::-1], ()), 8)
    assert after[CHANGES[0]] == 3
    assert np.isnan(after[CHANGES[1]])  # the channel is new
    assert second_of(deriver, ChannelTable(GAUGES[:1], ()), 4)[CHANGES[0]] == -4
