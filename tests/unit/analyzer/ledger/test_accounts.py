"""The ledger of one second as the analyzer reads it."""

from __future__ import annotations

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.ledger.accounts import COLUMNS, AccountReader, Accounts
from reveal_contract import ledger
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.ledger import Pair, Tier
from reveal_contract.metric import Kind, Lane
from support.ledger_node import Times, ledger_node, ledger_values
from support.synthetic_node import Node

JOB, HOG = "/job", "/hog<1>"


def accounts(node: Node, values: dict[str, float]) -> Accounts | None:
    return AccountReader().read(Deriver().second(node.slice(values), node.table))


def taken(accounts: Accounts) -> dict[Pair, float]:
    pairs = accounts.layout.pairs[ledger.LOST_CPU].pairs
    times = accounts.taken[ledger.LOST_CPU].tolist()
    return {pair: time for pair, time in zip(pairs, times, strict=True) if time}


def test_times_and_pairs_are_read_in_ns() -> None:
    times = {JOB: Times(run=0.6, cpu={HOG: 0.3}), HOG: Times(run=1.0)}
    found = accounts(ledger_node(JOB, HOG), ledger_values(times))
    assert found is not None
    assert found.layout.subjects == (JOB, HOG)
    assert found.times[0, COLUMNS.index(ledger.RUN)] == pytest.approx(6e8)
    assert found.times[0, COLUMNS.index(ledger.WAIT_OTHERS)] == pytest.approx(3e8)
    assert taken(found) == {Pair(JOB, HOG): pytest.approx(3e8)}


def test_a_subject_whose_parts_do_not_add_up_is_refused_with_its_pairs() -> None:
    times = {JOB: Times(run=0.6, cpu={HOG: 0.3}), HOG: Times(run=0.7, cpu={JOB: 0.2})}
    values = ledger_values(times) | {f"{ledger.THREAD_TIME}{{{JOB}}}": 12_000.0}
    found = accounts(ledger_node(JOB, HOG), values)
    assert found is not None
    assert found.valid.tolist() == [False, True]
    assert not found.times[0].any()
    assert taken(found) == {Pair(HOG, JOB): pytest.approx(2e8)}


def test_what_was_not_read_is_refused() -> None:
    node = ledger_node(JOB, HOG)
    message = node.slice(ledger_values({JOB: Times(run=0.5), HOG: Times(run=0.5)}))
    message.slow_missing[[c.instance == JOB for c in node.table.slow]] = True
    found = AccountReader().read(Deriver().second(message, node.table))
    assert found is not None
    assert found.valid.tolist() == [False, True]


def test_what_the_hypervisor_took_is_a_part_of_the_run_time() -> None:
    values = ledger_values({JOB: Times(run=0.6, cpu={HOG: 0.3}), HOG: Times(run=1.0)})
    used = {"cpu.user": 110.0, "cpu.system": 30.0, "cpu.idle": 20.0, "cpu.steal": 40.0}
    share = 0.4 / 1.8
    found = accounts(_with_cpu_times(ledger_node(JOB, HOG)), values | used)
    assert found is not None
    assert found.times[:, COLUMNS.index(ledger.STOLEN)] == pytest.approx([6e8 * share, 1e9 * share])
    assert found.times[:, COLUMNS.index(ledger.RUN)] == pytest.approx([6e8, 1e9])


@pytest.mark.parametrize("tier", [Tier.SCHEDSTAT, Tier.TASKSTATS])
def test_other_clocks_than_those_of_bpf_stand_still_meanwhile(tier: Tier) -> None:
    node = _with_cpu_times(ledger_node(JOB), Channel(ledger.TIER, "", Kind.STATE, 1.0, Lane.SLOW))
    values = ledger_values({JOB: Times(run=0.6)}) | {"cpu.steal": 40.0, ledger.TIER: float(tier)}
    found = accounts(node, values)
    assert found is not None
    assert not found.times[:, COLUMNS.index(ledger.STOLEN)].any()


def _with_cpu_times(node: Node, *slow: Channel) -> Node:
    added = [Channel(name, "", Kind.COUNTER, 1e7) for name in ("cpu.system", "cpu.steal")]
    return Node(ChannelTable((*node.table.fast, *added), (*node.table.slow, *slow)))


def test_a_node_without_a_ledger_has_no_accounts() -> None:
    assert accounts(Node(), {}) is None
