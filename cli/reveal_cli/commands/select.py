"""``reveal select``: which metrics say the same in recordings, and which one stands for them."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveal_cli.errors import DONE, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import nanoseconds
from reveal_cli.output_files import write_whole

if TYPE_CHECKING:
    from reveal_analyzer.selection.curves import ThresholdPoint
    from reveal_analyzer.selection.file import Selection
    from reveal_analyzer.selection.workload import Workload

KNEE = "knee"
_PLOTS = (".png", ".svg")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "select",
        help="find the metrics of recordings that say the same as others",
        description="Correlates all metrics of each workload, averaged over its recordings, and"
        " keeps one of those that move together: what is of the whole host before what is of one"
        " CPU, what is read before what is derived, what hurts before mere activity, what is cheap"
        " before what is dear. A metric goes only where another stands for it in every workload."
        " Prints what each threshold would keep and lose. The selection is for storage and"
        " display (`reveal analyze --selection`); scores see everything unless asked otherwise."
        " docs/explanation/paper.md tells more.",
    )
    parser.add_argument(
        "recordings", metavar="RECORDING", nargs="*", type=Path,
        help="a recording (.rvl), each a workload of its own",
    )  # fmt: skip
    parser.add_argument(
        "--workload", metavar=("NAME=FILE", "FILE"), nargs="+", action="append", default=[],
        help="recordings of one workload, averaged; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE.yaml", type=Path, help="write the selection to this file"
    )
    parser.add_argument(
        "--threshold", metavar="R", type=threshold, default=0.5,
        help="the |r| beyond which two metrics say the same, or knee: where MULTI-R2 bends"
        " (default 0.5, the paper's)",
    )  # fmt: skip
    parser.add_argument(
        "--every", metavar="TIME", type=nanoseconds, default=nanoseconds("100ms"),
        help="what is averaged into one row: 100ms (a sample, the default), 1s, 3s (a window)",
    )  # fmt: skip
    parser.add_argument(
        "--plot", metavar="FILE", type=Path, help="draw the curves (.png or .svg; needs matplotlib)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.set_defaults(run=run)


def threshold(text: str) -> float | None:
    """A number between 0 and 1; None for "knee"."""
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
    if arguments.plot and arguments.plot.suffix.lower() not in _PLOTS:
        raise CliError(f"--plot {arguments.plot}: must end in {' or '.join(_PLOTS)}", USAGE)
    with interrupt.raising():
        from reveal_cli import metric_selection  # noqa: PLC0415 - heavy, and needs an extra

        files = metric_selection.by_workload(arguments.recordings, arguments.workload)
        draw = _drawing() if arguments.plot else None  # told before the work, not after
        workloads, warnings = metric_selection.correlated(files, arguments.every)
        selection, points, bend = metric_selection.chosen(workloads, arguments.threshold)
        for warning in (*warnings, *metric_selection.doubts(workloads, selection)):
            print(f"reveal: {warning}", file=sys.stderr)
        if arguments.output:
            write_whole(arguments.output, selection.to_yaml())
        if draw is not None:
            draw(arguments.plot, points, selection.threshold, bend)
        if arguments.json:
            print(json.dumps(as_json(selection, points, bend)))
        else:
            print("\n".join(_text(workloads, selection, points, bend)))
    return DONE


def _drawing() -> Any:
    try:
        from reveal_cli.knee_plot import draw  # noqa: PLC0415 - needs an extra
    except ImportError:
        raise CliError(
            "--plot needs matplotlib: pip install 'reveal-telemetry[plot]', or leave --plot out"
        ) from None
    return draw


def as_json(
    selection: Selection, points: Sequence[ThresholdPoint], bend: float | None
) -> dict[str, Any]:
    """The file's content, the curves (null where nothing goes) and the knee."""
    rows = [
        {
            name: None if math.isnan(value) else round(value, 4)
            for name, value in asdict(point).items()
        }
        for point in points
    ]
    names = {"kept": "keptShare", "union": "unionShare", "multi_r2": "multiR2", "max_r": "maxR"}
    curves = [{names.get(name, name): value for name, value in row.items()} for row in rows]
    return {**selection.to_dict(), "knee": bend, "curves": curves}


def _text(
    workloads: Sequence[Workload],
    selection: Selection,
    points: Sequence[ThresholdPoint],
    bend: float | None,
) -> list[str]:
    """The three curves, then what the selection amounts to."""
    lines = ["THRESHOLD    KEPT  JOINT  MULTI-R2  MAX |R|"]
    for point in points:
        marks = [
            word
            for word, at in (("used", selection.threshold), (KNEE, bend))
            if at == point.threshold
        ]
        told = "".join(f"{_share(value):>10}" for value in (point.multi_r2, point.max_r))
        lines.append(
            f"{point.threshold:>9.2f}{point.kept:>8.0%}{point.union:>8.0%}{told}"
            f"  {', '.join(marks)}".rstrip()
        )
    moved = {
        item.label
        for each in workloads
        for item, moves in zip(each.items, each.moved, strict=True)
        if moves
    }
    stay = sum(each.metric in moved for each in selection.kept)
    still = len(selection.kept) - stay
    lines += [
        "",
        f"Over |r| {selection.threshold:g}: {stay} of {len(moved)} metrics that moved stay"
        f" ({stay / len(moved):.0%}), others stand for the {len(selection.dropped)} that go;"
        f" {still} stood still and stay.",
        f"MULTI-R2 bends at {bend:g}." if bend is not None else "MULTI-R2 has no knee.",
        "KEPT: share of the metrics that moved, mean over workloads; JOINT: over all of them;",
        "MULTI-R2: variance of those that go which all that stay tell; MAX |R|: with the closest.",
    ]
    return lines


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
