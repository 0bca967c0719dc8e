"""JSON: rows of samples, what is no table, and what is damaged."""

from __future__ import annotations

import json

import numpy as np
import pytest

from reveal_analyzer.tables.ingest import json_table
from reveal_analyzer.tables.ingest.json_table import JsonTable, begins_json
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from support.table_files import Write, lone

ROWS = [
    {"time": 1_795_255_200 + n, "host": f"n{n % 2}", "gpu": {"power": n % 7}} for n in range(40)
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', True),
        ("\ufeff [\n {}]", True),
        ("# started on Sat\n\n{}", True),
        ("[2026-11-21 10:00:00],1\n", False),
        ("[CPU]User% x\n", False),
        ("# time,cpu\n1,2\n", False),
    ],
)
def test_times_in_brackets_are_no_json(text: str, expected: bool) -> None:
    assert begins_json(text) is expected


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_objects_are_rows(write: Write, lines: bool, encoding: str) -> None:
    text = "\n".join(map(json.dumps, ROWS)) if lines else json.dumps(ROWS)
    data = read(write(text.encode(encoding)))
    assert [node.node for node in data.nodes] == ["n0", "n1"]
    assert data.nodes[0].table.names == ("gpu.power",)
    assert data.nodes[1].table.values[:, 0].tolist() == [n % 7 for n in range(1, 40, 2)]


def test_lists_of_a_length_are_columns(write: Write) -> None:
    data = read(write(json.dumps({"time": [1, 2, 3], "cpu": [5, None, 7]})))
    assert np.array_equal(data.nodes[0].table.values[:, 0], [5, np.nan, 7], equal_nan=True)


def test_labels_that_all_series_have_are_left_out(write: Write) -> None:
    def series(mode: str) -> dict[str, object]:
        labels = {"__name__": "cpu", "job": "node", "instance": "n1:9100", "mode": mode}
        return {"metric": labels, "values": [[1_795_255_200 + n, str(n % 3)] for n in range(9)]}

    answer = {"status": "success", "data": {"result": [series("idle"), series("user")]}}
    table = JsonTable(write(json.dumps(answer)))
    assert table.format == "prometheus"
    assert table.names == (
        "time", 'cpu{instance="n1:9100",mode="idle"}', 'cpu{instance="n1:9100",mode="user"}',
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"status": "success", "data": {"result": []}}', "is JSON that is no table"),
        ('{"data": {"result": [{"metric": {}, "value": [1, "2"]}]}}', "is JSON that is no table"),
        ('{"sysstat": {"hosts": []}}', "sadf -d"),
        ("[[1, 2], [3, 4]]", "is JSON that is no table"),
        ('{"data": 3}', "is JSON that is no table"),
        (json.dumps(ROWS)[:-20], "damaged or cut off"),
        ("\n".join(map(json.dumps, ROWS))[:-5], "damaged or cut off"),
        ("[" * 99_999, "no table|damaged"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(write: Write, text: str, message: str) -> None:
    with pytest.raises(TableFileError, match=message):
        read(write(text.replace("[[[[", '["[[')))


def test_the_answer_of_another_service_is_refused(write: Write) -> None:
    answer = {"MetricDataResults": [{"Id": "m1", "Timestamps": [1, 2], "Values": [3, 4]}]}
    with pytest.raises(TableFileError, match="leave out --format prometheus"):
        read(write(json.dumps(answer)), ReadOptions(format="prometheus"))


def exported(host: str, first_ms: int, rows: int = 40) -> str:
    """Return a line of VictoriaMetrics' export: a target that is scraped every 15 s."""
    times = [first_ms + 15_000 * n + n % 3 for n in range(rows)]
    metric = {"__name__": "node_load1", "instance": host}
    values = [n % 5 for n in range(rows)]
    return json.dumps({"metric": metric, "values": values, "timestamps": times})


@pytest.mark.parametrize("apart_ms", [1_000, 5_000, 7_500, 14_000])
def test_targets_with_moments_of_their_own_have_common_times(write: Write, apart_ms: int) -> None:
    first_ms = 1_795_255_200_000
    data = read(write("\n".join([exported("a", first_ms), exported("b", first_ms + apart_ms)])))
    assert set(np.diff(data.times_ns).tolist()) == {15 * 10**9}
    assert np.isfinite(lone(data).values).mean() > 0.9


def influxdb(*measurements: str) -> str:
    series = [
        {"name": name, "tags": {"host": host}, "columns": ["time", "mean"],
         "values": [[f"2026-11-21T10:00:{n:02d}Z", n % 7] for n in range(40)]}
        for name in measurements for host in ("n1", "n2")
    ]  # fmt: skip
    return json.dumps({"results": [{"series": series}]})


def test_series_of_influxdb_have_their_measurement_where_there_are_several(write: Write) -> None:
    data = read(write(influxdb("cpu", "mem")))
    assert [node.table.names for node in data.nodes] == [("cpu.mean", "mem.mean")] * 2
    assert lone(read(write(influxdb("cpu")))).names == ('mean{host="n1"}', 'mean{host="n2"}')


def test_more_values_than_fit_into_memory_are_refused(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_table, "_MOST_CELLS", 50)
    with pytest.raises(TableFileError, match="ask for a shorter span of time, or fewer series"):
        read(write(influxdb("cpu")))
