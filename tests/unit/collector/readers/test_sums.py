"""Columns that add up inputs: their members, and what a second shows when members come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.readers.plan import AS_READ, Columns, Vector
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sums import expanded, grouped, identified, identified_sums, total
from reveal_collector.readers.textfile import TokenSource, channel
from reveal_collector.sources import cpuclock, interrupts, softirqs, softnet
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane
from support.encoded_seconds import encoded_seconds
from support.property_tests import examples

A, B = Channel("m", "a", Kind.COUNTER), Channel("m", "b", Kind.COUNTER)


def test_inputs_of_the_same_channel_are_parts_of_it() -> None:
    assert grouped([(A, 1), (B, 2), (A, 3)]) == {A: (1, 3), B: (2,)}


def test_a_counter_with_other_members_is_not_the_same() -> None:
    assert identified(A, "xy").identity == identified(A, "xy").identity
    assert identified(A, "xy").identity != identified(A, "x").identity
    assert identified(A, "xy").label == A.label
    level = Channel("m", "a", Kind.GAUGE)
    assert identified(level, "xy").identity == level.identity


def test_a_column_of_its_own_value_is_no_sum() -> None:
    columns = Columns(((0,), (0, 1)))
    whole = Channel("m", "", Kind.COUNTER)
    inputs = [A.identity, B.identity]
    alone, summed = identified_sums([A, whole], columns, inputs)
    assert (alone.members, summed.members != 0) == (0, True)
    assert identified_sums([A, B], AS_READ, inputs) == (A, B)


def test_groups_of_values_take_the_part_of_a_value() -> None:
    groups = [(0, 1), (2,)]
    assert expanded(AS_READ, groups) == Columns(((0, 1), (2,)))
    vector = Vector(((0,), (1,)), (7, 8))
    assert expanded(Columns(((0, 1),), (vector,), (5, 6)), groups) == Columns(
        ((0, 1, 2),), (Vector(((0, 1), (2,)), (7, 8)),), (5, 5, 6)
    )


def test_a_missing_part_makes_the_sum_missing() -> None:
    assert total([1, 2]) == 3
    assert total([1, None]) is None


def test_two_numbers_of_the_same_channel_are_added(tmp_path: Path) -> None:
    (tmp_path / "counts").write_text("1 20 300")
    names = ["a", "b", "a"]
    source = TokenSource(
        "counts", Lane.FAST, tmp_path / "counts",
        lambda _: [(n, channel("memory.vm.pgfault", name)) for n, name in enumerate(names)],
    )  # fmt: skip
    source.open()
    assert [each.instance for each in source.channels] == ["a", "b"]
    assert list(source.read()) == [301, 20]


# Files with a counter of each CPU: how a host writes them, and the sum of some CPUs' counters


def write_interrupts(path: Path, cpus: Sequence[int], counts: Sequence[int]) -> None:
    names = "".join(f"{f'CPU{cpu}':>11}" for cpu in cpus)
    row = "".join(f"{counts[cpu]:>11}" for cpu in cpus)
    path.write_text(f"      {names}\n LOC:{row}   Local timer interrupts\n")


def write_softnet(path: Path, cpus: Sequence[int], counts: Sequence[int]) -> None:
    rest = " 00000000" * 9
    path.write_text("".join(f"{5:08x} {counts[cpu]:08x} {0:08x}{rest} {cpu:08x}\n" for cpu in cpus))


def write_softirqs(path: Path, cpus: Sequence[int], counts: Sequence[int]) -> None:
    names = " ".join(f"CPU{cpu}" for cpu in cpus)
    path.write_text(f"  {names}\n RCU: {' '.join(str(counts[cpu]) for cpu in cpus)}\n")


LARGE = 70  # CPUs of a host that shows sums instead of each CPU


def write_schedstat(path: Path, cpus: Sequence[int], counts: Sequence[int]) -> None:
    idle = range(3, LARGE)
    rows = [(cpu, counts[cpu]) for cpu in cpus] + [(cpu, 10**15) for cpu in idle]
    path.write_text(
        "version 15\n" + "".join(f"cpu{cpu} 0 0 0 0 0 0 {ran} 5 1\n" for cpu, ran in rows)
    )


Write = Callable[[Path, Sequence[int], Sequence[int]], None]
SOURCES: list[tuple[str, Callable[[Roots], list[Source]], Write, str]] = [
    ("interrupts", interrupts.sources, write_interrupts, "cpu.interrupts.irq{LOC}"),
    ("net/softnet_stat", softnet.sources, write_softnet, "network.softnet.dropped"),
    ("softirqs", softirqs.sources, write_softirqs, "cpu.softirqs{RCU}"),
    ("schedstat", cpuclock.sources, write_schedstat, "cpu.run_time"),
]
HISTORY = [10**6, 4 * 10**8, 0]


@pytest.fixture(scope="module", params=SOURCES, ids=[each[0] for each in SOURCES])
def host(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Source, Callable[[Sequence[int], Sequence[int]], None], str]:
    file, sources, write, label = request.param
    roots = Roots(*(tmp_path_factory.mktemp("host") / name for name in ("proc", "sys", "cg")))
    (roots.proc / file).parent.mkdir(parents=True)
    write(roots.proc / file, [0, 1, 2], HISTORY)  # the kind of the source is known by its file
    return sources(roots)[0], partial(write, roots.proc / file), label


SECONDS = st.lists(
    st.tuples(
        st.sets(st.integers(0, 2), min_size=1),
        st.lists(st.integers(0, 900), min_size=3, max_size=3),
    ),
    min_size=3, max_size=8,
)  # fmt: skip


@examples(40)
@given(seconds=SECONDS)
def test_a_sum_over_cpus_never_shows_their_history(
    host: tuple[Source, Callable[[Sequence[int], Sequence[int]], None], str],
    seconds: list[tuple[set[int], list[int]]],
) -> None:
    source, write, label = host
    counts, changes = list(HISTORY), []
    for cpus, steps in seconds:
        counts = [now + step for now, step in zip(counts, steps, strict=True)]
        changes.append(partial(write, sorted(cpus), list(counts)))
    online = [cpus for cpus, _ in seconds]
    for index, found in enumerate(encoded_seconds(source, changes)):
        if index and online[index] == online[index - 1] == online[max(index - 2, 0)]:
            assert found[label] == sum(seconds[index][1][cpu] for cpu in online[index])
        else:  # missing in the second of the change and the next; of ten ticks, in the first
            assert not found.get(label)
