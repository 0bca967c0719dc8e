"""``reveal catalog``: every channel this host gives, and what it does not give and why."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from reveal_cli.errors import DONE, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.metrics_page import page
from reveal_cli.options import add_host, check_host
from reveal_cli.summary_text import width
from reveal_contract import catalogue
from reveal_contract.metric import Lane, Metric
from reveal_contract.search import search
from reveal_contract.settings import CollectorSettings, SettingsError

if TYPE_CHECKING:
    from reveal_collector.doctor import ChannelRow, Diagnosis

_INSTANCES = 6  # shown of each metric; --json has all
_INDENT = "    "


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "catalog",
        help="list what can be read on this host, and what cannot and why",
        description="Lists every metric this host gives with its unit, kind, lane (fast: 10 Hz,"
        " slow: 1 Hz, rare: 0.1 Hz), source, the kernel's name for it and what it means; then"
        " what is missing and why. With --json one object: channels and missing.",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print one JSON object instead")
    shape.add_argument(
        "--markdown", action="store_true",
        help="print every metric there is, of any host, as docs/reference/metrics.md has them",
    )  # fmt: skip
    shape.add_argument(
        "--search", metavar="NAME",
        help="list what fits a name of the field (Bzy_MHz, TcpRetransSegs) or a word",
    )  # fmt: skip
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    if arguments.markdown:
        print(page(catalogue.rows()), end="")
        return DONE
    check_host(arguments)
    with interrupt.raising():
        found = take_inventory(arguments)
    if arguments.search is not None:
        print("\n".join(matches(found, arguments.search, width())))
    elif arguments.json:
        print(json.dumps(as_json(found), indent=1))
    else:
        print("\n".join(listing(found, width())))
    return DONE


def take_inventory(arguments: argparse.Namespace) -> Diagnosis:
    """The inventory of the host these flags name; a usage error for a source there is not."""
    from reveal_collector.doctor import diagnose  # noqa: PLC0415 - numpy, for --help too
    from reveal_collector.registry import roots_of  # noqa: PLC0415

    settings = CollectorSettings(
        node=arguments.node,
        redis_url="",
        proc_root=str(arguments.proc_root),
        sys_root=str(arguments.sys_root),
        cgroup_root=str(arguments.cgroup_root),
        include=tuple(arguments.include_source),
        exclude=tuple(arguments.exclude_source),
    )
    try:
        return diagnose(roots_of(settings), settings)
    except SettingsError as error:
        raise CliError(str(error), USAGE) from None


def as_json(found: Diagnosis) -> dict[str, Any]:
    return {
        "channels": [asdict(row) for row in found.rows],
        "missing": [lacking._asdict() for lacking in found.missing],
    }


def matches(found: Diagnosis, wanted: str, columns: int) -> list[str]:
    """For people: what fits ``wanted``, of this host and of the whole catalogue."""
    here: dict[str, list[ChannelRow]] = {}
    for row in found.rows:
        here.setdefault(row.metric, []).append(row)
    fitting = search(wanted, [*catalogue.rows(), *map(catalogue.find, here)])
    if not fitting:
        return [f"No metric fits {wanted!r}: `reveal catalog` lists all of this host."]
    lines = []
    for metric in fitting:
        instances = [row.instance for row in here.get(metric.name, ())]
        lines += _metric(metric.name, metric, instances, columns)
        if metric.name not in here:
            lines.append(f"{_INDENT}  {_absence(metric, found)}")
    return lines


def _absence(metric: Metric, found: Diagnosis) -> str:
    """Why this host does not give a metric."""
    if metric.lane is Lane.DERIVED:
        return "Computed by the analyzer."
    reasons = [one.reason for one in found.missing if one.source == metric.source]
    return f"Not here: {reasons[0]}." if reasons else "Not here."


def listing(found: Diagnosis, columns: int) -> list[str]:
    """For people: a metric once, with the instances it has here."""
    lines = []
    order = sorted(found.rows, key=lambda row: (row.subsystem, row.source, row.metric))
    for (subsystem, source), rows in groupby(order, lambda row: (row.subsystem, row.source)):
        lines.append(f"{subsystem}, from {source}")
        for _, same in groupby(rows, lambda row: row.metric):
            listed = list(same)
            lines += _metric(listed[0].metric, listed[0], [one.instance for one in listed], columns)
    metrics = len({row.metric for row in found.rows})
    lines += ["", f"{len(found.rows)} channels of {metrics} metrics."]
    if found.missing:
        lines.append("Missing here:")
        lines += [f"  {lacking.source}: {lacking.reason}" for lacking in found.missing]
        lines.append("`reveal doctor` says what to do about it.")
    return lines


def _metric(
    name: str, row: ChannelRow | Metric, instances: Sequence[str], columns: int
) -> list[str]:
    named = [instance for instance in instances if instance]
    more = f", … {len(named)} in all" if len(named) > _INSTANCES else ""
    where = f" {{{', '.join(named[:_INSTANCES])}{more}}}" if named else ""
    facts = f"{row.kind}, {row.unit or 'number'}, {row.lane}; {row.origin}"
    hurts = "" if row.harm == "neither" else f" Hurts when {row.harm}."
    text = f"{row.meaning.rstrip('.')}.{hurts}"
    head = textwrap.wrap(f"{name}{where}  [{facts}]", columns - 2, subsequent_indent=_INDENT)
    body = textwrap.wrap(text, columns - 2, initial_indent=_INDENT, subsequent_indent=_INDENT)
    return [f"  {line}" for line in (*head, *body)]
