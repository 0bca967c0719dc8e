"""``reveal select``: find metrics of recordings that move together, and keep one of each group."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Column

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import DONE, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import nanoseconds
from reveal_cli.output_paths import check_outputs
from reveal_cli.stderr_lines import note
from reveal_cli.terminal import show, table

if TYPE_CHECKING:
    from reveal_analyzer.selection.curves import ThresholdPoint
    from reveal_analyzer.selection.file import Selection
    from reveal_analyzer.selection.workload import WorkloadCorrelation

KNEE = "knee"
_PLOTS = (".png", ".svg")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "select",
        help="find metrics of recordings that carry the same information",
        description="Finds groups of metrics that always move together and keeps one of each group:"
        " a metric of the whole host before one of a CPU, a measured one before a derived one, one"
        " that does harm before mere activity, a cheap one before an expensive one. A metric is"
        " dropped only where another stands for it in every workload. Prints what each threshold"
        " keeps and loses. The selection is for storage and display (`reveal analyze --selection`):"
        " scores use all metrics unless asked otherwise. docs/explanation/paper.md has the method.",
        epilog="Example: reveal select train.rvl serve.rvl --threshold knee -o selection.yaml",
    )
    parser.add_argument(
        "recordings", metavar="RECORDING", nargs="*", type=Path,
        help="a recording (.rvl); each is a workload of its own",
    )  # fmt: skip
    parser.add_argument(
        "--workload", metavar=("NAME=FILE", "FILE"), nargs="+", action="append", default=[],
        help="recordings of one workload, which are averaged; can be given several times",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE.yaml", type=Path, help="write the selection to this file"
    )
    parser.add_argument(
        "--threshold", metavar="R", type=threshold, default=0.5,
        help="the |r| above which two metrics carry the same information, or knee: where MULTI-R2"
        " bends (default 0.5, as in the paper)",
    )  # fmt: skip
    parser.add_argument(
        "--every", metavar="TIME", type=nanoseconds, default=nanoseconds("100ms"),
        help="the time averaged into one row: 100ms (one sample, the default), 1s, 3s (a window)",
    )  # fmt: skip
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="draw the curves (.png or .svg; needs matplotlib)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=run)


def threshold(text: str) -> float | None:
    """Return a number between 0 and 1, or ``None`` for "knee"."""
    if text.strip().lower() == KNEE:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a threshold: write a number between 0 and 1, or {KNEE}"
        )
    return number


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Select the metrics, write the file and the plot, print the curves."""
    if arguments.plot and arguments.plot.suffix.lower() not in _PLOTS:
        raise CliError(f"--plot {arguments.plot}: must end in {' or '.join(_PLOTS)}", USAGE)
    with interrupt.raising():
        from reveal_cli import metric_selection  # noqa: PLC0415 - heavy, and needs an extra

        files = metric_selection.by_workload(arguments.recordings, arguments.workload)
        check_outputs(
            {"--output": arguments.output, "--plot": arguments.plot},
            [path for recordings in files.values() for path in recordings],
        )
        draw = _drawing() if arguments.plot else None  # fails before the work, not after it
        workloads, warnings = metric_selection.correlated(files, arguments.every)
        selection, points, knee = metric_selection.chosen(workloads, arguments.threshold)
        for warning in (*warnings, *metric_selection.doubts(workloads, selection)):
            note(warning)
        if arguments.output:
            write_atomically(arguments.output, [selection.to_yaml()])
        if draw is not None:
            draw(arguments.plot, points, selection.threshold, knee)
        if arguments.json:
            print(json.dumps(as_json(selection, points, knee)))
        else:
            show(*_blocks(workloads, selection, points, knee))
    return DONE


def _drawing() -> Any:
    try:
        from reveal_cli.knee_plot import draw  # noqa: PLC0415 - needs an extra
    except ImportError:
        raise CliError("--plot needs matplotlib: pip install matplotlib, or omit --plot") from None
    return draw


def as_json(
    selection: Selection, points: Sequence[ThresholdPoint], knee: float | None
) -> dict[str, Any]:
    """Return the file's content, the curves (null where nothing is dropped) and the knee."""
    rows = [
        {
            name: None if math.isnan(value) else round(value, 4)
            for name, value in asdict(point).items()
        }
        for point in points
    ]
    names = {"kept": "keptShare", "union": "unionShare", "multi_r2": "multiR2", "max_r": "maxR"}
    curves = [{names.get(name, name): value for name, value in row.items()} for row in rows]
    return {**selection.to_dict(), "knee": knee, "curves": curves}


def _blocks(
    workloads: Sequence[WorkloadCorrelation],
    selection: Selection,
    points: Sequence[ThresholdPoint],
    knee: float | None,
) -> Iterator[RenderableType]:
    """Yield the three curves as a table, and what the selection keeps."""
    titles = ("THRESHOLD", "KEPT", "JOINT", "MULTI-R2", "MAX |R|")
    rows = table(*(Column(title, justify="right") for title in titles), "")
    for point in points:
        marks = [
            name
            for name, marked in (("used", selection.threshold), (KNEE, knee))
            if marked == point.threshold
        ]
        rows.add_row(
            f"{point.threshold:.2f}", f"{point.kept:.0%}", f"{point.union:.0%}",
            _number(point.multi_r2), _number(point.max_r), ", ".join(marks),
        )  # fmt: skip
    yield rows
    yield ""
    changed = {
        item.label
        for workload in workloads
        for item, moved in zip(workload.items, workload.moved, strict=True)
        if moved
    }
    kept = sum(row.metric in changed for row in selection.kept)
    constant = len(selection.kept) - kept
    yield (
        f"Above |r| {selection.threshold:g}: {kept} of {len(changed)} metrics that changed are kept"
        f" ({kept / len(changed):.0%}), and stand for the {len(selection.dropped)} that are"
        f" dropped; {constant} never changed and are kept."
    )
    yield f"MULTI-R2 bends at {knee:g}." if knee is not None else "MULTI-R2 has no knee."
    yield (
        "KEPT: share of the metrics that changed, averaged over the workloads; JOINT: over all of"
        " them; MULTI-R2: variance of the dropped metrics that the kept ones explain; MAX |R|:"
        " correlation of a dropped metric with the closest kept one."
    )


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
