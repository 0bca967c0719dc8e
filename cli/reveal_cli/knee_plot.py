"""The plot of a selection's three curves; needs matplotlib (the extra ``plot``)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reveal_analyzer.selection.curves import ThresholdPoint
from reveal_cli.atomic_file import write_atomically

# colors that color-blind readers can distinguish; markers do it in gray print
_LINES = (
    ("kept", "kept share", "#0072b2", "o"),
    ("multi_r2", "multi-R² of dropped metrics, by those kept", "#d55e00", "s"),
    ("max_r", "mean max |r| of dropped metrics", "#009e73", "^"),
)


def draw(path: Path, points: Sequence[ThresholdPoint], used: float, knee: float | None) -> None:
    """Write a PNG or SVG, by the file's suffix; raises ``CliError`` where it cannot be written."""
    figure = Figure(figsize=(7.0, 4.4), layout="constrained")
    axes = figure.add_subplot()
    _curves(axes, points)
    _mark(axes, used, knee)
    axes.set_xlabel("threshold on |r|")
    axes.set_ylabel("share, R², |r|")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.03)
    axes.grid(alpha=0.3)
    # below the plot: inside it would cover a curve
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    image = io.BytesIO()
    # without a date: two runs must give the same file
    kind = path.suffix.lower().removeprefix(".")
    figure.savefig(image, dpi=150, format=kind, metadata=_metadata(path))
    write_atomically(path, [image.getvalue()])


def _curves(axes: Axes, points: Sequence[ThresholdPoint]) -> None:
    thresholds = [point.threshold for point in points]
    for name, label, color, marker in _LINES:
        values = [getattr(point, name) for point in points]
        axes.plot(thresholds, values, color=color, marker=marker, markersize=4, label=label)


def _mark(axes: Axes, used: float, knee: float | None) -> None:
    both = used == knee
    axes.axvline(used, color="black", linewidth=1, label=f"used{' (knee)' * both}: {used:g}")
    if knee is not None and not both:
        axes.axvline(knee, color="gray", linestyle="--", linewidth=1, label=f"knee: {knee:g}")


def _metadata(path: Path) -> dict[str, str | None]:
    return {"Date": None} if path.suffix.lower() == ".svg" else {"Software": None}
