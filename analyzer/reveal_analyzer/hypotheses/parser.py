"""Filling the dataclasses of ``model`` from YAML data; every mistake is told with its place."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from difflib import get_close_matches
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from reveal_analyzer.hypotheses.model import HypothesisError
from reveal_contract import catalogue
from reveal_contract.metric import Metric, Scope

T = TypeVar("T")
NAME = "[A-Za-z][A-Za-z0-9]{0,62}"
LONGEST = 60  # seconds a signature may look back
_SHOWN = 60  # characters of a wrong value


def read(cls: type[T], data: Any, place: str) -> T:
    """An instance of a dataclass of ``model`` from a mapping; raises ``HypothesisError``."""
    if not isinstance(data, Mapping):
        raise HypothesisError(f"{place}: must be a mapping, not {_shown(data)}")
    known = keys(cls)
    for given in data:
        if given not in known:
            allowed = ", ".join(known)
            raise HypothesisError(f"{place}: unknown key {_shown(given)}; allowed are {allowed}")
    hints = get_type_hints(cls)
    values = {}
    for name, spec in known.items():
        if name in data:
            reader = _reader(hints[spec.name], spec.metadata)
            values[spec.name] = reader(data[name], f"{place}: {name}")
        elif spec.default is MISSING:
            raise HypothesisError(f"{place}: lacks {name} ({spec.metadata['doc']})")
    return cls(**values)


def keys(cls: type) -> dict[str, Field[Any]]:
    """The keys of a dataclass of ``model`` as they stand in files."""
    specs = [spec for spec in fields(cls) if "doc" in spec.metadata]
    return {spec.metadata["name"] or spec.name: spec for spec in specs}


def plain(item: Any) -> Any:
    """What ``read`` takes to make this again, without what is left at its default."""
    if not is_dataclass(item):
        return [plain(each) for each in item] if isinstance(item, tuple) else item
    values = {name: (getattr(item, spec.name), spec) for name, spec in keys(type(item)).items()}
    return {name: plain(value) for name, (value, spec) in values.items() if value != spec.default}


Reader = Callable[[Any, str], Any]


def _reader(hint: Any, limits: Mapping[str, Any]) -> Reader:
    """How values of a field are read, by its type and what its ``key`` allows."""
    kind = limits.get("kind", "")
    if get_origin(hint) is tuple and kind != "hold":
        item = _reader(get_args(hint)[0], limits)
        return lambda value, place: _listed(value, place, item, limits.get("least", 0))
    options = [each for each in get_args(hint) if each is not NoneType]
    if options and get_origin(hint) is not tuple:  # X | None
        return _reader(options[0], limits)
    if kind:
        return _KINDS[kind]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return lambda value, place: hint(_chosen(value, place, tuple(hint)))
    simple: dict[Any, Reader] = {
        bool: _truth,
        float: lambda value, place: _number(value, place, limits.get("above")),
        str: lambda value, place: _text(value, place, limits.get("choices", ())),
    }
    return simple.get(hint) or (lambda value, place: _item(hint, value, place, limits["short"]))


def _item(cls: type, value: Any, place: str, short: str) -> Any:
    """A mapping, or where ``short`` names a key the value of that alone."""
    return read(cls, {short: value} if short and isinstance(value, str) else value, place)


def _listed(value: Any, place: str, item: Reader, least: int) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise HypothesisError(f"{place}: must be a list, not {_shown(value)}")
    if len(value) < least:
        raise HypothesisError(f"{place}: must hold at least {least}")
    return tuple(item(each, f"{place}[{at}]") for at, each in enumerate(value))


def _text(value: Any, place: str, choices: tuple[str, ...]) -> str:
    if choices:
        return _chosen(value, place, choices)
    if not isinstance(value, str) or not value.strip():
        raise HypothesisError(f"{place}: must be text, not {_shown(value)}")
    return value


def _chosen(value: Any, place: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(str(each) for each in choices if each)
        raise HypothesisError(f"{place}: must be one of {allowed}, not {_shown(value)}")
    return value


def _truth(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise HypothesisError(f"{place}: must be true or false, not {_shown(value)}")
    return value


def _number(value: Any, place: str, above: float | None) -> float:
    """Numbers, also written 1e8, which YAML takes for text."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or (above is not None and number <= above):
        which = "a number" if above is None else f"a number above {above:g}"
        raise HypothesisError(f"{place}: must be {which}, not {_shown(value)}")
    return number


def _name(value: Any, place: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(NAME, value):
        raise HypothesisError(
            f"{place}: must be up to 63 letters and digits, a letter first, not {_shown(value)}"
        )
    return value


def _claim(value: Any, place: str) -> str:
    text = _text(value, place, ())
    try:
        used = {name for _, name, *_ in string.Formatter().parse(text) if name is not None}
        text.format(value="")
    except (ValueError, LookupError, AttributeError):
        used = {"{"}
    if used - {"value"}:
        raise HypothesisError(
            f"{place}: may hold {{value}} and no other braces (write {{{{ for one): {_shown(text)}"
        )
    return text


def _metric(value: Any, place: str) -> str:
    return _known(value, place).name


def _subject_metric(value: Any, place: str) -> str:
    metric = _known(value, place)
    if metric.scope is not Scope.SUBJECT:
        raise HypothesisError(
            f"{place}: {metric.name} is not counted by subject; metrics that are have"
            " .subject. in their name"
        )
    return metric.name


def _known(value: Any, place: str) -> Metric:
    name = _text(value, place, ())
    try:
        return catalogue.find(name)
    except catalogue.UnknownMetricError:
        near = get_close_matches(name, _names(), 1)
        hint = f": is {near[0]} meant?" if near else "; `reveal catalog --search` finds names"
        raise HypothesisError(f"{place}: {name} is not in the catalogue{hint}") from None


@cache
def _names() -> tuple[str, ...]:
    return tuple(row.name for row in catalogue.rows())


def _hold(value: Any, place: str) -> tuple[int, int]:
    good = isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)
    if not good or not 1 <= value[0] <= value[1] <= LONGEST:
        raise HypothesisError(
            f"{place}: must be [seconds, of the last seconds], 1 to {LONGEST}, not {_shown(value)}"
        )
    return (value[0], value[1])


_KINDS: dict[str, Reader] = {
    "metric": _metric,
    "subject metric": _subject_metric,
    "name": _name,
    "claim": _claim,
    "hold": _hold,
}


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # an alias to itself; a number of 5,000 digits
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
