"""The paper's three detectors on the same windows: how many agree, and on what (section 4.3)."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.base import Arrays
from reveal_analyzer.detectors.member import METHODS, Member, below, prefixed
from reveal_analyzer.detectors.threshold import Threshold, folds, threshold

SCHEMA = 1
MIN_WINDOWS = 30


class ModelError(ValueError):
    """A stored model cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A feature column and its share of a method's score, 0 to 1."""

    column: int
    share: float


@dataclass(frozen=True, slots=True)
class MethodScore:
    """One detector on one window; ``top`` is filled where it agrees, largest share first."""

    name: str
    score: float
    threshold: float
    agrees: bool
    score_percent: int
    top: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class MethodScores:
    """The three detectors on one window."""

    methods: tuple[MethodScore, ...]

    @property
    def agreeing(self) -> int:
        return sum(method.agrees for method in self.methods)


class Trio:
    """Fits the three on a reference of windows and judges others, deterministically.

    The reference is cut into ``parts`` stretches of time.  Each member is fitted without one of
    them and scores that one; thresholds are percentiles of these held-out scores, and a new
    window's score is the mean of the members'.  No detector is fitted on all windows: its
    distances would be shorter than those the threshold was taken from (measured: with 60
    windows of 400 features, half of all healthy windows fell on the wrong side).

    ``contamination`` is the share of healthy windows that may lie over a method's threshold,
    ``overlap`` how many strides apart two windows still share samples, ``top`` how many feature
    columns a method names.
    """

    def __init__(
        self,
        *,
        contamination: float = 0.01,
        parts: int = 3,
        overlap: int = 2,
        top: int = 30,
        random_state: int = 0,
    ) -> None:
        self.contamination = contamination
        self.parts = parts
        self.overlap = overlap
        self.top = top
        self.random_state = random_state

    def fit(self, windows: Floats, times: NDArray[np.integer] | None = None) -> Self:
        """Learn from windows (n >= 30, features); ``times`` in strides, consecutive if not given.

        ``baseline_`` is the mean of every feature, NaN where it was never known.
        """
        if len(windows) < MIN_WINDOWS:
            raise ValueError(f"a reference takes {MIN_WINDOWS} windows or more, not {len(windows)}")
        at = np.arange(len(windows)) if times is None else times
        members, held_out = [], []
        for fit_on, left_out in folds(at, self.parts, self.overlap):
            member = Member.fit(windows[fit_on], self.random_state)
            held_out.append(member.scores(windows[left_out]))
            members.append(member)
        quantile = 1.0 - self.contamination
        self.thresholds_ = [threshold(each, quantile) for each in np.concatenate(held_out, axis=1)]
        self.members_ = members
        self.baseline_ = _known_mean(windows)
        return self

    def judge(self, windows: Floats) -> list[MethodScores]:
        """What each method says of each window (n, features)."""
        scores = np.mean([member.scores(windows) for member in self.members_], axis=0)
        return [
            self._judged(windows[at : at + 1], scores[:, at].tolist()) for at in range(len(windows))
        ]

    def save(self, path: Path, layout: str = "") -> None:
        """Write the model as arrays (npz), whole or not at all.

        ``layout`` names the columns it was fitted on; ``load`` asks for the same.
        """
        arrays: Arrays = {
            "schema": np.array(SCHEMA),
            "layout": np.array(layout),
            "members": np.array(len(self.members_)),
            "baseline": self.baseline_,
            "thresholds": np.array([[each.value, each.centre] for each in self.thresholds_]),
        }
        for number, member in enumerate(self.members_):
            arrays |= prefixed(str(number), member.to_arrays())
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        part.replace(path)

    def load(self, path: Path, layout: str = "") -> Self:
        """Take over a saved model; raises ``ModelError`` for anything else, ``OSError`` too."""
        try:
            with np.load(path, allow_pickle=False) as held:
                arrays: Arrays = {name: held[name] for name in held.files}
            self._take(arrays, layout)
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ModelError(f"{path}: not a usable model of detectors: {error}") from None
        return self

    def _judged(self, window: Floats, scores: list[float]) -> MethodScores:
        each = enumerate(zip(scores, self.thresholds_, strict=True))
        return MethodScores(
            tuple(self._method(method, score, limit, window) for method, (score, limit) in each)
        )

    def _method(self, method: int, score: float, limit: Threshold, window: Floats) -> MethodScore:
        agrees = score > limit.value
        top = self._top(method, window) if agrees else ()
        return MethodScore(METHODS[method], score, limit.value, agrees, limit.percent(score), top)

    def _top(self, method: int, window: Floats) -> tuple[Part, ...]:
        """The columns that add most, as shares of all that is added."""
        each = [member.contributions(method, window)[0] for member in self.members_]
        positive = np.maximum(np.mean(each, axis=0), 0.0)
        count = min(self.top, int(np.count_nonzero(positive)))
        if not count:
            return ()
        largest = np.argpartition(-positive, count - 1)[:count]
        order = largest[np.lexsort((largest, -positive[largest]))]
        shares = positive[order] / positive.sum()
        return tuple(map(Part, order.tolist(), shares.tolist()))

    def _take(self, arrays: Arrays, layout: str) -> None:
        if int(arrays["schema"]) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        if str(arrays["layout"]) != layout:
            raise ValueError("it was fitted on other columns")
        count = int(arrays["members"])
        members = [Member.from_arrays(below(str(number), arrays)) for number in range(count)]
        thresholds = [Threshold(*map(float, pair)) for pair in arrays["thresholds"]]
        if not members or len(thresholds) != len(METHODS):
            raise ValueError(f"it has {count} members and {len(thresholds)} thresholds")
        if {(member.scaler.features_,) for member in members} != {arrays["baseline"].shape}:
            raise ValueError("its members are not of one width")
        self.members_, self.thresholds_, self.baseline_ = members, thresholds, arrays["baseline"]


def _known_mean(windows: Floats) -> Floats:
    known = np.isfinite(windows)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(known, windows, 0.0).sum(0) / known.sum(0))
