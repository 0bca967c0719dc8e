"""Tables with a row for each of several hosts, devices or series in each sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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
