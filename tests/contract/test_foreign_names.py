"""Names of the kernel leave the collector in a form that can be encoded and displayed."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.facts import Disk, Facts, GpuProcess, Nic
from reveal_contract.foreign_names import printable
from reveal_contract.subjects import Identity, SubjectKind, from_rows, to_rows

file_names = st.binary(max_size=40).map(os.fsdecode)
texts = st.text(max_size=20)  # lone surrogates of all kinds too, as JSON can have them
names = file_names | texts


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("/system.slice/ssh.service", "/system.slice/ssh.service"),
        ("dev-disk-by\\x2duuid", "dev-disk-by\\x2duuid"),  # an escape of systemd
        ("café {x}", "café {x}"),
        ("", ""),
        (os.fsdecode(b"caf\xe9 {x}"), "caf\\xe9 {x}"),
        (os.fsdecode(b"job-\xe5\x90"), "job-\\xe5\\x90"),  # cut inside a character
        ("a\x1b[31m\x7f\nb", "a\\x1b[31m\\x7f\\x0ab"),
        ("a\x85\xa0\u2028\U000e0001", "a\\u0085\\u00a0\\u2028\\U000e0001"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_cannot_be_displayed_is_escaped(name: str, form: str) -> None:
    assert printable(name) == form


@given(st.binary(max_size=40))
def test_a_name_is_the_same_from_a_listing_and_from_a_file_read_as_ascii(name: bytes) -> None:
    from_file = name.decode("ascii", "surrogateescape")
    assert printable(from_file) == printable(os.fsdecode(name))


@given(names)
def test_any_name_becomes_printable_once(name: str) -> None:
    form = printable(name)
    assert form.isprintable()
    assert form.encode().decode() == form
    assert printable(form) == form
    if name.isprintable():
        assert form == name


@given(file_names, file_names)
def test_names_that_differ_stay_different(first: str, other: str) -> None:
    if "\\" not in first + other:  # one may be the escape of the other
        assert (printable(first) == printable(other)) == (first == other)


@given(names, names)
def test_a_channel_table_of_any_names_is_announced_and_read(first: str, other: str) -> None:
    table = ChannelTable((Channel("network.nic.up", first), Channel("cpu.user", other)), ())
    assert table.fast[0].instance == printable(first)
    assert ChannelTable.from_announcement(table.announcement()) == table


@given(names, names)
def test_facts_of_any_names_are_written_and_read(first: str, other: str) -> None:
    facts = Facts(
        node=first, nics=(Nic(name=other),), disks=(Disk(model=first),), drivers={first: other},
        processes=(GpuProcess(name=first, cgroup=other, gpus=(first,)),),
    )  # fmt: skip
    read = Facts.from_json(facts.to_json())
    assert (read.node, read.nics[0].name) == (printable(first), printable(other))
    assert Facts.from_json(read.to_json()) == read


@given(names)
def test_facts_with_any_text_are_read_as_printable(name: str) -> None:
    row = {"version": 1, "node": name, "drivers": {name: name}, "unread": [name]}
    read = Facts.from_json(json.dumps(row))
    assert (read.node, read.unread) == (printable(name), (printable(name),))
    assert read.drivers == {printable(name): printable(name)}


@given(names, names)
def test_a_subject_of_any_names_is_announced_and_read(first: str, other: str) -> None:
    subject = Identity(
        first, SubjectKind.CGROUP, "1", name=other, containers=(other,), cgroup=first
    )
    text = json.dumps(to_rows([subject]), ensure_ascii=False).encode()
    assert from_rows(json.loads(text)) == (subject,)
    assert (subject.instance, subject.containers) == (printable(first), (printable(other),))
