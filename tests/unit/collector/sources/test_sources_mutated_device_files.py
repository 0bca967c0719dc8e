"""Any content of device files gives values, missing values or a new layout, never a crash."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.source import Source
from reveal_collector.sampling.feed import Feed
from reveal_collector.sources import amdgpu, edac, infiniband, md, pcie, swaps, zram
from support.hosts.amdgpu import add_amd_gpu
from support.hosts.edac import add_edac
from support.hosts.infiniband import Adapter, add_adapter
from support.hosts.pci import Function, add_function
from support.hosts.raid import add_array
from support.hosts.swap import add_swaps, add_zram
from support.hosts.tree import Tree
from support.property_tests import examples
from support.source_reader import Factory


def _card(tree: Tree) -> None:
    add_function(tree, Function("0000:18:00.0", port="0000:17:01.0"))


def _port(tree: Tree) -> None:
    add_adapter(tree, Adapter(ethernet=True, netdev="eth0", ip="10.0.0.1"))


HOSTS: dict[str, tuple[Factory, Callable[[Tree], object]]] = {
    "edac": (edac.sources, lambda tree: add_edac(tree, 1, 2)),
    "pcie": (pcie.sources, _card),
    "aer": (pcie.sources, _card),
    "infiniband": (infiniband.sources, _port),
    "infiniband-errors": (infiniband.sources, _port),
    "amdgpu": (amdgpu.sources, add_amd_gpu),
    "md": (md.sources, add_array),
    "zram": (zram.sources, add_zram),
    "swaps": (swaps.sources, lambda tree: add_swaps(tree, ("/dev/dm-1", 8 << 30, 0))),
}
_TEXTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [b"", b"\n", b"-1\n", b"18446744073709551615\n", b"9" * 60, b"N/A (no PMA)\n", b"1.5\n",
         b"none\n",
         b"BadTLP 3\n \xd9 5\n__ 4\n",
         b"4294967295\n", b"Unknown\n", b"255\n", b"\xd9\xa3\n", b"1 2 3 4 5 6 7 8 9 10 11\n"]
    ),
)  # fmt: skip


@dataclass
class Host:
    """One made-up host whose files are garbled and put right again."""

    tree: Tree
    name: str
    files: dict[Path, bytes]

    def source(self) -> Source:
        """Return the source without its background thread, which other tests cover."""
        factory, _ = HOSTS[self.name]
        (found,) = (source for source in factory(self.tree.roots) if source.name == self.name)
        return found._source if isinstance(found, BackgroundSource) else found

    @contextmanager
    def garbled(self, data: st.DataObject) -> Iterator[None]:
        chosen = data.draw(st.lists(st.sampled_from(list(self.files)), min_size=1, max_size=4))
        try:
            for path in chosen:  # a draw may end the example
                path.write_bytes(data.draw(_TEXTS))
            yield
        finally:
            for path in chosen:
                path.write_bytes(self.files[path])


@pytest.fixture(scope="module", params=HOSTS)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(Path(folder))
        HOSTS[request.param][1](tree)
        files = sorted(path for path in tree.root.rglob("*") if path.is_file())
        yield Host(tree, request.param, {path: path.read_bytes() for path in files})


@examples(60)
@given(data=st.data())
def test_garbled_files_never_stop_a_source(host: Host, data: st.DataObject) -> None:
    with closing(host.source()) as source:
        source.open()
        feed = Feed(source)
        with host.garbled(data):
            for _ in range(12):
                feed.read()
                assert not feed.broken
            width = len(feed.columns)
            assert len(source.read()) == width


@examples(60)
@given(data=st.data())
def test_garbled_files_open_or_are_refused(host: Host, data: st.DataObject) -> None:
    with closing(host.source()) as source:
        with host.garbled(data):
            try:
                source.open()
            except Unsupported:
                return
            read = source.read()
        assert len(read) == len(source.channels)
        assert all(value is None or isinstance(value, int) for value in read)
