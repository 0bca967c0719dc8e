"""XID errors: told by the driver as events, never polled for.

Codes: NVIDIA's XID catalogue (docs.nvidia.com/deploy/xid-errors).  An event set holds what came
since it was last asked, so asking once a second without waiting loses none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from reveal_collector.nvml import library
from reveal_collector.nvml.devices import Device
from reveal_collector.nvml.library import Handle, Library

# codes a faulty program raises by itself; everything else speaks of card, link or driver
_OF_PROGRAMS = {8, 13, 31, 32, 37, 43, 45, 68, 69, 80, 94, 137}
_CRITICAL = 8  # nvmlEventTypeXidCriticalError
_MOST = 256  # a storm of errors must not hold the thread
# what a difference needs: a slice with the new column, then one that shows 0
_PRELUDE_NS = 4_000_000_000


def is_of_program(code: int) -> bool:
    """Whether an XID can be raised by a program's own fault."""
    return code in _OF_PROGRAMS


class XidEvents:
    """The event set of all GPUs that can tell of errors; none where the driver has no events."""

    def __init__(self, nvml: Library, devices: Sequence[Device]) -> None:
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
        """The indexes of the GPUs that tell of errors."""
        return frozenset(self._index.values())

    def drain(self) -> Iterator[tuple[int, int]]:
        """(index of the GPU, code) of what happened since the last time."""
        if not self._index:
            return
        for _ in range(_MOST):
            try:
                event = self._nvml.nvmlEventSetWait_v2(self._set, 0)
            except self._nvml.NVMLError as error:
                if error.value == library.TIMEOUT or library.is_lost(error.value):
                    return
                raise
            index = self._index.get(library.address(event.device))
            if index is not None and event.eventType & _CRITICAL:
                yield index, int(event.eventData)

    def close(self) -> None:
        if self._set is None:
            return
        with contextlib.suppress(self._nvml.NVMLError):
            self._nvml.nvmlEventSetFree(self._set)
        self._set, self._index = None, {}

    def _register(self, device: Device) -> None:
        try:
            self._nvml.nvmlDeviceRegisterEvents(device.handle, _CRITICAL, self._set)
        except self._nvml.NVMLError:
            return
        self._index[library.address(device.handle)] = device.gpu.index


class XidLedger:
    """Errors by GPU and code, kept over a new start of the driver; times are monotonic ns.

    The row of a code begins with 0 for a while: a counter's first value is no difference, and
    the first error is the one that matters.
    """

    def __init__(self) -> None:
        self.last: dict[int, int] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._first: dict[tuple[int, int], int] = {}

    def add(self, gpu: int, code: int, now_ns: int) -> None:
        key = gpu, code
        self._counts[key] = self._counts.get(key, 0) + 1
        self._first.setdefault(key, now_ns)
        self.last[gpu] = code

    def of_gpu(self, gpu: int) -> tuple[int, int, int]:
        """(errors programs may raise, other errors, last code or 0)."""
        mine = {code: count for (of, code), count in self._counts.items() if of == gpu}
        programs = sum(count for code, count in mine.items() if is_of_program(code))
        return programs, sum(mine.values()) - programs, self.last.get(gpu, 0)

    def by_code(self, now_ns: int) -> dict[str, int]:
        """Errors by instance "GPU/code"."""
        return {
            f"{gpu}/{code}": count if now_ns - self._first[gpu, code] >= _PRELUDE_NS else 0
            for (gpu, code), count in self._counts.items()
        }
