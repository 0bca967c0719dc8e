"""``kubectl reveal cost``: the GPU-hours that jobs lost, by job, namespace, node or cause."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence

from reveal_cli.errors import DONE
from reveal_cli.findings_table import hours_text
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.cost_sums import KEYS, CostSum, cost_sums, total_amounts
from reveal_cli.kubectl.open_findings import warn_of_unreadable
from reveal_cli.terminal import aligned
from reveal_contract.costs import amount_text, is_price

_MOST_CAUSES = 3
_NO_COSTS = "No finding has a cost: it is known only of jobs with GPUs."


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "cost",
        help="add up the GPU-hours that jobs lost",
        description="Adds up the GPU-hours that jobs lost by the findings of which there are"
        " reports: open ones, and those that were resolved in the last 24 hours. Prometheus has the"
        " sums of longer times.",
    )
    parser.add_argument(
        "--by", choices=tuple(KEYS), default="job", help="what to add up by (default: job)"
    )
    parser.add_argument(
        "--price", metavar="PRICE", type=price, default=None,
        help="the price of a GPU-hour, such as 2.50 or '2.50 USD' (default: that of the profile)",
    )  # fmt: skip
    flags.add_common(parser)
    flags.add_output(parser)
    parser.set_defaults(run=run)


def price(text: str) -> str:
    """Return the price of a GPU-hour."""
    if not is_price(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a price: write 2.50 or '2.50 USD'")
    return text


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the sums."""
    with interrupt.raising():
        print_costs(
            connect(arguments),
            arguments.by,
            arguments.price or "",
            as_json=arguments.output == flags.JSON,
        )
    return DONE


def print_costs(cluster: Cluster, key: str, price: str, *, as_json: bool) -> None:
    """Print the sums of all reports of a cluster by a key."""
    listed = cluster.reports()
    sums = cost_sums(listed.reports, key, price)
    if as_json:
        print(json.dumps({"by": key, "items": list(map(_row, sums))}, indent=1))
    elif sums:
        print("\n".join(cost_lines(sums, key)))
    else:
        print(_NO_COSTS)
    warn_of_unreadable(listed)


def cost_lines(sums: Sequence[CostSum], key: str) -> list[str]:
    """Return a title, a line for each sum and one for the total, if there are several."""
    rows = [
        (key.upper(), "GPU-HOURS", "AMOUNT", "FINDINGS", "OPEN", "CAUSES"),
        *map(_cells, sums),
    ]
    amounts = total_amounts(each.amounts for each in sums)
    if len(sums) > 1:
        hours = hours_text(sum(each.hours for each in sums))
        rows.append(("TOTAL", hours, _money(amounts), "", "", ""))
    return aligned(rows if amounts else [(*row[:2], *row[3:]) for row in rows])


def _cells(each: CostSum) -> tuple[str, ...]:
    causes = ", ".join(each.causes[:_MOST_CAUSES])
    numbers = str(each.findings), str(each.open)
    return each.name, hours_text(each.hours), _money(each.amounts), *numbers, causes


def _money(amounts: Mapping[str, float]) -> str:
    """Return ``4.50 USD``, and of several currencies their sum."""
    return " + ".join(amount_text(amount, each) for each, amount in sorted(amounts.items()))


def _row(each: CostSum) -> dict[str, object]:
    amounts = [
        {"amount": round(amount, 2), "currency": currency}
        for currency, amount in sorted(each.amounts.items())
    ]
    return {
        "name": each.name, "lostGPUHours": round(each.hours, 3), "amounts": amounts,
        "findings": each.findings, "open": each.open, "causes": list(each.causes),
    }  # fmt: skip
