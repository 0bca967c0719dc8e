"""Harmonic comb: the period whose multiples hold most of the spectrum of a counter.

A step that repeats puts power at 1/T and its multiples, the teeth of the comb.  A candidate gains
by the amplitude at its teeth and loses by the amplitude halfway between them, so that neither half
nor twice the period wins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices

LONGEST_S = 7.5  # eight steps must fit into the longest window
LONGEST_KNOWN_S = 20.0  # three steps of a job that is known must fit into it
_TEETH = 4
_TOOTH_WEIGHT = 0.84  # of each tooth relative to the one before
_PADDING = 4
_LEAST_PERIODS = 3.0  # that must fit into the values
_BAND = 0.46  # of the sampling rate: candidates end a little below the Nyquist frequency
_LINE = 1.5  # half the width of a Hann window's line, in bins of the unpadded transform
_BURSTY = 0.1
_TINY = 1e-30
_SLOWER_BAND = 4.6  # Hz: two teeth of the shorter step must lie in it
_SLOWER_LEAST = 1.8  # short steps in a whole step, at least
_NEAR = 0.6, 3.0  # times the period of a whole step in which it is searched again
_SPACING = 0.02  # Hz that the highest tooth moves between two candidates: less than its line
_CLEARLY = 0.1
_MOST_COVERED = 0.6  # of a band by the lines of a comb's teeth: a denser comb holds all of it


@dataclass(frozen=True)
class CombFit:
    """A period in s, and the share of power in its teeth beyond chance, 0 to 1."""

    period: float
    strength: float


@dataclass(frozen=True)
class Spectrum:
    """Power spectrum of increments: ``step`` Hz per bin, lines ``line_width`` bins to each side.

    ``mean`` is that of the counter, before clipping; ``gain`` converts the power of a line to half
    its squared amplitude.
    """

    power: Floats
    step: float
    line_width: int
    rate: float
    mean: float
    gain: float
    seconds: float


def clipped(values: Floats) -> Floats:
    """Return the values around their median, with outliers clipped: a checkpoint is no rhythm."""
    off = values - np.median(values)
    most, nearly_all = np.percentile(np.abs(off), (97, 99.5))
    # where the counter stands still nearly always, its few bursts are the rhythm
    reach = 2 * (most if most > _BURSTY * nearly_all else nearly_all)
    return np.clip(off, -reach - _TINY, reach + _TINY)


def spectrum(values: Floats, rate: float) -> Spectrum:
    """Return the spectrum of increments, of which there are ``rate`` a second."""
    count = len(values)
    off = clipped(values)
    window = np.hanning(count)
    size = 1 << (_PADDING * count - 1).bit_length()
    power = np.abs(np.fft.rfft((off - off.mean()) * window, size)) ** 2
    return Spectrum(
        power, rate / size, int(_LINE * size / count) + 1, rate, float(values.mean()),
        2.0 / (size * float((window * window).sum()) + _TINY), count / rate,
    )  # fmt: skip


def best_fit(
    spectrum: Spectrum, top: float | None = None, longest: float = LONGEST_S
) -> CombFit | None:
    """Return the comb with most amplitude and a period of up to ``longest`` s.

    ``top`` (Hz) is the upper end of the band.
    """
    end = _end(spectrum, top)
    power = spectrum.power[:end]
    if power.sum() < _TINY:
        return None
    slowest = max(1 / longest, _LEAST_PERIODS / spectrum.seconds)
    fastest = min(_BAND * spectrum.rate, (end - 1) * spectrum.step)
    bins = np.arange(max(1, int(slowest / spectrum.step)), int(fastest / spectrum.step))
    if not bins.size:
        return None
    fundamental = int(bins[np.argmax(_heights(np.sqrt(power), bins))])
    frequency = _refined(power, fundamental, spectrum.line_width) * spectrum.step
    return CombFit(1 / frequency, strength(spectrum, 1 / frequency, top))


def strength(spectrum: Spectrum, period: float, top: float | None = None) -> float:
    """Return the share of power in the teeth of ``period`` (s) beyond chance."""
    end = _end(spectrum, top)
    low = int(0.5 / period / spectrum.step)
    if end <= low:
        return 0.0
    return _tooth_share(spectrum, 1 / period, low, end)


def line_power(spectrum: Spectrum, period: float) -> float:
    """Return the power of the line at the frequency of a period (s)."""
    center = round(1 / period / spectrum.step)
    width = spectrum.line_width // 2
    return float(spectrum.power[max(1, center - width) : center + width + 1].max(initial=0.0))


def is_dense(spectrum: Spectrum, period: float) -> bool:
    """Return whether the lines of a comb cover so much of the band that all power is theirs."""
    return 2 * _reach(spectrum) * period > _MOST_COVERED


def slower_fit(spectrum: Spectrum, period: float) -> CombFit | None:
    """Return a slower comb that holds clearly more power than that of ``period``, if there is one.

    The lines of a step that consists of several smaller ones are those of the small ones.  Only
    what happens between whole steps, such as exchanging gradients, moves with the slow rhythm.
    """
    return _stronger_fit(spectrum, period, _SLOWER_LEAST * period, LONGEST_KNOWN_S)


def moved_fit(spectrum: Spectrum, period: float, than: float) -> CombFit | None:
    """Return where a step of ``period`` moved to: a near comb with clearly more power than one."""
    shortest, longest = _NEAR
    return _stronger_fit(spectrum, than, shortest * period, min(longest * period, LONGEST_KNOWN_S))


def _stronger_fit(
    spectrum: Spectrum, period: float, shortest: float, longest: float
) -> CombFit | None:
    """Return the comb in a range of periods that holds clearly more power than that of one."""
    top = min(_SLOWER_BAND, _BAND * spectrum.rate)
    first, last = max(1 / longest, 2 * _reach(spectrum) / _MOST_COVERED), 1 / shortest
    if last <= first or 2 / period > top:
        return None
    low, end = int(0.5 * first / spectrum.step), int(top / spectrum.step)
    count = int(np.log(last / first) * top / _SPACING) + 2
    candidates = np.geomspace(first, last, count)
    shares = _tooth_shares(spectrum, candidates, low, end)
    best = int(np.argmax(shares))
    if shares[best] < _tooth_share(spectrum, 1 / period, low, end) + _CLEARLY:
        return None
    return CombFit(float(1 / candidates[best]), float(shares[best]))


def _end(spectrum: Spectrum, top: float | None) -> int:
    size = len(spectrum.power)
    return size if top is None else min(size, int(top / spectrum.step))


def _reach(spectrum: Spectrum) -> float:
    """Return half the width of a line in Hz."""
    return spectrum.line_width * spectrum.step


def _tooth_share(spectrum: Spectrum, frequency: float, low: int, end: int) -> float:
    """Return the share beyond chance of the power of these bins that is near a comb's teeth."""
    return float(_tooth_shares(spectrum, np.array([frequency]), low, end)[0])


def _tooth_shares(spectrum: Spectrum, frequencies: Floats, low: int, end: int) -> Floats:
    """Return the share of the teeth of each comb, all at once."""
    power = spectrum.power[low:end]
    total, each = float(power.sum()), frequencies[:, None]
    if total < _TINY:
        return np.zeros(len(frequencies))
    off = np.arange(low, end) * spectrum.step / each
    off -= np.rint(off)
    tooth = (np.abs(off, out=off) * each <= _reach(spectrum)).astype(np.float64)
    chance = tooth.mean(axis=1)
    beyond = (tooth @ power / total - chance) / np.maximum(1 - chance, _TINY)
    shares: Floats = np.where(chance < 1, np.maximum(beyond, 0.0), 0.0)
    return shares


def _heights(amplitude: Floats, bins: Indices) -> Floats:
    """Return the score of the comb of each fundamental: teeth less the gaps between them."""
    heights = np.zeros(len(bins))
    for tooth in range(1, _TEETH + 1):
        for indices, sign in ((tooth * bins, 1), (tooth * bins - bins // 2, -1)):
            inside = int(np.searchsorted(indices, len(amplitude)))
            heights[:inside] += sign * _TOOTH_WEIGHT**tooth * amplitude[indices[:inside]]
    return heights


def _refined(power: Floats, fundamental: int, line_width: int) -> float:
    """Return the fundamental in bins, from the peaks of its teeth; higher ones are more exact."""
    found, weights = [], []
    for tooth in range(1, _TEETH + 1):
        center = tooth * fundamental
        if center + 3 * tooth >= len(power):
            break
        low = max(1, center - line_width // 3)
        peak = low + int(np.argmax(power[low : center + line_width // 3 + 1]))
        if peak + 1 < len(power):
            found.append(parabola_peak(np.log(power[peak - 1 : peak + 2] + _TINY), peak) / tooth)
            weights.append(float(power[peak]) * tooth * tooth)
    if not found or sum(weights) <= 0:
        return float(fundamental)
    return float(np.average(found, weights=weights))


def parabola_peak(values: Floats, position: float) -> float:
    """Return the top of the parabola through three values, the middle one at ``position``.

    A top is within half a step of the highest value: three values on nearly a line have none.
    """
    left, middle, right = values.tolist()
    bend = left - 2 * middle + right
    offset = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return position + max(-0.5, min(offset, 0.5))
