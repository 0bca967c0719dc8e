"""Recordings as ``reveal select`` uses them: what each workload's metrics have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reveal_analyzer.selection.choice import select
from reveal_analyzer.selection.correlation import Correlation, CorrelationSums
from reveal_analyzer.selection.curves import ThresholdPoint, curves, knee
from reveal_analyzer.selection.file import Selection
from reveal_analyzer.selection.resampler import Resampler
from reveal_analyzer.selection.workload import Workload, average
from reveal_cli.errors import USAGE, CliError
from reveal_cli.recordings import Slices

_ENOUGH = 2  # rows for each metric that stays, below which a fit on them tells little


def by_workload(files: Sequence[Path], named: Sequence[Sequence[str]]) -> dict[str, list[Path]]:
    """The recordings of each workload: ``files`` are one each, ``named`` are NAME=FILE FILE...

    Raises ``CliError`` for what names no workload, or two of them alike.
    """
    found: dict[str, list[Path]] = {}
    for path in files:
        if path.stem in found:
            raise CliError(
                f"two recordings are called {path.stem}: say with --workload NAME=FILE whether"
                " they are of one workload",
                USAGE,
            )
        found[path.stem] = [path]
    for first, *others in named:
        name, equals, file = first.partition("=")
        if not (name and equals and file):
            raise CliError(f"--workload {first}: write NAME=FILE, then more files of it", USAGE)
        found.setdefault(name, []).extend(map(Path, [file, *others]))
    if not found:
        raise CliError("nothing to select from: name recordings", USAGE)
    return found


def correlated(
    workloads: Mapping[str, Sequence[Path]], every_ns: int
) -> tuple[list[Workload], list[str]]:
    """The averaged correlations of each workload, and what of the files was not used.

    Raises ``CliError`` where a file is of no use, or nothing moved in any.
    """
    made, warnings = [], []
    for name, paths in workloads.items():
        runs = []
        for path in paths:
            slices = Slices(path)
            runs += _runs(path, slices, every_ns)
            if slices.truncated:
                warnings.append(f"{path} is cut off; it is used up to there")
        made.append(average(name, runs))
    if not any(each.moved.any() for each in made):
        raise CliError("no metric moved in these recordings: there is nothing to select from")
    return made, warnings


def _runs(path: Path, slices: Slices, every_ns: int) -> list[Correlation]:
    """Each node of a recording is a run of its own."""
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
    workloads: Sequence[Workload], threshold: float | None
) -> tuple[Selection, tuple[ThresholdPoint, ...], float | None]:
    """The selection at a threshold (None: at the knee), the curves, and their knee."""
    points = curves(workloads)
    bend = knee(points)
    wanted = bend if threshold is None else threshold
    if wanted is None:
        raise CliError("MULTI-R2 has no knee here: give --threshold a number")
    return select(workloads, wanted), points, bend


def doubts(workloads: Sequence[Workload], selection: Selection) -> list[str]:
    """Where the figures promise more than the recordings can tell."""
    kept = {each.metric for each in selection.kept}
    said = []
    for each in workloads:
        moving = sum(
            1
            for item, moved in zip(each.items, each.moved, strict=True)
            if moved and item.label in kept
        )
        if each.rows < _ENOUGH * moving:
            said.append(
                f"{each.name}: {each.rows} rows for {moving} metrics that stay: with so few its"
                " MULTI-R2 is near 1 by chance"
            )
    return said
