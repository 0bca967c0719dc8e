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
