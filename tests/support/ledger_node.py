"""A node with a lost-time ledger, made by hand: subjects with threads that run, wait and sleep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.ledger.accounts import AccountReader, Accounts
from reveal_contract import ledger
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.ledger import Pair
from reveal_contract.metric import Kind, Lane
from support.synthetic_node import TABLE, Node

_SCALE = float(ledger.RESOLUTION_NS)
_A_SECOND = 1e9 / _SCALE  # in units of the channels


@dataclass(frozen=True)
class Times:
    """The seconds a second that the threads of a subject spend in each part, and who takes them.

    ``cpu`` and ``disk`` are by culprit.  What is left of ``threads`` seconds is sleep.
    """

    run: float = 0.0
    cpu: Mapping[str, float] = field(default_factory=dict)
    disk: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)  # by name of the part
    threads: int = 1


def ledger_table(subjects: tuple[str, ...]) -> ChannelTable:
    """Return the channels of a node with the ledger of these subjects and all their pairs."""
    metrics = (*ledger.PARTS, ledger.THREAD_TIME)
    added = [
        Channel(metric, name, Kind.COUNTER, _SCALE, Lane.SLOW)
        for metric in metrics
        for name in subjects
    ]
    added += [
        Channel(metric, Pair(victim, culprit).instance, Kind.COUNTER, _SCALE, Lane.SLOW)
        for metric in ledger.PAIRS
        for victim in subjects
        for culprit in subjects
        if victim != culprit
    ]
    usage = [
        Channel("cpu.subject.usage", name, Kind.COUNTER, 1.0)
        for name in subjects
        if not any(c.metric == "cpu.subject.usage" and c.instance == name for c in TABLE.fast)
    ]
    return ChannelTable((*TABLE.fast, *usage), (*TABLE.slow, *added))


def ledger_node(*subjects: str) -> Node:
    """Return a node with such a table."""
    return Node(ledger_table(subjects))


def ledger_values(times: Mapping[str, Times]) -> dict[str, float]:
    """Return the values of the ledger's channels in one second, and of the CPU time used."""
    values: dict[str, float] = {}
    for name, of in times.items():
        parts = {ledger.RUN: of.run, ledger.WAIT_OTHERS: sum(of.cpu.values())}
        parts |= {ledger.IO_OTHERS: sum(of.disk.values()), **of.others}
        parts[ledger.SLEEP] = of.threads - sum(parts.values())
        parts[ledger.THREAD_TIME] = of.threads
        values |= {f"{part}{{{name}}}": share * _A_SECOND for part, share in parts.items()}
        for metric, taken in ((ledger.LOST_CPU, of.cpu), (ledger.LOST_DISK, of.disk)):
            for culprit, share in taken.items():
                values[f"{metric}{{{Pair(name, culprit).instance}}}"] = share * _A_SECOND
        values[f"cpu.subject.usage{{{name}}}"] = of.run * 1e9
    return values


def accounts_of(times: Mapping[str, Times]) -> Accounts:
    """Return the accounts of one second of such a node."""
    node = ledger_node(*times)
    second = Deriver().second(node.slice(ledger_values(times)), node.table)
    accounts = AccountReader().read(second)
    assert accounts is not None
    return accounts
