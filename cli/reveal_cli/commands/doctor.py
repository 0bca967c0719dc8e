"""``reveal doctor``: what this host lacks for a better judgement, and how to grant it."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from reveal_cli.closing import width
from reveal_cli.commands.catalog import take_inventory
from reveal_cli.exits import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_host, check_host

if TYPE_CHECKING:
    from reveal_collector.inventory import Inventory


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="say what would let Reveal see more on this host",
        description="Says what this host or the rights of this user withhold, what it would"
        " give, and how to grant it. Changes nothing.",
    )
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    check_host(arguments)
    with interrupt.raising():
        found = take_inventory(arguments)
        server = _server()
    print("\n".join(report(found, server, width())))
    return DONE


def report(found: Inventory, server: str, columns: int) -> list[str]:
    """The advice, the most rewarding first."""
    lines = [f"{len(found.rows)} channels can be read here. {server}", ""]
    if not found.advice:
        return [*lines, "Nothing is missing."]
    for number, advice in enumerate(found.advice, 1):
        lines.append(f"{number}. {advice.lacking}")
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
