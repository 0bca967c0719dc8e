"""Parser of hypotheses: fills the dataclasses of ``model`` from YAML, and locates mistakes."""

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
_PLAIN_VALUE = ("value", "", None)  # of a field of a claim: name, format, conversion
_QUOTED = 60  # characters of a wrong value


def read(cls: type[T], data: Any, location: str) -> T:
    """Return an instance of a dataclass of ``model`` from a mapping.

    ``location`` is where the mapping stands, for messages.  Raises ``HypothesisError``.
    """
    if not isinstance(data, Mapping):
        raise HypothesisError(f"{location}: must be a mapping, not {_quoted(data)}")
    known = keys(cls)
    for given in data:
        if given not in known:
            allowed = ", ".join(known)
            raise HypothesisError(
                f"{location}: unknown key {_quoted(given)}; allowed are {allowed}"
            )
    hints = get_type_hints(cls)
    values = {}
    for name, spec in known.items():
        if name in data:
            reader = _reader(hints[spec.name], spec.metadata)
            values[spec.name] = reader(data[name], f"{location}: {name}")
        elif spec.default is MISSING:
            raise HypothesisError(f"{location}: {name} is missing ({spec.metadata['doc']})")
    return cls(**values)


def keys(cls: type) -> dict[str, Field[Any]]:
    """Return the fields of a dataclass of ``model`` by their key in files."""
    specs = [spec for spec in fields(cls) if "doc" in spec.metadata]
    return {spec.metadata["name"] or spec.name: spec for spec in specs}


def plain(item: Any) -> Any:
    """Return the mapping that ``read`` needs to build this item, without default values."""
    if not is_dataclass(item):
        return [plain(each) for each in item] if isinstance(item, tuple) else item
    values = {name: (getattr(item, spec.name), spec) for name, spec in keys(type(item)).items()}
    return {name: plain(value) for name, (value, spec) in values.items() if value != spec.default}


Reader = Callable[[Any, str], Any]


def _reader(hint: Any, limits: Mapping[str, Any]) -> Reader:
    """Return the reader of a field, by its type and the limits of its ``key``."""
    kind = limits.get("kind", "")
    if get_origin(hint) is tuple and kind != "hold":
        item = _reader(get_args(hint)[0], limits)
        return lambda value, location: _listed(value, location, item, limits.get("least", 0))
    options = [each for each in get_args(hint) if each is not NoneType]
    if options and get_origin(hint) is not tuple:  # X | None
        return _reader(options[0], limits)
    if kind:
        return _KINDS[kind]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return lambda value, location: hint(_chosen(value, location, tuple(hint)))
    simple: dict[Any, Reader] = {
        bool: _truth,
        float: lambda value, location: _number(value, location, limits.get("above")),
        str: lambda value, location: _text(value, location, limits.get("choices", ())),
    }
    return simple.get(hint) or (
        lambda value, location: _item(hint, value, location, limits["short"])
    )


def _item(cls: type, value: Any, location: str, short: str) -> Any:
    """Read a mapping, or a plain value if ``short`` names its key."""
    return read(cls, {short: value} if short and isinstance(value, str) else value, location)


def _listed(value: Any, location: str, item: Reader, least: int) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise HypothesisError(f"{location}: must be a list, not {_quoted(value)}")
    if len(value) < least:
        raise HypothesisError(f"{location}: must have at least {least} item(s)")
    return tuple(item(each, f"{location}[{index}]") for index, each in enumerate(value))


def _text(value: Any, location: str, choices: tuple[str, ...]) -> str:
    if choices:
        return _chosen(value, location, choices)
    if not isinstance(value, str) or not value.strip():
        raise HypothesisError(f"{location}: must be a string, not {_quoted(value)}")
    return value


def _chosen(value: Any, location: str, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        allowed = ", ".join(str(each) for each in choices if each)
        raise HypothesisError(f"{location}: must be one of {allowed}, not {_quoted(value)}")
    return value


def _truth(value: Any, location: str) -> bool:
    if not isinstance(value, bool):
        raise HypothesisError(f"{location}: must be true or false, not {_quoted(value)}")
    return value


def _number(value: Any, location: str, above: float | None) -> float:
    """Read a number; YAML takes 1e8 for text."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or (above is not None and number <= above):
        which = "a number" if above is None else f"a number above {above:g}"
        raise HypothesisError(f"{location}: must be {which}, not {_quoted(value)}")
    return number


def _name(value: Any, location: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(NAME, value):
        raise HypothesisError(
            f"{location}: must be up to 63 letters and digits, starting with a letter,"
            f" not {_quoted(value)}"
        )
    return value


def _claim(value: Any, location: str) -> str:
    text = _text(value, location, ())
    try:
        fields = [part[1:] for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError:
        fields = [("{", "", None)]
    if any(field != _PLAIN_VALUE for field in fields):
        raise HypothesisError(
            f"{location}: may contain {{value}} and no other braces (write {{{{ for a brace):"
            f" {_quoted(text)}"
        )
    return text


def _metric(value: Any, location: str) -> str:
    return _known(value, location).name


def _subject_metric(value: Any, location: str) -> str:
    metric = _known(value, location)
    if metric.scope is not Scope.SUBJECT:
        raise HypothesisError(
            f"{location}: {metric.name} is not counted by subject; metrics that are"
            " have .subject. in their name"
        )
    return metric.name


def _known(value: Any, location: str) -> Metric:
    name = _text(value, location, ())
    try:
        return catalogue.find(name)
    except catalogue.UnknownMetricError:
        near = get_close_matches(name, _names(), 1)
        hint = f"; did you mean {near[0]}?" if near else "; `reveal catalog --search` finds names"
        raise HypothesisError(f"{location}: {name} is not in the catalogue{hint}") from None


@cache
def _names() -> tuple[str, ...]:
    return tuple(row.name for row in catalogue.rows())


def _hold(value: Any, location: str) -> tuple[int, int]:
    good = isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)
    if not good or not 1 <= value[0] <= value[1] <= LONGEST:
        raise HypothesisError(
            f"{location}: must be [seconds, of the last seconds], 1 to {LONGEST},"
            f" not {_quoted(value)}"
        )
    return (value[0], value[1])


_KINDS: dict[str, Reader] = {
    "metric": _metric,
    "subject metric": _subject_metric,
    "name": _name,
    "claim": _claim,
    "hold": _hold,
}


def _quoted(value: Any) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # an alias to itself; a number of 5,000 digits
        text = type(value).__name__
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
