"""The table formats of well-known tools: what they write, and what their columns mean.

A format is data.  Most files of these tools are recognized by a line that no other tool writes; the
name of the format makes it certain, and errors say how the tool has to be called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from reveal_analyzer.tables.ingest.head_lines import Head, HeadLine
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.time_texts import DayOrder

BLANKS = r"\s+"


@dataclass(frozen=True)
class Sections:
    """A report in sections, each below a line of names: one table is made of all of them.

    ``header`` matches a line of names; ``labels`` are columns that say what a row is about, and
    ``host`` that of its host; ``dropped`` are columns without any meaning.  Where ``line`` is
    given, each line that matches it is a value, with the groups ``time``, ``name`` and ``value``.
    """

    header: str = ""
    separator: str = BLANKS
    labels: frozenset[str] = frozenset()
    host: str = ""
    time: str = ""
    dropped: frozenset[str] = frozenset()
    line: str = ""


@dataclass(frozen=True)
class TableFormat:
    """What a tool writes.

    ``command`` writes it.  ``signature`` matches a line of each file, which is the header unless
    ``names`` has the columns by their number: such files have none.  ``signature`` is "" where
    other tools write the same; such a format must be named.  ``time`` are the possible names of the
    time column, ``entities`` those that distinguish rows of one time, ``values`` the only metrics,
    ``ignored`` columns that are no metrics, those with an asterisk by their ends.  ``two_words``
    matches the name of a column whose values are two words, and has a name for each.  ``grouped``:
    the line above the names has groups of columns.  ``skipped`` matches the first field of a line
    that is no row.  ``units`` are those of columns whose names match.  ``advice`` is what to do if
    something is missing.
    """

    name: str
    command: str
    advice: str
    signature: str = ""
    separator: str = ""
    names: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    time: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    two_words: tuple[str, ...] = ()
    grouped: bool = False
    skipped: str = ""
    order: DayOrder = DayOrder.NONE
    units: Mapping[str, str] = field(default_factory=dict)
    sections: Sections | None = None

    @cached_property
    def _signature(self) -> re.Pattern[str]:
        return re.compile(self.signature)

    def signs(self, line: HeadLine) -> bool:
        """Return whether a line is its signature."""
        return bool(self.signature and self._signature.search(line.text))

    def unit_of(self, column: str) -> str:
        """Return the unit of a column; "" if it is unknown."""
        return next((unit for name, unit in self.units.items() if re.search(name, column)), "")


_SYSSTAT_UNITS = {r"^%": "%", r"^kb": "KiB", r"kB/s$": "KiB/s", r"^[rwd]_?await$": "ms"}
_SYSSTAT_LABELS = frozenset(
    ("CPU", "DEV", "IFACE", "INTR", "TTY", "BUS", "FAN", "TEMP", "FILESYSTEM", "MOUNTPOINT")
)
_TIME_OF_DAY = r"\d\d?:\d\d:\d\d(?: [AP]M)?"
FORMATS = (
    TableFormat(
        "sadf", "sadf -d", "write it by `sadf -d -- -u -r -d`",
        signature=r"^# ?hostname;interval;timestamp;",
        units=_SYSSTAT_UNITS,
        sections=Sections(
            header=r"^# ?hostname;interval;timestamp;", separator=";", labels=_SYSSTAT_LABELS,
            host="hostname", time="timestamp", dropped=frozenset(("interval",)),
        ),
    ),
    TableFormat(
        "pidstat", "pidstat -h", "`pidstat -h -H` writes seconds since the epoch",
        signature=rf"^(?:#\s*Time|{_TIME_OF_DAY})\s+(?:UID|USER)\s+\w+\s",
        units={**_SYSSTAT_UNITS, r"^(VSZ|RSS)$": "KiB"},
        sections=Sections(
            header=rf"^(?:#\s*Time|{_TIME_OF_DAY})\s+(?:UID|USER)\s", time="Time",
            labels=frozenset(("PID", "TGID", "TID", "Command")),
            dropped=frozenset(("UID", "USER", "CPU")),
        ),
    ),
    TableFormat(
        "sar", "sar", "`sadf -d` writes the same with dates",
        signature=rf"^{_TIME_OF_DAY}\s(?=.*(?:%|/s\b|-sz\b|kb))(?!\s*LINUX)"
        r"(?:\s*[A-Za-z%][^\s,;|]*)+\s*$",
        units=_SYSSTAT_UNITS,
        sections=Sections(
            header=rf"^{_TIME_OF_DAY}\s(?!\s*LINUX)(?:\s*[A-Za-z%][^\s,;|]*)+\s*$",
            labels=_SYSSTAT_LABELS,
        ),
    ),
    TableFormat(
        "iostat", "iostat -t", "`iostat -t` writes the times",
        signature=r"^(?:avg-cpu:|Device:?)\s+[\w%/]+",
        units=_SYSSTAT_UNITS,
        sections=Sections(
            header=r"^(?:avg-cpu:|Device:?)\s", labels=frozenset(("Device", "Device:")),
        ),
    ),
    TableFormat(
        "vmstat", "vmstat -t", "`vmstat -t` writes the times",
        signature=r"^\s*r\s+b\s+(?:swpd|interrupts)\s", separator=BLANKS,
        two_words=(r"^(?:[A-Z]{2,5}|[+-]\d\d|timestamp)$", "date", "time"), skipped=r"procs",
        units={r"^(swpd|free|buff|cache|inact|active)$": "KiB", r"^(us|sy|id|wa|st|gu)$": "%"},
    ),
    TableFormat(
        "collectl", "collectl -P", "write it by `collectl -P -f FOLDER -oz`",
        signature=r"^#(?:Date\W+Time|UTC)\W+\[", time=("Date", "UTC"),
        units={r"%$": "%", r"KB(Tot)?$": "KB/s"},
    ),
    TableFormat(
        "dstat", "dstat --output", "`dstat -T` writes seconds since the epoch",
        signature=r"^\"(?:pcp-)?(?:[Dd]stat|dool) [\d.]+ CSV output",
        separator=",", time=("epoch:epoch", "epoch", "system:time", "system"), grouped=True,
    ),
    TableFormat(
        "dcgmi", "dcgmi dmon", "`dcgmi dmon -d 1000` writes a row for each GPU and second",
        signature=r"^#\s*Entity\s", separator=BLANKS, two_words=(r"^Entity$", "Entity", "ID"),
        entities=("Entity", "ID"), skipped=r"(?:ID|Id)$",
        units={r"^POWER$": "W", r"^(GPUTL|MCUTL)$": "%", r"^(TMPTR|MMTMP|GTEMP)$": "C"},
    ),
    TableFormat(
        "dmon", "nvidia-smi dmon", "`nvidia-smi dmon -o DT` writes the times",
        signature=r"^#\s*(?:Date[\s,]+)?(?:Time[\s,]+)?gpu[\s,]++(?!pid)",
        time=("Date", "Time"), entities=("gpu",),
        units={r"^pwr$": "W", r"temp$": "C", r"^(sm|mem|enc|dec|jpg|ofa)$": "%", r"clk$": "MHz"},
    ),
    TableFormat(
        "pmon", "nvidia-smi pmon", "`nvidia-smi pmon -o DT` writes the times",
        signature=r"^#\s*(?:Date\s+)?(?:Time\s+)?gpu\s+pid\s", separator=BLANKS,
        time=("Date", "Time"), entities=("gpu", "pid"), ignored=("type", "command"),
        units={r"^(sm|mem|enc|dec|jpg|ofa)$": "%", r"^(fb|ccpm)$": "MiB"},
    ),
    TableFormat(
        "nvidia-smi", "nvidia-smi --query-gpu=timestamp,index,... --format=csv",
        "add timestamp and index to --query-gpu",
        signature=r"(?:^|,\s*)(?:utilization\.(?:gpu|memory)|power\.draw|temperature\.gpu"
        r"|clocks\.\w|memory\.used|clocks_throttle_reasons\.|fan\.speed)[\w.]*(?: \[|,|$)",
        separator=",", time=("timestamp",),
        entities=("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial"),
        ignored=("name", "gpu_name", "count"),
    ),
    TableFormat(
        "amd-smi", "amd-smi monitor --csv", "write it by `amd-smi monitor --csv --watch 1`",
        signature=r"^timestamp,gpu,(?:xcp,)?\w|^gpu,(?:xcp,)?(?:power_usage|hotspot_temperature|gfx_"
        r"|memory_temperature|vram_used|socket_power)", separator=",", time=("timestamp",),
        entities=("gpu", "xcp"),
        units={r"^power_usage$": "W", r"temperature$": "C", r"_(clk|clock)$": "MHz"},
    ),
    TableFormat(
        "turbostat", "turbostat", "`turbostat --enable Time_Of_Day_Seconds` writes the times",
        signature=r"^(?:(?:usec|Time_Of_Day_Seconds|Package|Die|L3|Node|Core|CPU|APIC|X2APIC)\s+)*"
        r"(?:Avg_MHz|Busy%|Bzy_MHz|TSC_MHz|PkgWatt|CorWatt|CoreTmp|PkgTmp)(?:\s|$)",
        time=("Time_Of_Day_Seconds",), entities=("CPU", "Core", "Package", "Die"),
        ignored=("usec", "Node", "L3", "APIC", "X2APIC"),
        units={r"MHz$": "MHz", r"%": "%", r"Watt$": "W", r"Tmp$": "C", r"_J$": "J"},
    ),
    TableFormat(
        "perf-stat", "perf stat -I -x,", "write it by `perf stat -I 1000 -x, -o FILE`",
        signature=r"^\s*\d+\.\d{6,9},(?:[\w-]+,(?:\d+,)?)?(?:[\d.]+|<not \w+>),[\w ]*,"
        r"(?=[^,]*[A-Za-z])[\w.:/=-]+,\d+,\d+\.\d\d,",
        separator=",", time=("time",), entities=("event", "cpu"), values=("value",),
        names={
            8 + len(which): (
                "time", *which, "value", "unit", "event", "runtime", "percent", "metric",
                "metric unit",
            )
            for which in ((), ("cpu",), ("cpu", "cpus"))  # of all CPUs, of each, of each socket
        },
    ),
    TableFormat(
        "perf-stat-text", "perf stat -I", "`perf stat -I 1000 -x,` is read, too",
        signature=r"^#\s+time\s+(?:core\s+cpus\s+|CPU\s+)?counts\s+unit\s+events",
        sections=Sections(
            line=r"^\s*(?P<time>\d+\.\d+)\s+(?P<value>[\d.,]+|<not \w+>)\s+"
            r"(?:(?:msec|ns|Joules|C|MiB|GiB)\s+)?(?P<name>[\w.:/=-]+)(?:\s|$)",
        ),
    ),
    TableFormat(
        "ldms", "LDMS store_csv", "store_csv writes them with `altheader` or with a header",
        signature=r"^#?\"?Time\"?,\"?(?:Time_usec|DT_usec|ProducerName)", separator=",",
        time=("Time", "#Time"), entities=("ProducerName", "instance"),
        ignored=("Time_usec", "DT_usec", "component_id", "job_id", "app_id"),
    ),
    TableFormat(
        "pmrep", "pmrep -o csv", "write it by `pmrep -o csv -t 1s METRIC...`",
        signature=r"^\"?Time\"?,\"?\w+(?:\.\w+)+(?:-[^,]*)?\"?(?:,|$)",
        separator=",", time=("Time",),
    ),
    TableFormat(
        "prometheus", "Prometheus' query_range as CSV",
        "docs/reference/table-formats.md has a script that writes it",
        time=("time", "timestamp", "Time"),
    ),
    TableFormat(
        "victoriametrics",
        "/api/v1/export/csv?format=__name__,instance,__value__,__timestamp__:unix_s",
        "ask for format=__name__,instance,__value__,__timestamp__:unix_s",
        separator=",", names={4: ("name", "instance", "value", "time")}, time=("time",),
        entities=("name", "instance"), values=("value",),
    ),
    TableFormat(
        "grafana", "Grafana: Inspect, Data, Download CSV",
        "switch `Formatted data` off, and `Series joined by time` on",
        signature=r"^\"(?:Series\"[;,]\")?Time\"[;,]\"", time=("Time", "time"),
        entities=("Series",),
    ),
    TableFormat(
        "influxdb", "influx query --raw", "write it by `influx query --raw`",
        signature=r"^,?result,table,", separator=",", time=("_time",),
        entities=("host", "_measurement", "_field", "*"), values=("_value",),
        ignored=("result", "table", "_start", "_stop"), skipped=r"#|error",
    ),
    TableFormat(
        "influxdb-v1", "influx -format csv", "write it by `influx -precision rfc3339 -format csv`",
        signature=r"^name,(?:tags,)?time,", separator=",", time=("time",),
        entities=("host", "tags"), ignored=("name",),
    ),
    TableFormat(
        "datadog", "Datadog: a graph as CSV", "a table with the columns time, group and value",
        time=("time", "timestamp", "date"), entities=("host", "group", "tags", "scope", "metric"),
    ),
    TableFormat(
        "cloudwatch", "CloudWatch: Download as .csv", "choose Actions, Download as .csv",
        signature=r"^\"?Label\"?,", separator=",", time=("Label",),
        skipped=r"(?:Statistic|Period)$",
    ),
    TableFormat(
        "wandb", "Weights & Biases: a chart or run.history() as CSV",
        "export the chart over wall time, or use run.history(stream='events')",
        signature=r"(?:^|,)\"?(?:_timestamp|Relative Time \((?:Process|Wall)\)|_runtime)\"?(?:,|$)",
        separator=",", time=("_timestamp", "Relative Time (Wall)", "Relative Time (Process)"),
        ignored=("_step", "_wandb", "", "_runtime", "*__MIN", "*__MAX"),
    ),
    TableFormat(
        "mlflow", "MLflow: a file in mlruns/*/*/metrics",
        "the files have a time, a value and a step",
        separator=BLANKS, names={3: ("time", "value", "step")}, time=("time",), values=("value",),
    ),
    TableFormat(
        "slurm", "sh5util --extract", "write it by `sh5util -j JOB --extract --series=Task`",
        signature=r"^(?:Job,)?Step,Node,Series,Date_Time,", separator=",", time=("Date_Time",),
        entities=("Node", "Series", "Step"), ignored=("Job", "Elapsed_Time", "ElapsedTime"),
        units={r"^Power$": "W", r"_Megabytes$": "MB", r"^CPU_Utilization$": "%"},
    ),
    TableFormat(
        "typeperf", "typeperf -f CSV", "write it by `typeperf -cf COUNTERS -f CSV`",
        signature=r"^\"?\(PDH-(?:CSV|TSV) 4\.0\)", order=DayOrder.MONTH_FIRST,
    ),
)  # fmt: skip
_BY_NAME = {each.name: each for each in FORMATS}
_MOST_LINES = 300  # in which a signature is looked for


def format_names() -> tuple[str, ...]:
    """Return the names of all formats."""
    return tuple(_BY_NAME)


def format_named(name: str) -> TableFormat | None:
    """Return the format of this name; None for none."""
    return _BY_NAME.get(name)


def requested_format(path: Path, name: str, head: Head) -> TableFormat:
    """Return the format of this name; raises ``TableFileError`` if the file has another."""
    chosen = _BY_NAME[name]
    if chosen.signature and not any(map(chosen.signs, head.lines)):
        others = recognized_format(head)
        known = f"; it looks like {others.command}" if others else ""
        raise TableFileError(
            f"{path} is not what {chosen.command} writes{known}: {chosen.advice}, or leave out"
            " --format"
        )
    return chosen


def recognized_format(head: Head) -> TableFormat | None:
    """Return the format whose signature is among the first lines."""
    return next(_recognized(head), None)


def _recognized(head: Head) -> Iterator[TableFormat]:
    for line in head.lines[:_MOST_LINES]:
        yield from (each for each in FORMATS if each.signs(line))
