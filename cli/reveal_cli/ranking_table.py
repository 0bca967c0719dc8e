"""Rankings of metrics as tables on a terminal, or as lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Column

from reveal_cli.ranking import SpanRanking
from reveal_cli.terminal import show, table

_ROWS = 15


def print_rankings(rankings: Sequence[SpanRanking], *, as_json: bool) -> None:
    """Print a table for each span, or a line with all metrics."""
    if not as_json:
        show(*_blocks(rankings))
        return
    for ranking in rankings:
        print(json.dumps(ranking.to_dict()))


def _blocks(rankings: Sequence[SpanRanking]) -> Iterator[RenderableType]:
    """Yield a table of the most abnormal metrics for each span."""
    for number, span_ranking in enumerate(rankings):
        if number:
            yield ""
        yield f"{span_ranking.begin} to {span_ranking.end}"
        # only names wrap on a narrow terminal
        rows = table(
            "METRIC",
            *(Column(title, no_wrap=True) for title in ("FEATURE", "SUBSYSTEM")),
            *(Column(title, no_wrap=True) for title in ("SCORE", "VALUE", "BASELINE")),
        )
        for metric in span_ranking.ranking[:_ROWS]:
            rows.add_row(
                f"{metric.node}: {metric.metric}" if metric.node else metric.metric,
                metric.feature,
                metric.subsystem.value if metric.subsystem else "-",
                f"{metric.percent} %",
                metric.value_text,
                metric.baseline_text,
            )
        yield rows
        if len(span_ranking.ranking) > _ROWS:
            yield f"and {len(span_ranking.ranking) - _ROWS} more (--json prints all)"
