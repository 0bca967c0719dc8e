"""Tracks of a trace by their paths, and the order of what is on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b

from reveal_cli.trace import packets
from reveal_cli.trace.packets import Slice

TrackPath = tuple[str, ...]  # the node, then the tracks from the outer one to the inner one

# above every process id of Linux: nodes must not share ids with processes of another trace
_FIRST_PID = (1 << 22) + 1


def identity(*parts: str) -> int:
    """Return the id of a track or flow: 64 bits, the same for the same parts."""
    digest = blake2b("\0".join(parts).encode(errors="backslashreplace"), digest_size=8)
    return int.from_bytes(digest.digest()) or 1


class Timeline:
    """Collects slices and values; ``packets`` returns them with the tracks that they need."""

    def __init__(self) -> None:
        self._nodes: dict[str, int] = {}
        self._slices: dict[TrackPath, list[tuple[int, Slice]]] = {}  # with their numbers
        self._added = 0
        self._counters: dict[TrackPath, tuple[str, list[bytes]]] = {}

    def node(self, name: str) -> None:
        """Add a node, which is displayed as a process."""
        self._nodes.setdefault(name, _FIRST_PID + len(self._nodes))

    def add(self, path: TrackPath, slice_: Slice) -> None:
        """Add a slice; those of one track may overlap.

        A flow leads from a slice to one that begins later, or was added later.
        """
        self.node(path[0])
        self._slices.setdefault(path, []).append((self._added, slice_))
        self._added += 1

    def count(self, path: TrackPath, unit: str, time_ns: int, value: float) -> None:
        """Add a value of a counter track, whose first unit counts."""
        self.node(path[0])
        _, values = self._counters.setdefault(path, (unit, []))
        values.append(packets.count(identity("counter", *path), time_ns, value))

    def packets(self, first_ns: int, origin_ns: int) -> Iterator[bytes]:
        """Yield the packets of the trace; times are relative to ``origin_ns``."""
        yield packets.clocks(first_ns, origin_ns)
        for name, pid in self._nodes.items():
            yield packets.process_track(identity("track", name), pid, name)
        yield from self._groups()
        for path, (unit, values) in self._counters.items():
            uuid, parent = identity("counter", *path), identity("track", *path[:-1])
            yield packets.counter_track(uuid, parent, path[-1], unit)
            yield from values
        yield from self._spans()

    def _groups(self) -> Iterator[bytes]:
        """Yield the tracks around others, and the first lane of those with slices."""
        paths = [path[:depth] for path in self._slices for depth in range(2, len(path) + 1)]
        paths += [path[:depth] for path in self._counters for depth in range(2, len(path))]
        for path in dict.fromkeys(paths):
            yield packets.track(identity("track", *path), identity("track", *path[:-1]), path[-1])

    def _spans(self) -> Iterator[bytes]:
        """Yield begins and ends in the order of time; ends first where the times are the same."""
        events: list[tuple[int, int, int, bytes]] = []
        for path, slices in self._slices.items():
            for lane, part in enumerate(_lanes(slices)):
                uuid = identity("track", *path)
                if lane:  # a track nests its slices: what overlaps needs another of this name
                    uuid = identity("lane", str(lane), *path)
                    yield packets.track(uuid, identity("track", *path[:-1]), path[-1])
                for number, each in part:
                    begin, end = packets.slice_begin(uuid, each), packets.slice_end(uuid, each)
                    events += [(each.begin_ns, 1, number, begin), (each.end_ns, 0, number, end)]
        events.sort(key=lambda event: event[:3])
        yield from (event[3] for event in events)


def _lanes(slices: Sequence[tuple[int, Slice]]) -> list[list[tuple[int, Slice]]]:
    """Return the slices in as few lists as needed for none to overlap within its list."""
    lanes: list[list[tuple[int, Slice]]] = []
    for number, each in sorted(slices, key=lambda pair: pair[1].begin_ns):
        free = next((lane for lane in lanes if lane[-1][1].end_ns <= each.begin_ns), None)
        if free is None:
            lanes.append([(number, each)])
        else:
            free.append((number, each))
    return lanes
