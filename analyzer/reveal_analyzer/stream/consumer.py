"""The commands of one consumer on the streams of the shards: read, take over, acknowledge.

One command reads several streams: one for each, twenty times a second, would take a tenth of the
CPU time that the slices of a thousand nodes need.  An entry that is read becomes pending until it
is acknowledged.  A reply that is lost leaves its entries pending too, so after any error the
consumer reads its pending entries before new ones.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import redis

from reveal_analyzer.stream.tolerant_client import is_of_wrong_type
from reveal_contract import wire
from reveal_contract.names import FIELD_DATA, GROUP, KEPT_SECONDS, SHARDS, samples_key

log = logging.getLogger(__name__)

BATCH = 512  # entries of one read, shared among its streams
REPLAY_SECONDS = 120.0  # a stream keeps so much of each node, and a state is saved each minute
LOOK_BACK_SECONDS = 3.0
LEAST = 64  # entries of each stream in any case: those of 1 s, with 4,000 nodes on 64 streams
NOTHING_SAVED: Mapping[str, bytes] = MappingProxyType({})
_DATA = FIELD_DATA.encode()
_RETRY_SECONDS = 10.0

# All pending entries of the group become the caller's; the consumers that had them are deleted.
# Only the lease holder reads, so nobody else works on them.  JUSTID keeps the delivery counts.
# Since Redis 7 those that were trimmed meanwhile are not claimed but deleted: their number.
TAKE_OVER = """
local cursor, trimmed = '0-0', 0
repeat
  local page = redis.call('XAUTOCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, cursor,
                          'COUNT', 1000, 'JUSTID')
  cursor, trimmed = page[1], trimmed + #(page[3] or {})
until cursor == '0-0'
for _, consumer in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  if consumer[2] ~= ARGV[2] and consumer[4] == 0 then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer[2])
  end
end
return trimmed
"""


class StreamEntry(NamedTuple):
    """One stream entry; ``fields`` is empty when it was trimmed while pending."""

    shard: int
    id: bytes
    fields: Mapping[bytes, bytes]
    history: bool = False

    @property
    def time_ms(self) -> int:
        """When it arrived, on the clock of Redis."""
        return id_ms(self.id)


class TakenShard(NamedTuple):
    """The entries of a shard that was taken over, and up to where the last owner read.

    ``trimmed`` entries are gone that it read and did not finish.
    """

    entries: list[StreamEntry]
    read_ms: int = 0
    trimmed: int = 0


class StreamConsumer:
    """One analyzer in the consumer group, which it creates where there is none.

    Methods raise what redis-py raises when Redis is unavailable.  ``recreated`` counts groups that
    were gone (a Redis that lost its data, a deleted stream).
    """

    def __init__(self, client: redis.Redis, profile: str, owner: str) -> None:
        self.recreated = 0
        self._client, self._owner = client, owner
        self._keys = [samples_key(profile, shard) for shard in range(SHARDS)]
        self._shards = {key.encode(): shard for shard, key in enumerate(self._keys)}
        self._foreign: set[int] = set()  # shards whose key holds something other than a stream
        self._retry_s = 0.0  # when they are tried again: somebody may have deleted the key
        self._separately = False  # the server, or a proxy before it, takes one key in a command

    def take_over(
        self, shard: int, refill_seconds: float, saved: Mapping[str, bytes] = NOTHING_SAVED
    ) -> TakenShard:
        """Return what the last owner left unfinished, with the seconds before it as ``history``.

        ``saved`` has the nodes whose state is saved, with the last entry that it covers: the
        history of such a node begins after that.
        """
        key = self._keys[shard]
        self._create_groups([shard])
        if shard in self._foreign or (delivered := self._last_delivered(shard)) == b"0-0":
            return TakenShard([])
        trimmed: Any = self._client.eval(TAKE_OVER, 1, key, GROUP, self._owner)
        pending = self.pending([shard])
        unfinished = {entry.id for entry in pending}
        history = [
            entry._replace(history=True)
            for entry in self._history(shard, delivered, refill_seconds, saved)
            if entry.id not in unfinished
        ]
        entries = sorted(history + pending, key=lambda entry: _order(entry.id))
        return TakenShard(entries, id_ms(delivered), int(trimmed))

    def _history(
        self, shard: int, delivered: bytes, refill_seconds: float, saved: Mapping[str, bytes]
    ) -> list[StreamEntry]:
        """Return the entries after what is saved, and those of other nodes for some seconds."""
        now_ms = self.time_ms()

        def ago(period: float) -> tuple[int, int]:
            return max(0, now_ms - int(period * 1000)), 0

        # a node that has sent nothing for so long has nothing to replay
        oldest, refill = ago(REPLAY_SECONDS), ago(refill_seconds)
        after = {node: order for node, id_ in saved.items() if (order := _order(id_)) > oldest}
        # all nodes send something within the look-back: those without a state are seen there
        start = min(ago(LOOK_BACK_SECONDS), *after.values()) if after else refill
        entries = self._range(shard, start, delivered)
        if start > refill and any(_node(entry) not in after for entry in entries):
            entries = self._range(shard, refill, delivered)
        return [
            entry for entry in entries
            if _order(entry.id) > after.get(str(_node(entry)), refill)
        ]  # fmt: skip

    def _range(self, shard: int, start: tuple[int, int], end: bytes) -> list[StreamEntry]:
        rows = self._client.xrange(self._keys[shard], min=f"{start[0]}-{start[1]}", max=end)
        return _entries(shard, [(self._keys[shard], rows)])

    def pending(self, shards: Iterable[int]) -> list[StreamEntry]:
        """Return what this consumer read and did not acknowledge, oldest first in each shard."""
        found: list[StreamEntry] = []
        after = dict.fromkeys(shards, b"0")
        while after:
            entries = self._read(after)
            found += entries
            after = {entry.shard: entry.id for entry in entries}
        return found

    def fresh(self, shards: Iterable[int]) -> list[StreamEntry]:
        """Return what nobody in the group has read yet, about ``BATCH`` entries at most."""
        if self._foreign and time.monotonic() >= self._retry_s:
            self._foreign.clear()
        return self._read(dict.fromkeys(shards, b">"))

    def first_ms(self, shards: Iterable[int]) -> dict[int, int]:
        """Return when the first entry arrived that each stream has; nothing of empty ones."""
        replies = self._each(shards, lambda pipe, shard: pipe.xrange(self._keys[shard], count=1))
        return {
            shard: id_ms(rows[0][0])
            for shard, rows in replies.items()
            if not self._failed(shard, rows) and rows
        }

    def time_ms(self) -> int:
        """Return the time on the clock of Redis."""
        seconds, micros = self._client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    def acknowledge(self, ids: Mapping[int, Iterable[bytes]]) -> None:
        """Acknowledge entries, by shard."""
        self._each(ids, lambda pipe, shard: pipe.xack(self._keys[shard], GROUP, *ids[shard]))

    def _read(self, after: Mapping[int, bytes]) -> list[StreamEntry]:
        count = entries_per_stream(len(after))
        asked = {shard: last for shard, last in after.items() if shard not in self._foreign}
        if not self._separately and len(asked) > 1:
            try:
                return self._read_together(asked, count)
            except redis.ResponseError:  # read them separately to find which stream it concerns
                known = self.recreated, len(self._foreign)
                entries = self._read_each(asked, count)
                self._separately = known == (self.recreated, len(self._foreign))
                return entries
        return self._read_each(asked, count)

    def _read_together(self, asked: Mapping[int, bytes], count: int) -> list[StreamEntry]:
        """Read all by one command, which fails as a whole where one cannot be read."""
        reply: Any = self._client.xreadgroup(
            GROUP,
            self._owner,
            {self._keys[shard]: last for shard, last in asked.items()},
            count=count,
        )
        return [e for key, rows in reply for e in _entries(self._shards[key], [(key, rows)])]

    def _read_each(self, asked: Mapping[int, bytes], count: int) -> list[StreamEntry]:
        replies = self._each(
            asked,
            lambda pipe, shard: pipe.xreadgroup(
                GROUP, self._owner, {self._keys[shard]: asked[shard]}, count=count
            ),
        )
        entries: list[StreamEntry] = []
        vanished: list[int] = []
        for shard, reply in replies.items():
            if isinstance(reply, redis.ResponseError) and str(reply).startswith("NOGROUP"):
                vanished.append(shard)
            elif not self._failed(shard, reply):
                entries += _entries(shard, reply)
        if vanished:
            self._recreate(vanished)
        return entries

    def _recreate(self, shards: list[int]) -> None:
        log.warning("consumer groups of %d shards were gone, created again", len(shards))
        self.recreated += len(shards)
        self._create_groups(shards)

    def _create_groups(self, shards: Iterable[int]) -> None:
        """Create groups at the start of their streams: earlier entries are to be read too.

        A stream that this creates ends with its readers.
        """
        replies = self._each(
            shards,
            lambda pipe, shard: pipe.xgroup_create(self._keys[shard], GROUP, id="0", mkstream=True),
        )
        for shard, reply in replies.items():
            if not str(reply).startswith("BUSYGROUP"):
                self._failed(shard, reply)
        self._each(replies, lambda pipe, shard: pipe.expire(self._keys[shard], KEPT_SECONDS))

    def _failed(self, shard: int, reply: object) -> bool:
        """Return whether this shard cannot be read; an error that concerns all is raised."""
        if not isinstance(reply, Exception):
            return False
        if not is_of_wrong_type(reply):
            raise reply
        self._foreign.add(shard)
        self._retry_s = time.monotonic() + _RETRY_SECONDS
        return True

    def _last_delivered(self, shard: int) -> bytes:
        for group in self._client.xinfo_groups(self._keys[shard]):
            if group["name"] == GROUP.encode():
                return bytes(group["last-delivered-id"])
        return b"0-0"

    def _each(
        self, shards: Iterable[int], command: Callable[[redis.client.Pipeline, int], object]
    ) -> dict[int, Any]:
        """Send one command for each shard, together; an error of one is its reply."""
        asked = list(shards)
        if not asked:
            return {}
        with self._client.pipeline(transaction=False) as pipe:
            for shard in asked:
                command(pipe, shard)
            return dict(zip(asked, pipe.execute(raise_on_error=False), strict=True))


def entries_per_stream(streams: int) -> int:
    """Return how many entries of each are read at most when so many streams are read together.

    Enough to catch up at once after a pause of some polls.  If it were less than what arrived
    meanwhile, all streams would be behind, and reading them separately would cost more time still.
    """
    return max(LEAST, BATCH // max(1, streams))


def by_node(entries: Iterable[StreamEntry]) -> list[StreamEntry]:
    """Return the entries node by node, those of each node in their order.

    The state of a node leaves the CPU cache while thousands of others are analyzed: the second of
    two slices in a row takes a third of the time of the first.
    """
    groups: dict[str | bytes, list[StreamEntry]] = {}
    for entry in entries:
        groups.setdefault(_node(entry), []).append(entry)
    return [entry for group in groups.values() for entry in group]


def _node(entry: StreamEntry) -> str | bytes:
    """Return the node of a slice; where that cannot be read, the id of the entry."""
    try:
        return wire.peek(entry.fields.get(_DATA, b""))[0]
    except wire.WireError:
        return entry.id


def _entries(shard: int, reply: Any) -> list[StreamEntry]:
    """Return one shape for the replies of redis-py: nothing, ``None`` fields, ``None`` ids."""
    return [
        StreamEntry(shard, entry_id, fields or {})
        for _, rows in reply or ()
        for entry_id, fields in rows
        if entry_id is not None
    ]


def id_ms(stream_id: bytes) -> int:
    """Return when an entry arrived, in milliseconds on the clock of Redis."""
    return _order(stream_id)[0]


def _order(stream_id: bytes) -> tuple[int, int]:
    milliseconds, _, number = stream_id.partition(b"-")
    return int(milliseconds), int(number)
