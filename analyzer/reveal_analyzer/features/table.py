"""The features of a window: names, parameters, and the metrics they suit.

Names are exactly tsfresh's: ``<channel>__<feature>[__<parameter>_<value>...]`` as in tsfresh 0.21,
so that a name turns back into settings (``parse``).  One family has no tsfresh name: tsfresh always
lets AIC choose the lag of the Dickey-Fuller test, which jumps from window to window.  With a fixed
lag the parameters are statsmodels' own (``autolag=None, maxlag=1``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_contract.metric import Kind, Role

Parameter = str | int | float | bool | None

_PARAMETER = re.compile(r'(?P<key>[a-z][a-z_]*?)_(?P<value>"[^"]*"|[^_"]+)\Z')


class FeatureNameError(ValueError):
    """A text is not the name of a feature column; the message says why."""


class FeatureFamily(StrEnum):
    """Features computed together, in one module each."""

    MOMENTS = "moments"
    CHANGES = "changes"
    COUNTS = "counts"
    TREND = "trend"
    AUTOCORRELATION = "autocorrelation"
    STATIONARITY = "stationarity"


class FamilyFit(NamedTuple):
    """Kinds of metric that a family suits, and its cost.

    ``cost`` is the share of the time of all features, in percent (``bench/analysis.py`` prints what
    it measures beside it).
    """

    kinds: frozenset[Kind]
    cost: int


_NUMBERS = frozenset({Kind.COUNTER, Kind.GAUGE, Kind.RATIO})
_ALL = _NUMBERS | {Kind.STATE}

# slopes and lag products of state codes mean nothing
FITS: dict[FeatureFamily, FamilyFit] = {
    FeatureFamily.MOMENTS: FamilyFit(_ALL, 14),
    FeatureFamily.CHANGES: FamilyFit(_ALL, 4),
    FeatureFamily.COUNTS: FamilyFit(_ALL, 20),
    FeatureFamily.TREND: FamilyFit(_NUMBERS, 10),
    FeatureFamily.AUTOCORRELATION: FamilyFit(_NUMBERS, 20),
    FeatureFamily.STATIONARITY: FamilyFit(_NUMBERS, 32),
}


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature: tsfresh's calculator, its parameters, its family, and its name for people."""

    name: str
    family: FeatureFamily
    phrase: str
    params: tuple[tuple[str, Parameter], ...] = ()

    @property
    def suffix(self) -> str:
        """Return the part of a column's name after the channel: ``autocorrelation__lag_1``."""
        return _suffix(self.name, self.params)


class ParsedName(NamedTuple):
    """A column's name in parts; ``channel`` is ``metric`` or ``metric{instance}``."""

    channel: str
    feature: str
    params: dict[str, Parameter]

    @property
    def metric(self) -> str:
        return self.channel.partition("{")[0]

    @property
    def name(self) -> str:
        """Return the column's name; the inverse of ``parse``."""
        return f"{self.channel}__{_suffix(self.feature, self.params.items())}"


def definitions(adf_lag: int = 1) -> tuple[Feature, ...]:
    """Return the 33 features, in the order of the rows of ``numpy_impl.features``."""
    return tuple(_definitions(adf_lag))


def column_name(channel: str, feature: Feature) -> str:
    """Return the name of a column, such as ``cpu.busy{3}__variance``."""
    return f"{channel}__{feature.suffix}"


def parse(name: str) -> ParsedName:
    """Return channel, feature and parameters of a column's name; the inverse of ``column_name``.

    An instance may contain any text, double underscores too.  Raises ``FeatureNameError``.
    """
    brace, end = name.find("{"), name.rfind("}__")
    inside = 0 <= brace < end and "__" not in name[:brace]
    separator = end + 1 if inside else name.find("__")
    channel, rest = name[:separator], name[separator + 2 :]
    if separator <= 0 or not rest:
        raise FeatureNameError(f"{name!r} is not of the form channel__feature")
    feature, *parts = rest.split("__")
    return ParsedName(channel, feature, dict(_parameter(part, name) for part in parts))


def columns(roles: Sequence[Role], kinds: Sequence[Kind] | None = None) -> NDArray[np.bool_]:
    """Return which features each channel gets (paper, section 4.2): a mask (features, channels).

    Dynamic channels get every feature that suits their kind, event counters their sum, static
    channels none, as those differ between hosts only.
    """
    known_kinds = kinds if kinds is not None else [Kind.GAUGE] * len(roles)
    mask = np.zeros((len(FEATURES), len(roles)), np.bool_)
    for column, (role, kind) in enumerate(zip(roles, known_kinds, strict=True)):
        if role is Role.DYNAMIC:
            mask[:, column] = [kind in FITS[feature.family].kinds for feature in FEATURES]
        elif role is Role.EVENT:
            mask[SUM_ROW, column] = True
    return mask


def column_names(channels: Sequence[str], mask: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the names of the chosen columns, in the order of ``features(X)[mask]``."""
    rows, channel_indices = np.nonzero(mask)
    suffixes = [feature.suffix for feature in FEATURES]
    pairs = zip(rows.tolist(), channel_indices.tolist(), strict=True)
    return tuple(f"{channels[channel]}__{suffixes[row]}" for row, channel in pairs)


def _definitions(adf_lag: int) -> Iterator[Feature]:
    yield from _plain(FeatureFamily.MOMENTS, _MOMENTS)
    yield from _plain(FeatureFamily.CHANGES, _CHANGES)
    complexity = "complexity of its course"
    yield Feature("cid_ce", FeatureFamily.CHANGES, f"relative {complexity}", (("normalize", True),))
    yield Feature("cid_ce", FeatureFamily.CHANGES, complexity, (("normalize", False),))
    yield from _plain(FeatureFamily.COUNTS, _COUNTS)
    yield Feature(
        "number_crossing_m", FeatureFamily.COUNTS, "count of crossings of zero", (("m", 0),)
    )
    for support in (1, 3):
        phrase = f"count of peaks of support {support}"
        yield Feature("number_peaks", FeatureFamily.COUNTS, phrase, (("n", support),))
    for attr, phrase in _TREND:
        yield Feature("linear_trend", FeatureFamily.TREND, phrase, (("attr", attr),))
    for lag in (1, 2, 3):
        phrase = f"autocorrelation at lag {lag}"
        yield Feature("autocorrelation", FeatureFamily.AUTOCORRELATION, phrase, (("lag", lag),))
    for how, phrase in (("mean", "mean autocorrelation"), ("var", "spread of autocorrelation")):
        aggregate = (("f_agg", how), ("maxlag", 10))
        yield Feature("agg_autocorrelation", FeatureFamily.AUTOCORRELATION, phrase, aggregate)
    for attr, phrase in _DICKEY_FULLER:
        test = (("attr", attr), ("autolag", None), ("maxlag", adf_lag))
        yield Feature("augmented_dickey_fuller", FeatureFamily.STATIONARITY, phrase, test)


def _plain(family: FeatureFamily, rows: Iterable[tuple[str, str]]) -> Iterator[Feature]:
    return (Feature(name, family, phrase) for name, phrase in rows)


_MOMENTS = (
    ("sum_values", "sum"),
    ("mean", "mean"),
    ("variance", "within-window variance"),
    ("standard_deviation", "standard deviation"),
    ("skewness", "skewness"),
    ("kurtosis", "kurtosis"),
    ("minimum", "minimum"),
    ("maximum", "maximum"),
    ("median", "median"),
    ("abs_energy", "energy"),
)
_CHANGES = (
    ("mean_abs_change", "mean absolute change"),
    ("absolute_sum_of_changes", "sum of absolute changes"),
    ("mean_change", "mean change"),
)
_COUNTS = (
    ("count_above_mean", "count of samples above the mean"),
    ("longest_strike_above_mean", "longest run above the mean"),
)
_TREND = (
    ("slope", "trend"),
    ("stderr", "scatter about the trend"),
    ("intercept", "start of the trend"),
    ("rvalue", "correlation with time"),
    ("pvalue", "significance of the trend"),
)
_DICKEY_FULLER = (
    ("teststat", "stationarity"),
    ("pvalue", "significance of stationarity"),
    ("usedlag", "lag of the stationarity test"),
)


def _suffix(feature: str, params: Iterable[tuple[str, Parameter]]) -> str:
    words = (f"{key}_{_written(value)}" for key, value in sorted(params))
    return "__".join((feature, *words))


def _written(value: Parameter) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _parameter(part: str, name: str) -> tuple[str, Parameter]:
    match = _PARAMETER.match(part)
    if match is None:
        raise FeatureNameError(f"{name!r}: {part!r} is not of the form parameter_value")
    try:
        value = ast.literal_eval(match["value"])
    except (ValueError, SyntaxError):
        raise FeatureNameError(f"{name!r}: {match['value']!r} is not a value") from None
    if not isinstance(value, Parameter):
        raise FeatureNameError(f"{name!r}: {match['value']!r} is not a plain value")
    return match["key"], value


FEATURES = definitions()
SUM_ROW = next(row for row, feature in enumerate(FEATURES) if feature.name == "sum_values")


def first_row(family: FeatureFamily) -> int:
    """Return the row of ``features`` with which a family begins."""
    return next(row for row, feature in enumerate(FEATURES) if feature.family is family)
