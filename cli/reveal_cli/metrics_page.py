"""``docs/reference/metrics.md``: every metric, and an index by the names others use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from reveal_contract.metric import Capacity, Harm, Metric, Subsystem
from reveal_contract.search import field_names

_INTRO = """\
# Metrics

Made by `make docs` from the catalogue (`contract/reveal_contract/catalogue`): change it there.
`reveal catalog` lists what one host gives, `reveal catalog --search NAME` finds a metric by any
name somebody knows it under.

- **Name**: `subsystem.thing[.detail]`. A *channel* is a metric of one instance:
  `cpu.user{3}`, `storage.disk.reads{nvme0n1}`; without an instance it is the host's.
- **Unit**: base units; times are nanoseconds, sizes bytes, parts per million `ppm`.
- **Kind**: a *counter* only rises and is shown as its rate a second; a *gauge* is a level; a
  *state* is a level of few values; a *ratio* is computed from other channels.
- **Scope**: what an instance stands for. A *subject* is a pod, off Kubernetes a unit, cgroup
  or process group.
- **Lane**: how often it is read. *fast* every tick (10 Hz), *slow* once a second, *rare* every
  ten seconds; *derived* ones are computed by the analyzer and never sent.
- **Hurts**: the direction in which a change can do harm. What hurts in neither direction is
  activity: it explains a finding and never raises one. A weight other than 1 is given.
- **Matters from**: the amount that begins to matter (the quantum): a second for a counter, a
  level otherwise; a share of the node's memory or CPUs where it says so.
- **Family**: metrics that say the same thing have one vote together.
- **Origin**: the name the field knows: kernel file and field, tool column or library call.

Files of the kernel whose keys differ from release to release (`vmstat`, `meminfo`, `netstat`,
`snmp`, `snmp6`, `sockstat`) are read whole: a key without a row below is a metric all the same,
named by rule (`TCPDSACKOfoRecv` is `network.tcp_ext.tcpdsack_ofo_recv`, `pgsteal_khugepaged` is
`memory.vm.pgsteal_khugepaged`).
"""
_HEAD = (
    "| name | unit, kind | scope | lane | hurts | matters from | origin | meaning |\n"
    "|---|---|---|---|---|---|---|---|"
)
_TIMES = (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0))
_CAPACITY = {Capacity.MEMORY: " of memory", Capacity.CPUS: " of the CPUs", Capacity.ABSOLUTE: ""}


def page(rows: Iterable[Metric]) -> str:
    """The whole page, markdown."""
    listed = sorted(rows, key=lambda row: (_place(row), row.source, row.name))
    lines = [_INTRO, f"{len(listed)} metrics have a row of their own.", ""]
    for subsystem, of_subsystem in groupby(listed, lambda row: row.subsystem):
        lines += [f"## {subsystem.value}", ""]
        for source, same in groupby(of_subsystem, lambda row: row.source):
            lines += [f"### {subsystem.value}: {source}", "", _HEAD]
            lines += [table_row(row) for row in same]
            lines.append("")
    lines += ["## By the field's names", "", *_index(listed)]
    return "\n".join([*lines, ""])


def _place(row: Metric) -> int:
    return list(Subsystem).index(row.subsystem)


def table_row(row: Metric) -> str:
    """One line of a table."""
    family = f" Family: `{row.family}`." if row.family not in ("", row.name) else ""
    cells = (
        f"`{row.name}`",
        f"{row.unit} {row.kind.value}",
        row.scope.value,
        row.lane.value,
        _hurts(row),
        _amount(row),
        _code(row.origin),
        f"{row.meaning.rstrip('.')}.{family}",
    )
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _hurts(row: Metric) -> str:
    if row.harm is Harm.NEITHER:
        return ""
    return row.harm.value + (f" by {row.weight:g}" if row.weight != 1.0 else "")


def _amount(row: Metric) -> str:
    """The quantum as people write it: 30 ms, 1/512 of memory."""
    value = row.quantum
    if row.unit == "ns":
        unit, size = next((unit, size) for unit, size in _TIMES if value >= size)
        return f"{value / size:g} {unit}"
    if 0 < value < 0.01:
        return f"1/{round(1 / value)}{_CAPACITY[row.capacity]}"
    shown = f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:g}"
    return f"{shown}{_CAPACITY[row.capacity]}"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _index(rows: Sequence[Metric]) -> Iterator[str]:
    """Each name the field uses, with the metrics that are it."""
    by_name: dict[str, list[str]] = {}
    for row in rows:
        for name in field_names(row):
            by_name.setdefault(name, []).append(f"`{row.name}`")
    yield "| the field's name | metric |"
    yield "|---|---|"
    for name in sorted(by_name, key=lambda name: (name.casefold(), name)):
        yield f"| {_escaped(_code(name))} | {', '.join(by_name[name])} |"
