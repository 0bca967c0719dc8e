"""What is asked of a GPU: calls and batches of fields, what each gives, how often.

Raw integers travel as NVML gives them; ``SCALES`` brings those to base units that are not in
one.  Where two queries give one figure, the first that this GPU answers is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

from reveal_collector.nvml import library
from reveal_collector.nvml.budget import QUICK_NS, RARE_NS, SLOW_NS
from reveal_collector.nvml.library import Handle, Library

Values = Sequence[int | None]
ALL_LINKS = 0xFFFF_FFFF  # scope of a field: the sum over all NVLinks
_MOST_LINKS = 18
_OVER = 0xFFFF_FFFF_FFFF_FFFF  # NVML's "not available" of a 64-bit figure

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
    "gpu.sm.active": 1e-3,  # thousandths of a percent, made of a float
    "gpu.sm.occupancy": 1e-3,
    "gpu.tensor.active": 1e-3,
    "gpu.memory.bandwidth": 1e-3,
    "gpu.subject.sm_utilization": 1e-2,  # hundredths of a percent, made of a mean
}


@dataclass(frozen=True)
class Query:
    """One call of the driver: the metrics it gives, one value each, and how often it is made.

    ``ask`` raises ``NVMLError``.  ``of_parts``: whether MIG instances answer it as well.
    """

    name: str
    metrics: tuple[str, ...]
    period_ns: int
    ask: Callable[[Library, Handle], Values]
    of_parts: bool = False


@dataclass(frozen=True)
class Field:
    """One field of ``nvmlDeviceGetFieldValues``: pynvml's name of its id, and its scope."""

    metric: str
    name: str
    scope: int = 0


@dataclass(frozen=True)
class Batch:
    """Fields asked in one call; which of them a GPU has is learned once."""

    name: str
    period_ns: int
    fields: tuple[Field, ...]

    def learn(self, nvml: Library, handle: Handle, known: Set[str]) -> Query | None:
        """The query of those fields that this GPU answers and no query before gave."""
        wanted = [field for field in self.fields if hasattr(nvml, field.name)]
        got = field_values(nvml, handle, wanted) if wanted else []
        have: dict[str, list[Field]] = {}
        for field, value in zip(wanted, got, strict=True):
            if value is not None and field.metric not in known:
                have.setdefault(field.metric, []).append(field)
        if not have:
            return None
        fields = [field for of_metric in have.values() for field in of_metric]
        widths = [len(of_metric) for of_metric in have.values()]

        def ask(nvml: Library, handle: Handle) -> Values:
            return _sums(field_values(nvml, handle, fields), widths)

        return Query(self.name, tuple(have), self.period_ns, ask)


def _sums(values: Sequence[int | None], widths: Sequence[int]) -> list[int | None]:
    """One value a metric: the sum over its links, none where one of them is missing."""
    made: list[int | None] = []
    at = 0
    for width in widths:
        present = [value for value in values[at : at + width] if value is not None]
        made.append(sum(present) if len(present) == width else None)
        at += width
    return made


def field_values(nvml: Library, handle: Handle, fields: Sequence[Field]) -> list[int | None]:
    """The fields' values in their order, ``None`` where the driver gives none."""
    asked = [(getattr(nvml, field.name), field.scope) for field in fields]
    answers = nvml.nvmlDeviceGetFieldValues(handle, asked)
    return [_number(answer) for answer in answers]


# nvmlValueType_t -> member of the union nvmlValue_t
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


def _number(answer: Any) -> int | None:
    if answer.nvmlReturn != 0 or not 0 <= answer.valueType < len(_MEMBERS):
        return None
    value = int(getattr(answer.value, _MEMBERS[answer.valueType]))
    return None if value == _OVER else value


def _one(name: str, *args: Any) -> Callable[[Library, Handle], Values]:
    return lambda nvml, handle: (getattr(nvml, name)(handle, *args),)


def _utilization(nvml: Library, handle: Handle) -> Values:
    rates = nvml.nvmlDeviceGetUtilizationRates(handle)
    return rates.gpu, rates.memory


def _memory(nvml: Library, handle: Handle) -> Values:
    """Version 2 tells the driver's own share apart, as nvidia-smi does."""
    memory = nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    return memory.used, memory.free, memory.total


def _memory_before_510(nvml: Library, handle: Handle) -> Values:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return memory.used, memory.free, memory.total


def _coder(name: str) -> Callable[[Library, Handle], Values]:
    return lambda nvml, handle: (getattr(nvml, name)(handle)[0],)


# bit of nvmlClocksEventReasons -> metric
REASONS = {
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


def reasons(mask: int) -> list[int | None]:
    """One 0 or 1 a reason."""
    return [int(bool(mask & bit)) for bit in REASONS]


def _reasons(nvml: Library, handle: Handle) -> Values:
    # the call's first name: older drivers know no other, newer ones still do
    return reasons(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _active_links(nvml: Library, handle: Handle) -> Values:
    active = asked = 0
    for link in range(_MOST_LINKS):
        try:
            active += bool(nvml.nvmlDeviceGetNvLinkState(handle, link))
        except nvml.NVMLError as error:
            if not library.is_absent(error.value):
                raise
            break  # links are numbered from 0 without a gap
        asked += 1
    return (active if asked else None,)


def _pcie(counter: int) -> Callable[[Library, Handle], Values]:
    return _one("nvmlDeviceGetPcieThroughput", counter)


_CLOCK_SM, _CLOCK_MEMORY = 1, 2  # nvmlClockType_t
_SHUTDOWN, _SLOWDOWN = 0, 1  # nvmlTemperatureThresholds_t
_MEMORY_METRICS = ("gpu.memory.used", "gpu.memory.free", "gpu.memory.total")

_LINKS = range(_MOST_LINKS)
QUERIES: tuple[Query | Batch, ...] = (
    Query("utilization", ("gpu.utilization", "gpu.memory.utilization"), QUICK_NS, _utilization),
    Query("memory", _MEMORY_METRICS, QUICK_NS, _memory, of_parts=True),
    Query("memory", _MEMORY_METRICS, QUICK_NS, _memory_before_510, of_parts=True),
    Batch("power", QUICK_NS, (
        Field("gpu.power", "NVML_FI_DEV_POWER_INSTANT"),
        Field("gpu.energy", "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
    )),
    Query("power.draw", ("gpu.power",), QUICK_NS, _one("nvmlDeviceGetPowerUsage")),
    Query("energy", ("gpu.energy",), QUICK_NS, _one("nvmlDeviceGetTotalEnergyConsumption")),
    Query("clock.sm", ("gpu.clock.sm",), QUICK_NS,
          _one("nvmlDeviceGetClockInfo", _CLOCK_SM)),
    Query("clock.memory", ("gpu.clock.memory",), QUICK_NS,
          _one("nvmlDeviceGetClockInfo", _CLOCK_MEMORY)),
    Query("reasons", tuple(REASONS.values()), SLOW_NS, _reasons),
    Query("temperature", ("gpu.temperature",), SLOW_NS, _one("nvmlDeviceGetTemperature", 0)),
    # ids over 250 (times by finer reasons) were given anew between releases of nvml.h
    Batch("throttled", SLOW_NS, (
        Field("gpu.throttled_time.power", "NVML_FI_DEV_PERF_POLICY_POWER"),
        Field("gpu.throttled_time.thermal", "NVML_FI_DEV_PERF_POLICY_THERMAL"),
        Field("gpu.throttled_time.sync_boost", "NVML_FI_DEV_PERF_POLICY_SYNC_BOOST"),
        Field("gpu.throttled_time.board_limit", "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT"),
        Field("gpu.throttled_time.reliability", "NVML_FI_DEV_PERF_POLICY_RELIABILITY"),
    )),
    Batch("errors", SLOW_NS, (
        Field("gpu.memory.temperature", "NVML_FI_DEV_MEMORY_TEMP"),
        Field("gpu.ecc.corrected.volatile", "NVML_FI_DEV_ECC_SBE_VOL_TOTAL"),
        Field("gpu.ecc.uncorrected.volatile", "NVML_FI_DEV_ECC_DBE_VOL_TOTAL"),
        Field("gpu.ecc.corrected.aggregate", "NVML_FI_DEV_ECC_SBE_AGG_TOTAL"),
        Field("gpu.ecc.uncorrected.aggregate", "NVML_FI_DEV_ECC_DBE_AGG_TOTAL"),
        Field("gpu.pcie.replays", "NVML_FI_DEV_PCIE_REPLAY_COUNTER"),
        Field("gpu.pcie.correctable_errors", "NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS"),
        Field("gpu.pcie.nonfatal_errors", "NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR"),
        Field("gpu.pcie.fatal_errors", "NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR"),
        Field("gpu.recovery_action", "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"),
    )),
    Query("pcie.replays", ("gpu.pcie.replays",), SLOW_NS,
          _one("nvmlDeviceGetPcieReplayCounter")),
    Batch("repairs", RARE_NS, (
        Field("gpu.retired_pages.corrected", "NVML_FI_DEV_RETIRED_SBE"),
        Field("gpu.retired_pages.uncorrected", "NVML_FI_DEV_RETIRED_DBE"),
        Field("gpu.retired_pages.pending", "NVML_FI_DEV_RETIRED_PENDING"),
        Field("gpu.remapped_rows.corrected", "NVML_FI_DEV_REMAPPED_COR"),
        Field("gpu.remapped_rows.uncorrected", "NVML_FI_DEV_REMAPPED_UNC"),
        Field("gpu.remapped_rows.pending", "NVML_FI_DEV_REMAPPED_PENDING"),
        Field("gpu.remapped_rows.failure", "NVML_FI_DEV_REMAPPED_FAILURE"),
    )),
    Batch("nvlink", SLOW_NS, (
        Field("gpu.nvlink.tx", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", ALL_LINKS),
        Field("gpu.nvlink.rx", "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", ALL_LINKS),
        Field("gpu.nvlink.crc_errors", "NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
        Field("gpu.nvlink.crc_data_errors", "NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
        Field("gpu.nvlink.replay_errors", "NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"),
        Field("gpu.nvlink.recovery_errors", "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
    )),
    # Hopper and newer count them by link only: 54 fields, so seldom
    Batch("nvlink.errors", RARE_NS, tuple(
        Field(metric, name, link)
        for metric, name in (
            ("gpu.nvlink.crc_errors", "NVML_FI_DEV_NVLINK_ERROR_DL_CRC"),
            ("gpu.nvlink.replay_errors", "NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY"),
            ("gpu.nvlink.recovery_errors", "NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY"),
        )
        for link in _LINKS
    )),
    Query("nvlink.links", ("gpu.nvlink.active_links",), RARE_NS, _active_links),
    Query("encoder", ("gpu.encoder.utilization",), SLOW_NS,
          _coder("nvmlDeviceGetEncoderUtilization")),
    Query("decoder", ("gpu.decoder.utilization",), SLOW_NS,
          _coder("nvmlDeviceGetDecoderUtilization")),
    Query("performance_state", ("gpu.performance_state",), SLOW_NS,
          _one("nvmlDeviceGetPerformanceState")),
    Query("power.limit", ("gpu.power.limit",), RARE_NS,
          _one("nvmlDeviceGetEnforcedPowerLimit")),
    Query("fan", ("gpu.fan",), RARE_NS, _one("nvmlDeviceGetFanSpeed")),
    Query("pcie.generation", ("gpu.pcie.generation",), SLOW_NS,
          _one("nvmlDeviceGetCurrPcieLinkGeneration")),
    Query("pcie.width", ("gpu.pcie.width",), SLOW_NS,
          _one("nvmlDeviceGetCurrPcieLinkWidth")),
    # these two wait 20 ms each for what they measure
    Query("pcie.tx", ("gpu.pcie.tx",), RARE_NS, _pcie(0)),
    Query("pcie.rx", ("gpu.pcie.rx",), RARE_NS, _pcie(1)),
    Query("pcie.generation_maximum", ("gpu.pcie.generation_maximum",), RARE_NS,
          _one("nvmlDeviceGetMaxPcieLinkGeneration")),
    Query("pcie.width_maximum", ("gpu.pcie.width_maximum",), RARE_NS,
          _one("nvmlDeviceGetMaxPcieLinkWidth")),
    Query("clock.maximum", ("gpu.clock.maximum",), RARE_NS,
          _one("nvmlDeviceGetMaxClockInfo", _CLOCK_SM)),
    Query("clock.memory_maximum", ("gpu.clock.memory_maximum",), RARE_NS,
          _one("nvmlDeviceGetMaxClockInfo", _CLOCK_MEMORY)),
    Query("temperature.slowdown", ("gpu.temperature.slowdown",), RARE_NS,
          _one("nvmlDeviceGetTemperatureThreshold", _SLOWDOWN)),
    Query("temperature.shutdown", ("gpu.temperature.shutdown",), RARE_NS,
          _one("nvmlDeviceGetTemperatureThreshold", _SHUTDOWN)),
)  # fmt: skip


def learn(nvml: Library, handle: Handle, part: bool = False) -> list[Query]:
    """The queries this GPU answers; ``part``: of those a MIG instance may answer.

    Raises ``NVMLError`` where the GPU does not answer at all.
    """
    found: list[Query] = []
    known: set[str] = set()
    for wanted in _candidates(part):
        query = _answered(nvml, handle, wanted, known)
        if query is not None:
            found.append(query)
            known.update(query.metrics)
    return found


def _candidates(part: bool) -> Iterator[Query | Batch]:
    for each in QUERIES:
        if not part or (isinstance(each, Query) and each.of_parts):
            yield each


def _answered(
    nvml: Library, handle: Handle, wanted: Query | Batch, known: Set[str]
) -> Query | None:
    try:
        if isinstance(wanted, Batch):
            return wanted.learn(nvml, handle, known)
        if known >= set(wanted.metrics):
            return None
        values = wanted.ask(nvml, handle)
    except nvml.NVMLError as error:
        if library.is_lost(error.value) or library.is_gone(error.value):
            raise
        if isinstance(wanted, Batch) or library.is_absent(error.value):
            return None
        return wanted  # it exists and failed this once
    return wanted if any(value is not None for value in values) else None
