"""The paper's decision on the windows of one node: agreement of three detectors.

A window is marked where at least two of the three lie over their 99th percentile; adjacent
marked windows are one episode (sections 4.3 and 4.4).  Off ``--mode paper`` the same verdicts
stand beside a finding as ``methods``: they explain it and do not decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.trio import MIN_WINDOWS, MethodScore, Trio
from reveal_analyzer.features.table import FEATURES, SUM_ROW, columns
from reveal_analyzer.kernels import backend
from reveal_contract.finding import Method
from reveal_contract.metric import Kind, Role, Subsystem

_VOTING_CHANNELS = 10
_CO_OCCURRING = 0.25  # of the leading subsystem's votes


@dataclass(frozen=True, slots=True)
class Pair:
    """A metric-feature pair that speaks for a window; ``share`` is its part of the score, 0-1."""

    channel: str
    feature: str
    share: float
    value: float
    baseline: float
    subsystem: Subsystem
    claim: str

    @property
    def name(self) -> str:
        """As in the paper's reports: ``cpu.busy__variance``."""
        return f"{self.channel}__{self.feature}"

    @property
    def direction(self) -> str:
        return "up" if self.value > self.baseline else "down"


@dataclass(frozen=True, slots=True)
class PaperVerdict:
    """What the three say of one window; pairs and subsystems are filled where any agrees."""

    methods: tuple[MethodScore, ...]
    marked: bool
    pairs: tuple[Pair, ...] = ()
    subsystems: tuple[Subsystem, ...] = ()

    @property
    def agreeing(self) -> int:
        return sum(method.agrees for method in self.methods)

    @property
    def subsystem(self) -> Subsystem | None:
        """The one with most votes."""
        return self.subsystems[0] if self.subsystems else None

    @property
    def claim(self) -> str:
        """One evidence-based sentence (the paper's Table 4)."""
        return self.pairs[0].claim if self.pairs else ""

    def as_methods(self) -> tuple[Method, ...]:
        """The verdict as a finding's ``methods``."""
        return tuple(Method(m.name, m.agrees, m.score_percent) for m in self.methods)


class PaperDetector:
    """Learns a node's own windows, then says of each new one how many detectors agree.

    ``names`` are the labels of the channels of a window, in order, ``titles`` what people call
    them (the labels if not given).  The first ``warmup_windows`` learned are the reference;
    with ``refit_windows`` it is fitted anew after so many more, from a uniform sample of
    ``reservoir`` windows of all time.
    """

    def __init__(
        self,
        names: Sequence[str],
        subsystems: Sequence[Subsystem],
        *,
        roles: Sequence[Role] | None = None,
        kinds: Sequence[Kind] | None = None,
        titles: Sequence[str] | None = None,
        options: PaperOptions | None = None,
    ) -> None:
        self._options = options or PaperOptions()
        self._names, self._subsystems = tuple(names), tuple(subsystems)
        self._titles = tuple(titles) if titles is not None else self._names
        for what in (self._subsystems, self._titles):
            if len(what) != len(self._names):
                raise ValueError(
                    f"{len(what)} subsystems or titles for {len(self._names)} channels"
                )
        mask = columns(roles or [Role.DYNAMIC] * len(self._names), kinds)
        self._layout = _Layout.of(mask)
        self._reservoir = _Reservoir(self._options.reservoir)
        self._since_fit = 0
        self._last: tuple[Floats, Floats] | None = None
        self._trio: Trio | None = None

    @property
    def ready(self) -> bool:
        """Whether the reference is learned, so that ``judge`` answers."""
        return self._trio is not None

    def learn(self, window: Floats) -> None:
        """Take a window (ticks, channels) into the reference.

        Which ones are healthy is the caller's to know; during the warm-up all are.
        """
        if self.ready and not self._options.refit_windows:
            return
        self._reservoir.take(self._vector(window))
        self._since_fit += 1
        due = self._options.refit_windows if self.ready else self._options.warmup_windows
        if self._since_fit >= due:
            self.fit()

    def fit(self) -> None:
        """Fit on the windows learned so far (at least 30); under a second for 400 channels."""
        times, vectors = self._reservoir.content()
        self._trio = Trio(random_state=self._options.random_state).fit(vectors, times)
        self._since_fit = 0
        if not self._options.refit_windows:
            self._reservoir = _Reservoir(self._options.reservoir)

    def judge(self, window: Floats) -> PaperVerdict | None:
        """The verdict on a window (ticks, channels), or ``None`` during the warm-up."""
        if self._trio is None:
            return None
        vector = self._vector(window)
        scores = self._trio.judge(vector[None])[0]
        verdict = PaperVerdict(scores.methods, scores.agreeing >= self._options.agreement)
        if not scores.agreeing:
            return verdict
        pairs = self._pairs(scores.methods, vector)
        return replace(
            verdict,
            pairs=pairs[: self._options.pairs],
            subsystems=_subsystems(pairs),
        )

    def save(self, path: Path) -> None:
        """Write the fitted reference (npz)."""
        if self._trio is None:
            raise ValueError("there is nothing to save before the warm-up is over")
        self._trio.save(path, self._digest())

    def load(self, path: Path) -> None:
        """Take over a saved reference of the same channels; raises ``ModelError``."""
        trio = Trio(random_state=self._options.random_state)
        self._trio = trio.load(path, self._digest())

    def _digest(self) -> str:
        layout = self._layout
        parts = [*self._names, layout.rows.tobytes().hex(), layout.channels.tobytes().hex()]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    def _vector(self, window: Floats) -> Floats:
        """Features of a window as one row; kept, as a window is judged and then learned."""
        if window.shape[1:] != (len(self._names),):
            raise ValueError(
                f"a window of {len(self._names)} channels expected, not {window.shape}"
            )
        if self._last is None or self._last[0] is not window:
            self._last = window, self._layout.vector(window)
        return self._last[1]

    def _pairs(self, methods: Iterable[MethodScore], vector: Floats) -> tuple[Pair, ...]:
        """The pairs of all agreeing methods by their mean share, largest first."""
        agreeing = [method for method in methods if method.agrees]
        shares: dict[int, float] = {}
        for method in agreeing:
            for part in method.top:
                shares[part.column] = shares.get(part.column, 0.0) + part.share / len(agreeing)
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        return tuple(self._pair(column, share, vector) for column, share in ranked)

    def _pair(self, column: int, share: float, vector: Floats) -> Pair:
        assert self._trio is not None
        channel = int(self._layout.channels[column])
        feature = FEATURES[self._layout.rows[column]]
        value = float(vector[column])
        baseline = float(self._trio.baseline_[column])
        level = "higher" if value > baseline else "lower"
        return Pair(
            channel=self._names[channel],
            feature=feature.suffix,
            share=share,
            value=value,
            baseline=baseline,
            subsystem=self._subsystems[channel],
            claim=f"{self._titles[channel]} shows {level} {feature.phrase} relative to baseline "
            f"({value:.4g} against {baseline:.4g})",
        )


@dataclass(frozen=True, slots=True)
class PaperOptions:
    """Settings of the decision; windows are counted in strides (1 s)."""

    agreement: int = 2  # methods over their threshold that mark a window
    warmup_windows: int = 58  # of 3 s, stride 1 s, in 60 s
    refit_windows: int = 0  # never
    reservoir: int = 300
    pairs: int = 10  # named in a verdict
    random_state: int = 0

    def __post_init__(self) -> None:
        if not MIN_WINDOWS <= self.warmup_windows <= self.reservoir:
            raise ValueError(
                f"warm-up takes {MIN_WINDOWS} windows to the reservoir's {self.reservoir}, "
                f"not {self.warmup_windows}"
            )


@dataclass(frozen=True, slots=True)
class PaperEpisode:
    """Adjacent marked windows of one node; ``peak`` is the verdict that most agree on."""

    first_ns: int
    last_ns: int
    windows: int
    peak: PaperVerdict


class PaperEpisodes:
    """Merges adjacent marked windows."""

    def __init__(self) -> None:
        self._open: PaperEpisode | None = None

    @property
    def current(self) -> PaperEpisode | None:
        """The episode that still goes on."""
        return self._open

    def push(
        self, first_ns: int, last_ns: int, verdict: PaperVerdict | None
    ) -> PaperEpisode | None:
        """Take the next window; gives the episode that it ended, if it did."""
        going_on = self._open
        if verdict is None or not verdict.marked:
            return self.close()
        if going_on is not None and first_ns <= going_on.last_ns:
            peak = max(going_on.peak, verdict, key=_strength)
            self._open = PaperEpisode(going_on.first_ns, last_ns, going_on.windows + 1, peak)
            return None
        self._open = PaperEpisode(first_ns, last_ns, 1, verdict)
        return going_on

    def close(self) -> PaperEpisode | None:
        """End the episode that goes on, at the end of data or of a node."""
        ended, self._open = self._open, None
        return ended


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which feature of which channel each column of a vector is."""

    rows: NDArray[np.intp]
    channels: NDArray[np.intp]
    dynamic: NDArray[np.intp]  # channels with window features
    events: NDArray[np.intp]  # channels of which only the sum is taken
    mask: NDArray[np.bool_]  # (features, dynamic channels)
    whole: bool  # every channel has every feature: nothing need be picked

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> _Layout:
        chosen = mask.sum(0)
        dynamic, events = np.flatnonzero(chosen > 1), np.flatnonzero(chosen == 1)
        rows, places = np.nonzero(mask[:, dynamic])
        return cls(
            rows=np.concatenate([rows, np.full(events.size, SUM_ROW)]),
            channels=np.concatenate([dynamic[places], events]),
            dynamic=dynamic,
            events=events,
            mask=mask[:, dynamic],
            whole=bool(mask.all()),
        )

    def vector(self, window: Floats) -> Floats:
        if self.whole:
            return backend.current().features(window).ravel()
        dynamic = np.ascontiguousarray(window[:, self.dynamic])
        of_each = backend.current().features(dynamic)[self.mask]
        return np.concatenate([of_each, window[:, self.events].sum(0)])


class _Reservoir:
    """A uniform sample of the windows seen (Vitter's algorithm R), deterministic."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._seen = 0
        self._kept: list[tuple[int, Floats]] = []
        self._random = np.random.default_rng(0)

    def take(self, vector: Floats) -> None:
        entry = self._seen, vector
        self._seen += 1
        if len(self._kept) < self._size:
            self._kept.append(entry)
        elif (place := int(self._random.integers(self._seen))) < self._size:
            self._kept[place] = entry

    def content(self) -> tuple[NDArray[np.int64], Floats]:
        """Times (strides) and vectors (windows, features), in the order of time."""
        ordered = sorted(self._kept, key=lambda entry: entry[0])
        times = np.array([time for time, _ in ordered], np.int64)
        return times, np.array([vector for _, vector in ordered], np.float64)


def _subsystems(pairs: Sequence[Pair]) -> tuple[Subsystem, ...]:
    """Subsystems by votes, the leading one first, then those with a quarter of its votes.

    Only the best pair of a channel votes, and only the leading channels: a subsystem must not
    win by the number of its channels or of features that say the same.
    """
    best: dict[str, Pair] = {}
    for pair in pairs:  # largest share first
        best.setdefault(pair.channel, pair)
    votes: dict[Subsystem, float] = {}
    for pair in list(best.values())[:_VOTING_CHANNELS]:
        votes[pair.subsystem] = votes.get(pair.subsystem, 0.0) + pair.share
    ranked = sorted(votes, key=lambda subsystem: (-votes[subsystem], subsystem))
    return tuple(s for s in ranked if votes[s] >= _CO_OCCURRING * votes[ranked[0]])


def _strength(verdict: PaperVerdict) -> tuple[int, int]:
    return verdict.agreeing, sum(method.score_percent for method in verdict.methods)
