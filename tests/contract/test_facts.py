"""Facts survive encoding, and invalid bytes are refused, also in recordings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract import cpulist
from reveal_contract.facts import (
    MAX_BYTES,
    Cpu,
    DeviceFacts,
    Facts,
    FactsError,
    FrequencyPolicy,
    GpuProcess,
    HugePool,
    InterruptVectors,
    Kernel,
    Memory,
    NumaNode,
    PcieLink,
)
from reveal_contract.recording import RecordingError, RecordingReader, RecordingWriter
from support.property_tests import examples

FULL = Facts(
    node="n",
    cpu=Cpu(vendor="V", online="0-3", boost=False, policies=(FrequencyPolicy("0-3", "d", "g"),)),
    memory=Memory(nodes=(NumaNode(0, "0-3", 1 << 30, (10,)),), huge=(HugePool(2 << 20, 0, 5, 4),)),
    kernel=Kernel(flags=("psi=1",), sysctl={"vm.swappiness": "60", "a": "b"}),
    devices=(
        DeviceFacts(
            "0000:3b:00.0",
            "gpu",
            link=PcieLink(8, 16, 16, 16.0, 32.0, 32.0),
            vectors=InterruptVectors(3),
        ),
    ),
    processes=(GpuProcess(7, "python", ("0000:3b:00.0",), "0-1", "0"),),
    drivers={"nvidia": "550.1"},
)


def test_what_is_written_is_read_back() -> None:
    assert Facts.from_json(FULL.to_json()) == FULL
    assert Facts.from_json(Facts().to_json()) == Facts()


def test_equal_facts_have_equal_bytes() -> None:
    turned = replace(FULL, kernel=replace(FULL.kernel, sysctl={"a": "b", "vm.swappiness": "60"}))
    assert turned.to_json() == FULL.to_json()


def test_unknown_facts_are_omitted() -> None:
    assert Facts(node="n").to_json() == b'{"version":1,"node":"n"}'


def test_false_and_zero_are_kept() -> None:
    given = Facts(cpu=Cpu(boost=False, sockets=0), memory=Memory(zswap=False))
    back = Facts.from_json(given.to_json())
    assert back.cpu.boost is False
    assert back.cpu.sockets == 0
    assert back.memory.zswap is False
    assert back.cpu.cores is None


def test_unknown_keys_of_a_newer_collector_are_ignored() -> None:
    row = json.loads(FULL.to_json())
    row["colour"] = row["cpu"]["colour"] = "green"
    assert Facts.from_json(json.dumps(row)) == FULL


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"version":2}', '{"version":1,"cpu":[]}', '{"version":1,"node":5}',
        '{"version":1,"devices":[5]}', '{"version":1,"cpu":{"sockets":true}}',
        '{"version":1,"kernel":{"sysctl":{"a":1}}}', '{"version":1,"devices":{}}', "[" * 9999,
        " " * (MAX_BYTES + 1),
    ],
)  # fmt: skip
def test_what_is_no_facts_is_refused(text: str) -> None:
    with pytest.raises(FactsError):
        Facts.from_json(text)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["cpu", "memory", "devices", "link", "nodes", "version", "sysctl", "huge"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
@examples(200)
def test_any_json_is_facts_or_refused(value: object) -> None:
    row = {"version": 1, **value} if isinstance(value, dict) else value
    try:
        parsed = Facts.from_json(json.dumps(row))
    except FactsError:
        return
    assert Facts.from_json(parsed.to_json()) == parsed


def test_a_recording_keeps_facts_where_they_changed(tmp_path: Path) -> None:
    other = replace(FULL, node="m")
    with RecordingWriter(tmp_path / "r") as writer:
        writer.facts(FULL.to_json())
        writer.note({"a": 1})
        writer.facts(other.to_json())
    found = [record.facts or record.note for record in RecordingReader(tmp_path / "r")]
    assert found == [FULL, {"a": 1}, other]


def test_invalid_facts_in_a_recording_raise_an_error(tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / "r") as writer:
        writer.facts(b'{"version":9}')
    with pytest.raises(RecordingError, match="not of version 1"):
        list(RecordingReader(tmp_path / "r"))


@given(st.sets(st.integers(0, 300)))
@examples(100)
def test_a_set_of_cpus_is_read_as_written(numbers: set[int]) -> None:
    assert cpulist.parse(cpulist.render(numbers)) == numbers


@pytest.mark.parametrize(("text", "count"), [("", 0), ("0\n", 1), ("0-3,8,10-11\n", 7)])
def test_lists_of_the_kernel(text: str, count: int) -> None:
    assert len(cpulist.parse(text)) == count


@pytest.mark.parametrize("text", ["a", "3-1", "-1", "0-99999999999", "1-2-3"])
def test_what_is_no_list_of_cpus(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|invalid literal"):
        cpulist.parse(text)
