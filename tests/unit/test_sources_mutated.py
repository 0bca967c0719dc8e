"""Whatever a kernel file holds: values, one clear error or a new layout; never a silent shift."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exploring import examples
from reveal_collector.registry import FACTORIES
from reveal_collector.source import LayoutChanged, Roots, Source, Unsupported

TREE = Path(__file__).parents[1] / "fixtures/hosts/vm-2cpu"
FILES = {
    "stat": "proc/stat",
    "cpuclock": "cgroup/cpuacct/cpuacct.usage_percpu",
    "softirqs": "proc/softirqs",
    "interrupts": "proc/interrupts",
    "loadavg": "proc/loadavg",
    "meminfo": "proc/meminfo",
    "vmstat": "proc/vmstat",
    "numa": "sys/devices/system/node/node0/meminfo",
    "hugepages": "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
    "buddyinfo": "proc/buddyinfo",
    "psi": "proc/pressure/io",
    "diskstats": "proc/diskstats",
    "netdev": "proc/1/net/dev",
    "netstat": "proc/1/net/netstat",
    "snmp": "proc/1/net/snmp",
    "snmp6": "proc/1/net/snmp6",
    "sockstat": "proc/1/net/sockstat",
    "sockstat6": "proc/1/net/sockstat6",
    "softnet": "proc/1/net/softnet_stat",
    "nic": "sys/class/net/eth0/operstate",
}
Lines = list[list[bytes]]
Text = Callable[[bytes], bytes]

_WORDS = st.sampled_from(
    [b"0", b"7", b"-3", b"x", b"cpu9", b"4294967295", b"9" * 30, b"\xff:", b"1.5"]
)
_PLACES = st.tuples(st.floats(0, 0.999), st.floats(0, 0.999))


@st.composite
def mutations(draw: st.DrawFn) -> Text:
    """What happens to such files: a token or a line replaced, gone, doubled, moved."""
    how = draw(st.sampled_from(["replace", "delete", "insert", "drop", "double", "swap"]))
    (line_at, token_at), word, other = draw(_PLACES), draw(_WORDS), draw(st.floats(0, 0.999))

    def mutate(data: bytes) -> bytes:
        lines = [line.split() for line in data.splitlines()]
        number = int(line_at * len(lines))
        tokens = lines[number]
        at = int(token_at * len(tokens))
        if how == "replace":
            tokens[at : at + 1] = [word]
        elif how == "delete":
            del tokens[at]
        elif how == "insert":
            tokens.insert(at, word)
        else:
            _move(lines, how, number, int(other * len(lines)))
        return b"".join(b" ".join(tokens) + b"\n" for tokens in lines)

    return mutate


def _move(lines: Lines, how: str, number: int, other: int) -> None:
    if how == "drop":
        del lines[number]
    elif how == "double":
        lines.insert(other, list(lines[number]))
    else:
        lines[number], lines[other] = lines[other], lines[number]


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(TREE, Path(folder) / "host"))


def fresh(tree: Path, name: str) -> Source:
    roots = Roots(tree / "proc", tree / "sys", tree / "cgroup")
    return next(source for factory in FACTORIES for source in factory(roots) if source.name == name)


def read(source: Source) -> dict[str, int | None] | None:
    """Label -> value; None where the source says that it cannot be read or has changed."""
    try:
        values = source.read()
    except (OSError, LayoutChanged):
        return None
    assert len(values) == len(source.channels)
    assert all(value is None or isinstance(value, int) for value in values)
    return {each.label: value for each, value in zip(source.channels, values, strict=True)}


def after(tree: Path, name: str, mutate: Text) -> tuple[dict[str, int | None] | None, ...]:
    """What a source that was open before says of the mutated file, and what a new one says."""
    path = tree / FILES[name]
    original = path.read_bytes()
    kept, new = fresh(tree, name), fresh(tree, name)
    kept.open()
    try:
        path.write_bytes(mutate(original))
        seen, expected = read(kept), None
        read(kept)  # usable afterwards, changed layout or not
        with suppress(Unsupported):
            new.open()
            expected = read(new)
        return seen, expected
    finally:
        path.write_bytes(original)
        kept.close()
        new.close()


@pytest.mark.parametrize("name", FILES)
@examples(40)
@given(mutate=mutations())
def test_values_stay_with_their_names(tree: Path, name: str, mutate: Text) -> None:
    seen, expected = after(tree, name, mutate)
    if seen is not None and expected is not None:
        shared = seen.keys() & expected.keys()
        assert {label: seen[label] for label in shared} == {
            label: expected[label] for label in shared
        }


@pytest.mark.parametrize("name", FILES)
@examples(40)
@given(start=st.floats(0, 1), length=st.integers(0, 40), garbage=st.binary(max_size=40))
def test_any_bytes_are_survived(
    tree: Path, name: str, start: float, length: int, garbage: bytes
) -> None:
    def spoil(data: bytes) -> bytes:
        at = int(start * len(data))
        return data[:at] + garbage + data[at + length :]

    after(tree, name, spoil)


@pytest.mark.parametrize("name", FILES)
def test_an_unchanged_file_reads_the_same(tree: Path, name: str) -> None:
    seen, expected = after(tree, name, bytes)
    assert seen == expected
    assert seen


@pytest.mark.parametrize("name", FILES)
def test_an_emptied_file_is_survived(tree: Path, name: str) -> None:
    after(tree, name, lambda _: b"")
