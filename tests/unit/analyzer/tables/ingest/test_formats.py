"""The formats of well-known tools: recognized, read by their columns, and refused with advice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reveal_analyzer.tables.ingest.formats import FORMATS, format_names
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import Dataset, ReadOptions, read
from support.format_samples import FAULT, SAMPLES, FormatSample, format_samples
from support.format_variants import format_variants
from support.table_files import Write

SAMPLE_FILES = format_samples()
VARIANTS = format_variants()
WRITTEN = Path(__file__).parents[4] / "fixtures" / "table_formats"
SECOND = 1_000_000_000


def by_name(sample: FormatSample) -> str:
    return sample.format


def faulty(data: Dataset, metric: str) -> np.ndarray:
    """The metric with the fault; of several hosts that of the last one."""
    table = data.nodes[-1].table
    return np.asarray(table.values[:, table.names.index(metric)])


def test_each_format_has_a_sample() -> None:
    every = {sample.format for sample in (*SAMPLE_FILES, *VARIANTS)}
    assert every == set(format_names())


@pytest.mark.parametrize("sample", [*SAMPLE_FILES, *VARIANTS], ids=by_name)
@pytest.mark.parametrize("named", [True, False])
def test_values_and_times_of_a_format_are_read(
    write: Write, sample: FormatSample, named: bool
) -> None:
    if not (named or sample.certain):
        pytest.skip("other tools write the same: the format must be named")
    options = ReadOptions(format=sample.format if named else "", counters=frozenset())
    data = read(write(sample.text), options)
    assert data.understanding.format == sample.format
    assert len(data.times_ns) == SAMPLES
    assert np.abs(np.diff(data.times_ns) - SECOND).max() < SECOND // 100
    assert abs(int(data.times_ns[0]) - sample.first_ns) < SECOND // 100
    values = faulty(data, sample.metric)
    scale = np.median(values) / 50
    assert np.flatnonzero(values / scale > 70).tolist() == list(FAULT)


@pytest.mark.parametrize("sample", SAMPLE_FILES, ids=by_name)
def test_another_file_is_refused_with_the_command_that_writes_it(
    write: Write, sample: FormatSample
) -> None:
    chosen = next(each for each in FORMATS if each.name == sample.format)
    if not chosen.signature:
        pytest.skip("a format that is as others are")
    with pytest.raises(TableFileError, match="is not what") as refused:
        read(write("time,a\n1,2\n"), ReadOptions(format=sample.format))
    assert chosen.command in str(refused.value)
    assert chosen.advice in str(refused.value)


def test_a_file_of_another_tool_is_called_by_its_name(write: Write) -> None:
    (sadf,) = (sample for sample in SAMPLE_FILES if sample.format == "sadf")
    with pytest.raises(TableFileError, match="looks like sadf -d"):
        read(write(sadf.text), ReadOptions(format="vmstat"))


def test_columns_that_are_no_metrics_are_left_out_with_a_note(write: Write) -> None:
    (ldms,) = (sample for sample in SAMPLE_FILES if sample.format == "ldms")
    data = read(write(ldms.text))
    assert [node.node for node in data.nodes] == ["node0", "node1"]
    assert data.nodes[0].table.names == ("MemFree", "Active")
    assert any("no metrics: Time_usec, component_id" in note for note in data.notes)


def test_without_times_the_advice_is_that_of_the_tool(write: Write) -> None:
    rows = "".join(f" {n % 3}  0  0 {n * n % 11} {n % 7}\n" for n in range(30))
    data = read(write(f" r  b   swpd   free us\n{rows}"))
    assert any("`vmstat -t` writes the times" in note for note in data.notes)


@pytest.mark.parametrize(
    ("name", "known", "metric", "values"),
    [
        ("sadf.csv", "sadf", "%user", [32.66, 29.00, 30.05]),
        ("sadf-per-cpu.csv", "sadf", "%user{-1}", [32.66, 29.00, 30.05]),
        ("sar.txt", "sar", "tps{vda}", [144.00]),
        ("iostat.txt", "iostat", "r_await{vda}", [1.47]),
        ("iostat_without_times.txt", "iostat", "%user", [45.30]),
        ("vmstat.txt", "vmstat", "free", [19747964]),
        ("collectl.txt", "collectl", "[CPU]User%", [28]),
        ("perf-stat.csv", "perf-stat", "context-switches", [1671]),
        ("perf-stat-per-cpu.csv", "perf-stat", "page-faults/CPU0", [15364]),
        ("perf-stat-text.txt", "perf-stat-text", "cpu-clock", [2005.16]),
        ("perf-stat.json", "perf-stat", "context-switches", [7886, 9531]),
        ("dool.csv", "dstat", "total cpu usage:usr", [47.880, 93.069]),
        ("dool-per-cpu.csv", "dstat", "cpu1 usage:usr", [51.280, 89.109]),
        ("pmrep.csv", "pmrep", "mem.util.free", [20386704, 20371380]),
    ],
)
def test_what_a_tool_has_written_is_read(
    name: str, known: str, metric: str, values: list[float]
) -> None:
    """Files of sysstat 12.6, procps 4.0, collectl 4.3, perf 6.1, PCP 6.0 and dool 1.3."""
    data = read(WRITTEN / name, ReadOptions(counters=frozenset()))
    assert data.understanding.format == known
    assert faulty(data, metric)[: len(values)].tolist() == values
    if data.clock.column is not None:
        assert np.abs(np.diff(data.times_ns) - SECOND).max() < SECOND // 50


def test_processes_are_distinguished_by_pid_and_command() -> None:
    data = read(WRITTEN / "pidstat.txt", ReadOptions(counters=frozenset()))
    assert data.understanding.format == "pidstat"
    assert faulty(data, "%usr{28322/python}")[0] == 1.80
