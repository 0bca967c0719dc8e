"""The table of the scenario bench, its misses, and the file of results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faultbench import host
from faultbench.stats import Share
from scenariobench.judge import COLUMNS, Judged, Verdict
from scenariobench.timeline import Timeline

ROWS = ("lasting", "two", "again", "analyzer", "disturbed", "healthy")
_SHORT = {
    "culprit_opening": "culprit<", "culprit_end": "culprit>", "one_report": "report",
    "one_series": "series", "subsystem": "subsys",
}  # fmt: skip
_WIDTH = 9


@dataclass
class Result:
    """One timeline with one checkout."""

    row: str
    label: str
    seed: int
    seconds: int
    checkout: str
    truths: list[dict[str, Any]] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    error: str = ""

    @classmethod
    def of(cls, timeline: Timeline, checkout: str, verdict: Verdict) -> Result:
        truths = [_row(judged) for judged in verdict.truths]
        return cls(
            timeline.row, timeline.label, timeline.seed, timeline.seconds, checkout, truths,
            verdict.false, verdict.failure,
        )  # fmt: skip

    @property
    def right(self) -> bool:
        return not self.error and not self.false and all(row["right"] for row in self.truths)


def _row(judged: Judged) -> dict[str, Any]:
    return {**asdict(judged), "right": judged.right}


def table(results: Sequence[Result], checkout: str) -> Iterator[str]:
    """One line a row: the share right in each column, of those that it applies to."""
    heads = [_SHORT.get(column, column) for column in (*COLUMNS, "false", "all")]
    yield f"{checkout}: {'row':<10}{'timelines':>10}{'hours':>7}{'faults':>7}" + "".join(
        f"{head:>{_WIDTH}}" for head in heads
    )
    for row in ROWS:
        own = [each for each in results if each.row == row and each.checkout == checkout]
        if own:
            yield f"{checkout}: {_line(row, own)}"


def _line(row: str, results: Sequence[Result]) -> str:
    sums = totals(results)
    cells = [_percent(sums["columns"][column]) for column in COLUMNS]
    hours = sum(each.seconds for each in results) / 3600
    cells += [str(sums["false"]), _percent(sums["all"])]
    return f"{row:<10}{len(results):>10}{hours:>7.1f}{sums['truths']:>7}" + "".join(
        f"{cell:>{_WIDTH}}" for cell in cells
    )


def totals(results: Sequence[Result]) -> dict[str, Any]:
    """Counts of right answers: by column, and of truths that are right in all of them."""
    truths = [row for each in results for row in each.truths]
    failed = sum(1 for each in results if each.error)
    columns = {}
    for column in COLUMNS:
        answers = [row["answers"][column] for row in truths]
        known = [answer for answer in answers if answer is not None]
        columns[column] = _share(sum(known), len(known))
    return {
        "timelines": len(results),
        "hours": round(sum(each.seconds for each in results) / 3600, 2),
        "truths": len(truths),
        "columns": columns,
        "all": _share(sum(row["right"] for row in truths), len(truths)),
        "false": sum(len(each.false) for each in results),
        "failed": failed,
    }


def _share(hits: int, of: int) -> dict[str, Any]:
    return {"hits": hits, "of": of, "interval": list(Share(hits, of).interval) if of else []}


def _percent(share: Mapping[str, Any]) -> str:
    return f"{100 * share['hits'] / share['of']:.0f} %" if share["of"] else "-"


def misses(results: Iterable[Result], checkout: str) -> Iterator[str]:
    """Each wrong answer and each finding that nothing explains, with how to play it alone."""
    for each in results:
        if each.checkout != checkout or each.right:
            continue
        yield f"{each.label} (seed {each.seed}): bench/scenarios --only {each.label}"
        if each.error:
            yield f"    failed: {each.error}"
        for row in each.truths:
            if not row["right"]:
                wrong = [name for name, answer in row["answers"].items() if answer is False]
                yield f"    {row['truth']}: wrong: {', '.join(wrong)}"
                yield from (f"        {note}" for note in row["notes"])
        for sentence in each.false:
            yield f"    false: {sentence}"


def write(path: Path, results: Sequence[Result], checkouts: Sequence[str]) -> None:
    """Write all results and the sums of each row."""
    sums = {
        checkout: {
            row: totals([r for r in results if r.row == row and r.checkout == checkout])
            for row in ROWS
            if any(r.row == row for r in results)
        }
        for checkout in checkouts
    }
    content = {
        "machine": host.describe(),
        "rows": sums,
        "timelines": [asdict(each) for each in results],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n")


@dataclass
class Progress:
    """Results so far, one line of JSON each, so that an interrupted run goes on."""

    path: Path | None

    def load(self) -> list[Result]:
        if self.path is None or not self.path.exists():
            return []
        return [Result(**json.loads(line)) for line in self.path.read_text().splitlines()]

    def add(self, results: Iterable[Result]) -> None:
        if self.path is None:
            return
        with self.path.open("a") as file:
            for each in results:
                file.write(json.dumps(asdict(each)) + "\n")
