"""``/proc/net/softnet_stat``: the receive queue of each CPU, in hexadecimal without names.

One line an online CPU; its number is column 13 since 5.10, before that lines are counted.
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
        if last == ";":  # without names, where a line ends says what a number is
            columns.append((start + len(tokens), None))
        else:
            tokens.append(last)
        cpu = str(number)
        if len(tokens) > _CPU:
            cpu = str(_hexadecimal(tokens[_CPU], number))
            columns.append((start + _CPU, None))
        columns += [
            (start + at, channel(f"network.softnet.{field}", cpu))
            for at, field in _FIELDS
            if at < len(tokens)
        ]
    return columns


def _hexadecimal(token: str, default: int) -> int:
    try:
        return int(token, 16)
    except ValueError:
        return default


def with_sums(channels: tuple[Channel, ...]) -> ColumnSet:
    """The values of each CPU followed by their sum over CPUs."""
    members: dict[str, list[int]] = {}
    for at, each in enumerate(channels):
        members.setdefault(each.metric, []).append(at)
    alone = tuple((at,) for at in range(len(channels)))
    sums = tuple(channel(metric) for metric in members)
    return ColumnSet(channels + sums, Columns((*alone, *map(tuple, members.values()))))
