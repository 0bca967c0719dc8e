"""``/proc/net/softnet_stat``: the receive queue of each CPU, in hexadecimal without names.

There is one line per online CPU.  Column 13 has its number since 5.10; before, lines are counted.
Columns: net/core/net-procfs.c.
"""

from __future__ import annotations

from reveal_collector.devices.per_cpu import fold_by
from reveal_collector.readers.net_paths import net_file
from reveal_collector.readers.plan import Columns, TextForm
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import ColumnSet, Layout, TokenSource, channel, rows
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_FIELDS = (
    (0, "processed"), (1, "dropped"), (2, "squeezed"), (9, "received_rps"), (10, "flow_limit"),
    (11, "backlog"),
)  # fmt: skip
_CPU = 12
_FORM = TextForm(base=16, words=False, ends=True)


def sources(roots: Roots) -> list[Source]:
    arrange = fold_by(roots.sys, with_sums)
    path = net_file(roots, "softnet_stat")
    return [TokenSource("softnet", Lane.SLOW, path, learn, form=_FORM, arrange=arrange)]


def learn(text: str) -> Layout:
    columns: list[tuple[int, Channel | None]] = []
    for number, (start, (*tokens, last)) in enumerate(rows(text)):
        if last == ";":  # only the end of a line shows the meaning of a number
            columns.append((start + len(tokens), None))
        else:
            tokens.append(last)
        cpu = str(number)
        if len(tokens) > _CPU:
            cpu = str(_hexadecimal(tokens[_CPU], number))
            columns.append((start + _CPU, None))
        columns += [
            (start + index, channel(f"network.softnet.{field}", cpu))
            for index, field in _FIELDS
            if index < len(tokens)
        ]
    return columns


def _hexadecimal(token: str, default: int) -> int:
    try:
        return int(token, 16)
    except ValueError:
        return default


def with_sums(channels: tuple[Channel, ...]) -> ColumnSet:
    """Return the values of each CPU, then their sum over CPUs."""
    by_metric: dict[str, list[int]] = {}
    for index, each in enumerate(channels):
        by_metric.setdefault(each.metric, []).append(index)
    by_cpu = tuple((index,) for index in range(len(channels)))
    sums = tuple(channel(metric) for metric in by_metric)
    return ColumnSet(channels + sums, Columns((*by_cpu, *map(tuple, by_metric.values()))))
