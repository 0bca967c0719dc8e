"""Window features beside tsfresh: the same features of the same windows, one core, one run."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from tsfresh import extract_features
from tsfresh.feature_extraction.settings import from_columns

from benchmark_report import Row, median_seconds
from proc_windows import Floats, recorded_windows
from reveal_analyzer.features.numpy_impl import calculators
from reveal_analyzer.features.prepared import prepare
from reveal_analyzer.features.table import FEATURES, FITS, FeatureFamily, column_name
from reveal_analyzer.kernels.backend import Backend


def compare(channels: int, tiers: list[Backend]) -> list[Row]:
    window = recorded_windows(1, channels)[0]
    rows: list[Row] = []
    # tsfresh lets AIC choose the lag of the Dickey-Fuller test; ours is fixed at one
    theirs = tsfresh_seconds(window, stationarity=True)
    for tier in tiers:
        ours = median_seconds(lambda t=tier: t.features(window), calls=300)
        rows.append(row(f"33 features, {tier.name}", channels, theirs, ours))
    theirs = tsfresh_seconds(window, stationarity=False)
    ours = family_seconds(window, set(FeatureFamily) - {FeatureFamily.STATIONARITY})
    return [*rows, row("30 features, no Dickey-Fuller, numpy", channels, theirs, ours)]


def row(what: str, channels: int, theirs: float, ours: float) -> Row:
    return {
        "what": what,
        "channels": channels,
        "others us": theirs * 1e6,
        "reveal us": ours * 1e6,
        "times": theirs / ours,
    }


def family_costs(channels: int) -> list[Row]:
    """What each family of numpy's takes, beside the cost that the table states."""
    window = recorded_windows(1, channels)[0]
    shared = family_seconds(window, set())
    own = {family: family_seconds(window, {family}) - shared for family in FeatureFamily}
    whole = shared + sum(own.values())
    return [
        {
            "what": f"family {family}, numpy",
            "channels": channels,
            "reveal us": seconds * 1e6,
            "share %": 100 * seconds / whole,
            "table's cost": FITS[family].cost,
        }
        for family, seconds in own.items()
    ]


def family_seconds(window: Floats, families: set[FeatureFamily]) -> float:
    chosen = [calculate for family, calculate in calculators().items() if family in families]

    def compute() -> None:
        with np.errstate(all="ignore"):
            prepared = prepare(window)
            for calculate in chosen:
                calculate(prepared)

    return median_seconds(compute, calls=200)


def tsfresh_seconds(window: Floats, *, stationarity: bool) -> float:
    named = [f for f in FEATURES if f.family is not FeatureFamily.STATIONARITY]
    asked = from_columns([column_name("any", feature) for feature in named])["any"]
    if stationarity:
        asked["augmented_dickey_fuller"] = [
            {"attr": attr} for attr in ("teststat", "pvalue", "usedlag")
        ]
    long = as_tsfresh_takes_it(window)

    def extract() -> None:
        extract_features(
            long, column_id="id", column_sort="time", column_kind="kind", column_value="value",
            default_fc_parameters=asked, n_jobs=0, disable_progressbar=True,
        )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return median_seconds(extract, calls=1, rounds=3)


def as_tsfresh_takes_it(window: Floats) -> pd.DataFrame:
    ticks, channels = window.shape
    return pd.DataFrame(
        {
            "id": 0,
            "kind": np.repeat([f"c{column:04d}" for column in range(channels)], ticks),
            "time": np.tile(np.arange(ticks), channels),
            "value": window.T.ravel(),
        }
    )
