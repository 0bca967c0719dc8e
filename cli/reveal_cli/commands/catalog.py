"""``reveal catalog``: all channels of this host, and what is missing and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from reveal_cli.errors import DONE, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.metrics_page import page
from reveal_cli.options import add_host, check_host
from reveal_cli.terminal import grid, show
from reveal_contract import catalogue
from reveal_contract.metric import Lane, Metric
from reveal_contract.search import search
from reveal_contract.settings import CollectorSettings, SettingsError

if TYPE_CHECKING:
    from reveal_collector.doctor import ChannelRow, Diagnosis

_INSTANCES = 6  # listed of each metric; --json has all


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "catalog",
        help="list what can be read on this host, and what is missing and why",
        description="Lists every metric of this host with its kind, unit, lane (fast: 10 Hz,"
        " slow: 1 Hz, rare: 0.1 Hz), source, kernel name and meaning; then what is missing and"
        " why. With --json one object: channels and missing.",
        epilog="Example: reveal catalog --search retrans",
    )
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="print one JSON object instead")
    shape.add_argument(
        "--markdown", action="store_true",
        help="print the metrics of all hosts, as in docs/reference/metrics.md",
    )  # fmt: skip
    shape.add_argument(
        "--search", metavar="NAME",
        help="list the metrics that match a word, or a name of another tool (Bzy_MHz,"
        " TcpRetransSegs)",
    )  # fmt: skip
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the catalog in the requested form."""
    if arguments.markdown:
        print(page(catalogue.rows()), end="")
        return DONE
    check_host(arguments)
    with interrupt.raising():
        diagnosis = diagnose_host(arguments)
    if arguments.search is not None:
        show(*matches(diagnosis, arguments.search))
    elif arguments.json:
        print(json.dumps(as_json(diagnosis), indent=1))
    else:
        show(*listing(diagnosis))
    return DONE


def diagnose_host(arguments: argparse.Namespace) -> Diagnosis:
    """Return what the host of these flags provides; raises ``CliError`` for unknown sources."""
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


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the catalog as JSON has it."""
    return {
        "channels": [asdict(row) for row in diagnosis.rows],
        "missing": [source._asdict() for source in diagnosis.missing],
    }


def matches(diagnosis: Diagnosis, query: str) -> Iterator[RenderableType]:
    """Yield the metrics that match ``query``, those of this host and all others."""
    here: dict[str, list[ChannelRow]] = {}
    for row in diagnosis.rows:
        here.setdefault(row.metric, []).append(row)
    matching = search(query, [*catalogue.rows(), *map(catalogue.find, here)])
    if not matching:
        yield f"No metric matches {query!r}: `reveal catalog` lists all metrics of this host."
    for metric in matching:
        instances = [row.instance for row in here.get(metric.name, ())]
        absence = "" if metric.name in here else _absence(metric, diagnosis)
        yield from _entry(metric.name, metric, instances, absence)


def _absence(metric: Metric, diagnosis: Diagnosis) -> str:
    """Return why this host does not have a metric."""
    if metric.lane is Lane.DERIVED:
        return "Computed by the analyzer."
    reasons = [source.reason for source in diagnosis.missing if source.source == metric.source]
    return f"Not available here: {reasons[0]}." if reasons else "Not available here."


def listing(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """Yield each metric once, with its instances on this host, then what is missing."""
    order = sorted(diagnosis.rows, key=lambda row: (row.subsystem, row.source, row.metric))
    for (subsystem, source), rows in groupby(order, lambda row: (row.subsystem, row.source)):
        yield Text(f"{subsystem}, from {source}", style="bold")
        for name, channels in groupby(rows, lambda row: row.metric):
            listed = list(channels)
            yield from _entry(name, listed[0], [row.instance for row in listed])
    metrics = len({row.metric for row in diagnosis.rows})
    yield f"\n{len(diagnosis.rows)} channels of {metrics} metrics."
    if diagnosis.missing:
        yield "Not available on this host:"
        yield grid(((source.source, source.reason) for source in diagnosis.missing), indent=2)
        yield "`reveal doctor` lists how to get them."


def _entry(
    name: str, row: ChannelRow | Metric, instances: Sequence[str], note: str = ""
) -> Iterator[RenderableType]:
    """Yield the lines of a metric: name, instances and kind, then its meaning."""
    named = [instance for instance in instances if instance]
    more = f", … {len(named)} in all" if len(named) > _INSTANCES else ""
    where = f" {{{', '.join(named[:_INSTANCES])}{more}}}" if named else ""
    facts = f"{row.kind}, {row.unit or 'number'}, {row.lane}; {row.origin}"
    harm = "" if row.harm == "neither" else f" Hurts when {row.harm}."
    yield Padding(Text.assemble((name, "cyan"), f"{where}  [{facts}]"), (0, 0, 0, 2))
    yield Padding(f"{row.meaning.rstrip('.')}.{harm}", (0, 0, 0, 6))
    if note:
        yield Padding(note, (0, 0, 0, 6))
