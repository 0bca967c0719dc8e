"""The content of a page.  Times are seconds since its start, values are in base units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from reveal_cli.summary_text import Coverage
from reveal_contract.facts import Facts
from reveal_contract.finding import Finding

Points: TypeAlias = "Sequence[tuple[float, float]]"
UnitSteps: TypeAlias = "Sequence[tuple[float, str]]"


@dataclass(frozen=True)
class Unit:
    """How values are written: ``text`` in Python, ``steps`` for the script of the page."""

    text: Callable[[float], str]
    steps: UnitSteps


@dataclass(frozen=True)
class Panel:
    """The samples of one metric around a finding; ``lines`` are apart where samples are missing.

    ``band`` is the range of nine of ten samples outside of findings.
    """

    title: str
    known_as: str
    unit: Unit
    lines: Sequence[Points]
    band: tuple[float, float] | None
    period_s: float


@dataclass(frozen=True)
class RankedRow:
    """A metric in a span: how far it left its baseline, in spreads, and its value there."""

    metric: str
    instance: str
    feature: str
    label: str
    subsystem: str
    score: float
    value: str
    baseline: str


@dataclass(frozen=True)
class RuledOut:
    """A cause that was not named, what is known of it ("ruled out", "unknown", ...), and why."""

    name: str
    result: str
    reason: str


@dataclass(frozen=True)
class SubjectRow:
    """A subject before a finding and in it; None where that is not known.

    ``role`` is its part in the finding.  Lost shares are 0 to 1, of the time that it wanted.
    """

    name: str
    role: str
    lost_before: float | None
    lost_during: float | None
    cpus_before: float | None
    cpus_during: float | None
    lost_to: str = ""


@dataclass(frozen=True)
class PeerValue:
    """The value of one node in a strip of all nodes."""

    node: str
    value: float
    is_own: bool


@dataclass(frozen=True)
class PeerStrip:
    """A metric on all nodes of the recording, in the time of a finding."""

    title: str
    unit: Unit
    values: Sequence[PeerValue]


@dataclass(frozen=True)
class FindingPart:
    """A finding with what the recording has on it; ``window`` is the time of its panels."""

    finding: Finding
    span: tuple[float, float]
    window: tuple[float, float] = (0.0, 0.0)
    panels: Sequence[Panel] = ()
    ruled_out: Sequence[RuledOut] = ()
    subjects: Sequence[SubjectRow] = ()
    ranking: Sequence[RankedRow] = ()
    peers: PeerStrip | None = None


@dataclass(frozen=True)
class StepCurve:
    """The step time of a job, in ms."""

    subject: str
    lines: Sequence[Points]


@dataclass(frozen=True)
class Tick:
    """A moment that may explain what follows it: a changed setting, a subject that came."""

    time: float
    kind: str
    text: str


@dataclass(frozen=True)
class MetricSeries:
    """A metric over the whole page, in bins.

    ``levels`` and ``forecasts`` have a byte for each bin: the largest distances from its mean and
    from a forecast, in eighths of a spread.  ``values`` has its mean in each bin, from 0 at ``low``
    to 255 at ``high``.
    """

    label: str
    subsystem: str
    unit: Unit
    baseline: float
    low: float
    high: float
    levels: bytes
    forecasts: bytes
    values: bytes


@dataclass(frozen=True)
class BrushData:
    """The metrics that stand out most in the recording, for the ranking of any span."""

    bin_s: float
    bins: int
    series: Sequence[MetricSeries] = ()


@dataclass(frozen=True)
class PageData:
    """All that a page shows.

    ``limits`` are sentences on what the verdict does not cover; ``missing`` rows of sources have
    ``source``, ``reason`` and ``remedy``.  ``facts`` are the last ones of each node.
    """

    title: str
    nodes: Sequence[str]
    start_ns: int
    seconds: float
    findings: Sequence[FindingPart]
    hints: Sequence[Finding]
    coverage: Coverage
    steps: Sequence[StepCurve] = ()
    ticks: Sequence[Tick] = ()
    gaps: Sequence[tuple[float, float]] = ()
    brush: BrushData = field(default_factory=lambda: BrushData(1.0, 0))
    facts: Mapping[str, Facts] = field(default_factory=dict)
    missing: Sequence[Mapping[str, Any]] = ()
    limits: Sequence[str] = ()
