"""Numbers and lists for people: values with their unit, rounded to three digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reveal_contract.metric import Kind, Metric, Scope

_TIME_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"))
_BYTE_STEPS = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_COUNT_STEPS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))

# features of columns, as findings name them
_CHANGE, _LARGEST, _TOTAL = "mean_change", "maximum", "sum_values"
# counted for each task or request, of which many wait at once
_SUMMED = frozenset({
    "cpu.run_delay", "cpu.longest_waiting", "cpu.subject.usage", "cpu.subject.throttled_time",
    "storage.disk.read_time", "storage.disk.write_time", "storage.disk.queue_time",
    "storage.disk.discard_time", "storage.disk.flush_time",
})  # fmt: skip

_SIGNS = {
    "percent": " %", "Hz": "Hz", "watts": " W", "joules": " J", "celsius": " C", "events/s": "/s",
}  # fmt: skip


def human(value: float, unit: str, kind: Kind) -> str:
    """Return a value with its unit: ``38 %`` of the time, ``1.2 GiB``, ``54 k/s``, ``125 ms``."""
    if math.isnan(value):
        return "unknown"
    rate = "/s" if kind is Kind.COUNTER else ""
    if unit == "ns":
        return _share(value) if rate else _stepped(value, _TIME_STEPS, "ns")
    if unit == "bytes":
        return _stepped(value, _BYTE_STEPS, "B") + rate
    if unit == "ppm":
        return f"{value / 1e4:.3g} %"
    if unit == "joules" and rate:
        unit, rate = "watts", ""  # a joule a second
    return _stepped(value, _COUNT_STEPS, "").rstrip() + _SIGNS.get(unit, "") + rate


def amount(metric: Metric, feature: str, instance: str, value: float) -> str:
    """Return the value of a feature of a metric: ``38 %``, ``1.8 s/s``, ``-286 MiB/s``.

    Time per second is a share where one clock counts it: a stalled host, a throttled GPU.  A sum
    over CPUs, tasks or requests may exceed all the time: it is seconds a second.
    """
    if feature == _CHANGE:
        return f"{human(value, metric.unit, Kind.GAUGE)}/s"
    if is_summed_time(metric, feature, instance):
        return f"{human(value, 'ns', Kind.GAUGE)}/s" if value else "0 s/s"
    return human(value, metric.unit, Kind.COUNTER if is_time(metric) else metric.kind)


def steps_of(metric: Metric, feature: str, instance: str) -> tuple[tuple[float, str], ...]:
    """Return the sizes of the units in which ``amount`` writes a value, the largest first.

    A value of at least a size is divided by it and followed by its text.  For programs in other
    languages that display values.
    """
    summed = is_summed_time(metric, feature, instance)
    if feature != _CHANGE and is_time(metric) and not summed:
        return ((1e7, " %"),)
    rate = "/s" if summed or feature == _CHANGE or metric.kind is Kind.COUNTER else ""
    steps: tuple[tuple[float, str], ...]
    match metric.unit:
        case "ns":
            steps, sign = (*_TIME_STEPS, (1.0, "ns")), rate
        case "bytes":
            steps, sign = (*_BYTE_STEPS, (1.0, "B")), rate
        case "ppm":
            return ((1e4, f" %{rate}"),)
        case "joules" if rate and feature != _CHANGE:
            steps, sign = (*_COUNT_STEPS, (1.0, "")), _SIGNS["watts"]
        case _:
            steps, sign = (*_COUNT_STEPS, (1.0, "")), _SIGNS.get(metric.unit, "") + rate
    return tuple((size, (f" {name}" if name else "") + sign) for size, name in steps)


def is_time(metric: Metric) -> bool:
    """Return whether a metric is time per second: a counter of time, or computed from one."""
    of_counters = metric.kind is Kind.RATIO and metric.name.startswith("cpu.")
    return metric.unit == "ns" and (metric.kind is Kind.COUNTER or of_counters)


def is_summed_time(metric: Metric, feature: str, instance: str) -> bool:
    """Return whether a feature adds up time over CPUs, tasks or requests."""
    of_cpus = metric.scope is Scope.CPU and feature != _LARGEST and not instance
    return is_time(metric) and (of_cpus or feature == _TOTAL or metric.name in _SUMMED)


def decimal(value: float) -> str:
    """Return a value as a decimal string without exponent, with at most four significant digits."""
    if math.isnan(value) or math.isinf(value):
        return ""
    if value == 0:
        return "0"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:.{min(digits, 9)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def list_some(names: Sequence[str], what: str = "", most: int = 5) -> str:
    """Return the first names, and how many more there are."""
    listed, more = ", ".join(names[:most]), len(names) - most
    return listed if more <= 0 else f"{listed} and {more} more {what}".rstrip()


def _share(ns_per_second: float) -> str:
    """Return time per second as a share: 1e9 ns/s is 100 % of one CPU or of one task's time."""
    return f"{ns_per_second / 1e7:.2g} %" if ns_per_second < 1e8 else f"{ns_per_second / 1e7:.0f} %"


def _stepped(value: float, steps: tuple[tuple[float, str], ...], plain: str) -> str:
    for size, name in steps:
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} {plain}".rstrip()
