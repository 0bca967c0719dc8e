"""Catalogue rows: GPUs through NVML (nvml.h; names as in nvidia-smi).

The collector reads each row by its query in ``reveal_collector.nvml.metric_queries``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Role, Scope, Subsystem

_GPU = partial(Metric, subsystem=Subsystem.GPU, scope=Scope.GPU, source="nvml-state")
_QUICK = partial(_GPU, source="nvml", lane=Lane.FAST, kind=Kind.GAUGE)
_SHARE = partial(_GPU, unit="percent", kind=Kind.GAUGE, lane=Lane.SLOW, quantum=5)
_LEVEL = partial(_GPU, kind=Kind.GAUGE, lane=Lane.SLOW)
_STATE = partial(_GPU, unit="state", kind=Kind.STATE, lane=Lane.SLOW, quantum=1)
_FIXED = partial(_GPU, kind=Kind.STATE, lane=Lane.SLOW, role=Role.STATIC)
_EVENTS = partial(
    _GPU, unit="events", kind=Kind.COUNTER, lane=Lane.SLOW, quantum=1, harm=Harm.HIGHER,
    role=Role.EVENT,
)  # fmt: skip
_THROTTLED = partial(
    _GPU, unit="ns", kind=Kind.COUNTER, lane=Lane.SLOW, quantum=2e7, harm=Harm.HIGHER,
)  # fmt: skip
_DAMAGE = partial(_STATE, unit="rows", harm=Harm.HIGHER)
_SUBJECT = partial(
    Metric, kind=Kind.GAUGE, subsystem=Subsystem.GPU, scope=Scope.SUBJECT,
    source="nvml-subjects", lane=Lane.SLOW,
)  # fmt: skip

_USE = (
    _QUICK("gpu.utilization", unit="percent", quantum=5, origin="utilization.gpu",
           meaning="Share of the last sample period (1/6 to 1 s) in which a kernel ran"),
    _QUICK("gpu.memory.utilization", unit="percent", quantum=5, origin="utilization.memory",
           meaning="Share of the last sample period in which device memory was read or written"),
    _QUICK("gpu.memory.used", unit="bytes", quantum=2**28, origin="memory.used",
           meaning="Device memory in use"),
    _QUICK("gpu.power", unit="watts", quantum=15, origin="power.draw.instant, power.draw",
           meaning="Power that the board draws"),
    _GPU("gpu.energy", unit="joules", kind=Kind.COUNTER, lane=Lane.SLOW, quantum=15,
         family="gpu.power", origin="nvmlDeviceGetTotalEnergyConsumption",
         meaning="Energy used since the driver was loaded"),
    _QUICK("gpu.clock.sm", unit="Hz", quantum=5e7, origin="clocks.sm",
           meaning="Clock of the streaming multiprocessors"),
    _QUICK("gpu.clock.memory", unit="Hz", quantum=1e8, origin="clocks.mem",
           meaning="Clock of the device memory"),
    _LEVEL("gpu.memory.free", unit="bytes", quantum=2**28, origin="memory.free",
           family="gpu.memory.used", meaning="Free device memory"),
    _FIXED("gpu.memory.total", unit="bytes", quantum=2**28, origin="memory.total",
           meaning="Total device memory"),
    _SHARE("gpu.encoder.utilization", origin="utilization.encoder",
           meaning="Utilization of the video encoder"),
    _SHARE("gpu.decoder.utilization", origin="utilization.decoder",
           meaning="Utilization of the video decoder"),
    _SHARE("gpu.fan", origin="fan.speed", meaning="Speed of the fan as a share of its maximum"),
    _LEVEL("gpu.processes", unit="processes", quantum=1, origin="compute-apps, graphics",
           meaning="Processes that have this GPU open to compute or draw"),
    _LEVEL("gpu.contention", unit="percent", quantum=1, harm=Harm.HIGHER, origin="sm (pmon)",
           meaning="Share of the time of this GPU that all subjects but the one with the most use, "
                   "less the share that is left: there they wait for each other"),
    _LEVEL("gpu.pcie.tx", unit="bytes/s", quantum=1e8, origin="pcie tx (dmon -s t)",
           meaning="Rate of bytes that the GPU sent over PCIe, in a sample of 20 ms"),
    _LEVEL("gpu.pcie.rx", unit="bytes/s", quantum=1e8, origin="pcie rx (dmon -s t)",
           meaning="Rate of bytes that the GPU received over PCIe, in a sample of 20 ms"),
)  # fmt: skip
_PROFILED = (
    _SHARE("gpu.sm.active", origin="GPM SM_UTIL, DCGM_FI_PROF_SM_ACTIVE",
           meaning="Share of the time that a multiprocessor had a warp, mean over all of them"),
    _SHARE("gpu.sm.occupancy", origin="GPM SM_OCCUPANCY, DCGM_FI_PROF_SM_OCCUPANCY",
           meaning="Resident warps as a share of the maximum"),
    _SHARE("gpu.tensor.active", origin="GPM ANY_TENSOR_UTIL, DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
           meaning="Share of the time that the tensor cores were active"),
    _SHARE("gpu.memory.bandwidth", origin="GPM DRAM_BW_UTIL, DCGM_FI_PROF_DRAM_ACTIVE",
           meaning="Utilization of the bandwidth of the device memory"),
)  # fmt: skip
_LIMITS = (
    _STATE("gpu.power.limit", unit="watts", quantum=10, harm=Harm.LOWER,
           origin="enforced.power.limit", meaning="Enforced power limit of the board"),
    _LEVEL("gpu.temperature", unit="celsius", quantum=3, origin="temperature.gpu",
           meaning="Temperature of the GPU's die"),
    _LEVEL("gpu.memory.temperature", unit="celsius", quantum=3, origin="temperature.memory",
           meaning="Temperature of the device memory"),
    _FIXED("gpu.temperature.slowdown", unit="celsius", quantum=1, origin="GPU Slowdown Temp",
           meaning="Temperature at which the hardware halves the clocks"),
    _FIXED("gpu.temperature.shutdown", unit="celsius", quantum=1, origin="GPU Shutdown Temp",
           meaning="Temperature at which the GPU shuts down"),
    _FIXED("gpu.clock.maximum", unit="Hz", quantum=5e7, origin="clocks.max.sm",
           meaning="Highest clock of the multiprocessors"),
    _FIXED("gpu.clock.memory_maximum", unit="Hz", quantum=1e8, origin="clocks.max.mem",
           meaning="Highest clock of the device memory"),
    _STATE("gpu.performance_state", origin="pstate",
           meaning="Performance state: 0 the fastest, 15 the slowest"),
)  # fmt: skip
_THROTTLE = (
    _STATE("gpu.throttle.idle", origin="clocks_event_reasons.gpu_idle",
           meaning="Clocks are low because the GPU is idle"),
    _STATE("gpu.throttle.application_clocks", harm=Harm.HIGHER, weight=0.5,
           origin="clocks_event_reasons.applications_clocks_setting",
           meaning="Clocks are limited by application clocks that a user set"),
    _STATE("gpu.throttle.power_cap", origin="clocks_event_reasons.sw_power_cap",
           meaning="Clocks are lowered to keep the power limit"),
    _STATE("gpu.throttle.hardware_slowdown", harm=Harm.HIGHER,
           origin="clocks_event_reasons.hw_slowdown",
           meaning="The hardware lowers the clocks by half or more because of heat or power"),
    _STATE("gpu.throttle.sync_boost", origin="clocks_event_reasons.sync_boost",
           meaning="Clocks are limited to those of the slowest GPU of a group"),
    _STATE("gpu.throttle.thermal_software", harm=Harm.HIGHER,
           origin="clocks_event_reasons.sw_thermal_slowdown",
           meaning="The driver lowers the clocks because the GPU or its memory is too hot"),
    _STATE("gpu.throttle.thermal_hardware", harm=Harm.HIGHER,
           origin="clocks_event_reasons.hw_thermal_slowdown",
           meaning="The hardware lowers the clocks by half or more because of heat"),
    _STATE("gpu.throttle.power_brake", harm=Harm.HIGHER,
           origin="clocks_event_reasons.hw_power_brake_slowdown",
           meaning="The power supply requested lower power (power brake)"),
    _STATE("gpu.throttle.display", origin="NVML_CLOCKS_EVENT_REASON_DISPLAY_CLOCK_SETTING",
           meaning="Clocks are set for a display"),
)  # fmt: skip
_THROTTLED_TIME = (
    # no harm by itself: training takes a cool card to its limit as well as a warm one, and what
    # clocks lose there shows in gpu.clock_deficit
    _THROTTLED("gpu.throttled_time.power", harm=Harm.NEITHER,
               origin="NVML_FI_DEV_PERF_POLICY_POWER",
               meaning="Time that clocks were lowered because of the power limit"),
    _THROTTLED("gpu.throttled_time.thermal", origin="NVML_FI_DEV_PERF_POLICY_THERMAL",
               meaning="Time that clocks were lowered because of heat"),
    _THROTTLED("gpu.throttled_time.sync_boost", weight=0.5,
               origin="NVML_FI_DEV_PERF_POLICY_SYNC_BOOST",
               meaning="Time that clocks were limited to those of a slower GPU"),
    _THROTTLED("gpu.throttled_time.board_limit", origin="NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT",
               meaning="Time that clocks were lowered because of a limit of the board"),
    _THROTTLED("gpu.throttled_time.reliability", origin="NVML_FI_DEV_PERF_POLICY_RELIABILITY",
               weight=0.5, meaning="Time that clocks were lowered because of voltage reliability"),
)  # fmt: skip
_ERRORS = (
    _EVENTS("gpu.ecc.corrected.volatile", quantum=10, weight=0.5, family="gpu.ecc.corrected",
            origin="ecc.errors.corrected.volatile.total",
            meaning="Corrected memory errors since the driver was loaded"),
    _EVENTS("gpu.ecc.corrected.aggregate", quantum=10, weight=0.5, family="gpu.ecc.corrected",
            origin="ecc.errors.corrected.aggregate.total",
            meaning="Corrected memory errors in the lifetime of the card"),
    _EVENTS("gpu.ecc.uncorrected.volatile", family="gpu.ecc.uncorrected",
            origin="ecc.errors.uncorrected.volatile.total",
            meaning="Uncorrected memory errors since the driver was loaded"),
    _EVENTS("gpu.ecc.uncorrected.aggregate", family="gpu.ecc.uncorrected",
            origin="ecc.errors.uncorrected.aggregate.total",
            meaning="Uncorrected memory errors in the lifetime of the card"),
    _DAMAGE("gpu.retired_pages.corrected", unit="pages", weight=0.5,
            origin="retired_pages.single_bit_ecc.count",
            meaning="Pages retired because of repeated corrected errors"),
    _DAMAGE("gpu.retired_pages.uncorrected", unit="pages",
            origin="retired_pages.double_bit.count",
            meaning="Pages retired because of an uncorrected error"),
    _DAMAGE("gpu.retired_pages.pending", unit="state", origin="retired_pages.pending",
            meaning="Whether pages will be retired at the next reboot"),
    _DAMAGE("gpu.remapped_rows.corrected", weight=0.5, origin="remapped_rows.correctable",
            meaning="Rows remapped because of corrected errors"),
    _DAMAGE("gpu.remapped_rows.uncorrected", origin="remapped_rows.uncorrectable",
            meaning="Rows remapped because of uncorrected errors"),
    _DAMAGE("gpu.remapped_rows.pending", unit="state", origin="remapped_rows.pending",
            meaning="Whether a row will be remapped at the next reset of the GPU"),
    _DAMAGE("gpu.remapped_rows.failure", unit="state", origin="remapped_rows.failure",
            meaning="Whether a row could not be remapped because no spare row is left"),
    _STATE("gpu.recovery_action", harm=Harm.HIGHER, origin="NVML_FI_DEV_GET_GPU_RECOVERY_ACTION",
           meaning="Action that the driver requests: 0 none, 1 reset, 2 reboot, 3 and 4 drain"),
    _STATE("gpu.lost", harm=Harm.HIGHER, origin="NVML_ERROR_GPU_IS_LOST",
           meaning="Whether the GPU does not answer: it fell off the bus or needs a reset"),
    _STATE("gpu.count", scope=Scope.NODE, unit="GPUs", harm=Harm.LOWER,
           origin="nvmlDeviceGetCount", meaning="GPUs that the driver knows and that answer"),
    _FIXED("gpu.expected", scope=Scope.NODE, unit="GPUs", quantum=1,
           origin="nvmlDeviceGetCount, lspci -d 10de:",
           meaning="GPUs that there should be: the driver counts them, or the PCI bus has them"),
    _EVENTS("gpu.xid", origin="XID", family="gpu.xid",
            meaning="XID errors of one code on one GPU (instance GPU/code)"),
    _EVENTS("gpu.xid.application", origin="XID", family="gpu.xid", weight=0.5,
            meaning="XID errors that an application can cause by its own fault"),
    _EVENTS("gpu.xid.hardware", origin="XID", family="gpu.xid",
            meaning="XID errors that point to card, memory, link, driver or firmware"),
    _STATE("gpu.xid.last", unit="code", origin="XID",
           meaning="Code of the last XID error since the collector started; 0 for none"),
)  # fmt: skip
_LINKS = (
    _EVENTS("gpu.pcie.replays", quantum=5, origin="NVML_FI_DEV_PCIE_REPLAY_COUNTER",
            meaning="PCIe packets replayed after an error"),
    _EVENTS("gpu.pcie.correctable_errors", quantum=5, weight=0.5,
            origin="NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS",
            meaning="Corrected errors on the PCIe link"),
    _EVENTS("gpu.pcie.nonfatal_errors", origin="NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR",
            meaning="Errors that lost a PCIe transaction"),
    _EVENTS("gpu.pcie.fatal_errors", origin="NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR",
            meaning="Errors that broke the PCIe link"),
    _STATE("gpu.pcie.generation", unit="generation", origin="pcie.link.gen.current",
           meaning="Current PCIe generation of the link; it is lower while the GPU is idle, "
                   "to save power"),
    _FIXED("gpu.pcie.generation_maximum", unit="generation", quantum=1,
           origin="pcie.link.gen.max",
           meaning="Highest PCIe generation that both GPU and slot support"),
    _STATE("gpu.pcie.width", unit="lanes", harm=Harm.LOWER, origin="pcie.link.width.current",
           meaning="PCIe lanes in use"),
    _FIXED("gpu.pcie.width_maximum", unit="lanes", quantum=1, origin="pcie.link.width.max",
           meaning="Highest number of PCIe lanes that both GPU and slot support"),
    _GPU("gpu.nvlink.tx", unit="bytes", kind=Kind.COUNTER, lane=Lane.SLOW, quantum=1e8,
         origin="NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", meaning="Bytes sent over all NVLinks"),
    _GPU("gpu.nvlink.rx", unit="bytes", kind=Kind.COUNTER, lane=Lane.SLOW, quantum=1e8,
         origin="NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX",
         meaning="Bytes received over all NVLinks"),
    _EVENTS("gpu.nvlink.crc_errors", quantum=10, origin="NVLINK_CRC_FLIT_ERROR_COUNT, DL_CRC",
            meaning="Damaged packets on all NVLinks"),
    _EVENTS("gpu.nvlink.crc_data_errors", quantum=10, family="gpu.nvlink.crc_errors",
            origin="NVLINK_CRC_DATA_ERROR_COUNT", meaning="Damaged payloads on all NVLinks"),
    _EVENTS("gpu.nvlink.replay_errors", quantum=5, origin="NVLINK_REPLAY_ERROR_COUNT, DL_REPLAY",
            meaning="Packets replayed on all NVLinks"),
    _EVENTS("gpu.nvlink.recovery_errors",
            origin="NVLINK_RECOVERY_ERROR_COUNT, DL_RECOVERY",
            meaning="Times that an NVLink was retrained"),
    _STATE("gpu.nvlink.active_links", unit="links", harm=Harm.LOWER,
           origin="nvmlDeviceGetNvLinkState", meaning="NVLinks that are up"),
)  # fmt: skip
_OTHERS = (
    _GPU("gpu.driver.time", unit="ns", kind=Kind.COUNTER, scope=Scope.NODE, lane=Lane.SLOW,
         quantum=2e7, origin="clock around each NVML call",
         meaning="Time that this collector spent in calls of the driver library"),
    _LEVEL("gpu.driver.slowed", unit="queries", scope=Scope.NODE, quantum=1,
           origin="period of each NVML query",
           meaning="Queries sent less often than desired because they cost too much"),
    _SUBJECT("gpu.subject.memory_used", unit="bytes", quantum=2**28,
             origin="used_gpu_memory (query-compute-apps)",
             meaning="Device memory of the processes of this subject, over all GPUs"),
    _SUBJECT("gpu.subject.sm_utilization", unit="percent", quantum=5, origin="sm (pmon)",
             meaning="GPU time of the processes of this subject, over all GPUs"),
)  # fmt: skip

ROWS: tuple[Metric, ...] = (
    *_USE, *_PROFILED, *_LIMITS, *_THROTTLE, *_THROTTLED_TIME, *_ERRORS, *_LINKS, *_OTHERS,
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
