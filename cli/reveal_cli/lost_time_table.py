"""Lost time as a table: a row for each busy subject, a column for each reason that occurs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Column
from rich.text import Text

from reveal_analyzer.ledger.lost_time import REASONS, LostTime
from reveal_cli.lost_time_text import SMALL, culprit_text, percent
from reveal_cli.terminal import table

MOST_ROWS = 12
_LEAST_DISPLAYED = 0.01
_SEVERE = 0.2  # as findings of severity High


def lost_time_table(lost: Sequence[LostTime]) -> RenderableType:
    """Return the table: how many CPUs each wanted, lost, to what, and who took the most of it."""
    displayed = lost[:MOST_ROWS]
    words = [
        word
        for word in REASONS.values()
        if any(_of(each, word) >= _LEAST_DISPLAYED for each in displayed)
    ]
    numbers = ["CPUS WANTED", "LOST", *(word.upper() for word in words)]
    rows = table(
        Column("SUBJECT"), *(Column(name, justify="right") for name in numbers), Column("MOST TO")
    )
    for each in displayed:
        parts = [_share(_of(each, word)) for word in words]
        rows.add_row(
            each.subject, f"{each.desired:.2f}", _total(each.share), *parts, _most_to(each)
        )
    return rows


def _of(each: LostTime, word: str) -> float:
    """Return the share that was lost for a reason."""
    return sum(loss.share for loss in each.losses if loss.word == word)


def _share(share: float) -> str:
    return percent(share) if share >= _LEAST_DISPLAYED else ""


def _total(share: float) -> Text:
    style = "red" if share >= _SEVERE else "yellow" if share >= SMALL else ""
    return Text(percent(share), style=style)


def _most_to(each: LostTime) -> str:
    """Return who took the most, all reasons together."""
    taken: dict[str, float] = {}
    for loss in each.losses:
        if loss.culprit:
            taken[loss.culprit] = taken.get(loss.culprit, 0.0) + loss.share
    culprit = max(taken, key=lambda name: taken[name], default="")
    if not culprit or taken[culprit] < _LEAST_DISPLAYED:
        return ""
    return f"{culprit_text(culprit)} {percent(taken[culprit])}"
