"""The trace of a recording: its findings, the steps of its jobs, and the metrics behind findings.

The step time of a job is inferred from the kernel's counters: how long a step takes is known, not
when it begins.  So steps are drawn one after the other, from when the step time was known.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.node import NodeAnalyzer
from reveal_cli.errors import CliError
from reveal_cli.metric_values import MetricValues, ValueLabels
from reveal_cli.recordings import Slices
from reveal_cli.replay import judge_whole, replay
from reveal_cli.trace.findings import JOBS, Row, counters, draw, times
from reveal_cli.trace.packets import Slice
from reveal_cli.trace.timeline import Timeline, TrackPath
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

STEPS = "steps (length inferred, begin unknown)"
STEP_TIME = "step time"
MOST_STEPS = 200_000  # of a job: three hours of steps of 50 ms
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class TracedRecording:
    """What is drawn of a recording, its first second, and the boot of its first host.

    ``warnings`` are sentences on what is not drawn.
    """

    timeline: Timeline
    first_ns: int
    boot: bytes
    warnings: list[str]


def read(
    path: Path, settings: AnalyzerSettings, given: Sequence[Row] | None = None
) -> TracedRecording:
    """Draw a recording; it is judged unless its findings are ``given``.  Raises ``CliError``."""
    timeline = Timeline()
    steps = StepSlices(timeline)
    slices = Slices(path)
    replayed = replay(slices, settings, on_second=steps.add)
    if not replayed.slices:
        raise CliError(f"{path} holds no slices: nothing to draw")
    for node in replayed.analyzers:
        timeline.node(node)
    if given is None:
        found = judge_whole(path, replayed.finding_log.findings, settings)
        given = [finding.to_dict() for finding in found]
    rows = [row for row in given if _overlaps(row, replayed.first_ns, replayed.last_ns)]
    for row in rows:
        draw(timeline, row)
    draw_counters(timeline, path, rows)
    incomplete = [f"{path} is incomplete; it is drawn up to its end"] if slices.truncated else []
    return TracedRecording(timeline, replayed.first_ns, steps.boot, incomplete + steps.warnings)


def _overlaps(row: Row, first_ns: int, last_ns: int) -> bool:
    begin_ns, end_ns = times(row)
    return begin_ns <= last_ns + NS_PER_SECOND and end_ns >= first_ns


class StepSlices:
    """Draws the steps of each job while a recording is judged; ``boot`` is that of the start."""

    def __init__(self, timeline: Timeline) -> None:
        self.boot = b""
        self._timeline = timeline
        self._next_ns: dict[TrackPath, int] = {}  # where the next step begins
        self._drawn: Counter[TrackPath] = Counter()

    @property
    def warnings(self) -> list[str]:
        """A sentence for each job whose steps were too many."""
        return [
            f"only the first {MOST_STEPS} steps of {path[-2]} are drawn; its step time is drawn on"
            for path, drawn in self._drawn.items()
            if drawn >= MOST_STEPS
        ]

    def add(self, analyzer: NodeAnalyzer, message: Message) -> None:
        """Draw the steps that are complete after one second."""
        self.boot = self.boot or message.boot
        end_ns = message.start_ns + len(message.fast) * message.tick_us * 1000
        for subject, step in analyzer.step_times.items():
            path = (message.node, JOBS, subject)
            self._timeline.count((*path, STEP_TIME), "ms", message.start_ns, 1000 * step.period)
            self._draw((*path, STEPS), step, message.start_ns, end_ns)

    def _draw(self, path: TrackPath, step: StepTime, start_ns: int, end_ns: int) -> None:
        length = max(1, round(step.period * NS_PER_SECOND))
        begin = self._next_ns.get(path, start_ns)
        # there was no step time for a while, or the clock was set back
        if begin + length <= start_ns or begin > end_ns:
            begin = start_ns
        while begin + length <= end_ns and self._drawn[path] < MOST_STEPS:
            self._drawn[path] += 1
            name = "slow step" if step.slower else "step"
            self._timeline.add(path, Slice(name, begin, begin + length, "inferred"))
            begin += length
        self._next_ns[path] = begin


def draw_counters(timeline: Timeline, path: Path, rows: Sequence[Row]) -> None:
    """Add the metrics that are evidence of findings, as long as the recording is."""
    desired: dict[str, dict[TrackPath, tuple[str, str]]] = {}  # by node
    for row in rows:
        for track, label, unit in counters(row):
            desired.setdefault(track[0], {})[track] = label, unit
    nodes: dict[str, MetricValues] = {}
    indices: dict[int, tuple[ValueLabels, list[tuple[TrackPath, str, int]]]] = {}
    for message, table in Slices(path):
        if message.node not in desired:
            continue
        reader = nodes.setdefault(message.node, MetricValues())
        labels, values = reader.second(message, table)
        if id(labels) not in indices:
            indices[id(labels)] = labels, _indices(desired[message.node], labels)
        for track, unit, index in indices[id(labels)][1]:
            value = float(values[index])
            if not math.isnan(value):
                timeline.count(track, unit, message.start_ns, value)


def _indices(
    desired: Mapping[TrackPath, tuple[str, str]], labels: ValueLabels
) -> list[tuple[TrackPath, str, int]]:
    index_of = {label: index for index, label in enumerate(labels.labels)}
    return [
        (track, unit, index_of[label])
        for track, (label, unit) in desired.items()
        if label in index_of
    ]


def boot_time_ns(
    boot: bytes, boot_id: Path = _BOOT_ID, clock: Callable[[int], int] = time.clock_gettime_ns
) -> int:
    """Return when this host booted, if ``boot`` is its present one, else 0: 1970."""
    try:
        present = UUID(boot_id.read_text().strip()).bytes
    except (OSError, ValueError):
        return 0
    if boot != present:
        return 0
    return clock(time.CLOCK_REALTIME) - clock(time.CLOCK_BOOTTIME)
