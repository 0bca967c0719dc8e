"""XID errors, which the driver reports as events.

Codes: NVIDIA's XID catalog (docs.nvidia.com/deploy/xid-errors).  An event set keeps the events
since its last query, so one query a second without waiting loses none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from reveal_collector.nvml import library
from reveal_collector.nvml.devices import GpuDevice
from reveal_collector.nvml.library import Handle, Library

# Codes that a faulty application causes by itself; all others point to card, link or driver.
_APPLICATION_CODES = {8, 13, 31, 32, 37, 43, 45, 68, 69, 80, 94, 137}
_CRITICAL = 8  # nvmlEventTypeXidCriticalError
_MAX_EVENTS = 256  # per query: a storm of errors must not block the thread
# A difference needs a slice with the new column at 0, and then one with its first value.
_ZERO_NS = 4_000_000_000


def is_application_error(code: int) -> bool:
    """Return whether an application can cause this XID by its own fault."""
    return code in _APPLICATION_CODES


class XidEvents:
    """The event set of all GPUs that report errors; empty if the driver has no events."""

    def __init__(self, nvml: Library, devices: Sequence[GpuDevice]) -> None:
        self._nvml = nvml
        self._index: dict[int | None, int] = {}
        self._set: Handle = None
        try:
            self._set = nvml.nvmlEventSetCreate()
        except nvml.NVMLError:
            return
        for device in devices:
            self._register(device)

    @property
    def gpus(self) -> frozenset[int]:
        """The indices of the GPUs that report errors."""
        return frozenset(self._index.values())

    def drain(self) -> Iterator[tuple[int, int]]:
        """Yield (index of the GPU, code) of the events since the last call."""
        if not self._index:
            return
        for _ in range(_MAX_EVENTS):
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._set, 0)
            except self._nvml.NVMLError as error:
                if error.value == library.TIMEOUT or library.is_gpu_lost(error.value):
                    return
                raise
            index = self._index.get(library.address(event.device))
            if index is not None and event.eventType & _CRITICAL:
                yield index, int(event.eventData)

    def close(self) -> None:
        """Free the event set."""
        if self._set is None:
            return
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlEventSetFree(self._set)
        self._set, self._index = None, {}

    def _register(self, device: GpuDevice) -> None:
        try:
            self._nvml.nvmlDeviceRegisterEvents(device.handle, _CRITICAL, self._set)
        except self._nvml.NVMLError:
            return
        self._index[library.address(device.handle)] = device.gpu.index


class XidCounts:
    """Errors by GPU and code, kept when the driver restarts; times are monotonic, in ns.

    The first value of a counter is not a difference.  Therefore a new code shows 0 for a
    while, so that its first error, which matters most, becomes visible.
    """

    def __init__(self) -> None:
        self.last: dict[int, int] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._first_ns: dict[tuple[int, int], int] = {}

    def add(self, gpu: int, code: int, now_ns: int) -> None:
        """Count one error."""
        key = gpu, code
        self._counts[key] = self._counts.get(key, 0) + 1
        self._first_ns.setdefault(key, now_ns)
        self.last[gpu] = code

    def of_gpu(self, gpu: int) -> tuple[int, int, int]:
        """Return errors that applications can cause, other errors, and the last code or 0."""
        counts = {code: count for (of, code), count in self._counts.items() if of == gpu}
        application = sum(count for code, count in counts.items() if is_application_error(code))
        return application, sum(counts.values()) - application, self.last.get(gpu, 0)

    def by_code(self, now_ns: int) -> dict[str, int]:
        """Return errors by instance "GPU/code"."""
        return {
            f"{gpu}/{code}": count if now_ns - self._first_ns[gpu, code] >= _ZERO_NS else 0
            for (gpu, code), count in self._counts.items()
        }
