"""Analyzers that own shards, read and acknowledge their slices, and judge nothing.

They stand for the analyzers that a fleet has and the cores of one machine do not suffice for.
"""

from __future__ import annotations

import multiprocessing
import time
from collections import defaultdict
from multiprocessing.synchronize import Event

from reveal_analyzer.stream.consumer import StreamConsumer
from reveal_analyzer.stream.leases import Leases, LeaseTiming
from reveal_analyzer.stream.reader import POLL_SECONDS
from reveal_analyzer.stream.redis_connection import connect
from reveal_contract import names

_ACK_S = 1.0
_PROFILE = names.DEFAULT_PROFILE


class OtherAnalyzers:
    """A process with ``count`` members of the group of analyzers."""

    def __init__(self, url: str, count: int) -> None:
        self._ending = multiprocessing.Event()
        self._process = multiprocessing.Process(
            target=_run, args=(url, count, self._ending), daemon=True
        )
        self._process.start()

    def end(self) -> None:
        """End them, and leave their shards to nobody."""
        self._ending.set()
        self._process.join()


def _run(url: str, count: int, ending: Event) -> None:
    client = connect(url)
    members = [
        Leases(client, _PROFILE, name, LeaseTiming(), lambda _: True)
        for name in member_names(count)
    ]
    consumer = StreamConsumer(client, _PROFILE, "others")
    read: dict[int, list[bytes]] = defaultdict(list)
    due_s = time.monotonic()
    while not ending.is_set():
        for member in members:
            if member.due():
                for shard in member.beat().gained:
                    consumer.take_over(shard, 0.0)
        owned = [shard for member in members for shard in member.current()]
        for entry in consumer.fresh(owned) if owned else ():
            read[entry.shard].append(entry.id)
        if time.monotonic() >= due_s + _ACK_S:
            consumer.acknowledge(read)
            read.clear()
            due_s = time.monotonic()
        time.sleep(POLL_SECONDS)


def member_names(count: int) -> list[str]:
    """Return the names of the members."""
    return [f"other-{number}" for number in range(count)]
