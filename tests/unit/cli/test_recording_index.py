"""A recording of many nodes is read once, and then the part of each node."""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import pytest

from reveal_cli.errors import CliError
from reveal_cli.recording_index import RecordingIndex
from reveal_cli.recordings import Recording, Slices
from reveal_cli.replay import judge_whole
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.recording import RecordingReader, RecordingWriter
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import encode, gauges
from support.redis_streams import TABLE, message

OTHER = ChannelTable((Channel("cpu.user", kind=Kind.COUNTER), Channel("cpu.nice")), ())
SECONDS = 3


def wire(node: str, sequence: int, table: ChannelTable = TABLE) -> bytes:
    return encode(message(node, sequence, table), gauges(table))


def note(node: object, instance: str) -> dict[str, Any]:
    return {"node": node, "subjects": [{"instance": instance, "kind": "Pod"}]}


def record(path: Path, nodes: int) -> Path:
    with Recording(path) as recording:
        for second in range(SECONDS):
            for number in range(nodes):
                table = OTHER if number % 2 else TABLE
                recording.message(wire(f"n{number}", second, table), table)
    return path


def test_the_slices_and_subjects_of_a_node_are_those_of_the_whole_file(tmp_path: Path) -> None:
    path = record(tmp_path / "r.rvl", 5)
    index, whole = RecordingIndex(path), list(Slices(path))
    assert index.nodes == [f"n{number}" for number in range(5)]
    for node in index.nodes:
        expected = [(each.node, each.sequence, table) for each, table in whole if each.node == node]
        for _ in range(2):
            assert [(m.node, m.sequence, t) for m, t in index.slices(node)] == expected
        assert [m.fast.tolist() for m, _ in index.slices(node)] == [
            m.fast.tolist() for m, _ in whole if m.node == node
        ]


def test_notes_are_those_of_their_node(tmp_path: Path) -> None:
    with Recording(tmp_path / "r.rvl") as recording:
        recording.message(wire("n", 1), TABLE)
        for each in (note("n", "a/1"), note("other", "b/1"), note(["n"], "c/1"), note("n", "a/2")):
            recording.note(each)
        recording.note({"collector": {}})
    index, slices = RecordingIndex(tmp_path / "r.rvl"), Slices(tmp_path / "r.rvl")
    assert len(list(slices)) == 1
    assert index.subjects("n") == slices.subjects("n")
    assert [each.instance for each in index.subjects("n")] == ["a/1", "a/2"]
    assert index.subjects("none") == []


@pytest.mark.parametrize("nodes", [1, 40])
def test_no_part_of_a_recording_is_read_more_than_three_times(
    tmp_path: Path, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cost grows with the size of the file, not with the number of nodes times the size."""
    path, reads = record(tmp_path / "r.rvl", nodes), list[int]()
    read = RecordingReader._next

    def counted(reader: RecordingReader, file: BinaryIO) -> tuple[bytes, bytes] | None:
        reads.append(1)
        return read(reader, file)

    monkeypatch.setattr(RecordingReader, "_next", counted)
    assert judge_whole(path, [], AnalyzerSettings()) == []
    records, end = nodes * SECONDS + min(nodes, 2), 1
    assert records < len(reads) <= 3 * (records + end)


def test_a_truncated_file_is_read_up_to_its_end(tmp_path: Path) -> None:
    path = record(tmp_path / "r.rvl", 2)
    path.write_bytes(path.read_bytes()[:-1])
    index = RecordingIndex(path)
    assert [len(list(index.slices(node))) for node in index.nodes] == [SECONDS, SECONDS - 1]


def test_a_damaged_message_is_reported_with_its_position(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "r.rvl") as writer:
        writer.message(wire("n", 1)[:-1] + b"\0", TABLE)
    with pytest.raises(CliError, match=r"r\.rvl: message from byte \d+ on: .*checksum"):
        RecordingIndex(tmp_path / "r.rvl")


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CliError, match=r"cannot read .*none\.rvl: No such file"):
        RecordingIndex(tmp_path / "none.rvl")


def test_a_file_that_becomes_shorter_meanwhile_is_a_sentence(tmp_path: Path) -> None:
    path = record(tmp_path / "r.rvl", 1)
    index = RecordingIndex(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(CliError, match="no message from byte"):
        list(index.slices("n0"))
