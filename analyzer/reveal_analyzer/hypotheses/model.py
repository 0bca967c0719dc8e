# ruff: noqa: RUF009 - key() is field()
"""The file format of hypotheses: these dataclasses are it, key by key.

``reading`` fills them from YAML and says what is wrong with a file, ``json_schema`` draws the
JSON Schema from the same fields, so that format, messages and schema cannot differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reveal_analyzer.derive.columns import CHANGE, LARGEST, LEVEL, TOTAL
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

FORMAT_VERSION = 1


class HypothesisError(ValueError):
    """A hypotheses file is not usable; the text says where and what."""


def key(
    doc: str,
    *,
    default: Any = None,
    required: bool = False,
    name: str = "",
    short: str = "",
    **limits: Any,
) -> Any:
    """A field that stands in files as ``name`` (else as the field is called).

    ``limits`` say what values are allowed: ``kind`` ("metric", "subject metric", "name", "claim",
    "hold"), ``choices``, ``above``, ``least`` (items of a list).  ``short`` is the key of an
    item that may stand alone.
    """
    metadata = {"doc": doc, "name": name, "short": short, **limits}
    return field(metadata=metadata) if required else field(default=default, metadata=metadata)


_FEATURES = ("", LEVEL, CHANGE, LARGEST, TOTAL)
_FEATURE = (
    "mean (level of a gauge, rate of a counter), mean_change (of a gauge, a second), maximum"
    " (over CPUs) or sum_values (over subjects); without it any of them but mean_change"
)
_INSTANCE = "only this instance; * and ? stand for any letters (eth*, NET_RX)"
_METRIC = "a metric of the catalogue (`reveal catalog`)"
_WHY = "the reason, one sentence for people"


@dataclass(frozen=True)
class Condition:
    """On one second: some instance of ``metric`` is at least ``above`` and at most ``below``."""

    metric: str = key(_METRIC, required=True, kind="metric")
    instance: str = key(_INSTANCE, default="")
    feature: str = key(_FEATURE, default="", choices=_FEATURES)
    above: float = key(
        "at least so much: per second for counters, a level for gauges, in base units",
        default=float("-inf"),
    )
    below: float = key("at most so much", default=float("inf"))
    times: float = key(
        "at least so many times the highest that the accepted past held for two of three seconds;"
        " never met while learning",
        default=0.0, above=0,
    )  # fmt: skip
    per: str = key("`cpus` divides by the number of CPUs", default="", choices=("", "cpus"))
    ratio_to: str = key("divide by another metric of the same instance", default="", kind="metric")


@dataclass(frozen=True)
class Certain:
    """Signature that raises a finding by itself: what must hold in ``need`` of ``of`` seconds."""

    hold: tuple[int, int] = key(
        "[seconds, of the last seconds] in which it must be met, at most 60",
        required=True, kind="hold",
    )  # fmt: skip
    conditions: tuple[Condition, ...] = key(
        "every one must be met, on the same second", name="all", default=()
    )
    any: tuple[Condition, ...] = key(
        "at least one of these must be met too; those whose metric a node lacks do not count",
        default=(),
    )
    unless: tuple[Condition, ...] = key("and none of these: what explains it away", default=())
    severity: Severity = key("how bad it is if it holds", default=Severity.MEDIUM)

    @property
    def need(self) -> int:
        return self.hold[0]

    @property
    def of(self) -> int:
        return self.hold[1]


@dataclass(frozen=True)
class Expectation:
    """A metric that left its past (``direction``), or has a value."""

    metric: str = key(_METRIC, required=True, kind="metric")
    instance: str = key(_INSTANCE, default="")
    feature: str = key(_FEATURE, default="", choices=_FEATURES)
    weight: float = key("how much it counts among the others", default=1.0, above=0)
    direction: str = key(
        "the metric left its past that way; wholly met at 6 spreads", default="up",
        choices=("up", "down"),
    )  # fmt: skip
    above: float | None = key("met by the mean value alone: at least so much")
    below: float | None = key("met by the mean value alone: at most so much")
    ratio_to: str = key(
        "with above or below: divided by another metric of the same instance",
        default="", kind="metric",
    )  # fmt: skip
    at_least: float | None = key("beside having moved, the mean value must be at least so much")
    optional: bool = key("not counted on nodes that lack the metric", default=False)
    why: str = key(_WHY, default="")


@dataclass(frozen=True)
class Symptom:
    """A metric that moves in consequence: moved alone it would look like a cause of its own."""

    metric: str = key(_METRIC, required=True, kind="metric")
    why: str = key(_WHY, default="")


@dataclass(frozen=True)
class Rule:
    """One hypothesis; ``source`` is the file it came from."""

    name: str = key("letters and digits, beginning with a letter", required=True, kind="name")
    subsystem: Subsystem = key("where the cause lies", required=True)
    claim: str = key(
        "one sentence; {value} is the value of the first condition or expectation",
        required=True, kind="claim",
    )  # fmt: skip
    remediation: str = key("what to do about it", required=True)
    expects: tuple[Expectation, ...] = key("evidence that speaks for it", required=True, least=1)
    reference: str = key("where the mechanism is described", default="")
    certain: Certain | None = key("raises a finding by itself, without a baseline")
    contradicts: tuple[Expectation, ...] = key(
        "evidence that speaks against it; wholly met, it rules the hypothesis out", default=()
    )
    symptoms: tuple[Symptom, ...] = key(
        "what this cause brings about elsewhere, and is then no second cause",
        default=(), short="metric",
    )  # fmt: skip
    subjects: tuple[str, ...] | None = key(
        "whose change in these metrics names the culprit; [] if no process is at fault; left"
        " out, the usual ones of the subsystem",
        kind="subject metric",
    )
    subjects_fell: bool = key("who lost most is named, not who grew", default=False)
    victims: tuple[str, ...] = key(
        "whose harm in these metrics names who suffers from it", default=(), kind="subject metric"
    )
    disabled: bool = key(
        "true takes the hypothesis of this name away; nothing but the name is needed then",
        default=False,
    )
    source: str = field(default="", compare=False)

    def leads(self) -> frozenset[str]:
        """The metrics this hypothesis stands on: its conditions, or what must have moved."""
        if self.certain:
            return frozenset(item.metric for item in (*self.certain.conditions, *self.certain.any))
        return frozenset(item.metric for item in self.expects)

    def speaks_of(self) -> frozenset[str]:
        """The metrics of its evidence and of its symptoms."""
        evidence = {item.metric for item in self.expects}
        return frozenset(evidence | {item.metric for item in self.symptoms})

    def explains(self, other: Rule) -> bool:
        """Whether all that ``other`` stands on are symptoms of this cause."""
        mine = {symptom.metric for symptom in self.symptoms}
        return self is not other and bool(mine) and other.leads() <= mine


@dataclass(frozen=True)
class Removal:
    """An entry with ``disabled: true``: the hypothesis of that name of earlier files is gone."""

    name: str = key("of the hypothesis to take away", required=True, kind="name")
