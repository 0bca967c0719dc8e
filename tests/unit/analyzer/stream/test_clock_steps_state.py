"""The step of a node's clock survives an analyzer, as long as a finding is open."""

from dataclasses import replace

import pytest

from reveal_analyzer.state.tree import StateError
from reveal_analyzer.stream.clock_steps import ClockSteps
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message
from support.synthetic_node import Node

STEP_NS = 7200 * NS_PER_SECOND


def restored(before: ClockSteps) -> ClockSteps:
    after = ClockSteps()
    after.restore(before.save())
    return after


def ahead(message: Message) -> Message:
    return replace(message, start_ns=message.start_ns + STEP_NS)


def test_a_step_before_and_during_a_takeover_is_taken_off() -> None:
    node, clock = Node(), ClockSteps()
    clock.adjust(node.slice(), finding_open=True)
    plain = [node.slice() for _ in range(3)]
    assert clock.adjust(ahead(plain[0]), finding_open=True).start_ns == plain[0].start_ns
    clock = restored(clock)
    assert clock.adjust(ahead(plain[1]), finding_open=True).start_ns == plain[1].start_ns
    again = ahead(ahead(plain[2]))
    assert restored(clock).adjust(again, finding_open=True).start_ns == plain[2].start_ns


def test_without_an_open_finding_the_new_clock_holds() -> None:
    node, clock = Node(), ClockSteps()
    clock.adjust(node.slice(), finding_open=True)
    clock.adjust(ahead(node.slice()), finding_open=True)
    message = ahead(node.slice())
    assert restored(clock).adjust(message, finding_open=False).start_ns == message.start_ns


def test_a_clock_that_saw_nothing_comes_back_as_new() -> None:
    message = Node().slice()
    assert restored(ClockSteps()).adjust(message, finding_open=True) is message


def test_a_boot_id_that_is_no_hexadecimal_is_refused() -> None:
    with pytest.raises(StateError, match="boot"):
        ClockSteps().restore({"boot": "xy", "sequence": 1, "start": 1, "ahead": 0})
