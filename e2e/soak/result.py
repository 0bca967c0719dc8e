"""What a soak came to: whole after each minute, so that an interruption loses nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmark_report import formatted, machine
from soak import usage
from soak.usage import Cost, Sample

NAME = "cluster_soak"
# pods that live for the whole run may not grow by more than this
GROWTH_PERCENT = 5.0
_COLUMNS = {
    "component": "component", "node": "node", "CPU, thousandths of a core": "cpu_millicores",
    "in its worst minute": "worst_minute_millicores",
    f"memory at minute {usage.SETTLED_MINUTES}, MB": "settled_megabytes",
    "at the end": "final_megabytes", "largest": "largest_megabytes", "of it RSS": "rss_megabytes",
    "growth, %": "growth_percent",
}  # fmt: skip


@dataclass
class Result:
    """Findings are one line each, problems what else should not have been."""

    planned_minutes: float
    started: str
    minutes: float = 0.0
    finished: bool = False
    findings: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    by_minute: list[dict[str, Any]] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def costs(self) -> list[Cost]:
        return usage.costs(self.samples)

    @property
    def grown(self) -> list[str]:
        """Components that grew; a run too short to settle says nothing of that."""
        if self.minutes < 2 * usage.SETTLED_MINUTES:
            return []
        return [
            f"{cost.component} on {cost.node} grew by {cost.growth_percent:.1f} %"
            for cost in self.costs if cost.growth_percent > GROWTH_PERCENT
        ]  # fmt: skip

    @property
    def good(self) -> bool:
        return self.finished and not (self.findings or self.problems or self.grown)

    def save(self, folder: Path) -> None:
        """JSON and the table; a reader never meets half of it."""
        _write(folder / f"{NAME}.json", json.dumps(self._as_json(), indent=1) + "\n")
        _write(folder / f"{NAME}.md", self.markdown())

    def markdown(self) -> str:
        """The figures of the run, then a row a component and node."""
        kinds = {cost["kind"] for cost in self.jobs}
        head = (
            f"{self.minutes:.0f} minutes, {len(self.jobs)} jobs of {len(kinds)} kinds ended, "
            f"{len(self.findings)} findings."
        )
        wrong = [*self.findings.values(), *self.problems, *self.grown]
        rows = [_row(_COLUMNS), _row("-" * 3 for _ in _COLUMNS), *map(_cells, self.costs)]
        return "\n".join([head, "", *rows, "", *(f"- {cost}" for cost in wrong)]).rstrip() + "\n"

    def _as_json(self) -> dict[str, Any]:
        rows = [{**asdict(cost), "growth_percent": cost.growth_percent} for cost in self.costs]
        return {
            "bench": NAME, "machine": machine(), "started": self.started,
            "minutes": round(self.minutes, 2), "minutes wanted": self.planned_minutes,
            "finished": self.finished, "findings": self.findings, "problems": self.problems,
            "grown": self.grown, "rows": rows, "jobs": self.jobs, "by minute": self.by_minute,
        }  # fmt: skip


def _cells(cost: Cost) -> str:
    values = (getattr(cost, name) for name in _COLUMNS.values())
    return _row(value if isinstance(value, str) else formatted(round(value, 1)) for value in values)


def _row(cells: Any) -> str:
    return f"| {' | '.join(cells)} |"


def _write(file: Path, text: str) -> None:
    unfinished = file.with_name(f"{file.name}.unfinished")
    unfinished.write_text(text)
    unfinished.replace(file)


def memory(samples: Sequence[Sample]) -> dict[str, float]:
    """Megabytes by component and node, of one minute."""
    sizes: dict[str, float] = {}
    for sample in samples:
        key = f"{sample.component} {sample.node}"
        sizes[key] = round(sizes.get(key, 0.0) + sample.working_set_bytes / 1e6, 1)
    return sizes
