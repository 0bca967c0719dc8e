"""Traces as Perfetto's own messages read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as messages

BEGIN, END, COUNTER = 1, 2, 4


@dataclass
class DecodedSlice:
    """A slice with the names of its tracks, the process first."""

    path: tuple[str, ...]
    name: str
    begin: int
    category: str
    details: dict[str, str]
    flows_out: list[int]
    flows_in: list[int]
    end: int = 0


@dataclass
class DecodedTrace:
    """The content of a trace; ``clocks`` are times by the id of their clock."""

    clocks: dict[int, int] = field(default_factory=dict)
    slices: list[DecodedSlice] = field(default_factory=list)
    counters: dict[tuple[str, ...], list[tuple[int, float]]] = field(default_factory=dict)
    units: dict[tuple[str, ...], str] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)

    def of(self, category: str) -> list[DecodedSlice]:
        return [each for each in self.slices if each.category == category]


class _Decoder:
    def __init__(self) -> None:
        self.trace = DecodedTrace()
        self._paths: dict[int, tuple[str, ...]] = {}
        self._open: dict[int, list[DecodedSlice]] = {}
        self._last = 0

    def packet(self, packet: Any) -> None:
        if packet.HasField("clock_snapshot"):
            clocks = packet.clock_snapshot.clocks
            self.trace.clocks = {clock.clock_id: clock.timestamp for clock in clocks}
        elif packet.HasField("track_descriptor"):
            self._track(packet.track_descriptor)
        elif packet.HasField("track_event"):
            assert packet.timestamp_clock_id == messages.BUILTIN_CLOCK_REALTIME
            self._event(packet.timestamp, packet.track_event)

    def _track(self, track: Any) -> None:
        assert track.uuid not in self._paths
        parent = self._paths[track.parent_uuid] if track.parent_uuid else ()
        path = self._paths[track.uuid] = (*parent, track.name)
        if track.HasField("process"):
            assert not parent
            self.trace.pids[track.process.process_name] = track.process.pid
        if track.HasField("counter"):
            self.trace.units[path] = track.counter.unit_name

    def _event(self, time: int, event: Any) -> None:
        path = self._paths[event.track_uuid]
        if event.type == COUNTER:
            self.trace.counters.setdefault(path, []).append((time, event.double_counter_value))
            return
        assert time >= self._last
        self._last = time
        stack = self._open.setdefault(event.track_uuid, [])
        if event.type == END:
            stack.pop().end = time
            return
        assert event.type == BEGIN
        assert not stack, "slices overlap on one track"
        details = {each.name: each.string_value for each in event.debug_annotations}
        found = DecodedSlice(
            path, event.name, time, event.categories[0] if event.categories else "", details,
            list(event.flow_ids), list(event.terminating_flow_ids),
        )  # fmt: skip
        stack.append(found)
        self.trace.slices.append(found)

    def finished(self) -> DecodedTrace:
        assert not any(self._open.values()), "a slice has no end"
        return self.trace


def decoded(parts: Iterable[bytes] | bytes) -> DecodedTrace:
    """Return a trace; fails where a track or slice is not as the viewer needs it."""
    message = messages.Trace()
    message.ParseFromString(parts if isinstance(parts, bytes) else b"".join(parts))
    decoder = _Decoder()
    for packet in message.packet:
        assert packet.trusted_packet_sequence_id
        _refuse_unknown_fields(packet)
        decoder.packet(packet)
    return decoder.finished()


def _refuse_unknown_fields(message: Message) -> None:
    """Fail where Perfetto does not know a field, or knows it with another type."""
    assert not len(UnknownFieldSet(message)), message
    for _, value in message.ListFields():
        for each in value if isinstance(value, Iterable) else (value,):
            if isinstance(each, Message):
                _refuse_unknown_fields(each)
