"""Acquisition: the harmonic comb that holds most of a counter's spectrum, if any does.

A step that repeats puts power at 1/T and its multiples.  A candidate gains by the amplitude at
its teeth and loses by that halfway between them, so that neither half nor twice the period wins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats

LONGEST_S = 7.5  # eight steps must fit into the longest window
_TEETH = 4
_FADING = 0.84  # what each further tooth counts
_PADDING = 4
_LEAST_TURNS = 3.0  # periods that must fit into the stretch
_BAND = 0.46  # of the sampling rate: candidates end a little below Nyquist's half
_LINE = 1.5  # half the width of a Hann window's line, in bins of the unpadded transform
_STILL = 0.1
_TINY = 1e-30
_WHOLE_BAND = 4.6  # Hz looked at: of small steps two teeth must lie in it
_WHOLE_LEAST = 1.8  # small steps that a whole one has at least
_APART = 0.02  # Hz that the highest tooth moves between two candidates: less than its line
_CLEARLY = 0.1


@dataclass(frozen=True)
class Claim:
    """A period in s, and the share of power in its teeth beyond chance, 0 to 1."""

    period: float
    strength: float


@dataclass(frozen=True)
class Spectrum:
    """Power of a windowed stretch, ``step`` Hz a bin, lines ``wide`` bins to either side.

    ``mean`` is the counter's own, before anything was taken off; ``gain`` turns the power of a
    line into half its squared amplitude.
    """

    power: Floats
    step: float
    wide: int
    rate: float
    mean: float
    gain: float
    seconds: float


def tamed(values: Floats) -> Floats:
    """Around its median, without the few values far outside: a checkpoint is no rhythm."""
    middle = np.median(values)
    off = values - middle
    most, nearly_all = np.percentile(np.abs(off), (97, 99.5))
    # what nearly always stands still: its few bursts are the rhythm
    reach = 2 * (most if most > _STILL * nearly_all else nearly_all)
    return np.clip(off, -reach - _TINY, reach + _TINY)


def spectrum(values: Floats, rate: float) -> Spectrum:
    """The spectrum of a stretch of increments, ``rate`` of them a second."""
    count = len(values)
    off = tamed(values)
    window = np.hanning(count)
    size = 1 << (_PADDING * count - 1).bit_length()
    power = np.abs(np.fft.rfft((off - off.mean()) * window, size)) ** 2
    return Spectrum(
        power, rate / size, int(_LINE * size / count) + 1, rate, float(values.mean()),
        2.0 / (size * float((window * window).sum()) + _TINY), count / rate,
    )  # fmt: skip


def best(seen: Spectrum, top: float | None = None) -> Claim | None:
    """The comb with most amplitude; ``top`` (Hz) leaves out what lies above it."""
    end = len(seen.power) if top is None else min(len(seen.power), int(top / seen.step))
    power = seen.power[:end]
    if power.sum() < _TINY:
        return None
    slowest = max(1 / LONGEST_S, _LEAST_TURNS / seen.seconds)
    fastest = min(_BAND * seen.rate, (end - 1) * seen.step)
    places = np.arange(max(1, int(slowest / seen.step)), int(fastest / seen.step))
    if not places.size:
        return None
    place = int(places[np.argmax(_heights(np.sqrt(power), places))])
    frequency = _refined(power, place, seen.wide) * seen.step
    return Claim(1 / frequency, strength(seen, 1 / frequency, top))


def strength(seen: Spectrum, period: float, top: float | None = None) -> float:
    """The share of power in the teeth of ``period`` (s) beyond chance."""
    end = len(seen.power) if top is None else min(len(seen.power), int(top / seen.step))
    low = int(0.5 / period / seen.step)
    if end <= low:
        return 0.0
    return _held(seen, 1 / period, low, end)


def whole(seen: Spectrum, period: float) -> Claim | None:
    """The slower comb that holds clearly more power than that of ``period``, if one does.

    A step of several smaller ones shows the small ones' lines, but what is done between whole
    steps, as exchanging gradients, moves only the slow rhythm.
    """
    top = min(_WHOLE_BAND, _BAND * seen.rate)
    first, last = 1 / LONGEST_S, 1 / (_WHOLE_LEAST * period)
    if last <= first or 2 / period > top:
        return None
    low, end = int(0.5 * first / seen.step), int(top / seen.step)
    count = int(np.log(last / first) * top / _APART) + 2
    candidates = np.geomspace(first, last, count)
    held = np.array([_held(seen, frequency, low, end) for frequency in candidates])
    best_at = int(np.argmax(held))
    if held[best_at] < _held(seen, 1 / period, low, end) + _CLEARLY:
        return None
    return Claim(float(1 / candidates[best_at]), float(held[best_at]))


def _held(seen: Spectrum, frequency: float, low: int, end: int) -> float:
    """The share of the power of these bins in teeth at multiples of a frequency beyond chance."""
    power, turns = seen.power[low:end], np.arange(low, end) * (seen.step / frequency)
    tooth = np.abs(turns - np.round(turns)) * frequency <= seen.wide * seen.step
    chance, total = float(tooth.mean()), float(power.sum())
    if chance >= 1 or total < _TINY:
        return 0.0
    return max(0.0, (float(power[tooth].sum()) / total - chance) / (1 - chance))


def _heights(amplitude: Floats, places: NDArray[np.intp]) -> Floats:
    heights = np.zeros(len(places))
    for tooth in range(1, _TEETH + 1):
        for at, sign in ((tooth * places, 1), (tooth * places - places // 2, -1)):
            inside = int(np.searchsorted(at, len(amplitude)))
            heights[:inside] += sign * _FADING**tooth * amplitude[at[:inside]]
    return heights


def _refined(power: Floats, place: int, wide: int) -> float:
    """The fundamental in bins, from where its teeth really peak, higher ones telling it finer."""
    found, weights = [], []
    for tooth in range(1, _TEETH + 1):
        at = tooth * place
        if at + 3 * tooth >= len(power):
            break
        low = max(1, at - wide // 3)
        peak = low + int(np.argmax(power[low : at + wide // 3 + 1]))
        if peak + 1 < len(power):
            found.append(summit(np.log(power[peak - 1 : peak + 2] + _TINY), peak) / tooth)
            weights.append(float(power[peak]) * tooth * tooth)
    if not found or sum(weights) <= 0:
        return float(place)
    return float(np.average(found, weights=weights))


def summit(around: Floats, place: float) -> float:
    """Where the parabola through the values beside ``place`` and at it has its top."""
    before, at, after = around.tolist()
    bend = before - 2 * at + after
    return place + (0.5 * (before - after) / bend if bend < 0 else 0.0)
