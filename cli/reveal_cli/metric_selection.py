"""Selects metrics from recordings for ``reveal select``: correlations, thresholds, doubts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reveal_analyzer.selection.choice import select
from reveal_analyzer.selection.correlation import Correlation, CorrelationSums
from reveal_analyzer.selection.curves import ThresholdPoint, curves, knee
from reveal_analyzer.selection.file import Selection
from reveal_analyzer.selection.resampler import Resampler
from reveal_analyzer.selection.workload import WorkloadCorrelation, average
from reveal_cli.errors import USAGE, CliError
from reveal_cli.recordings import Slices

_MIN_ROWS = 2  # rows for each kept metric; a regression on fewer fits by chance


def by_workload(files: Sequence[Path], workloads: Sequence[Sequence[str]]) -> dict[str, list[Path]]:
    """Return the recordings of each workload.

    Each of ``files`` is a workload of its own; ``workloads`` are lists NAME=FILE, FILE, ...
    Raises ``CliError`` for a workload without a name, or two recordings of one name.
    """
    found: dict[str, list[Path]] = {}
    for path in files:
        if path.stem in found:
            raise CliError(
                f"two recordings are named {path.stem}: if they are of one workload, pass them with"
                " --workload NAME=FILE FILE",
                USAGE,
            )
        found[path.stem] = [path]
    for first, *others in workloads:
        name, equals, file = first.partition("=")
        if not (name and equals and file):
            raise CliError(f"--workload {first}: write NAME=FILE, then more files of it", USAGE)
        found.setdefault(name, []).extend(map(Path, [file, *others]))
    if not found:
        raise CliError("nothing to select from: name recordings", USAGE)
    return found


def correlated(
    workloads: Mapping[str, Sequence[Path]], every_ns: int
) -> tuple[list[WorkloadCorrelation], list[str]]:
    """Return the averaged correlations of each workload, and warnings about its files.

    Raises ``CliError`` where a file cannot be used, or no metric changed in any of them.
    """
    result, warnings = [], []
    for name, paths in workloads.items():
        runs = []
        for path in paths:
            slices = Slices(path)
            runs += _runs(path, slices, every_ns)
            if slices.truncated:
                warnings.append(f"{path} is incomplete; it is used up to its end")
        result.append(average(name, runs))
    if not any(workload.moved.any() for workload in result):
        raise CliError("no metric changed in these recordings: there is nothing to select from")
    return result, warnings


def _runs(path: Path, slices: Slices, every_ns: int) -> list[Correlation]:
    """Return one run for each node of a recording."""
    nodes: dict[str, tuple[Resampler, CorrelationSums]] = {}
    for message, table in slices:
        if message.node not in nodes:
            nodes[message.node] = Resampler(every_ns), CorrelationSums()
        resampler, moments = nodes[message.node]
        rows = resampler.push(message, table)
        if rows is not None:
            moments.add(rows)
    if not nodes:
        raise CliError(f"{path} holds no slices: nothing to select from")
    return [moments.correlation() for _, moments in nodes.values()]


def chosen(
    workloads: Sequence[WorkloadCorrelation], threshold: float | None
) -> tuple[Selection, tuple[ThresholdPoint, ...], float | None]:
    """Return the selection at a threshold (``None``: at the knee), the curves, and their knee."""
    points = curves(workloads)
    knee_threshold = knee(points)
    used = knee_threshold if threshold is None else threshold
    if used is None:
        raise CliError("MULTI-R2 has no knee here: give --threshold a number")
    return select(workloads, used), points, knee_threshold


def doubts(workloads: Sequence[WorkloadCorrelation], selection: Selection) -> list[str]:
    """Return a warning for each workload whose recordings are too short for its figures."""
    kept = {row.metric for row in selection.kept}
    warnings = []
    for workload in workloads:
        moving = sum(
            1
            for item, moved in zip(workload.items, workload.moved, strict=True)
            if moved and item.label in kept
        )
        if workload.rows < _MIN_ROWS * moving:
            warnings.append(
                f"{workload.name}: {workload.rows} rows for {moving} kept metrics are too few: its"
                " MULTI-R2 is near 1 by chance"
            )
    return warnings
