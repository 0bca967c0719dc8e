"""Sources of a made-up host opened and read, in base units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.source import Roots, Source

WAIT = 5.0  # seconds a background round may take on a busy machine
Factory = Callable[[Roots], list[Source]]


def open_source(factory: Factory, roots: Roots, name: str) -> Source:
    source = next(source for source in factory(roots) if source.name == name)
    source.open()
    return source


@contextmanager
def source_opened(factory: Factory, roots: Roots, name: str) -> Iterator[Source]:
    """The source opened, and closed again with its thread if it has one."""
    source = open_source(factory, roots, name)
    try:
        yield source
    finally:
        source.close()


def read_values(source: Source) -> dict[str, float | None]:
    """Label -> value of the next reading, whatever the layout is by then."""
    read = read_current(source)
    return {
        channel.label: None if value is None else value * channel.scale
        for channel, value in zip(source.channels, read, strict=True)
    }


def read_current(source: Source) -> list[int | None]:
    """A reading that shows the files as they are now, of a background source as well."""
    for _ in range(4):
        if isinstance(source, BackgroundSource):
            assert source.settle(WAIT)
        try:
            read = source.read()
        except LayoutChanged:
            continue
        if not isinstance(source, BackgroundSource):
            return list(read)
        assert source.settle(WAIT)
        try:
            return list(source.read())
        except LayoutChanged:
            continue
    raise AssertionError(f"{source.name} does not settle")
