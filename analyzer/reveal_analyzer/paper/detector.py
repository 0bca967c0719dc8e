"""The paper's decision on the windows of one node: agreement of three detectors.

A window is marked if at least two of three detectors exceed their 99th percentile (section 4.3).
Outside ``--mode paper`` the verdicts are shown as ``methods`` of a finding: they explain it and do
not decide.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.paper_detectors import MIN_WINDOWS, MethodScore, PaperDetectors
from reveal_analyzer.features import units
from reveal_analyzer.features.table import FEATURES, SUM_ROW, Feature, columns
from reveal_analyzer.kernels import backend
from reveal_contract.finding import Method
from reveal_contract.metric import Kind, Role, Subsystem

_LEADING_CHANNELS = 10
_CO_OCCURRING = 0.25  # of the leading subsystem's share
_LEAST_SHARE = 0.15  # of a level that stood still: a smaller change is less than a spread


@dataclass(frozen=True, slots=True)
class EvidencePair:
    """A metric-feature pair that is evidence for a window; ``share`` is its part of the score.

    Values are in ``unit``, per second for a counter, whatever the sample period.
    """

    channel: str
    feature: str
    share: float
    value: float
    baseline: float
    subsystem: Subsystem
    claim: str
    unit: str = ""

    @property
    def name(self) -> str:
        """Return the name as in the paper's reports: ``cpu.busy__variance``."""
        return f"{self.channel}__{self.feature}"

    @property
    def direction(self) -> str:
        return "up" if self.value > self.baseline else "down"


@dataclass(frozen=True, slots=True)
class PaperVerdict:
    """Verdict of the three detectors on one window; pairs and subsystems are set if any agrees."""

    methods: tuple[MethodScore, ...]
    marked: bool
    pairs: tuple[EvidencePair, ...] = ()
    subsystems: tuple[Subsystem, ...] = ()

    @property
    def agreeing(self) -> int:
        return sum(method.agrees for method in self.methods)

    @property
    def subsystem(self) -> Subsystem | None:
        """Return the subsystem with the largest share."""
        return self.subsystems[0] if self.subsystems else None

    @property
    def claim(self) -> str:
        """Return one evidence-based sentence (the paper's Table 4)."""
        return self.pairs[0].claim if self.pairs else ""

    def as_methods(self) -> tuple[Method, ...]:
        """Return the verdict as ``methods`` of a finding."""
        return tuple(Method(m.name, m.agrees, m.score_percent) for m in self.methods)


class SampleUnits(NamedTuple):
    """What the samples of a window are, by channel, for evidence and for what stood still.

    ``amounts`` are those in a sample that begin to matter, in the units of the samples.
    """

    tick_s: float
    units: Sequence[str]
    amounts: Floats


class PaperDetector:
    """Learns a node's own windows, then judges each new window.

    ``names`` are the labels of the channels of a window, in order; ``titles`` are their names for
    people (the labels by default).  The first ``warmup_windows`` are the reference.  With
    ``refit_windows`` it is fitted again after so many more windows, from a uniform sample of
    ``reservoir`` windows of all time.  Without ``samples`` values are per sample and without unit,
    and any change of a channel that stood still counts.
    """

    def __init__(
        self,
        names: Sequence[str],
        subsystems: Sequence[Subsystem],
        *,
        roles: Sequence[Role] | None = None,
        kinds: Sequence[Kind] | None = None,
        titles: Sequence[str] | None = None,
        samples: SampleUnits | None = None,
        options: PaperOptions | None = None,
    ) -> None:
        self._options = options or PaperOptions()
        self._kinds = tuple(kinds) if kinds is not None else (Kind.GAUGE,) * len(names)
        self._samples, self._ticks = samples, 0
        self._names, self._subsystems = tuple(names), tuple(subsystems)
        self._titles = tuple(titles) if titles is not None else self._names
        for labels in (self._subsystems, self._titles):
            if len(labels) != len(self._names):
                raise ValueError(
                    f"{len(labels)} subsystems or titles for {len(self._names)} channels"
                )
        mask = columns(roles or [Role.DYNAMIC] * len(self._names), kinds)
        self._layout = _VectorLayout.of(mask)
        self._reservoir = _Reservoir(self._options.reservoir)
        self._since_fit = 0
        self._last: tuple[Floats, Floats] | None = None
        self._detectors: PaperDetectors | None = None

    @property
    def ready(self) -> bool:
        """Return whether the reference is learned, so that ``judge`` returns a verdict."""
        return self._detectors is not None

    def learn(self, window: Floats) -> None:
        """Add a window (ticks, channels) to the reference.

        The caller decides which windows are healthy; during the warm-up all are.
        """
        if self.ready and not self._options.refit_windows:
            return
        self._reservoir.add(self._vector(window))
        self._since_fit += 1
        due = self._options.refit_windows if self.ready else self._options.warmup_windows
        if self._since_fit >= due:
            self.fit()

    def fit(self) -> None:
        """Fit on the windows learned so far (at least 30), in under a second for 400 channels."""
        times, vectors = self._reservoir.sample()
        options = self._options
        self._detectors = PaperDetectors(
            contamination=options.contamination,
            overlap=options.overlap,
            random_state=options.random_state,
        ).fit(vectors, times, self._least_changes(vectors))
        self._since_fit = 0
        if not self._options.refit_windows:
            self._reservoir = _Reservoir(self._options.reservoir)

    def judge(self, window: Floats) -> PaperVerdict | None:
        """Return the verdict on a window (ticks, channels), or ``None`` during the warm-up."""
        if self._detectors is None:
            return None
        vector = self._vector(window)
        scores = self._detectors.judge(vector[None])[0]
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
        if self._detectors is None:
            raise ValueError("there is nothing to save before the warm-up is over")
        self._detectors.save(path, self._digest())

    def load(self, path: Path) -> None:
        """Load a saved reference of the same channels; raises ``ModelError``."""
        detectors = PaperDetectors(random_state=self._options.random_state)
        self._detectors = detectors.load(path, self._digest())

    def _digest(self) -> str:
        layout = self._layout
        parts = [*self._names, layout.rows.tobytes().hex(), layout.channels.tobytes().hex()]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    def _vector(self, window: Floats) -> Floats:
        """Return the features of a window as one row.

        Cached, as a window is judged and then learned.
        """
        if window.shape[1:] != (len(self._names),):
            raise ValueError(
                f"a window of {len(self._names)} channels expected, not {window.shape}"
            )
        self._ticks = len(window)
        if self._last is None or self._last[0] is not window:
            self._last = window, self._layout.vector(window)
        return self._last[1]

    def _pairs(self, methods: Iterable[MethodScore], vector: Floats) -> tuple[EvidencePair, ...]:
        """Return the pairs of all agreeing methods by their mean share, largest first."""
        agreeing = [method for method in methods if method.agrees]
        shares: dict[int, float] = {}
        for method in agreeing:
            for part in method.top:
                shares[part.column] = shares.get(part.column, 0.0) + part.share / len(agreeing)
        ranked = sorted(shares.items(), key=lambda item: (-item[1], item[0]))
        return tuple(self._pair(column, share, vector) for column, share in ranked)

    def _pair(self, column: int, share: float, vector: Floats) -> EvidencePair:
        assert self._detectors is not None
        channel = int(self._layout.channels[column])
        feature = FEATURES[self._layout.rows[column]]
        factor, unit = self._unit(channel, feature)
        value = factor * float(vector[column])
        baseline = factor * float(self._detectors.baseline_[column])
        level = "higher" if value > baseline else "lower"
        name = f" {unit}" if unit else ""
        return EvidencePair(
            channel=self._names[channel],
            feature=feature.suffix,
            share=share,
            value=value,
            baseline=baseline,
            subsystem=self._subsystems[channel],
            claim=f"{self._titles[channel]} shows {level} {feature.phrase} relative to baseline "
            f"({value:.4g}{name} against {baseline:.4g}{name})",
            unit=unit,
        )

    def _unit(self, channel: int, feature: Feature) -> tuple[float, str]:
        """Return what turns a feature of samples into one in a unit, and that unit."""
        if self._samples is None:
            return 1.0, ""
        kind = self._kinds[channel]
        factor = units.factor(feature, kind, self._samples.tick_s)
        return factor, units.unit(feature, self._samples.units[channel], kind)

    def _least_changes(self, vectors: Floats) -> Floats | None:
        """Return, by feature, the change of one that stood still that counts as a spread."""
        if self._samples is None:
            return None
        rows, channels = self._layout.rows, self._layout.channels
        levels = self._levels(vectors)
        amounts = np.maximum(self._samples.amounts, _LEAST_SHARE * np.abs(levels))
        return units.least_changes(amounts, self._ticks)[rows, channels]

    def _levels(self, vectors: Floats) -> Floats:
        """Return the mean sample of each channel in the reference, 0 where unknown."""
        levels = np.zeros(len(self._names))
        totals = np.flatnonzero(self._layout.rows == SUM_ROW)
        known = np.isfinite(vectors[:, totals])
        sums = np.where(known, vectors[:, totals], 0.0).sum(0)
        means = sums / np.maximum(known.sum(0) * self._ticks, 1)
        levels[self._layout.channels[totals]] = means
        return levels


@dataclass(frozen=True, slots=True)
class PaperOptions:
    """Settings of the decision; windows are counted in strides."""

    agreement: int = 2  # methods over their threshold that mark a window
    contamination: float = 0.01  # share of healthy windows over a method's threshold
    overlap: int = 2  # strides up to which two windows share samples
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
class _VectorLayout:
    """Which feature of which channel each column of a vector is."""

    rows: NDArray[np.intp]
    channels: NDArray[np.intp]
    dynamic: NDArray[np.intp]  # channels with window features
    events: NDArray[np.intp]  # channels with their sum only
    mask: NDArray[np.bool_]  # (features, dynamic channels)
    whole: bool  # every channel has every feature: nothing is left out

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> _VectorLayout:
        chosen = mask.sum(0)
        dynamic, events = np.flatnonzero(chosen > 1), np.flatnonzero(chosen == 1)
        rows, dynamic_indices = np.nonzero(mask[:, dynamic])
        return cls(
            rows=np.concatenate([rows, np.full(events.size, SUM_ROW)]),
            channels=np.concatenate([dynamic[dynamic_indices], events]),
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
    """A uniform sample of all windows (Vitter's algorithm R), deterministic."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._count = 0
        self._kept: list[tuple[int, Floats]] = []
        self._random = np.random.default_rng(0)

    def add(self, vector: Floats) -> None:
        entry = self._count, vector
        self._count += 1
        if len(self._kept) < self._size:
            self._kept.append(entry)
        elif (slot := int(self._random.integers(self._count))) < self._size:
            self._kept[slot] = entry

    def sample(self) -> tuple[NDArray[np.int64], Floats]:
        """Return times (strides) and vectors (windows, features), in the order of time."""
        ordered = sorted(self._kept, key=lambda entry: entry[0])
        times = np.array([time for time, _ in ordered], np.int64)
        return times, np.array([vector for _, vector in ordered], np.float64)


def _subsystems(pairs: Sequence[EvidencePair]) -> tuple[Subsystem, ...]:
    """Return the subsystems by share: the leading one, then those with at least a quarter of it.

    Only the best pair of a channel counts, and only the leading channels: a subsystem must not lead
    because it has many channels or many features with the same content.
    """
    best: dict[str, EvidencePair] = {}
    for pair in pairs:  # largest share first
        best.setdefault(pair.channel, pair)
    shares: dict[Subsystem, float] = {}
    for pair in list(best.values())[:_LEADING_CHANNELS]:
        shares[pair.subsystem] = shares.get(pair.subsystem, 0.0) + pair.share
    ranked = sorted(shares, key=lambda subsystem: (-shares[subsystem], subsystem))
    return tuple(s for s in ranked if shares[s] >= _CO_OCCURRING * shares[ranked[0]])
