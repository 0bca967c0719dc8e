"""Channels (metric x instance), and the tables that name the columns of a message.

A row of a later version is read as far as this one knows it.  Further columns are ignored.  A
channel of an unknown kind or lane is *skipped*: it keeps its width on the wire, and nothing uses
its values.  The width needs neither of the two.  A message counts the channels of ``fast`` (a value
for each tick) and of ``slow`` (one for the slice), and the list that a row stands in says which of
them it is.  The kind only decides whether steps are added up to levels, each channel by itself.  A
lane with another number of values needs a third count in the header: a new version of the wire.
"""

from __future__ import annotations

import json
import math
import re
import zlib

# hashlib has it, too, but loads OpenSSL: 2 MB of memory for this one hash
from _blake2 import blake2b
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from reveal_contract import foreign_json
from reveal_contract.foreign_names import printable
from reveal_contract.metric import Kind, Lane

TABLE_VERSION = 1
MAX_ANNOUNCEMENT = 32 << 20  # bytes of its JSON; 65,536 channels with long names take 20 MB
MAX_CHANNELS = 65_536
_MAX_SHARED = 1 << 16  # channels; 20 MB, or twice that with the longest names
_LONGEST_SHARED = 256  # characters of names: a node can announce any number of longer ones
_NAME = re.compile(r"[a-z0-9_.]{1,128}\Z")
_SKIPPED = "unknown:"  # before the metric of a skipped channel; no metric has a colon
_KINDS = frozenset(kind.value for kind in Kind)
_LANES = frozenset(lane.value for lane in Lane)
_MOST_LATER = 512  # bytes of JSON; few enough to be nested no deeper than Python can follow


class TableError(ValueError):
    """An announced channel table cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One column: a metric of one instance.

    A raw integer on the wire times ``scale`` is the value in the metric's base unit
    (ticks to ns, kB to bytes, sectors to bytes).  ``instance`` is "" for the node itself, else a
    printable name.  ``members`` is a hash of what a counter adds up; 0 if it is no sum.  It is not
    announced.  ``later`` is the JSON of kind, lane and further columns of a row of a later version,
    as announced, so that the key of its table stays.
    """

    metric: str
    instance: str = ""
    kind: Kind = Kind.GAUGE
    scale: float = 1.0
    lane: Lane = Lane.FAST
    members: int = field(default=0, repr=False)
    later: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.instance.isprintable():
            object.__setattr__(self, "instance", printable(self.instance))

    @classmethod
    def announced(
        cls, metric: str, instance: str, kind: Kind, scale: float, lane: Lane, later: str = ""
    ) -> Channel:
        """Return a channel of an announced table, whose key is that of the instance as written.

        Collectors of an earlier version announced names that are not printable.
        """
        channel = cls(metric, "", kind, scale, lane, later=later)
        object.__setattr__(channel, "instance", instance)
        return channel

    @property
    def identity(self) -> tuple[str, str, int]:
        """Metric, instance and members: two readings with the same identity can be subtracted."""
        return self.metric, self.instance, self.members

    @property
    def label(self) -> str:
        """Display name of the channel: ``metric`` or ``metric{instance}``."""
        return f"{self.metric}{{{self.instance}}}" if self.instance else self.metric

    @property
    def is_skipped(self) -> bool:
        """Whether its kind or lane is known to a later version only."""
        return self.metric.startswith(_SKIPPED)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The kind and lane of a skipped channel as far as they are not known, for a log."""
        if not self.is_skipped:
            return ()
        kind, lane, *_ = json.loads(self.later)
        parts = (("kind", kind, _KINDS), ("lane", lane, _LANES))
        return tuple(
            f"{part} {ascii(word)[:40]}" for part, word, known in parts if word not in known
        )


@dataclass(frozen=True)
class ChannelTable:
    """The columns of the messages of a node: the fast channels, then the slow ones.

    A channel in ``fast`` has one sample per tick, one in ``slow`` (slow and rare lane) one per
    slice.
    """

    fast: tuple[Channel, ...]
    slow: tuple[Channel, ...]

    @cached_property
    def key(self) -> bytes:
        """8 bytes that identify this table on the wire."""
        return blake2b(self.to_json(), digest_size=8).digest()

    def to_json(self) -> bytes:
        """Return the table as canonical JSON: equal tables have equal bytes."""
        rows = {
            "version": TABLE_VERSION,
            "fast": [announced_row(channel) for channel in self.fast],
            "slow": [announced_row(channel) for channel in self.slow],
        }
        return canonical_json(rows)

    @classmethod
    def from_json(cls, data: bytes | str) -> ChannelTable:
        """Parse ``to_json``; raise ``TableError`` for anything else."""
        rows = announced_object(data)
        fast, slow = (_channels(rows.get(part), part) for part in ("fast", "slow"))
        if len(fast) + len(slow) > MAX_CHANNELS:
            raise TableError(f"channel table has over {MAX_CHANNELS} channels")
        return cls(fast, slow)

    def announcement(self) -> bytes:
        """Return the table as it is announced: its JSON, compressed to about a tenth."""
        return zlib.compress(self.to_json(), 1)

    @classmethod
    def from_announcement(cls, data: bytes) -> ChannelTable:
        """Parse an announcement, also of an earlier version (JSON); raise ``TableError``."""
        return cls.from_json(data if data.startswith(b"{") else decompressed(data))


def canonical_json(rows: dict[str, Any] | list[Any]) -> bytes:
    """Return the JSON of an announcement: equal rows have equal bytes."""
    return json.dumps(rows, separators=(",", ":"), ensure_ascii=False).encode()


def decompressed(data: bytes) -> bytes:
    """Return the JSON of a compressed announcement; raise ``TableError`` if there is none."""
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(data, MAX_ANNOUNCEMENT)
    except zlib.error as error:
        raise TableError(f"channel table is neither JSON nor compressed: {error}") from None
    if not stream.eof:
        raise TableError(f"channel table is cut off, or has over {MAX_ANNOUNCEMENT} bytes")
    return text


def announced_object(data: bytes | str) -> dict[str, Any]:
    """Parse the JSON of an announcement and check its version; raise ``TableError``."""
    try:
        rows = foreign_json.loads(data, MAX_ANNOUNCEMENT)
    except ValueError as error:
        raise TableError(f"channel table is not JSON: {error}") from None
    if not isinstance(rows, dict) or rows.get("version") != TABLE_VERSION:
        raise TableError(f"channel table is not of version {TABLE_VERSION}")
    return rows


def announced_row(channel: Channel) -> list[Any]:
    """Return what is announced of a channel: two channels with the same row are the same."""
    # float: 1 and 1.0 are the same scale but would give two keys
    scale = float(channel.scale)
    if not channel.later:
        return [channel.metric, channel.instance, channel.kind, scale, channel.lane]
    kind, lane, *further = json.loads(channel.later)
    return [channel.metric.removeprefix(_SKIPPED), channel.instance, kind, scale, lane, *further]


def _channels(rows: object, part: str) -> tuple[Channel, ...]:
    if not isinstance(rows, list):
        raise TableError(f"channel table has no list {part!r}")
    return tuple(channel_of_row(row) for row in rows)


def channel_of_row(row: object) -> Channel:
    """Parse ``announced_row``, also of a later version; raise ``TableError`` for anything else."""
    match row:
        case [str(metric), str(instance), str(kind), int() | float() as scale, str(lane), *further]:
            if not _NAME.match(metric):
                raise TableError(f"channel table: {metric!r} is not a metric name")
            try:
                return _channel_of(metric, instance, kind, scale, lane, further)
            except (ValueError, OverflowError, RecursionError) as error:
                raise TableError(f"channel table: {metric}: {error}") from None
    raise TableError(f"channel table: {ascii(row)[:200]} is not a channel")


def _channel_of(
    metric: str, instance: str, kind: str, scale: float, lane: str, further: list[Any]
) -> Channel:
    """Return a channel, which is skipped if this version does not know its kind or lane."""
    is_known = kind in _KINDS and lane in _LANES
    later = _later_json([kind, lane, *further]) if further or not is_known else ""
    if is_known:
        return _channel(metric, instance, kind, scale, lane, later)
    # a counter: its values stay as they were sent, whatever they mean
    return _channel(_SKIPPED + metric, instance, Kind.COUNTER, scale, Lane.FAST, later)


def _later_json(words: list[Any]) -> str:
    data = canonical_json(words)
    if len(data) > _MOST_LATER:
        raise ValueError(f"kind, lane and further columns take over {_MOST_LATER} bytes")
    return data.decode()


def _channel(metric: str, instance: str, kind: str, scale: float, lane: str, later: str) -> Channel:
    """Return a channel, the same object for all tables unless its names are long."""
    if len(instance) + len(later) <= _LONGEST_SHARED:
        return _shared_channel(metric, instance, kind, scale, lane, later)
    return _parsed_channel(metric, instance, kind, scale, lane, later)


@lru_cache(maxsize=_MAX_SHARED, typed=True)  # typed: True equals 1 but is not a scale
def _shared_channel(
    metric: str, instance: str, kind: str, scale: float, lane: str, later: str
) -> Channel:
    """Return one object for all tables: similar nodes differ only in their pods."""
    return _parsed_channel(metric, instance, kind, scale, lane, later)


def _parsed_channel(
    metric: str, instance: str, kind: str, scale: float, lane: str, later: str
) -> Channel:
    instance.encode()  # a lone surrogate is valid JSON but cannot be encoded
    return Channel.announced(metric, instance, Kind(kind), _scale(scale), Lane(lane), later)


def _scale(value: float) -> float:
    scale = float(value)
    if not math.isfinite(scale) or scale <= 0 or isinstance(value, bool):
        raise ValueError(f"{value} is not a scale")
    return scale
