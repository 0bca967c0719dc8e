"""Tables as well-known tools write them, with a fault at a known time in a known column.

Lines of names are those of the tool or its public documentation; the values are made here.  Busy is
about 50 and rises to 90 in the samples of ``FAULT``; the other column stays as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

START = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
SAMPLES = 240
FAULT = range(150, 170)


@dataclass(frozen=True)
class FormatSample:
    """A file of a format: its text, and the metric that has the fault.

    ``certain``: no other tool writes such a file, so its format is recognized.  ``first_ns`` is the
    time of its first sample in ns, where that is not ``START``.
    """

    format: str
    text: str
    metric: str
    certain: bool = True
    first_ns: int = int(START.timestamp()) * 10**9


Row = tuple[datetime, int, float, float]  # time, number, the value with the fault, another


def sample_rows(seed: int = 1, fault: bool = True) -> Iterator[Row]:
    """Yield the rows of all samples."""
    values = random.Random(seed)
    for number in range(SAMPLES):
        busy = values.gauss(50, 1) + (40 if fault and number in FAULT else 0)
        yield START + timedelta(seconds=number), number, busy, values.gauss(20, 1)


def sample_lines(form: Callable[[datetime, int, float, float], str]) -> str:
    """Return the rows of a single device as text."""
    return "".join(form(*row) for row in sample_rows())


def device_rows(form: Callable[[datetime, int, str, float, float], str], names: str = "01") -> str:
    """Rows of several devices: the last one has the fault."""
    tables = [list(sample_rows(seed, name == names[-1])) for seed, name in enumerate(names)]
    return "".join(
        form(*table[number][:2], name, *table[number][2:])
        for number in range(SAMPLES)
        for name, table in zip(names, tables, strict=True)
    )


def _sysstat(day: str) -> str:
    return f"Linux 6.1.0-18-amd64 (node17) \t{day} \t_x86_64_\t(2 CPU)\n\n"


def _iostat() -> str:
    head = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n"
    names = "Device             tps    kB_read/s    kB_wrtn/s\n"
    return _sysstat("11/21/2026") + sample_lines(
        lambda t, n, busy, other: (
            f"{t:%m/%d/%Y %I:%M:%S %p}\n{head}          {other:.2f}    0.00    1.00    0.10    0.00"
            f"   70.00\n\n{names}vda    {busy:.2f}    1.00    {other:.2f}\nvdb    1.00    2.00"
            "    3.00\n\n"
        )
    )


def _influx() -> str:
    head = (
        "#group,false,false,true,true,false,false,true,true,true\n"
        "#datatype,string,long,dateTime:RFC3339,dateTime:RFC3339,dateTime:RFC3339,double,string,"
        "string,string\n#default,_result,,,,,,,,\n"
        ",result,table,_start,_stop,_time,_value,_field,_measurement,host\n"
    )
    span = "2026-11-21T00:00:00Z,2026-11-22T00:00:00Z"
    return head + "".join(
        f",,{number},{span},{t:%Y-%m-%dT%H:%M:%SZ},{busy:.2f},{name},cpu,n1\n"
        for number, name in enumerate(("usage_system", "usage_user"))
        for t, _, busy, _ in sample_rows(number, name == "usage_user")
    )


def format_samples() -> list[FormatSample]:
    """Return a file of each format."""
    return [*_of_hosts(), *_of_gpus(), *_of_services(), *_of_jobs()]


def _of_hosts() -> Iterator[FormatSample]:
    yield FormatSample(
        "sadf",
        "# hostname;interval;timestamp;CPU;%user;%iowait\n"
        + device_rows(
            lambda t, n, cpu, b, o: f"n1;1;{t:%Y-%m-%d %H:%M:%S} UTC;{cpu};{b:.2f};{o:.2f}\n"
        )
        + "n1;-1;2026-11-21 10:04:00 UTC;LINUX-RESTART\t(2 CPU)\n"
        + "# hostname;interval;timestamp;kbmemfree;kbavail\n"
        + sample_lines(lambda t, n, b, o: f"n1;1;{t:%Y-%m-%d %H:%M:%S} UTC;{o:.0f};{o:.0f}\n"),
        "%user{1}",
    )
    yield FormatSample(
        "sar",
        _sysstat("11/21/2026")
        + "10:00:00 AM     CPU     %user     %nice   %iowait\n"
        + sample_lines(
            lambda t, n, b, o: f"{t:%I:%M:%S %p}     all     {b:.2f}      0.00     {o:.2f}\n"
        )
        + "Average:        all     50.00      0.00     20.00\n",
        "%user",
    )
    yield FormatSample("iostat", _iostat(), "tps{vda}")
    yield FormatSample(
        "pidstat",
        _sysstat("11/21/2026")
        + "# Time        UID       PID    %usr %system  CPU  Command\n"
        + sample_lines(
            lambda t, n, b, o: (
                f" {t.timestamp():.0f}  1000  42  {b:.2f}  {o:.2f}  0  tmux: server\n"
                f" {t.timestamp():.0f}  1000  77  1.00  2.00  1  python\n"
            )
        ),
        "%usr{42/tmux: server}",
    )
    yield FormatSample(
        "vmstat",
        sample_lines(
            lambda t, n, b, o: (
                ("procs -------memory------ ------cpu----- -----timestamp-----\n"
                 " r  b   swpd   free us sy                 UTC\n" if n % 20 == 0 else "")
                + f" 1  0      0 {18000000 + n % 7} {b:.0f} {o:.0f} {t:%Y-%m-%d %H:%M:%S}\n"
            )
        ),
        "us",
    )  # fmt: skip
    yield FormatSample(
        "collectl",
        f"{'#' * 80}\n# Collectl:   V4.3.1-1  HiRes: 1  Options: -P -oz \n# Host:       node17\n"
        f"{'#' * 80}\n#Date Time [CPU]User% [CPU]Wait%\n"
        + sample_lines(lambda t, n, b, o: f"{t:%Y%m%d %H:%M:%S} {b:.0f} {o:.0f}\n"),
        "[CPU]User%",
    )
    yield FormatSample(
        "dstat",
        '"Dstat 0.7.4 CSV output"\n"Author:","A. Person",,,,"URL:","http://example.org"\n'
        '"Host:","node17",,,,"User:","root"\n"Cmdline:","dstat -Tc --output f.csv",,,,"Date:",'
        '"21 Nov 2026 10:00:00 UTC"\n\n"epoch","total cpu usage",\n"epoch","usr","sys"\n'
        + sample_lines(lambda t, n, b, o: f"{t.timestamp():.3f},{b:.3f},{o:.3f}\n"),
        "total cpu usage:usr",
    )
    yield FormatSample(
        "turbostat",
        "turbostat version 21.05.04 - Len Brown\n"
        + sample_lines(
            lambda t, n, b, o: (
                f"Time_Of_Day_Seconds\tCore\tCPU\tAvg_MHz\tBusy%\n{t.timestamp():.6f}\t-\t-\t1\t2\n"
                f"{t.timestamp():.6f}\t0\t0\t{b:.0f}\t{o:.2f}\n{t.timestamp():.6f}\t1\t1\t9\t9.00\n"
            )
        ),
        "Avg_MHz{0}",
    )
    yield FormatSample(
        "perf-stat",
        "# started on Sat Nov 21 10:00:00 2026\n\n"
        + sample_lines(
            lambda t, n, b, o: (
                f"{n + 1:6d}.000123000,{b * 1e9:.0f},,cycles,1000123456,100.00,,\n"
                f"{n + 1:6d}.000123000,{o:.2f},msec,task-clock,1000123456,100.00,1.0,CPUs\n"
                f"{n + 1:6d}.000123000,<not counted>,,cache-misses,0,0.00,,\n"
            )
        ),
        "cycles",
        first_ns=1_000_123_000,
    )
    yield FormatSample(
        "perf-stat-text",
        "# started on Sat Nov 21 10:00:00 2026\n\n#           time             counts unit events\n"
        + sample_lines(
            lambda t, n, b, o: (
                f"{n + 1:6d}.000123456      {b * 1e9:,.0f}      cycles         #    2.300 GHz\n"
                f"{n + 1:6d}.000123456      {o:,.2f} msec task-clock     #    1.001 CPUs utilized\n"
                f"{n + 1:6d}.000123456   <not counted>      cache-misses\n"
            )
        ),
        "cycles",
        first_ns=1_000_123_000,
    )
    yield FormatSample(
        "typeperf",
        '"(PDH-CSV 4.0) (Coordinated Universal Time)(0)","\\\\N1\\Memory\\Pages/sec",'
        '"\\\\N1\\Processor(_Total)\\% Processor Time"\n'
        + sample_lines(lambda t, n, b, o: f'"{t:%m/%d/%Y %H:%M:%S}.000","{o:.6f}","{b:.6f}"\n'),
        "\\\\N1\\Processor(_Total)\\% Processor Time",
    )


def _of_gpus() -> Iterator[FormatSample]:
    yield FormatSample(
        "nvidia-smi",
        "timestamp, index, utilization.gpu [%], power.draw [W]\n"
        + device_rows(
            lambda t, n, gpu, b, o: f"{t:%Y/%m/%d %H:%M:%S}.0{gpu}1, {gpu}, {o:.0f} %, {b:.2f} W\n"
        ),
        "power.draw [W]{1}",
        first_ns=int(START.timestamp()) * 10**9 + 1_000_000,
    )
    yield FormatSample(
        "dmon",
        "#Date       Time        gpu    pwr     sm\n#YYYYMMDD   HH:MM:SS    Idx      W      %\n"
        + device_rows(
            lambda t, n, gpu, b, o: f" {t:%Y%m%d   %H:%M:%S}   {gpu}  {b:.0f}  {o:.0f}\n"
        ),
        "pwr{1}",
    )
    yield FormatSample(
        "dcgmi",
        "#Entity   GPUTL        POWER\nID                       W\n"
        + device_rows(lambda t, n, gpu, b, o: f"GPU {gpu}     {o:.0f}     {b:.3f}\n"),
        "POWER{1}",
        first_ns=0,
    )
    yield FormatSample(
        "amd-smi",
        "timestamp,gpu,xcp,power_usage,gfx_clk\n"
        + device_rows(lambda t, n, gpu, b, o: f"{t.timestamp():.0f},{gpu},0,{b:.0f},{o:.0f}\n"),
        "power_usage{1}",
    )


def _of_services() -> Iterator[FormatSample]:
    yield FormatSample(
        "ldms",
        "#Time,Time_usec,ProducerName,component_id,job_id,app_id,MemFree,Active\n"
        + device_rows(
            lambda t, n, host, b, o: (
                f"{t.timestamp():.0f}.00{host}000,{host}000,node{host},{host},0,0,{b:.0f},{o:.0f}\n"
            )
        ),
        "MemFree",
    )
    yield FormatSample(
        "pmrep",
        'Time,"kernel.all.load-1 minute","kernel.all.pswitch"\n'
        + sample_lines(lambda t, n, b, o: f"{t:%Y-%m-%d %H:%M:%S},{b:.3f},{o:.3f}\n"),
        "kernel.all.load-1 minute",
    )
    yield FormatSample(
        "prometheus",
        "time,cpu_busy,io_waiting\n"
        + sample_lines(lambda t, n, b, o: f"{t.timestamp():.1f},{b:.4f},{o:.4f}\n"),
        "cpu_busy",
        certain=False,
    )
    yield FormatSample(
        "victoriametrics",
        "".join(
            f"{name},n1:9100,{value:.3f},{t.timestamp():.0f}\n"
            for name in ("node_load1", "node_load5")
            for t, _, b, o in sample_rows()
            for value in ((b if name == "node_load1" else o),)
        ),
        "node_load1",
        certain=False,
    )
    yield FormatSample(
        "grafana",
        '"Series";"Time";"Value"\n'
        + "".join(
            f'"{name}";"{t:%Y-%m-%d %H:%M:%S}";"{b if name == "busy" else o:.3f}"\n'
            for name in ("busy", "wait")
            for t, _, b, o in sample_rows()
        ),
        "busy",
    )
    yield FormatSample("influxdb", _influx(), "usage_user")
    yield FormatSample(
        "influxdb-v1",
        "name,time,usage_user,usage_system\n"
        + sample_lines(lambda t, n, b, o: f"cpu,{t:%Y-%m-%dT%H:%M:%SZ},{b:.3f},{o:.3f}\n"),
        "usage_user",
    )
    yield FormatSample(
        "datadog",
        "time,group,value\n"
        + device_rows(lambda t, n, host, b, o: f"{t:%Y-%m-%dT%H:%M:%SZ},host:n{host},{b:.3f}\n"),
        "host:n1",
        certain=False,
    )
    yield FormatSample(
        "cloudwatch",
        "Id,m1,m2\nLabel,CPUUtilization,DiskReadOps\nStatistic,Average,Average\nPeriod,60,60\n"
        + sample_lines(lambda t, n, b, o: f"{t:%Y/%m/%d %H:%M:%S},{b:.3f},{o:.3f}\n"),
        "CPUUtilization",
    )


def _of_jobs() -> Iterator[FormatSample]:
    yield FormatSample(
        "wandb",
        "_step,_timestamp,_runtime,system.gpu.0.powerWatts,system.cpu\n"
        + sample_lines(lambda t, n, b, o: f"{n},{t.timestamp():.3f},{n}.5,{b:.3f},{o:.3f}\n"),
        "system.gpu.0.powerWatts",
    )
    yield FormatSample(
        "mlflow",
        sample_lines(lambda t, n, b, o: f"{t.timestamp() * 1000:.0f} {b:.4f} {n}\n"),
        "value",
        certain=False,
    )
    yield FormatSample(
        "slurm",
        "Job,Step,Node,Series,Date_Time,Elapsed_Time,Power,CPU_Frequency\n"
        + device_rows(
            lambda t, n, node, b, o: (
                f"42,0,n{node},Energy,{t:%Y-%m-%d %H:%M:%S},{n},{b:.0f},{o:.0f}\n"
            )
        ),
        "Power",
    )
