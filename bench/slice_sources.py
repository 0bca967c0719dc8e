"""Real slices for the benchmarks: of a recording, of an older npz one, or of this host now."""

import dataclasses
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from faultbench import npz_recordings
from reveal_contract import wire
from reveal_contract.channels import ChannelTable
from reveal_contract.recording import RecordingReader
from reveal_contract.wire import Message

Slice = tuple[Message, ChannelTable]


def slices(path: Path | None, seconds: int, channels: int) -> list[Slice]:
    """So many slices, cut to their first ``channels`` channels (fast ones first)."""
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            return _first(sampled(Path(folder) / "now.rvl", seconds + 3), seconds, channels)
    read = npz_recordings.load(path) if path.suffix == ".npz" else recorded(path)
    return _first(read, seconds, channels)


def _first(read: Iterable[Slice], seconds: int, channels: int) -> list[Slice]:
    # the first slice has no differences yet
    trimmed = [
        _trimmed(recorded, channels) for index, recorded in enumerate(read) if 0 < index <= seconds
    ]
    # a host whose channels changed on the way: only those of one table compare
    commonest, _ = Counter(table.key for _, table in trimmed).most_common(1)[0]
    return [recorded for recorded in trimmed if recorded[1].key == commonest]


def sampled(path: Path, seconds: int) -> Iterator[Slice]:
    """This host, by the collector itself."""
    command = [sys.executable, "-m", "reveal_collector", "--node", "bench", "--redis-url", ""]
    flags = ["--record", str(path), "--duration", str(seconds)]
    subprocess.run([*command, *flags], check=True, stderr=subprocess.DEVNULL)
    yield from recorded(path)


def recorded(path: Path) -> Iterator[Slice]:
    """All slices of a recording of the collector."""
    for record in RecordingReader(path):
        if record.table is not None:
            yield wire.decode(record.data, wire.gauges(record.table)), record.table


def _trimmed(recorded: Slice, channels: int) -> Slice:
    message, table = recorded
    fast = min(channels, len(table.fast))
    slow = min(channels - fast, len(table.slow))
    less = ChannelTable(table.fast[:fast], table.slow[:slow])
    trimmed = dataclasses.replace(
        message,
        table=less.key,
        fast=message.fast[:, :fast],
        fast_missing=message.fast_missing[:, :fast],
        slow=message.slow[:slow],
        slow_missing=message.slow_missing[:slow],
    )
    return trimmed, less
