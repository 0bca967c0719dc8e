"""Queries to a GPU: calls and batches of fields, their metrics, and how often they are sent.

What each metric means is in ``reveal_contract.catalogue.gpu``, where a new one is added first.
The values are integers as NVML gives them; ``SCALES`` converts them to base units.  If two queries
give the same metric, the first one that the GPU supports is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from reveal_collector.nvml import library
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.query_budget import MINUTE_NS, QUICK_NS, RARE_NS, SLOW_NS

Values = Sequence[int | None]
ALL_LINKS = 0xFFFF_FFFF  # scope of a field that is the sum over all NVLinks
_MAX_LINKS = 18
_NOT_AVAILABLE = 0xFFFF_FFFF_FFFF_FFFF  # NVML's mark for a 64-bit value

SCALES = {
    "gpu.power": 1e-3,  # mW
    "gpu.power.limit": 1e-3,
    "gpu.energy": 1e-3,  # mJ
    "gpu.clock.sm": 1e6,  # MHz
    "gpu.clock.memory": 1e6,
    "gpu.clock.maximum": 1e6,
    "gpu.clock.memory_maximum": 1e6,
    "gpu.pcie.tx": 1e3,  # kB/s
    "gpu.pcie.rx": 1e3,
    "gpu.nvlink.tx": 1024.0,  # KiB
    "gpu.nvlink.rx": 1024.0,
    "gpu.sm.active": 1e-3,  # thousandths of a percent, from a float
    "gpu.sm.occupancy": 1e-3,
    "gpu.tensor.active": 1e-3,
    "gpu.memory.bandwidth": 1e-3,
    "gpu.contention": 1e-2,  # hundredths of a percent, from means
    "gpu.subject.sm_utilization": 1e-2,  # hundredths of a percent, from a mean
}


@dataclass(frozen=True)
class Query:
    """One call of the driver: its metrics, one value each, and its period.

    ``read`` raises ``NVMLError``.  ``for_mig`` says whether MIG instances support it, too.
    """

    name: str
    metrics: tuple[str, ...]
    period_ns: int
    read: Callable[[Library, Handle], Values]
    for_mig: bool = False


@dataclass(frozen=True)
class DeviceField:
    """One field of ``nvmlDeviceGetFieldValues``: the pynvml name of its id, and its scope."""

    metric: str
    name: str
    scope: int = 0


@dataclass(frozen=True)
class FieldBatch:
    """Fields that one call reads; ``supported_query`` finds those that a GPU has."""

    name: str
    period_ns: int
    fields: tuple[DeviceField, ...]

    def supported_query(self, nvml: Library, handle: Handle, known: Set[str]) -> Query | None:
        """Return the query of the fields that this GPU has and no earlier query gave."""
        candidates = [field for field in self.fields if hasattr(nvml, field.name)]
        values = field_values(nvml, handle, candidates) if candidates else []
        supported: dict[str, list[DeviceField]] = {}
        for field, value in zip(candidates, values, strict=True):
            if value is not None and field.metric not in known:
                supported.setdefault(field.metric, []).append(field)
        if not supported:
            return None
        fields = [field for of_metric in supported.values() for field in of_metric]
        widths = [len(of_metric) for of_metric in supported.values()]

        def read(nvml: Library, handle: Handle) -> Values:
            return _sums(field_values(nvml, handle, fields), widths)

        return Query(self.name, tuple(supported), self.period_ns, read)


def _sums(values: Sequence[int | None], widths: Sequence[int]) -> list[int | None]:
    """Return one value per metric: the sum over its links, ``None`` if one of them is missing."""
    sums: list[int | None] = []
    start = 0
    for width in widths:
        present = [value for value in values[start : start + width] if value is not None]
        sums.append(sum(present) if len(present) == width else None)
        start += width
    return sums


def field_values(nvml: Library, handle: Handle, fields: Sequence[DeviceField]) -> list[int | None]:
    """Return the values of fields in their order, ``None`` where the driver gives none."""
    requested = [(getattr(nvml, field.name), field.scope) for field in fields]
    answers = nvml.nvmlDeviceGetFieldValues(handle, requested)
    return [_number(answer) for answer in answers]


# nvmlValueType_t -> member of the union nvmlValue_t
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


def _number(answer: Any) -> int | None:
    if answer.nvmlReturn != 0 or not 0 <= answer.valueType < len(_MEMBERS):
        return None
    value = int(getattr(answer.value, _MEMBERS[answer.valueType]))
    return None if value == _NOT_AVAILABLE else value


def _call(name: str, *args: Any) -> Callable[[Library, Handle], Values]:
    return lambda nvml, handle: (getattr(nvml, name)(handle, *args),)


def _utilization(nvml: Library, handle: Handle) -> Values:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return rates.gpu, rates.memory


def _memory(nvml: Library, handle: Handle) -> Values:
    """Read the memory with version 2, which reports the driver's reserved part separately."""
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    return memory.used, memory.free, memory.total


def _memory_version_1(nvml: Library, handle: Handle) -> Values:
    """Read the memory of drivers before 510."""
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return memory.used, memory.free, memory.total


def _first_of(name: str) -> Callable[[Library, Handle], Values]:
    return lambda nvml, handle: (getattr(nvml, name)(handle)[0],)


# bit of nvmlClocksEventReasons -> metric
THROTTLE_REASONS = {
    0x001: "gpu.throttle.idle",
    0x002: "gpu.throttle.application_clocks",
    0x004: "gpu.throttle.power_cap",
    0x008: "gpu.throttle.hardware_slowdown",
    0x010: "gpu.throttle.sync_boost",
    0x020: "gpu.throttle.thermal_software",
    0x040: "gpu.throttle.thermal_hardware",
    0x080: "gpu.throttle.power_brake",
    0x100: "gpu.throttle.display",
}


def throttle_reasons(mask: int) -> list[int | None]:
    """Return 0 or 1 for each throttle reason of a bit mask."""
    return [int(bool(mask & bit)) for bit in THROTTLE_REASONS]


def _throttle_reasons(nvml: Library, handle: Handle) -> Values:
    # The old name of the call: older drivers know only this one, and newer ones still have it.
    return throttle_reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _active_links(nvml: Library, handle: Handle) -> Values:
    active = requested = 0
    for link in range(_MAX_LINKS):
        try:
            active += bool(nvml.nvmlDeviceGetNvLinkState(handle, link))
        except nvml.NVMLError as error:
            if not library.is_unsupported(error.value):
                raise
            break  # link numbers start at 0 and have no gaps
        requested += 1
    return (active if requested else None,)


def _pcie(counter: int) -> Callable[[Library, Handle], Values]:
    return _call("nvmlDeviceGetPcieThroughput", counter)


_CLOCK_SM, _CLOCK_MEMORY = 1, 2  # nvmlClockType_t
_SHUTDOWN, _SLOWDOWN = 0, 1  # nvmlTemperatureThresholds_t
_MEMORY_METRICS = ("gpu.memory.used", "gpu.memory.free", "gpu.memory.total")

_LINKS = range(_MAX_LINKS)
QUERIES: tuple[Query | FieldBatch, ...] = (
    Query("utilization", ("gpu.utilization", "gpu.memory.utilization"), QUICK_NS, _utilization),
    Query("memory", _MEMORY_METRICS, QUICK_NS, _memory, for_mig=True),
    Query("memory", _MEMORY_METRICS, QUICK_NS, _memory_version_1, for_mig=True),
    FieldBatch("power", QUICK_NS, (DeviceField("gpu.power", "NVML_FI_DEV_POWER_INSTANT"),)),
    # Prices are those of an H100 with driver 580.  The energy takes 3 ms: not with the power.
    FieldBatch("energy", RARE_NS, (
        DeviceField("gpu.energy", "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
    )),
    Query("power.draw", ("gpu.power",), QUICK_NS, _call("nvmlDeviceGetPowerUsage")),
    Query("energy", ("gpu.energy",), RARE_NS, _call("nvmlDeviceGetTotalEnergyConsumption")),
    Query("clock.sm", ("gpu.clock.sm",), QUICK_NS,
          _call("nvmlDeviceGetClockInfo", _CLOCK_SM)),
    Query("clock.memory", ("gpu.clock.memory",), QUICK_NS,
          _call("nvmlDeviceGetClockInfo", _CLOCK_MEMORY)),
    Query("reasons", tuple(THROTTLE_REASONS.values()), SLOW_NS, _throttle_reasons),
    Query("temperature", ("gpu.temperature",), SLOW_NS, _call("nvmlDeviceGetTemperature", 0)),
    # Not the ids over 250 (times by finer reasons): releases of nvml.h give them other meanings.
    FieldBatch("throttled", SLOW_NS, (
        DeviceField("gpu.throttled_time.power", "NVML_FI_DEV_PERF_POLICY_POWER"),
        DeviceField("gpu.throttled_time.thermal", "NVML_FI_DEV_PERF_POLICY_THERMAL"),
        DeviceField("gpu.throttled_time.sync_boost", "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST"),
        DeviceField("gpu.throttled_time.board_limit", "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT"),
        DeviceField("gpu.throttled_time.reliability", "NVML_FI_DEV_PERF_POLICY_RELIABILITY"),
    )),
    FieldBatch("errors", SLOW_NS, (
        DeviceField("gpu.memory.temperature", "NVML_FI_DEV_MEMORY_TEMP"),
        DeviceField("gpu.ecc.corrected.volatile", "NVML_FI_DEV_ECC_SBE_VOL_TOTAL"),
        DeviceField("gpu.ecc.uncorrected.volatile", "NVML_FI_DEV_ECC_DBE_VOL_TOTAL"),
        DeviceField("gpu.ecc.corrected.aggregate", "NVML_FI_DEV_ECC_SBE_AGG_TOTAL"),
        DeviceField("gpu.ecc.uncorrected.aggregate", "NVML_FI_DEV_ECC_DBE_AGG_TOTAL"),
        DeviceField("gpu.pcie.replays", "NVML_FI_DEV_PCIE_REPLAY_COUNTER"),
        DeviceField("gpu.recovery_action", "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"),
    )),
    # Each of these counters takes 0.2 ms.
    FieldBatch("pcie.errors", RARE_NS, (
        DeviceField("gpu.pcie.correctable_errors", "NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS"),
        DeviceField("gpu.pcie.nonfatal_errors", "NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR"),
        DeviceField("gpu.pcie.fatal_errors", "NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR"),
    )),
    Query("pcie.replays", ("gpu.pcie.replays",), SLOW_NS,
          _call("nvmlDeviceGetPcieReplayCounter")),
    FieldBatch("repairs", RARE_NS, (
        DeviceField("gpu.retired_pages.corrected", "NVML_FI_DEV_RETIRED_SBE"),
        DeviceField("gpu.retired_pages.uncorrected", "NVML_FI_DEV_RETIRED_DBE"),
        DeviceField("gpu.retired_pages.pending", "NVML_FI_DEV_RETIRED_PENDING"),
        DeviceField("gpu.remapped_rows.corrected", "NVML_FI_DEV_REMAPPED_COR"),
        DeviceField("gpu.remapped_rows.uncorrected", "NVML_FI_DEV_REMAPPED_UNC"),
        DeviceField("gpu.remapped_rows.pending", "NVML_FI_DEV_REMAPPED_PENDING"),
        DeviceField("gpu.remapped_rows.failure", "NVML_FI_DEV_REMAPPED_FAILURE"),
    )),
    FieldBatch("nvlink", SLOW_NS, (
        DeviceField("gpu.nvlink.tx", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", ALL_LINKS),
        DeviceField("gpu.nvlink.rx", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", ALL_LINKS),
        DeviceField("gpu.nvlink.crc_errors", "NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
        DeviceField("gpu.nvlink.crc_data_errors", "NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
        DeviceField("gpu.nvlink.replay_errors", "NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
        DeviceField("gpu.nvlink.recovery_errors", "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
    )),
    # Hopper and newer count errors only by link: 54 fields, so they are read rarely.
    FieldBatch("nvlink.errors", RARE_NS, tuple(
        DeviceField(metric, name, link)
        for metric, name in (
            ("gpu.nvlink.crc_errors", "NVML_FI_DEV_NVLINK_ERROR_DL_CRC"),
            ("gpu.nvlink.replay_errors", "NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY"),
            ("gpu.nvlink.recovery_errors", "NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY"),
        )
        for link in _LINKS
    )),
    Query("nvlink.links", ("gpu.nvlink.active_links",), RARE_NS, _active_links),
    Query("encoder", ("gpu.encoder.utilization",), SLOW_NS,
          _first_of("nvmlDeviceGetEncoderUtilization")),
    Query("decoder", ("gpu.decoder.utilization",), SLOW_NS,
          _first_of("nvmlDeviceGetDecoderUtilization")),
    Query("performance_state", ("gpu.performance_state",), SLOW_NS,
          _call("nvmlDeviceGetPerformanceState")),
    Query("power.limit", ("gpu.power.limit",), RARE_NS,
          _call("nvmlDeviceGetEnforcedPowerLimit")),
    Query("fan", ("gpu.fan",), RARE_NS, _call("nvmlDeviceGetFanSpeed")),
    Query("pcie.generation", ("gpu.pcie.generation",), SLOW_NS,
          _call("nvmlDeviceGetCurrPcieLinkGeneration")),
    Query("pcie.width", ("gpu.pcie.width",), SLOW_NS,
          _call("nvmlDeviceGetCurrPcieLinkWidth")),
    # The driver measures for 20 ms of CPU time in each of these two calls.
    Query("pcie.tx", ("gpu.pcie.tx",), MINUTE_NS, _pcie(0)),
    Query("pcie.rx", ("gpu.pcie.rx",), MINUTE_NS, _pcie(1)),
    # what a card supports does not change
    Query("pcie.generation_maximum", ("gpu.pcie.generation_maximum",), MINUTE_NS,
          _call("nvmlDeviceGetMaxPcieLinkGeneration")),
    Query("pcie.width_maximum", ("gpu.pcie.width_maximum",), MINUTE_NS,
          _call("nvmlDeviceGetMaxPcieLinkWidth")),
    Query("clock.maximum", ("gpu.clock.maximum",), MINUTE_NS,
          _call("nvmlDeviceGetMaxClockInfo", _CLOCK_SM)),
    Query("clock.memory_maximum", ("gpu.clock.memory_maximum",), MINUTE_NS,
          _call("nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY)),
    Query("temperature.slowdown", ("gpu.temperature.slowdown",), MINUTE_NS,
          _call("nvmlDeviceGetTemperatureThreshold", _SLOWDOWN)),
    Query("temperature.shutdown", ("gpu.temperature.shutdown",), MINUTE_NS,
          _call("nvmlDeviceGetTemperatureThreshold", _SHUTDOWN)),
)  # fmt: skip


def supported_queries(nvml: Library, handle: Handle, mig: bool = False) -> list[Query]:
    """Return the queries that this GPU supports, or a MIG instance if ``mig`` is set.

    Raises ``NVMLError`` if the GPU does not answer at all.
    """
    found: list[Query] = []
    known: set[str] = set()
    for candidate in _candidates(mig):
        query = _supported(nvml, handle, candidate, known)
        if query is not None:
            found.append(query)
            known.update(query.metrics)
    return found


def _candidates(mig: bool) -> Iterator[Query | FieldBatch]:
    for query in QUERIES:
        if not mig or (isinstance(query, Query) and query.for_mig):
            yield query


def _supported(
    nvml: Library, handle: Handle, candidate: Query | FieldBatch, known: Set[str]
) -> Query | None:
    try:
        if isinstance(candidate, FieldBatch):
            return candidate.supported_query(nvml, handle, known)
        if known >= set(candidate.metrics):
            return None
        values = candidate.read(nvml, handle)
    except nvml.NVMLError as error:
        if library.is_gpu_lost(error.value) or library.is_driver_gone(error.value):
            raise
        # A failed batch does not show which of its fields are supported.
        if isinstance(candidate, FieldBatch) or library.is_unsupported(error.value):
            return None
        return candidate  # it is supported and only failed this time
    return candidate if any(value is not None for value in values) else None
