"""Tables with a row for each of several hosts, devices or series in each sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reveal_analyzer.tables.ingest.entities import repeats_times
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import Dataset, ReadOptions, read

EPOCH = 1_683_277_200
SAMPLES = 40


def table(tmp_path: Path, header: str, rows: list[str]) -> Dataset:
    path = tmp_path / "t.csv"
    path.write_text("\n".join([header, *rows, ""]))
    return read(path)


def test_hosts_in_rows_are_nodes(tmp_path: Path) -> None:
    rows = [
        f"{EPOCH + s},{host},{s % 7},{n}" for s in range(SAMPLES) for n, host in enumerate("xyz")
    ]
    data = table(tmp_path, "timestamp,host,cpu,mem", rows)
    assert [node.node for node in data.nodes] == ["x", "y", "z"]
    assert data.nodes[2].table.values.tolist() == [[s % 7, 2] for s in range(SAMPLES)]
    assert data.rows.tolist() == [s for s in range(SAMPLES) for _ in range(3)]


@pytest.mark.parametrize("apart_ms", [0, 3])
def test_devices_in_rows_are_instances(tmp_path: Path, apart_ms: int) -> None:
    rows = [
        f"{(EPOCH + s) * 1000 + n * apart_ms},{n},{s % 5},{n * 100}"
        for s in range(SAMPLES)
        for n in range(4)
    ]
    data = table(tmp_path, "time (ms),index,util,power", rows)
    (node,) = data.nodes
    assert node.table.names[:3] == ("util{0}", "power{0}", "util{1}")
    assert node.table.values[:, -1].tolist() == [300.0] * SAMPLES
    assert len(data.times_ns) == SAMPLES


def test_rows_that_are_missing_are_missing_values(tmp_path: Path) -> None:
    rows = [
        f"{EPOCH + s},{device},{s % 5}"
        for s in range(SAMPLES)
        for device in ("sda", "sdb")
        if (s, device) != (7, "sda")
    ]
    data = table(tmp_path, "Time,Device,await", rows)
    (node,) = data.nodes
    values = dict(zip(node.table.names, node.table.values.T, strict=True))
    assert np.flatnonzero(np.isnan(values["sda"])).tolist() == [7]
    assert values["sdb"].tolist() == [s % 5 for s in range(SAMPLES)]


def test_a_series_for_each_metric_becomes_a_column(tmp_path: Path) -> None:
    rows = [f"{name},{EPOCH + s},{s}" for name in ("cpu", "wait") for s in range(SAMPLES)]
    data = table(tmp_path, "Series,Time,Value", rows)
    assert data.nodes[0].table.names == ("cpu", "wait")


def test_rows_of_the_same_time_without_an_entity_are_refused(tmp_path: Path) -> None:
    rows = [f"{EPOCH + s},{s},{n}.5" for s in range(SAMPLES) for n in range(2)]
    with pytest.raises(TableFileError, match=r"40 of 80 rows have the time of another.*--time"):
        table(tmp_path, "time,a,b", rows)


def test_rows_below_a_second_are_spread_over_it(tmp_path: Path) -> None:
    rows = [f"2023-05-05T09:00:{s:02d}Z,{s}.{n}" for s in range(SAMPLES) for n in range(10)]
    data = table(tmp_path, "time,a", rows)
    assert np.diff(data.times_ns).tolist() == [100_000_000] * (10 * SAMPLES - 1)


def test_a_phase_is_no_entity(tmp_path: Path) -> None:
    rows = [f"{EPOCH + s},{'train' if s % 20 else 'eval'},{s * s % 7}" for s in range(SAMPLES)]
    data = table(tmp_path, "time,phase,cpu", rows)
    assert (data.nodes[0].table.names, len(data.times_ns)) == (("cpu",), SAMPLES)


def test_columns_may_be_named(tmp_path: Path) -> None:
    """Columns of numbers whose names say nothing are found only if they are named."""
    rows = [f"{EPOCH + s},{n},{n * 7},{s % 5},{s}" for s in range(SAMPLES) for n in range(3)]
    table(tmp_path, "time,unit,x,a,b", rows[::3])
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["time,unit,x,a,b", *rows, ""]))
    with pytest.raises(TableFileError, match="--entity"):
        read(path)
    data = read(path, ReadOptions(entities=("unit",), values=("a",)))
    assert data.nodes[0].table.names == ("0", "1", "2")
    assert data.nodes[0].table.values[:, 2].tolist() == [s % 5 for s in range(SAMPLES)]
    assert data.understanding.entities == ("unit",)
    assert {each.name for each in data.understanding.omitted} == {"x", "b"}
    with pytest.raises(TableFileError, match="there is no column nothing: the columns are time"):
        read(path, ReadOptions(entities=("nothing",)))


def test_two_columns_distinguish_hosts_and_devices(tmp_path: Path) -> None:
    rows = [
        f"{EPOCH + s},{host},{gpu},{s % 5},{ord(host) + gpu}"
        for s in range(SAMPLES)
        for host in "xy"
        for gpu in range(2)
    ]
    for options in (ReadOptions(), ReadOptions(entities=("gpu", "host"))):
        path = tmp_path / "t.csv"
        path.write_text("\n".join(["time,host,gpu,util,power", *rows, ""]))
        data = read(path, options)
        assert [node.node for node in data.nodes] == ["x", "y"]
        assert data.nodes[1].table.names == ("util{0}", "power{0}", "util{1}", "power{1}")
        assert data.nodes[1].table.values[0].tolist() == [0, 121, 0, 122]


def test_named_entities_of_numbered_rows_begin_a_sample_when_they_repeat(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("unit,a,b\n" + "".join(f"{n % 2},{n},{n * n % 7}\n" for n in range(20)))
    data = read(path, ReadOptions(entities=("unit",), counters=frozenset()))
    assert data.nodes[0].table.names == ("a{0}", "b{0}", "a{1}", "b{1}")
    assert data.nodes[0].table.values[:, 2].tolist() == list(range(1, 20, 2))


def test_rows_with_the_time_and_entity_of_another_are_noted_or_refused(tmp_path: Path) -> None:
    rows = [f"{EPOCH + s},{host},{s % 7}.5,2" for s in range(SAMPLES) for host in "xyz"]
    data = table(tmp_path, "time,host,a,b", [*rows, rows[0]])
    assert any("1 row has the time and entity of another" in note for note in data.notes)
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["time,host,a,b", *rows, *rows[:20], ""]))
    with pytest.raises(TableFileError, match="20 of 140 rows"):
        read(path, ReadOptions(entities=("host",)))


@pytest.mark.parametrize("jitter_ms", [0, 300])
def test_ranks_are_devices(tmp_path: Path, jitter_ms: int) -> None:
    random = np.random.default_rng(3)
    rows = [
        f"{(EPOCH + s) * 1000 + random.integers(jitter_ms + 1)},{rank},{(s + rank) % 5}"
        for s in range(SAMPLES)
        for rank in range(4)
    ]
    data = table(tmp_path, "time,rank,step_time", rows)
    assert data.nodes[0].table.names == ("0", "1", "2", "3")
    assert data.nodes[0].table.values[:, 2].tolist() == [(s + 2) % 5 for s in range(SAMPLES)]


def test_texts_that_alternate_in_bursts_are_entities(tmp_path: Path) -> None:
    rows = [
        f"{(EPOCH + s) * 1000 + n * 3},{what},{s % 5 + n}"
        for s in range(SAMPLES)
        for n, what in enumerate(("gpu power", "cpu"))
    ]
    data = table(tmp_path, "time,what,value", rows)
    assert data.nodes[0].table.names == ("cpu", "gpu power")
    assert len(data.times_ns) == SAMPLES
    steady = [f"{EPOCH * 1000 + n * 500},{n % 2}x,{n % 5}" for n in range(2 * SAMPLES)]
    assert len(table(tmp_path, "time,phase,value", steady).times_ns) == 2 * SAMPLES


@pytest.mark.parametrize("names", ["Hostname,GPU-Id", "socket,core"])
def test_two_columns_distinguish_together(tmp_path: Path, names: str) -> None:
    rows = [
        f"2026-11-21T10:00:{s:02d}Z,{a},{b},{s % 5}"
        for s in range(SAMPLES)
        for a in range(2)
        for b in range(3)
    ]
    data = table(tmp_path, f"time,{names},power", rows)
    assert data.understanding.entity_count == 6
    assert len(data.times_ns) == SAMPLES


@pytest.mark.parametrize(
    ("form", "column"),
    [
        ("{second:02d}Z,{n},{s}.5", "slice"),  # numbers, whose name says nothing
        ("{second:02d}.{n}11Z,{n},{s}.5", "slice"),
        ("{second:02d}Z,x{s}-{n},{s}.5", "slice"),  # a new name in each sample
        ("{second:02d}Z,{kind},{s}.5", "slice"),  # the same name twice
    ],
)
def test_rows_that_evidently_are_of_several_devices_are_not_spread(
    tmp_path: Path, form: str, column: str
) -> None:
    rows = [
        "2026-11-21T10:00:" + form.format(second=s, s=s, n=n, kind="aab"[n])
        for s in range(SAMPLES)
        for n in range(3)
    ]
    with pytest.raises(TableFileError, match=f"differ in column {column}: name the columns"):
        table(tmp_path, f"time,{column},value", rows)


def test_bursts_that_nothing_distinguishes_are_refused_unless_the_time_is_named(
    tmp_path: Path,
) -> None:
    rows = [
        f"{(EPOCH + s) * 1000 + n},{s * 7 % 5 + n / 2}" for s in range(SAMPLES) for n in range(2)
    ]
    with pytest.raises(TableFileError, match=r"rows come in groups.*--time"):
        table(tmp_path, "time,power", rows)
    data = read(tmp_path / "t.csv", ReadOptions(time="time"))
    assert len(data.times_ns) == 2 * SAMPLES


def test_hosts_and_devices_of_a_format_are_distinguished(tmp_path: Path) -> None:
    rows = [
        f"n{host},2026/11/21 10:00:{s:02d}.{host}{gpu}1, {gpu}, {s % 5 + host} W"
        for s in range(SAMPLES)
        for host in range(2)
        for gpu in range(2)
    ]
    data = table(tmp_path, "host,timestamp, index, power.draw [W]", rows)
    assert [node.node for node in data.nodes] == ["n0", "n1"]
    assert data.nodes[1].table.names == ("0", "1")


def test_a_table_beyond_the_limit_is_in_a_file_and_the_same(tmp_path: Path) -> None:
    rows = [
        f"{EPOCH + s},{host},{device},{s % 7 + n}"
        for s in range(SAMPLES)
        for n, (host, device) in enumerate([("x", "a"), ("x", "b"), ("y", "a")])
        if (s + n) % 9
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["time,host,device,load", *rows, ""]))
    columns = ("host", "device")
    small = read(path, ReadOptions(entities=columns))
    large = read(path, ReadOptions(entities=columns, memory_bytes=64))
    for kept, mapped in zip(small.nodes, large.nodes, strict=True):
        assert isinstance(mapped.table.values, np.memmap)
        assert not isinstance(kept.table.values, np.memmap)
        assert np.array_equal(kept.table.values, mapped.table.values, equal_nan=True)
        assert kept.table.names == mapped.table.names


@pytest.mark.parametrize(("repeated", "expected"), [(9, False), (10, True)])
def test_times_repeat_if_more_than_by_chance_do(repeated: int, expected: bool) -> None:
    times = np.arange(200)
    times[1 : 2 * repeated : 2] = times[: 2 * repeated : 2]
    assert repeats_times(times[::-1]) is expected


def test_processes_come_and_go(tmp_path: Path) -> None:
    """Of four processes a second each lives for a quarter of the time."""
    rows = [
        f"2023-05-05 09:{s // 60:02d}:{s % 60:02d},{1000 + n + s // 30 * 10},{s % 7 + n}"
        for s in range(120)
        for n in range(4)
    ]
    data = table(tmp_path, "time,pid,cpu", rows)
    (node,) = data.nodes
    assert data.understanding.entities == ("pid",)
    assert len(node.table) == 120
    values = dict(zip(node.table.names, node.table.values.T, strict=True))
    assert values["1012"][30:60].tolist() == [s % 7 + 2 for s in range(30, 60)]
    assert np.isnan(values["1012"][:30]).all()


def test_series_that_numbers_name_become_columns(tmp_path: Path) -> None:
    """The history of Zabbix: one item after the other, its clock in the second column."""
    rows = [f"{item},{EPOCH + s},{s % item}" for item in (101, 102) for s in range(SAMPLES)]
    data = table(tmp_path, "itemid,clock,value", rows)
    assert data.understanding.time == "clock"
    assert data.nodes[0].table.names == ("101", "102")
    assert len(data.times_ns) == SAMPLES


def test_a_process_that_is_started_again_is_a_single_series(tmp_path: Path) -> None:
    rows = [f"{EPOCH + s},{1000 + s // 30},{s % 7}.5" for s in range(120)]
    data = table(tmp_path, "time,pid,load", rows)
    assert data.understanding.entities == ()
    assert len(data.nodes[0].table) == 120
