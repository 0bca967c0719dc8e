"""``--scores FILE.csv``: one row a sample, in the order of the input; made as it is written."""

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
_NODE = "node"  # the last column where there are several


def of_table(data: Dataset, scored: Sequence[Scores]) -> Iterator[str]:
    """Lines for a table; ``scored`` are its nodes', in their order.

    Of several nodes a row tells the one whose score is highest over its threshold, as a
    multiple of it: the threshold is 1 then.
    """
    several = len(scored) > 1
    methods = list(scored[0].methods)
    yield _line([*HEADER, *methods, *([_NODE] if several else [])])
    worst = _worst(scored)
    for row in data.rows.tolist():
        node = int(worst[row])
        one = scored[node]
        scale = one.threshold if several and one.threshold > 0 else 1.0
        cells = [
            data.clock.show(int(data.times_ns[row])),
            _number(one.score[row] / scale),
            _number(one.threshold / scale),
            "1" if one.anomalous[row] else "0",
            *(_number(one.methods[name][row] / scale) for name in methods),
        ]
        yield _line([*cells, data.nodes[node].node] if several else cells)


def _worst(scored: Sequence[Scores]) -> NDArray[np.intp]:
    """Which node's score is highest over its threshold, sample by sample."""
    over = [
        np.nan_to_num(one.score / (one.threshold if one.threshold > 0 else 1.0)) for one in scored
    ]
    return np.asarray(np.argmax(over, axis=0))


@dataclass
class LiveScores:
    """The live score of a recording, second by second: of each subsystem over its cut.

    ``note`` is called after each second; the score is that of the worst subsystem, its
    threshold 1.  While a node is being learned its score is empty.
    """

    seconds: list[tuple[int, str, Mapping[Subsystem, float]]] = field(default_factory=list)

    def note(self, analyzer: NodeAnalyzer, message: Message) -> None:
        status = analyzer.status()
        over = {} if status.learning else dict(status.over)
        self.seconds.append((message.start_ns, message.node, over))

    def lines(self) -> Iterator[str]:
        several = len({node for _, node, _ in self.seconds}) > 1
        yield _line([*HEADER, *Subsystem, *([_NODE] if several else [])])
        for start_ns, node, over in self.seconds:
            highest = max(over.values(), default=float("nan"))
            cells = [rfc3339(start_ns), _number(highest), "1", "1" if highest > 1 else "0"]
            cells += [_number(over.get(area, float("nan"))) for area in Subsystem]
            yield _line([*cells, node] if several else cells)


def _number(value: float) -> str:
    """Six significant digits; nothing where there is no number."""
    return "" if value != value else f"{value:.6g}"  # noqa: PLR0124 - NaN


def _line(cells: Iterable[str]) -> str:
    return ",".join(map(_quoted, cells)) + "\n"


def _quoted(cell: str) -> str:
    """RFC 4180."""
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"\n\r') else cell
