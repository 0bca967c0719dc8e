"""Signatures of the CPU: which of two that show together is the cause."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.hypotheses.bound_signature import ConditionInputs
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatcher
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from support.synthetic_node import Node

RATES = ("cpu.context_switches", "cpu.interrupts.external")
RULES = [rule for rule in loader.load() if rule.name in ("InterruptPressure", "ContextSwitchStorm")]


def sustained(switches: float, interrupts: float) -> set[str]:
    """Return the signatures that hold after six seconds on two CPUs that were calm before."""
    node, deriver = Node(), Deriver()
    channels = tuple(Channel(name, "", Kind.COUNTER, 1.0) for name in RATES)
    table = node.table = ChannelTable(channels, ())
    matcher = SignatureMatcher(RULES)
    for _ in range(6):
        changed = dict(zip(RATES, (switches, interrupts), strict=True))
        second = deriver.second(node.slice(changed), table)
        now = ConditionInputs(second.values, np.full(second.values.size, 1000.0), cpus=2)
        found = matcher.match(second.plan, now)[0]
    return {match.rule.name for match in found}


@pytest.mark.parametrize(
    ("switches", "interrupts", "cause"),
    [
        (225e3, 2.5e3, "ContextSwitchStorm"),  # pipes between two processes
        (184e3, 20.6e3, "ContextSwitchStorm"),  # whose timers fire, too
        (110e3, 50e3, "InterruptPressure"),  # timers that wake a task each
        (14.5e3, 3e3, "ContextSwitchStorm"),  # 2,000 round trips a second
    ],
)
def test_switches_and_interrupts_have_a_single_cause(
    switches: float, interrupts: float, cause: str
) -> None:
    assert sustained(switches, interrupts) == {cause}
