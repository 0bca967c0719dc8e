"""GPM: activity of the multiprocessors, on Hopper and newer, only on request.

Only one profiler can use the counters: while this one runs, Nsight and the profiling fields of
DCGM cannot.  A value covers the time between two samples (nvmlGpmSampleGet, nvmlGpmMetricsGet).
"""

from __future__ import annotations

import math
from typing import Any

from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.metric_queries import Query, Values
from reveal_collector.nvml.query_budget import SLOW_NS

# metric -> nvmlGpmMetricId_t
_METRIC_IDS = {
    "gpu.sm.active": 2,
    "gpu.sm.occupancy": 3,
    "gpu.tensor.active": 5,
    "gpu.memory.bandwidth": 10,
}


class GpmProfile:
    """The two samples of one GPU, or of one GPU instance of it in MIG mode."""

    def __init__(self, nvml: Library, parent: Handle, gpu_instance: int | None = None) -> None:
        self._nvml, self._parent, self._gpu_instance = nvml, parent, gpu_instance
        self._old: Any = nvml.nvmlGpmSampleAlloc()
        self._new: Any = nvml.nvmlGpmSampleAlloc()
        self._sample(self._old)

    @staticmethod
    def supported(nvml: Library, handle: Handle) -> bool:
        """Return whether the GPU supports GPM."""
        try:
            return bool(nvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice)
        except nvml.NVMLError:
            return False

    def query(self) -> Query:
        """Return the query that reads the metrics since its last call."""
        return Query("profile", tuple(_METRIC_IDS), SLOW_NS, self._read)

    def close(self) -> None:
        """Free the samples."""
        for sample in (self._old, self._new):
            try:
                self._nvml.nvmlGpmSampleFree(sample)
            except self._nvml.NVMLError:
                return

    def _sample(self, sample: Any) -> None:
        if self._gpu_instance is None:
            self._nvml.nvmlGpmSampleGet(self._parent, sample)
        else:
            self._nvml.nvmlGpmMigSampleGet(self._parent, self._gpu_instance, sample)

    def _read(self, nvml: Library, _: Handle) -> Values:
        self._sample(self._new)
        request = nvml.c_nvmlGpmMetricsGet_t()
        request.version = nvml.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(_METRIC_IDS)
        request.sample1, request.sample2 = self._old, self._new
        for index, metric_id in enumerate(_METRIC_IDS.values()):
            request.metrics[index].metricId = metric_id
        result = nvml.nvmlGpmMetricsGet(request)
        self._old, self._new = self._new, self._old
        return [_thousandths(result.metrics[index]) for index in range(len(_METRIC_IDS))]


def _thousandths(answer: Any) -> int | None:
    value = float(answer.value)
    return round(1000 * value) if answer.nvmlReturn == 0 and math.isfinite(value) else None
