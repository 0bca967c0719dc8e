"""The file format of hypotheses.

A hypothesis may hold a *certain* signature (absolute conditions that raise a finding by
themselves, without a baseline) and says which evidence it *expects* or is *contradicted* by,
so that it can be named as the cause of a finding however that was raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from reveal_contract import catalogue
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

FORMAT_VERSION = 1
_CONDITION_KEYS = {"metric", "feature", "above", "below", "times", "per", "ratio_to"}
_EVIDENCE_KEYS = {"metric", "feature", "weight", "direction", "above"}


class HypothesisError(ValueError):
    """A hypotheses file is not usable; the text says where and what."""


@dataclass(frozen=True)
class Condition:
    """On one second: some instance of ``metric`` is at least ``above`` and at most ``below``.

    Values are per second for counters, levels for gauges, in base units; ``per`` "cpus" divides
    by the number of CPUs, ``ratio_to`` by another metric of the same instance; ``times`` asks
    that the value is so many times the highest of the accepted past.
    """

    metric: str
    feature: str = ""
    above: float = float("-inf")
    below: float = float("inf")
    times: float = 0.0
    per: str = ""
    ratio_to: str = ""


@dataclass(frozen=True)
class Certain:
    """All conditions hold, and none of ``unless``, in ``need`` of the last ``of`` seconds."""

    conditions: tuple[Condition, ...]
    unless: tuple[Condition, ...]
    need: int
    of: int
    severity: Severity


@dataclass(frozen=True)
class Expectation:
    """A metric that left its past (``direction`` "up" or "down"), or is ``above`` a value."""

    metric: str
    feature: str = ""
    weight: float = 1.0
    direction: str = "up"
    above: float | None = None


@dataclass(frozen=True)
class Rule:
    """One hypothesis."""

    name: str
    subsystem: Subsystem
    claim: str
    remediation: str
    reference: str
    certain: Certain | None
    expects: tuple[Expectation, ...]
    contradicts: tuple[Expectation, ...]
    subjects: tuple[str, ...]
    subjects_fell: bool = False  # who lost most is named, not who grew


def load(extra: Sequence[str] = ()) -> tuple[Rule, ...]:
    """The built-in hypotheses and those of further files; a later name replaces an earlier."""
    here = resources.files(__package__)
    texts = [
        (item.name, item.read_text()) for item in here.iterdir() if item.name.endswith(".yaml")
    ]
    texts.sort()
    for path in extra:
        try:
            texts.append((path, Path(path).read_text()))
        except OSError as error:
            raise HypothesisError(f"{path}: {error.strerror}") from None
    rules = {rule.name: rule for name, text in texts for rule in parse(text, name)}
    return tuple(rules.values())


def parse(text: str, where: str) -> tuple[Rule, ...]:
    """The hypotheses of one file; raises ``HypothesisError`` that names file and entry."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise HypothesisError(f"{where} is not YAML: {error}") from None
    if not isinstance(data, dict) or data.get("version") != FORMAT_VERSION:
        raise HypothesisError(f"{where}: must be a mapping with version: {FORMAT_VERSION}")
    rules = []
    for number, entry in enumerate(data.get("hypotheses") or (), 1):
        name = (
            entry.get("name", f"entry {number}") if isinstance(entry, dict) else f"entry {number}"
        )
        try:
            rules.append(_rule(entry))
        except (KeyError, TypeError, ValueError) as error:
            reason = f"lacks {error}" if type(error) is KeyError else error
            raise HypothesisError(f"{where}: {name}: {reason}") from None
    return tuple(rules)


def _rule(entry: Mapping[str, Any]) -> Rule:
    return Rule(
        name=str(entry["name"]),
        subsystem=Subsystem(entry["subsystem"]),
        claim=str(entry["claim"]),
        remediation=str(entry["remediation"]),
        reference=str(entry.get("reference", "")),
        certain=_certain(entry["certain"]) if "certain" in entry else None,
        expects=tuple(_expectation(item) for item in entry.get("expects", ())),
        contradicts=tuple(_expectation(item) for item in entry.get("contradicts", ())),
        subjects=tuple(_known(name) for name in entry.get("subjects", ())),
        subjects_fell=bool(entry.get("subjects_fell", False)),
    )


def _certain(entry: Mapping[str, Any]) -> Certain:
    need, of = entry["hold"]
    if not 1 <= int(need) <= int(of) <= 60:
        raise ValueError(f"hold: {entry['hold']} must be [seconds, of the last seconds]")
    return Certain(
        tuple(_condition(item) for item in entry["all"]),
        tuple(_condition(item) for item in entry.get("unless", ())),
        int(need),
        int(of),
        Severity(entry.get("severity", "Medium")),
    )


def _condition(item: Mapping[str, Any]) -> Condition:
    _refuse_unknown(item, _CONDITION_KEYS)
    if item.get("per", "") not in ("", "cpus"):
        raise ValueError(f"per: {item['per']!r} is not cpus")
    return Condition(
        metric=_known(item["metric"]),
        feature=str(item.get("feature", "")),
        above=float(item.get("above", "-inf")),
        below=float(item.get("below", "inf")),
        times=float(item.get("times", 0)),
        per=str(item.get("per", "")),
        ratio_to=_known(item["ratio_to"]) if "ratio_to" in item else "",
    )


def _expectation(item: Mapping[str, Any]) -> Expectation:
    _refuse_unknown(item, _EVIDENCE_KEYS)
    direction = str(item.get("direction", "up"))
    if direction not in ("up", "down"):
        raise ValueError(f"direction: {direction!r} is neither up nor down")
    above = float(item["above"]) if "above" in item else None
    return Expectation(
        _known(item["metric"]), str(item.get("feature", "")), float(item.get("weight", 1)),
        direction, above,
    )  # fmt: skip


def _known(metric: str) -> str:
    try:
        return catalogue.find(str(metric)).name
    except catalogue.UnknownMetricError:
        raise ValueError(f"{metric} is not in the catalogue") from None


def _refuse_unknown(item: Mapping[str, Any], keys: set[str]) -> None:
    if extra := set(item) - keys:
        raise ValueError(f"unknown key {', '.join(sorted(extra))}")
