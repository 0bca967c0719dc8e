# ruff: noqa: RUF009 - key() is field()
"""File format of hypotheses: each field of these dataclasses is a key of a file.

``parser`` fills them from YAML and reports mistakes; ``json_schema`` derives the JSON Schema from
the same fields.  Format, messages and schema therefore cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reveal_analyzer.derive.columns import CHANGE, LARGEST, LEVEL, TOTAL
from reveal_contract import catalogue, ledger
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

FORMAT_VERSION = 1


class HypothesisError(ValueError):
    """A hypotheses file is not usable; the message says where and why."""


def key(
    doc: str,
    *,
    default: Any = None,
    required: bool = False,
    name: str = "",
    short: str = "",
    **limits: Any,
) -> Any:
    """Return a field with the key ``name`` in files; without one the field's own name is the key.

    ``limits`` restrict the values: ``kind`` ("metric", "subject metric", "name", "claim",
    "hold"), ``choices``, ``above``, ``least`` (items of a list).  ``short`` names the key of an
    item that may be written as a plain value.
    """
    metadata = {"doc": doc, "name": name, "short": short, **limits}
    return field(metadata=metadata) if required else field(default=default, metadata=metadata)


_FEATURES = ("", LEVEL, CHANGE, LARGEST, TOTAL)
_FEATURE = (
    "mean (level of a gauge, rate of a counter), mean_change (of a gauge, a second), maximum"
    " (over CPUs) or sum_values (over subjects); without it any of them but mean_change"
)
_INSTANCE = "only this instance; * and ? are wildcards (eth*, NET_RX)"
_LOST_PARTS = (
    "", ledger.THROTTLED, ledger.MEMORY, ledger.IRQ, ledger.STOPPED, ledger.STOLEN,
)  # fmt: skip
_METRIC = "a metric of the catalogue (`reveal catalog`)"
_WHY = "the reason, in one sentence"


@dataclass(frozen=True)
class Condition:
    """On one second: some instance of ``metric`` is at least ``above`` and at most ``below``."""

    metric: str = key(_METRIC, required=True, kind="metric")
    instance: str = key(_INSTANCE, default="")
    feature: str = key(_FEATURE, default="", choices=_FEATURES)
    above: float = key(
        "at least this value: per second for counters, a level for gauges, in base units",
        default=float("-inf"),
    )
    below: float = key("at most this value", default=float("inf"))
    times: float = key(
        "at least this many times the highest value that the baseline held for two of three"
        " seconds; never met during the warm-up",
        default=0.0, above=0,
    )  # fmt: skip
    per: str = key("`cpus` divides by the number of CPUs", default="", choices=("", "cpus"))
    ratio_to: str = key("divide by another metric of the same instance", default="", kind="metric")

    @property
    def is_upper_limit(self) -> bool:
        """Whether it is met by small values."""
        return self.above == float("-inf") and not self.times


@dataclass(frozen=True)
class CertainSignature:
    """Signature that opens a finding by itself: must be met in ``need`` of ``of`` seconds."""

    hold: tuple[int, int] = key(
        "[seconds, of the last seconds] in which it must be met, at most 60",
        required=True, kind="hold",
    )  # fmt: skip
    conditions: tuple[Condition, ...] = key(
        "every one must be met, on the same second", name="all", default=()
    )
    any: tuple[Condition, ...] = key(
        "at least one of these must be met too, beside `all` at the onset only;"
        " metrics that a node does not have are ignored",
        default=(),
    )
    unless: tuple[Condition, ...] = key("none of these may be met: another explanation", default=())
    needs_loss: bool = key(
        "begin only while a subject loses more of `lost_part` than before, or loses CPU time to"
        " one that has much of it; only where BPF programs count lost time, and of `ledger.irq`",
        default=False,
    )
    severity: Severity = key("severity of the finding if it matches", default=Severity.MEDIUM)

    @property
    def need(self) -> int:
        return self.hold[0]

    @property
    def of(self) -> int:
        return self.hold[1]

    def holds(self, met: Sequence[int], now_ns: int) -> bool:
        """Return whether it was met long enough; ``met`` are the last ``need`` times, in ns."""
        # half a second of tolerance, as slices do not begin exactly one second apart
        span_ns = self.of * NS_PER_SECOND - NS_PER_SECOND // 2
        return len(met) == self.need and now_ns - met[0] < span_ns


@dataclass(frozen=True)
class Expectation:
    """A metric that left its baseline (``direction``), or has a value."""

    metric: str = key(_METRIC, required=True, kind="metric")
    instance: str = key(_INSTANCE, default="")
    feature: str = key(_FEATURE, default="", choices=_FEATURES)
    weight: float = key("weight among the expectations", default=1.0, above=0)
    direction: str = key(
        "direction in which the metric left its baseline; fully met at 6 spreads", default="up",
        choices=("up", "down"),
    )  # fmt: skip
    above: float | None = key("met by the mean value alone: at least this value")
    below: float | None = key("met by the mean value alone: at most this value")
    ratio_to: str = key(
        "with above or below: divided by another metric of the same instance",
        default="", kind="metric",
    )  # fmt: skip
    minimum: float | None = key(
        "in addition to leaving the baseline, the mean value must be at least this value",
        name="at_least",
    )
    optional: bool = key("not counted on nodes that do not have the metric", default=False)
    why: str = key(_WHY, default="")


@dataclass(frozen=True)
class Symptom:
    """A metric that moves as a consequence: alone it would look like a separate cause."""

    metric: str = key(_METRIC, required=True, kind="metric")
    why: str = key(_WHY, default="")


@dataclass(frozen=True)
class HypothesisRule:
    """One hypothesis; ``source`` is the file it came from."""

    name: str = key("letters and digits, starting with a letter", required=True, kind="name")
    subsystem: Subsystem = key("where the cause lies", required=True)
    claim: str = key(
        "one sentence; {value} is the value of the first condition or expectation",
        required=True, kind="claim",
    )  # fmt: skip
    remediation: str = key("what to do about the cause", required=True)
    expects: tuple[Expectation, ...] = key("evidence for it", required=True, least=1)
    reference: str = key("where the mechanism is described", default="")
    certain: CertainSignature | None = key("opens a finding by itself, without a baseline")
    contradicts: tuple[Expectation, ...] = key(
        "evidence against it; fully met, it rules the hypothesis out", default=()
    )
    symptoms: tuple[Symptom, ...] = key(
        "effects of this cause elsewhere, which are then no second cause",
        default=(), short="metric",
    )  # fmt: skip
    subjects: tuple[str, ...] | None = key(
        "metrics whose change by subject names the culprit; [] if no process is at fault;"
        " without it the default metrics of the subsystem",
        kind="subject metric",
    )
    subjects_fell: bool = key(
        "name the subject that lost most instead of the one that grew most", default=False
    )
    victims: tuple[str, ...] = key(
        "metrics whose harm by subject names the victims", default=(), kind="subject metric"
    )
    not_explained_by: tuple[str, ...] = key(
        "names of causes that do not explain this one, although its metrics are symptoms of theirs",
        default=(), kind="name",
    )  # fmt: skip
    lost_part: str = key(
        "part of the ledger's lost time that the cause takes by itself, beside what its culprits"
        " take",
        default="", choices=_LOST_PARTS,
    )  # fmt: skip
    disabled: bool = key(
        "true removes the hypothesis of this name; no other key than the name is needed then",
        default=False,
    )
    source: str = field(default="", compare=False)

    @property
    def is_measured(self) -> bool:
        """Whether the ledger decides if it matches: it measures who takes time from whom."""
        return bool(self.certain) and not self.required_metrics().isdisjoint(ledger.JUDGED)

    @cached_property
    def stated_metrics(self) -> frozenset[str]:
        """The metrics that measure what the claim states.

        They are those in the group of the first expectation, and those that its signature takes for
        it.
        """
        first = self.expects[0].metric
        group = catalogue.find(first).metric_group
        same = {
            each.metric
            for each in self.expects
            if catalogue.find(each.metric).metric_group == group
        }
        alternatives = {item.metric for item in self.certain.any} if self.certain else set()
        return frozenset(same | (alternatives if first in alternatives else set()))

    def required_metrics(self) -> frozenset[str]:
        """Return the metrics it rests on: those of its conditions, or of its expectations."""
        if self.certain:
            return frozenset(item.metric for item in (*self.certain.conditions, *self.certain.any))
        return frozenset(item.metric for item in self.expects)

    def described_metrics(self) -> frozenset[str]:
        """Return the metrics of its expectations and of its symptoms."""
        evidence = {item.metric for item in self.expects}
        return frozenset(evidence | {item.metric for item in self.symptoms})

    def explains(self, other: HypothesisRule) -> bool:
        """Return whether all metrics that ``other`` rests on are symptoms of this cause."""
        if self.name in other.not_explained_by:
            return False
        own = {symptom.metric for symptom in self.symptoms}
        return self is not other and bool(own) and other.required_metrics() <= own


@dataclass(frozen=True)
class Removal:
    """An entry with ``disabled: true``: removes the hypothesis of that name of earlier files."""

    name: str = key("name of the hypothesis to remove", required=True, kind="name")
