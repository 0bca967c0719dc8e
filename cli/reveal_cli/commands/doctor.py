"""``reveal doctor``: what this host is, how it is set up, and what it withholds."""

from __future__ import annotations

import argparse
import json
import textwrap
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reveal_cli.commands.catalog import take_inventory
from reveal_cli.configuration_hints import hint_lines
from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_host, check_host
from reveal_cli.summary_text import width
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding

if TYPE_CHECKING:
    from reveal_collector.doctor import Advice, Diagnosis


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say how this host is set up, and what would let Reveal see more on it",
        description="Says what this host is, what in its configuration costs performance and how"
        " to fix it (docs/reference/configuration-rules.md), and what it or the rights of this"
        " user withhold, what it would give, and how to grant it. Changes nothing.",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    check_host(arguments)
    with interrupt.raising():
        found = take_inventory(arguments)
        facts = take_facts(arguments)
        hints = judged(facts)
        server = _server()
    if arguments.json:
        print(json.dumps(as_json(found, facts, hints, server), indent=1))
    else:
        print("\n".join([*setup(facts, hints, width()), *report(found, server, width())]))
    return DONE


def take_facts(arguments: argparse.Namespace) -> Facts:
    """The facts of the host these flags name, GPU libraries and drivers asked as well."""
    from reveal_collector.facts.device_queries import all_queries  # noqa: PLC0415 - an extra
    from reveal_collector.facts.inventory import FactsReader  # noqa: PLC0415
    from reveal_collector.readers.source import Roots  # noqa: PLC0415

    roots = Roots(arguments.proc_root, arguments.sys_root, arguments.cgroup_root)
    return FactsReader(arguments.node, roots, all_queries(roots)).read()


def judged(facts: Facts) -> list[Finding]:
    """What the rules say of the facts, the worst first."""
    from reveal_analyzer.configuration.evaluate import evaluate  # noqa: PLC0415 - an extra

    return sorted(evaluate(facts, time.time_ns()), key=lambda finding: -finding.severity.rank)


def as_json(
    found: Diagnosis, facts: Facts, hints: Sequence[Finding], server: str
) -> dict[str, Any]:
    return {
        "facts": json.loads(facts.to_json()),
        "configuration": [hint.to_dict() for hint in hints],
        "channels": len(found.rows),
        "redis": server,
        "advice": [_advice_row(advice) for advice in found.advice],
    }


def _advice_row(advice: Advice) -> dict[str, str]:
    """Return advice as JSON values, under the keys that ``--json`` promises."""
    return {"lacking": advice.missing, "gives": advice.gives, "remedy": advice.remedy}


def setup(facts: Facts, hints: Sequence[Finding], columns: int) -> list[str]:
    """What the host is, and what of it costs performance."""
    from reveal_cli.facts_text import facts_lines  # noqa: PLC0415 - an extra

    none = ["Configuration: no rule is broken, as far as can be seen."]
    return [*facts_lines(facts, columns), "", *(hint_lines(hints, columns) or none), ""]


def report(found: Diagnosis, server: str, columns: int) -> list[str]:
    """The advice, the most rewarding first."""
    lines = [f"{len(found.rows)} channels can be read here. {server}", ""]
    if not found.advice:
        return [*lines, "Nothing is missing."]
    for number, advice in enumerate(found.advice, 1):
        lines.append(f"{number}. {advice.missing}")
        for title, text in (("would give", advice.gives), ("to grant it", advice.remedy)):
            if text:
                lines += textwrap.wrap(
                    f"{title}: {text}", columns, initial_indent="   ", subsequent_indent="     "
                )
    return lines


def _server() -> str:
    """Whether a scan finds a Redis server to start."""
    from reveal_cli.broker import BrokerError, find_server  # noqa: PLC0415 - redis is an extra

    try:
        server = find_server()
    except BrokerError as error:
        return f"A scan cannot run: {error}."
    return f"Redis {'.'.join(map(str, server.version))} is there for `reveal scan`."
