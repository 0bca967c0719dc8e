from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from reveal_analyzer.tables.ingest.reader import ReadOptions
from reveal_analyzer.tables.ingest.reader import read as read_table
from reveal_cli.errors import CliError
from reveal_cli.recording_export import RecordingRows, csv_lines, parquet_parts
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import Message, encode, gauges
from support.synthetic_node import FAST, SLOW, TABLE, Node


def written(path: Path, messages: list[tuple[Message, ChannelTable]]) -> RecordingRows:
    with RecordingWriter(path) as writer:
        for message, table in messages:
            writer.message(encode(message, gauges(table)), table)
    return RecordingRows(path)


def lines(rows: RecordingRows) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(csv_lines(rows)))))


def test_rows_of_several_nodes_have_their_names_and_are_read_back(tmp_path: Path) -> None:
    node = Node()
    messages = []
    for _ in range(20):
        message = node.slice()
        messages += [(message, TABLE), (replace(message, node="n2"), TABLE)]
    rows = written(tmp_path / "r.rvl", messages)
    assert [row["node"] for row in lines(rows)] == ["n1", "n2"] * 20
    for ending, parts in (("csv", csv_lines(rows)), ("parquet", parquet_parts(rows))):
        path = tmp_path / f"t.{ending}"
        path.write_bytes(b"".join(p.encode() if isinstance(p, str) else p for p in parts))
        data = read_table(path, ReadOptions())
        assert [part.node for part in data.nodes] == ["n1", "n2"]
        assert {len(part.table) for part in data.nodes} == {20}


def test_a_value_that_was_not_read_is_an_empty_cell(tmp_path: Path) -> None:
    message = Node().slice()
    missing = message.fast_missing.copy()
    missing[:, 0] = True
    rows = written(tmp_path / "r.rvl", [(replace(message, fast_missing=missing), TABLE)])
    [row] = lines(rows)
    assert row["cpu.user{0}"] == ""
    assert row["cpu.user{1}"] != ""
    table = parquet.read_table(io.BytesIO(b"".join(parquet_parts(rows))))
    assert table["cpu.user{0}"].to_pylist() == [None]
    assert str(table.schema.field("time").type) == "timestamp[ms, tz=UTC]"


def test_columns_come_and_go_with_the_tables(tmp_path: Path) -> None:
    more = ChannelTable((*FAST, Channel("network.nic.rx_bytes", "eth1", Kind.COUNTER)), SLOW)
    first, second = Node(), Node(more)
    second.second = 1
    rows = written(tmp_path / "r.rvl", [(first.slice(), TABLE), (second.slice(), more)])
    assert rows.labels.count("network.nic.rx_bytes{eth1}") == 1
    assert [row["network.nic.rx_bytes{eth1}"] for row in lines(rows)] == ["", "0"]


def test_no_second_has_two_rows_after_the_clock_was_set_back(tmp_path: Path) -> None:
    node = Node()
    messages = [(node.slice(), TABLE) for _ in range(5)]
    rows = written(tmp_path / "r.rvl", [*messages, messages[2]])
    assert len(list(rows)) == 5


def test_names_of_others_are_inert(tmp_path: Path) -> None:
    name = 'a,"b"\n\x1b[31m'
    table = ChannelTable((Channel.announced("network.nic.rx_bytes", name, Kind.COUNTER, 1.0,
                                            FAST[0].lane),), ())  # fmt: skip
    rows = written(tmp_path / "r.rvl", [(Node(table).slice(), table)])
    [row] = lines(rows)
    assert 'network.nic.rx_bytes{a,"b"\\x0a\\x1b[31m}' in row


def test_values_are_as_exact_as_bytes_need(tmp_path: Path) -> None:
    rows = written(tmp_path / "r.rvl", [(Node().slice(), TABLE)])
    [row], [text] = list(rows), lines(rows)
    for label, value in zip(rows.labels, row.values.tolist(), strict=True):
        if not np.isnan(value):
            assert float(text[label]) == pytest.approx(value, rel=1e-11)


def test_a_recording_without_slices_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="nothing to export"):
        written(tmp_path / "r.rvl", [])


def test_what_is_missing_in_a_table_is_a_warning(tmp_path: Path) -> None:
    node = Node()
    messages = [node.slice() for _ in range(20)]
    back = [replace(each, start_ns=each.start_ns - 5 * 10**9) for each in messages[10:]]
    path = tmp_path / "r.rvl"
    rows = written(path, [(each, TABLE) for each in [*messages[:10], *back]])
    assert len(lines(rows)) == 15
    [set_back] = rows.warnings
    assert "5 s are left out: the clock was set back" in set_back
    path.write_bytes(path.read_bytes()[:-100])
    shorter = RecordingRows(path)
    lines(shorter)
    assert any("is incomplete" in line for line in shorter.warnings)
