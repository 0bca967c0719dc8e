"""A PMU in sysfs: its type, its CPUs, how its events are spelled and encoded.

Kernel: Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.devices.cpu_topology import cpu_list
from reveal_collector.kernel.errors import ParseError
from reveal_collector.kernel.perf_event import PerfEvent
from reveal_collector.readers.sysfs_attributes import entries, read_text

_WORDS = ("config", "config1", "config2")


@dataclass(frozen=True)
class Named:
    """An event the kernel itself names; a count times ``scale`` is in ``unit`` ("" if unsaid)."""

    event: PerfEvent
    scale: float
    unit: str


@dataclass(frozen=True)
class Device:
    """One folder of /sys/bus/event_source/devices."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def type(self) -> int:
        """attr.type; raises ``OSError`` where it cannot be read."""
        return _integer(self.path / "type")

    def cpus(self) -> list[int]:
        """Where to count: ``cpumask`` (one CPU a package) or ``cpus``; none where unsaid."""
        for name in ("cpumask", "cpus"):
            if text := read_text(self.path / name):
                return cpu_list(text)
        return []

    def formats(self) -> dict[str, str]:
        """Term -> bits, such as ``config:0-7,32-35``."""
        folder = self.path / "format"
        return {name: read_text(folder / name) for name in entries(folder)[0]}

    def encoded(self, terms: str) -> PerfEvent:
        """The event of terms like ``event=0xd0,umask=0x81``; ``ParseError`` for unknown ones."""
        return encode(self.type, terms, self.formats())

    def named(self, name: str) -> Named | None:
        """The event of this name in ``events``; None where the PMU names none so."""
        terms = read_text(self.path / "events" / name)
        if not terms:
            return None
        scale = read_text(self.path / "events" / f"{name}.scale") or "1"
        try:
            return Named(
                self.encoded(terms), float(scale), read_text(self.path / "events" / f"{name}.unit")
            )
        except ValueError:
            raise ParseError(f"{self.path}/events/{name}.scale: {scale!r} is no number") from None


def devices(sys: Path) -> dict[str, Device]:
    """All PMUs by name; none where there is no perf."""
    folder = sys / "bus/event_source/devices"
    return {name: Device(folder / name) for name in entries(folder)[0]}


def encode(kind: int, terms: str, formats: Mapping[str, str]) -> PerfEvent:
    """Terms into the config words, each value's bits to the places its format names.

    ``config=0x...`` sets a word as it is.  Raises ``ParseError`` for a term without a format,
    a value that is none or does not fit.
    """
    words = dict.fromkeys(_WORDS, 0)
    for term in terms.strip().split(","):
        name, _, text = term.partition("=")
        try:
            value = int(text, 0) if text else 1
            if name in words and name not in formats:
                words[name] |= value
                continue
            word, _, places = formats[name].partition(":")
            words[word] |= spread(value, places)
        except (KeyError, ValueError) as error:
            raise ParseError(f"perf event {terms[:80]!r}: {name}: {error}") from None
    return PerfEvent(kind, *words.values())


def spread(value: int, places: str) -> int:
    """The bits of a value, the lowest first, at places such as ``0-7,32-35``.

    Raises ``ValueError`` where there are fewer places than bits.
    """
    result = 0
    for part in places.split(","):
        first, _, last = part.partition("-")
        width = int(last or first) - int(first) + 1
        result |= (value & ((1 << width) - 1)) << int(first)
        value >>= width
    if value:
        raise ValueError("value too large")
    return result


def _integer(path: Path) -> int:
    try:
        return int(path.read_text())
    except ValueError:
        raise ParseError(f"{path} holds no number") from None
