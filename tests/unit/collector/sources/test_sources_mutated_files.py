"""Any content of kernel files gives values, an error or a new layout, never shifted values."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.registry import FACTORIES
from support.file_mutations import Text, garbage, mutations
from support.property_tests import examples

TREE = Path(__file__).parents[3] / "fixtures/hosts/vm-2cpu"
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


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(TREE, Path(folder) / "host"))


def fresh(tree: Path, name: str) -> Source:
    roots = Roots(tree / "proc", tree / "sys", tree / "cgroup")
    return next(source for factory in FACTORIES for source in factory(roots) if source.name == name)


def read(source: Source) -> dict[str, int | None] | None:
    """Return values by label; None if the source reports an error or a new layout."""
    try:
        values = source.read()
    except (OSError, LayoutChanged):
        return None
    assert len(values) == len(source.channels)
    assert all(value is None or isinstance(value, int) for value in values)
    return {each.label: value for each, value in zip(source.channels, values, strict=True)}


def after(tree: Path, name: str, mutate: Text) -> tuple[dict[str, int | None] | None, ...]:
    """Return how an open source and a new source read the mutated file."""
    path = tree / FILES[name]
    original = path.read_bytes()
    kept, new = fresh(tree, name), fresh(tree, name)
    kept.open()
    try:
        path.write_bytes(mutate(original))
        observed, expected = read(kept), None
        read(kept)  # usable afterwards, changed layout or not
        with suppress(Unsupported):
            new.open()
            expected = read(new)
        return observed, expected
    finally:
        path.write_bytes(original)
        kept.close()
        new.close()


@pytest.mark.parametrize("name", FILES)
@examples(40)
@given(mutate=mutations())
def test_values_stay_with_their_names(tree: Path, name: str, mutate: Text) -> None:
    observed, expected = after(tree, name, mutate)
    if observed is not None and expected is not None:
        shared = observed.keys() & expected.keys()
        assert {label: observed[label] for label in shared} == {
            label: expected[label] for label in shared
        }


@pytest.mark.parametrize("name", FILES)
@examples(40)
@given(spoil=garbage())
def test_any_bytes_are_survived(tree: Path, name: str, spoil: Text) -> None:
    after(tree, name, spoil)


@pytest.mark.parametrize("name", FILES)
def test_an_unchanged_file_reads_the_same(tree: Path, name: str) -> None:
    observed, expected = after(tree, name, bytes)
    assert observed == expected
    assert observed


@pytest.mark.parametrize("name", FILES)
def test_an_emptied_file_is_survived(tree: Path, name: str) -> None:
    after(tree, name, lambda _: b"")
