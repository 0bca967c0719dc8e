"""The CSV of ``--scores``: one row for each sample, in the order of the input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from reveal_contract.finding import rfc3339
from reveal_contract.metric import Subsystem
from reveal_contract.wire import Message

if TYPE_CHECKING:
    from reveal_analyzer.node import NodeAnalyzer
    from reveal_analyzer.tables.ingest.reader import Dataset
    from reveal_analyzer.tables.scoring.api import Scores

HEADER = ("time", "score", "threshold", "anomalous")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NODE = "node"  # the last column where there are several nodes


def table_lines(data: Dataset, scored: Sequence[Scores]) -> Iterator[str]:
    """Yield the lines for a table; ``scored`` has the scores of its nodes, in their order.

    A row of several nodes has the node whose score is highest in multiples of its threshold; score
    and threshold are then such multiples.
    """
    several = len(scored) > 1
    methods = list(scored[0].methods)
    yield _line([*HEADER, *methods, *([_NODE] if several else [])])
    worst = _worst_nodes(scored)
    for row in data.rows.tolist():
        node = int(worst[row])
        scores = scored[node]
        scale = scores.threshold if several and scores.threshold > 0 else 1.0
        cells = [
            data.clock.show(int(data.times_ns[row])),
            _number(scores.score[row] / scale),
            _number(scores.threshold / scale),
            "1" if scores.anomalous[row] else "0",
            *(_number(scores.methods[name][row] / scale) for name in methods),
        ]
        yield _line([*cells, name_cell(data.nodes[node].node)] if several else cells)


def _worst_nodes(scored: Sequence[Scores]) -> NDArray[np.intp]:
    """Return the index of the node whose score is highest over its threshold, for each sample."""
    multiples = [
        np.nan_to_num(scores.score / (scores.threshold if scores.threshold > 0 else 1.0))
        for scores in scored
    ]
    return np.asarray(np.argmax(multiples, axis=0))


@dataclass
class LiveScores:
    """The live scores of a recording: each second, each subsystem, in multiples of its threshold.

    The score of a row is that of the worst subsystem; it is empty while the node is in warm-up.
    """

    seconds: list[tuple[int, str, Mapping[Subsystem, float]]] = field(default_factory=list)

    def add(self, analyzer: NodeAnalyzer, message: Message) -> None:
        """Add the scores after one second."""
        status = analyzer.status()
        scores = {} if status.learning else dict(status.over)
        self.seconds.append((message.start_ns, message.node, scores))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the CSV."""
        several = len({node for _, node, _ in self.seconds}) > 1
        yield _line([*HEADER, *Subsystem, *([_NODE] if several else [])])
        for start_ns, node, scores in self.seconds:
            highest = max(scores.values(), default=float("nan"))
            cells = [rfc3339(start_ns), _number(highest), "1", "1" if highest > 1 else "0"]
            cells += [_number(scores.get(subsystem, float("nan"))) for subsystem in Subsystem]
            yield _line([*cells, name_cell(node)] if several else cells)


def name_cell(name: str) -> str:
    """Return a name that others chose as a cell that no spreadsheet takes for a formula.

    OWASP, "CSV Injection".
    """
    return f"'{name}" if name.startswith(_FORMULA) else name


def _number(value: float) -> str:
    """Return six significant digits, or nothing for NaN."""
    return "" if value != value else f"{value:.6g}"  # noqa: PLR0124 - NaN


def _line(cells: Iterable[str]) -> str:
    return ",".join(map(_quoted, cells)) + "\n"


def _quoted(cell: str) -> str:
    """Quote a cell as RFC 4180 says, where it needs quotes."""
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\n\r') else cell
