"""Window features beside tsfresh: the same 33 features of the same windows, one core, one run."""

import argparse
import warnings

import numpy as np
import pandas as pd
from tsfresh import extract_features
from tsfresh.feature_extraction.settings import from_columns

from report import Row, median_seconds, one_core, report
from reveal_analyzer.features.numpy_impl import calculators, features
from reveal_analyzer.features.prepared import prepare
from reveal_analyzer.features.table import FEATURES, FITS, Family, column_name
from windows_of_proc import Floats, recorded_windows


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


def tsfresh_seconds(window: Floats, *, stationarity: bool) -> float:
    named = [f for f in FEATURES if f.family is not Family.STATIONARITY]
    asked = from_columns([column_name("any", feature) for feature in named])["any"]
    if stationarity:  # tsfresh lets AIC choose the lag
        asked["augmented_dickey_fuller"] = [
            {"attr": attr} for attr in ("teststat", "pvalue", "usedlag")
        ]
    long = as_tsfresh_takes_it(window)

    def extract() -> None:
        extract_features(
            long, column_id="id", column_sort="time", column_kind="kind", column_value="value",
            default_fc_parameters=asked, n_jobs=0, disable_progressbar=True,
        )  # fmt: skip

    return median_seconds(extract, calls=1, rounds=3)


def our_seconds(window: Floats, families: set[Family]) -> float:
    if families == set(Family):
        return median_seconds(lambda: features(window), calls=200)
    chosen = [calculate for family, calculate in calculators().items() if family in families]

    def compute() -> None:
        with np.errstate(all="ignore"):
            prepared = prepare(window)
            for calculate in chosen:
                calculate(prepared)

    return median_seconds(compute, calls=200)


def compare(channels: int) -> list[Row]:
    window = recorded_windows(1, channels)[0]
    rows: list[Row] = []
    for what, families in (
        ("33 features", set(Family)),
        ("30, no Dickey-Fuller", set(Family) - {Family.STATIONARITY}),
    ):
        theirs = tsfresh_seconds(window, stationarity=Family.STATIONARITY in families)
        ours = our_seconds(window, families)
        row: Row = {"what": what, "channels": channels, "tsfresh ms": theirs * 1e3}
        rows.append(row | {"reveal ms": ours * 1e3, "times": theirs / ours})
    return rows


def family_costs(channels: int) -> list[Row]:
    window = recorded_windows(1, channels)[0]
    shared = our_seconds(window, set())
    own = {family: our_seconds(window, {family}) - shared for family in Family}
    whole = shared + sum(own.values())
    costs: list[Row] = [
        {
            "what": f"family {family}",
            "channels": channels,
            "reveal ms": seconds * 1e3,
            "share %": 100 * seconds / whole,
            "table's cost": FITS[family].cost,
        }
        for family, seconds in own.items()
    ]
    return [*costs, {"what": "shared", "channels": channels, "reveal ms": shared * 1e3}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, nargs="+", default=[400, 700])
    channels = parser.parse_args().channels
    warnings.simplefilter("ignore")
    one_core()
    rows = [row for count in channels for row in compare(count)] + family_costs(channels[0])
    report("features", rows, goal="33 features at 400 channels: 1,000 times tsfresh")


if __name__ == "__main__":
    main()
