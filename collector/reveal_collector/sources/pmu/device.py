"""A PMU in sysfs: its type, its CPUs, and the names and encoding of its events.

Kernel: Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.devices.cpu_topology import cpu_list
from reveal_collector.kernel_interfaces.errors import ParseError
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.sysfs_attributes import entries, read_text

_CONFIG_WORDS = ("config", "config1", "config2")


@dataclass(frozen=True)
class NamedEvent:
    """An event that the kernel names; count times ``scale`` is in ``unit`` ("" if unknown)."""

    event: PerfEvent
    scale: float
    unit: str


@dataclass(frozen=True)
class PmuDevice:
    """One folder of /sys/bus/event_source/devices."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def type(self) -> int:
        """attr.type; raises ``OSError`` if it cannot be read."""
        return _integer(self.path / "type")

    def cpus(self) -> list[int]:
        """Return the CPUs to count on: ``cpumask`` (one per package) or ``cpus``."""
        for name in ("cpumask", "cpus"):
            if text := read_text(self.path / name):
                return cpu_list(text)
        return []

    def formats(self) -> dict[str, str]:
        """Return term -> bits, such as ``config:0-7,32-35``."""
        folder = self.path / "format"
        return {name: read_text(folder / name) for name in entries(folder)[0]}

    def encoded(self, terms: str) -> PerfEvent:
        """Encode terms like ``event=0xd0,umask=0x81``; raises ``ParseError`` for unknown ones."""
        return encode(self.type, terms, self.formats())

    def named(self, name: str) -> NamedEvent | None:
        """Return the event of this name in ``events``, or ``None``."""
        terms = read_text(self.path / "events" / name)
        if not terms:
            return None
        scale = read_text(self.path / "events" / f"{name}.scale") or "1"
        try:
            return NamedEvent(
                self.encoded(terms), float(scale), read_text(self.path / "events" / f"{name}.unit")
            )
        except ValueError:
            raise ParseError(
                f"{self.path}/events/{name}.scale: {scale!r} is not a number"
            ) from None


def pmu_devices(sys: Path) -> dict[str, PmuDevice]:
    """Return all PMUs by name; an empty mapping without perf."""
    folder = sys / "bus/event_source/devices"
    return {name: PmuDevice(folder / name) for name in entries(folder)[0]}


def encode(pmu_type: int, terms: str, formats: Mapping[str, str]) -> PerfEvent:
    """Encode terms into the config words; the format of a term gives the positions of its bits.

    ``config=0x...`` sets a whole word.  Raises ``ParseError`` for a term without a format, and for
    a value that is not a number or does not fit.
    """
    words = dict.fromkeys(_CONFIG_WORDS, 0)
    for term in terms.strip().split(","):
        name, _, text = term.partition("=")
        try:
            value = int(text, 0) if text else 1
            if name in words and name not in formats:
                words[name] |= value
                continue
            word, _, positions = formats[name].partition(":")
            words[word] |= spread(value, positions)
        except (KeyError, ValueError) as error:
            raise ParseError(f"perf event {terms[:80]!r}: {name}: {error}") from None
    return PerfEvent(pmu_type, *words.values())


def spread(value: int, positions: str) -> int:
    """Return the bits of a value, lowest first, at positions such as ``0-7,32-35``.

    Raises ``ValueError`` if there are fewer positions than bits.
    """
    result = 0
    for part in positions.split(","):
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
        raise ParseError(f"{path} does not contain a number") from None
