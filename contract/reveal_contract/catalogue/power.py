"""Catalogue rows: clocks, idle states, energy and temperatures, as in turbostat's columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.bounds import CLOCK
from reveal_contract.metric import Harm, Kind, Lane, Metric, Role, Scope, Subsystem

_HIGHER, _LOWER = Harm.HIGHER, Harm.LOWER

_MSR = partial(
    Metric, unit="ticks", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="msr", lane=Lane.SLOW, quantum=1e8,
)  # fmt: skip
_FREQUENCY = partial(
    Metric, unit="Hz", kind=Kind.GAUGE, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="cpufreq", lane=Lane.SLOW, quantum=1e8, bounds=CLOCK,
)  # fmt: skip
_THROTTLE = partial(
    Metric, unit="events", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.PACKAGE,
    source="throttling", lane=Lane.SLOW, quantum=1, harm=_HIGHER,
)  # fmt: skip
_ENERGY = partial(
    Metric, unit="joules", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.PACKAGE,
    source="energy", lane=Lane.SLOW, quantum=5,
)  # fmt: skip
_IDLE = partial(
    Metric, unit="ns", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.STATE,
    source="cpuidle", lane=Lane.RARE, quantum=1e8,
)  # fmt: skip
_HEAT = partial(
    Metric, unit="celsius", kind=Kind.GAUGE, subsystem=Subsystem.CPU, scope=Scope.SENSOR,
    source="sensors", lane=Lane.RARE, quantum=5, harm=_HIGHER, weight=0.3,
)  # fmt: skip
_BANDWIDTH = partial(
    Metric, unit="bytes", kind=Kind.COUNTER, subsystem=Subsystem.MEMORY, scope=Scope.PACKAGE,
    source="uncore", lane=Lane.SLOW, quantum=1e9, family="memory.bandwidth",
)  # fmt: skip

_CLOCKS = (
    _MSR("cpu.aperf", origin="msr/aperf/ (APERF)", family="cpu.mperf",
         meaning="Ticks at the CPU's actual clock while not idle, mean over CPUs"),
    _MSR("cpu.mperf", origin="msr/mperf/ (MPERF)",
         meaning="Ticks at the rate of the TSC while not idle, mean over CPUs"),
    _MSR("cpu.tsc", origin="msr/tsc/ (TSC_MHz)", role=Role.STATIC,
         meaning="Ticks of the time stamp counter, mean over CPUs"),
    _MSR("cpu.aperf.package", origin="msr/aperf/ by package", scope=Scope.PACKAGE,
         family="cpu.mperf",
         meaning="Ticks at the CPU's actual clock while not idle, mean over the CPUs of the "
                 "package"),
    _MSR("cpu.mperf.package", origin="msr/mperf/ by package", scope=Scope.PACKAGE,
         family="cpu.mperf",
         meaning="Ticks at the rate of the TSC while not idle, mean over the CPUs of the package"),
    _MSR("cpu.tsc.package", origin="msr/tsc/ by package", scope=Scope.PACKAGE, role=Role.STATIC,
         meaning="Ticks of the time stamp counter, mean over the CPUs of the package"),
    _MSR("cpu.busy_share.highest", unit="ppm", kind=Kind.GAUGE, origin="Busy% of the busiest CPU",
         quantum=30_000, family="cpu.busy",
         meaning="Share of the time that the busiest CPU was not idle, per million"),
    _MSR("cpu.busy_frequency.lowest", unit="Hz", kind=Kind.GAUGE,
         origin="Bzy_MHz of the slowest CPU", quantum=2e8, harm=_LOWER, weight=0.5,
         family="cpu.busy_frequency",
         meaning="Lowest clock while busy, of the CPUs that are busy at least a tenth of the "
                 "time"),
    _MSR("cpu.smi", unit="events", source="smi", scope=Scope.PACKAGE, origin="SMI (msr/smi/)",
         quantum=1, harm=_HIGHER,
         meaning="System management interrupts: the firmware stopped all CPUs"),
    _FREQUENCY("cpu.frequency.mean", origin="scaling_cur_freq, mean", family="cpu.frequency",
               meaning="Mean clock of all CPUs of a large host"),
    _FREQUENCY("cpu.frequency.lowest", origin="scaling_cur_freq, lowest", family="cpu.frequency",
               meaning="Clock of the slowest CPU of a large host"),
    _FREQUENCY("cpu.frequency.highest", origin="scaling_cur_freq, highest",
               family="cpu.frequency", meaning="Clock of the fastest CPU of a large host"),
)  # fmt: skip

_THROTTLING = (
    _THROTTLE("cpu.thermal_throttle.package", origin="package_throttle_count",
              meaning="Times that the package was throttled because of heat"),
    _THROTTLE("cpu.thermal_throttle.package_time", unit="ns", quantum=1e6,
              origin="package_throttle_total_time_ms", family="cpu.thermal_throttle.package",
              meaning="Time that the package was throttled because of heat"),
    _THROTTLE("cpu.thermal_throttle.core", source="core-throttling", lane=Lane.RARE,
              origin="core_throttle_count",
              meaning="Times that cores of the package were throttled because of heat"),
    _THROTTLE("cpu.thermal_throttle.core_time", unit="ns", source="core-throttling",
              lane=Lane.RARE, quantum=1e6, origin="core_throttle_total_time_ms",
              family="cpu.thermal_throttle.core",
              meaning="Time that cores of the package were throttled because of heat"),
)  # fmt: skip

_STATES = (
    _IDLE("cpu.idle_state.time", origin="cpuidle time (C1%, C6%, POLL%)",
          meaning="Time in one idle state of the kernel, summed over CPUs"),
    _IDLE("cpu.idle_state.entries", unit="events", quantum=1000, origin="cpuidle usage (C1, C6)",
          meaning="Entries into one idle state of the kernel, summed over CPUs"),
    _IDLE("cpu.residency.core", unit="ticks", source="cstates", origin="CPU%c1, CPU%c6, CPU%c7",
          meaning="TSC ticks in a hardware C-state, mean over cores"),
    _IDLE("cpu.residency.package", unit="ticks", source="cstates", scope=Scope.PACKAGE,
          origin="Pkg%pc2, Pkg%pc6", meaning="TSC ticks of a package in a hardware C-state"),
)  # fmt: skip

_POWER = (
    _ENERGY("cpu.energy.package", origin="PkgWatt (power/energy-pkg/, energy_uj)",
            meaning="Energy of a package: one joule per second is one watt"),
    _ENERGY("cpu.energy.cores", origin="CorWatt (power/energy-cores/)",
            family="cpu.energy.package", meaning="Energy of the cores of a package"),
    _ENERGY("cpu.energy.platform", origin="SysWatt (power/energy-psys/)",
            family="cpu.energy.package", meaning="Energy of the whole platform"),
    _ENERGY("memory.energy", origin="RAMWatt (power/energy-ram/)", subsystem=Subsystem.MEMORY,
            meaning="Energy of the DRAM of a package"),
    _HEAT("cpu.power", unit="watts", quantum=10, harm=Harm.NEITHER,
          origin="hwmon power_average, power_input",
          meaning="Power that a sensor of the board or module reports"),
)  # fmt: skip

_TEMPERATURES = (
    _HEAT("cpu.temperature.package", source="hwmon", lane=Lane.SLOW, scope=Scope.PACKAGE,
          origin="PkgTmp (coretemp Package id, k10temp Tctl)",
          meaning="Temperature of a package"),
    _HEAT("cpu.temperature.core", scope=Scope.PACKAGE, family="cpu.temperature.package",
          origin="CoreTmp (coretemp Core, k10temp Tccd)",
          meaning="Temperature of the hottest core or die of a package"),
    _HEAT("cpu.temperature.board", origin="hwmon temp_input",
          meaning="Temperature of a sensor of the board"),
    _HEAT("memory.temperature", subsystem=Subsystem.MEMORY, origin="hwmon jc42, spd5118",
          meaning="Temperature of a memory module"),
    _HEAT("storage.temperature", subsystem=Subsystem.STORAGE, origin="hwmon nvme, drivetemp",
          meaning="Temperature of a drive"),
    _HEAT("network.temperature", subsystem=Subsystem.NETWORK, origin="hwmon of the NIC",
          meaning="Temperature of a network card or its module"),
    _HEAT("gpu.temperature.sensor", subsystem=Subsystem.GPU, origin="hwmon amdgpu",
          meaning="Temperature of a sensor of the GPU (edge, junction, mem)"),
)  # fmt: skip

_CONTROLLERS = (
    _BANDWIDTH("memory.bandwidth.read",
               origin="uncore_imc/cas_count_read/, umc_cas_cmd.rd, cmem_rd_data",
               meaning="Bytes that the memory controllers of a package read"),
    _BANDWIDTH("memory.bandwidth.write",
               origin="uncore_imc/cas_count_write/, umc_cas_cmd.wr, cmem_wr_total_bytes",
               meaning="Bytes that the memory controllers of a package wrote"),
    _BANDWIDTH("memory.bandwidth.total", origin="amd_df dram_channel_data_controller",
               meaning="Bytes that the memory controllers of a package read and wrote"),
)  # fmt: skip

ROWS: tuple[Metric, ...] = (
    *_CLOCKS, *_THROTTLING, *_STATES, *_POWER, *_TEMPERATURES, *_CONTROLLERS,
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
