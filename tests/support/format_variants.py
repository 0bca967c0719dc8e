"""Other layouts that the tools write: answers in JSON, other options, other versions.

Layouts are those of the tools' documentation, of their sources, and of output that users published:
``nvidia-smi dmon`` and ``pmon`` without times repeat their header, ``turbostat --show`` leaves
columns out, and ``dool`` writes times without a year.  The values are made here, with the fault of
``format_samples``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

from support.format_samples import FormatSample, device_rows, sample_lines, sample_rows

_NO_TIMES = 0  # ns of the first sample where a file has no times
_PREAMBLE = (
    '"Author:","A. Person",,,,"URL:","http://example.org"\n"Host:","n1",,,,"User:","root"\n'
    '"Cmdline:","{tool} --output t.csv",,,,"Date:","21 Nov 2026 10:00:00 UTC"\n'
)


def format_variants() -> list[FormatSample]:
    """Return files of formats that have other layouts as well."""
    return [*_of_gpus(), *_of_hosts(), *_of_answers(), *_of_runs()]


def _repeated(header: str, number: int, every: int) -> str:
    return header if number % every == 0 else ""


def _of_gpus() -> Iterator[FormatSample]:
    dmon = "# gpu    pwr  gtemp  mtemp     sm\n# Idx      W      C      C      %\n"
    yield FormatSample(
        "dmon",
        sample_lines(
            lambda t, n, b, o: (
                _repeated(dmon, n, 25) + f"    0   20     45      -      5\n"
                f"    1   {b:.0f}     45      -     {o:.0f}\n"
            )
        ),
        "pwr{1}",
        first_ns=_NO_TIMES,
    )
    yield FormatSample(
        "dmon",
        "#Time        gpu    pwr     sm\n#HH:MM:SS    Idx      W      %\n"
        + device_rows(lambda t, n, gpu, b, o: f" {t:%H:%M:%S}    {gpu}   {b:.0f}    {o:.0f}\n"),
        "pwr{1}",
        first_ns=36_000 * 10**9,
    )
    yield FormatSample(
        "dmon",
        "#gpu, pwr, gtemp, sm\n#Idx, W, C, %\n"
        + device_rows(lambda t, n, gpu, b, o: f"{gpu}, {b:.0f}, 45, {o:.0f}\n"),
        "pwr{1}",
        first_ns=_NO_TIMES,
    )
    pmon = "# gpu   pid   type   sm   mem   command\n# Idx     #    C/G    %     %   name\n"
    yield FormatSample(
        "pmon",
        sample_lines(
            lambda t, n, b, o: (
                _repeated(pmon, n, 25) + f"    0   1234     C    {o:.0f}   7   python\n"
                f"    0   4321     C    {b:.0f}   7   python\n    1      -     -     -   -   -\n"
            )
        ),
        "sm{0/4321}",
        first_ns=_NO_TIMES,
    )
    dcgmi = "#Entity   SMACT        TENSO\nID\n"
    yield FormatSample(
        "dcgmi",
        sample_lines(
            lambda t, n, b, o: (
                _repeated(dcgmi, n, 20) + f"GPU 0     {o / 100:.3f}     N/A\n"
                f"GPU-I 0   {b / 100:.3f}     0.1\nGPU-I 1   {o / 100:.3f}     0.2\n"
            )
        ),
        "SMACT{GPU-I/0}",
        first_ns=_NO_TIMES,
    )
    amd = "timestamp,gpu,xcp,power_usage,hotspot_temperature,gfx_clk\n"
    yield FormatSample(
        "amd-smi",
        amd
        + sample_lines(
            lambda t, n, b, o: (
                f"{t.timestamp():.0f},0,0,{b:.0f},55,{o * 70:.0f}\n"
                f"{t.timestamp():.0f},0,1,N/A,N/A,{o * 70:.0f}\n"
            )
        ),
        "power_usage{0}",
    )


def _of_hosts() -> Iterator[FormatSample]:
    yield FormatSample(
        "dstat",
        '"dool 1.3.8 CSV output"\n'
        + _PREAMBLE.format(tool="dool")
        + '"system","cpu0 usage",,"cpu1 usage",,"dsk/total",\n'
        '"time","cpu0 usage:usr","cpu0 usage:sys","cpu1 usage:usr","cpu1 usage:sys","read","writ"\n'
        + sample_lines(lambda t, n, b, o: f"{t:%b-%d %H:%M:%S},{b:.3f},{o:.3f},1,2,0,3\n"),
        "cpu0 usage:usr",
    )
    yield FormatSample(
        "dstat",
        '"Dstat 0.7.2 CSV output"\n'
        + _PREAMBLE.format(tool="dstat -tc")
        + '\n"system","total cpu usage",\n"time","usr","sys"\n'
        + sample_lines(lambda t, n, b, o: f"{t:%d-%m %H:%M:%S},{b:.3f},{o:.3f}\n"),
        "total cpu usage:usr",
    )
    head = "Node\tCore\tCPU\tBusy%\tBzy_MHz\tCorWatt\tPkgWatt\n"
    yield FormatSample(
        "turbostat",
        sample_lines(
            lambda t, n, b, o: (
                f"{head}-\t-\t-\t{o:.2f}\t2800\t0.35\t20.1\n0\t0\t0\t{b:.2f}\t2900\t0.01\t20.1\n"
                f"0\t0\t16\t{o:.2f}\t2900\n0\t1\t1\t{o:.2f}\t2900\t0.01\n"
            )
        ),
        "Busy%{0}",
        first_ns=_NO_TIMES,
    )
    wide = "usec\tTime_Of_Day_Seconds\tPackage\tDie\tCore\tCPU\tAPIC\tX2APIC\tAvg_MHz\tPkgWatt\n"
    yield FormatSample(
        "turbostat",
        "turbostat version 2023.11.07 - Len Brown\n10.003506 sec\n"
        + wide
        + sample_lines(
            lambda t, n, b, o: (
                f"206\t{t.timestamp():.6f}\t-\t-\t-\t-\t-\t-\t{o:.0f}\t{b:.2f}\n"
                f"83\t{t.timestamp() + 0.001:.6f}\t0\t0\t0\t0\t0\t0\t{o:.0f}\t{o:.2f}\n"
                f"43\t{t.timestamp() + 0.002:.6f}\t0\t0\t0\t16\t1\t1\t{o:.0f}\n"
            )
        ),
        "PkgWatt{-}",
    )


def _of_answers() -> Iterator[FormatSample]:
    series = [
        {"metric": {"__name__": "node_load1", "job": "node", "instance": f"n{n}:9100"}}
        for n in range(2)
    ]
    values = [[o for *_, o in sample_rows()], [b for _, _, b, _ in sample_rows()]]
    seconds = [t.timestamp() for t, *_ in sample_rows()]
    points = [[[s, f"{v:.4f}"] for s, v in zip(seconds, each, strict=True)] for each in values]
    matrix = [each | {"values": some} for each, some in zip(series, points, strict=True)]
    yield FormatSample(
        "prometheus",
        json.dumps({"status": "success", "data": {"resultType": "matrix", "result": matrix}}),
        'node_load1{instance="n1:9100"}',
    )
    lines = [
        json.dumps(each | {"values": some, "timestamps": [int(s * 1000) for s in seconds]})
        for each, some in zip(series, values, strict=True)
    ]
    yield FormatSample("victoriametrics", "\n".join(lines) + "\n", 'node_load1{instance="n1:9100"}')
    lists = [[[s * 1000, v] for s, v in zip(seconds, each, strict=True)] for each in values]
    graph = [
        {"metric": "system.cpu.user", "scope": f"host:n{n},env:test", "pointlist": each}
        for n, each in enumerate(lists)
    ]
    yield FormatSample(
        "datadog", json.dumps({"status": "ok", "series": graph}), 'system.cpu.user{host="n1"}'
    )
    yield from _of_text_times([f"{t:%Y-%m-%dT%H:%M:%SZ}" for t, *_ in sample_rows()], values)


def _of_text_times(times: list[str], values: list[list[float]]) -> Iterator[FormatSample]:
    found = [
        {
            "name": "cpu",
            "tags": {"host": f"n{n}"},
            "columns": ["time", "usage_user"],
            "values": [list(pair) for pair in zip(times, each, strict=True)],
        }
        for n, each in enumerate(values)
    ]
    yield FormatSample(
        "influxdb-v1",
        json.dumps({"results": [{"statement_id": 0, "series": found}]}),
        'usage_user{host="n1"}',
    )
    newest_first: dict[str, object] = {
        "Id": "m1",
        "Label": "CPUUtilization",
        "StatusCode": "Complete",
    }
    newest_first |= {"Timestamps": times[::-1], "Values": values[1][::-1]}
    yield FormatSample(
        "cloudwatch", json.dumps({"MetricDataResults": [newest_first]}), "CPUUtilization"
    )
    points = [
        {"Timestamp": time, "Average": value, "Unit": "Percent"}
        for time, value in zip(times, values[1], strict=True)
    ]
    yield FormatSample(
        "cloudwatch",
        json.dumps({"Label": "CPUUtilization", "Datapoints": points[120:] + points[:120]}),
        "CPUUtilization Average",
    )


def _of_runs() -> Iterator[FormatSample]:
    yield FormatSample(
        "perf-stat",
        "# started on Sat Nov 21 10:00:00 2026\n\n" + sample_lines(_perf_counts),
        "cpu-clock",
        first_ns=1_000_123_000,
    )
    name = "run-a - system/gpu.0.powerWatts"
    yield FormatSample(
        "wandb",
        f'"Relative Time (Process)","{name}","{name}__MIN","{name}__MAX","run-a - system/cpu"\n'
        + sample_lines(lambda t, n, b, o: f"{n},{b:.3f},{b - 1:.3f},{b + 1:.3f},{o:.3f}\n"),
        "run-a - system/gpu.0.powerWatts",
        first_ns=_NO_TIMES,
    )
    yield FormatSample(
        "wandb",
        sample_lines(
            lambda t, n, b, o: (
                json.dumps({"_timestamp": t.timestamp(), "_step": n, "system": {"gpu.0.power": b}})
                + "\n"
            )
        ),
        "system.gpu.0.power",
    )


def _perf_counts(time: datetime, number: int, busy: float, other: float) -> str:
    rest = f'"event-runtime" : 99, "pcnt-running" : 100.00, "metric-value" : "{other:.6f}"'
    head = f'{{"interval" : {number + 1}.000123, "counter-value" : '
    return (
        f'{head}"{busy:.6f}", "unit" : "msec", "event" : "cpu-clock", {rest}}}\n'
        f'{head}"{other:.6f}", "unit" : "", "event" : "context-switches", {rest}}}\n'
        f'{head}"<not counted>", "unit" : "", "event" : "cycles", {rest}}}\n'
    )
