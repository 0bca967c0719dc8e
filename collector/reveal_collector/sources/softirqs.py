"""``/proc/softirqs``: how often each kind of deferred interrupt work ran on each CPU.

Each kind gives its sum over CPUs (``cpu.softirqs{RCU}``) and its CPUs (``cpu.softirqs.percpu
{RCU/0}``).  Network and block kinds are metrics of the subsystem they work for.
"""

from __future__ import annotations

from reveal_collector.source import Roots, Source
from reveal_collector.textfile import Layout, TokenSource, channel, is_number, rows
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_OWNER = {"NET_TX": "network", "NET_RX": "network", "BLOCK": "storage", "IRQ_POLL": "storage"}


def sources(roots: Roots) -> list[Source]:
    return [_Softirqs("softirqs", Lane.FAST, roots.proc / "softirqs", learn)]


def learn(text: str) -> Layout:
    """The per-CPU counts; the header names the CPUs that are online."""
    lines = list(rows(text))
    cpus = [name.removeprefix("CPU") for name in lines[0][1]] if lines else []
    layout = []
    for start, tokens in lines[1:]:
        kind, counts = tokens[0].rstrip(":"), tokens[1:]
        if len(counts) == len(cpus) and all(map(is_number, counts)):
            metric = f"{_OWNER.get(kind, 'cpu')}.softirqs.percpu"
            layout += [
                (start + at, channel(metric, f"{kind}/{cpu}")) for at, cpu in enumerate(cpus, 1)
            ]
    return layout


class _Softirqs(TokenSource):
    """The counts of each CPU followed by their sum for each kind."""

    _width = 1

    def parse(self, tokens: tuple[bytes, ...]) -> list[int | None]:
        counts = list(map(int, tokens))
        width = self._width
        sums = [sum(counts[at : at + width]) for at in range(0, len(counts), width)]
        return [*counts, *sums]

    def arrange(self, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
        kinds = dict.fromkeys(
            (each.metric.removesuffix(".percpu"), each.instance.split("/")[0]) for each in channels
        )
        self._width = len(channels) // max(len(kinds), 1)
        return channels + tuple(channel(metric, kind) for metric, kind in kinds)
