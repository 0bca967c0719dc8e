"""GPM: what the multiprocessors did, on Hopper and newer; off unless asked for.

Only one profiler may have the counters: while this runs, Nsight and DCGM's profiling fields
cannot.  A figure is of the time between two samples (nvmlGpmSampleGet, nvmlGpmMetricsGet).
"""

from __future__ import annotations

import math
from typing import Any

from reveal_collector.nvml.budget import SLOW_NS
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.queries import Query, Values

# metric -> nvmlGpmMetricId_t
_FIGURES = {
    "gpu.sm.active": 2,
    "gpu.sm.occupancy": 3,
    "gpu.tensor.active": 5,
    "gpu.memory.bandwidth": 10,
}


class Profile:
    """The pair of samples of one GPU, or of one GPU instance of it in MIG mode."""

    def __init__(self, nvml: Library, parent: Handle, gpu_instance: int | None = None) -> None:
        self._nvml, self._parent, self._gpu_instance = nvml, parent, gpu_instance
        self._old: Any = nvml.nvmlGpmSampleAlloc()
        self._new: Any = nvml.nvmlGpmSampleAlloc()
        self._take(self._old)

    @staticmethod
    def supported(nvml: Library, handle: Handle) -> bool:
        try:
            return bool(nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)
        except nvml.NVMLError:
            return False

    def query(self) -> Query:
        return Query("profile", tuple(_FIGURES), SLOW_NS, self._ask)

    def close(self) -> None:
        for sample in (self._old, self._new):
            try:
                self._nvml.nvmlGpmSampleFree(sample)
            except self._nvml.NVMLError:
                return

    def _take(self, sample: Any) -> None:
        if self._gpu_instance is None:
            self._nvml.nvmlGpmSampleGet(self._parent, sample)
        else:
            self._nvml.nvmlGpmMigSampleGet(self._parent, self._gpu_instance, sample)

    def _ask(self, nvml: Library, _: Handle) -> Values:
        self._take(self._new)
        wanted = nvml.c_nvmlGpmMetricsGet_t()
        wanted.version = nvml.NVML_GPM_METRICS_GET_VERSION
        wanted.numMetrics = len(_FIGURES)
        wanted.sample1, wanted.sample2 = self._old, self._new
        for place, metric in enumerate(_FIGURES.values()):
            wanted.metrics[place].metricId = metric
        got = nvml.nvmlGpmMetricsGet(wanted)
        self._old, self._new = self._new, self._old
        return [_thousandths(got.metrics[place]) for place in range(len(_FIGURES))]


def _thousandths(answer: Any) -> int | None:
    value = float(answer.value)
    return round(1000 * value) if answer.nvmlReturn == 0 and math.isfinite(value) else None
