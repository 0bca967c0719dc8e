"""How many slices a second one reader takes from a real Redis, beside the parts it is made of.

The streams hold the slices of many nodes before the reader starts; a node sends one a second,
so slices a CPU second are the nodes that one core reads for.
"""

import argparse
import dataclasses
import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

import redis

from benchmark_report import Row, report
from reveal_analyzer.stream.reader import StreamReader
from reveal_cli.broker import Broker
from reveal_contract import names, wire
from reveal_contract.channels import ChannelTable
from reveal_contract.settings import AnalyzerSettings
from slice_sources import Slice, slices

Entries = list[tuple[str, bytes]]  # stream, message


def entries(recorded: list[Slice], nodes: int) -> Entries:
    """The recorded seconds as sent by so many nodes at once."""
    gauges = wire.gauges(recorded[0][1])
    result = []
    for sequence, (message, _) in enumerate(recorded):
        for number in range(nodes):
            name = f"node-{number}"
            own = dataclasses.replace(message, node=name, sequence=sequence)
            key = names.samples_key(names.DEFAULT_PROFILE, names.shard(name))
            result.append((key, wire.encode(own, gauges)))
    return result


def fill(client: redis.Redis, stream_entries: Entries, table: ChannelTable) -> None:
    client.set(names.table_key(names.DEFAULT_PROFILE, table.key), table.announcement())
    for index in range(0, len(stream_entries), 500):
        with client.pipeline(transaction=False) as pipe:
            for key, data in stream_entries[index : index + 500]:
                pipe.xadd(key, {names.FIELD_DATA: data})
            pipe.execute()


def bare(client: redis.Redis) -> int:
    """Read and acknowledge everything, look at nothing: what redis-py itself costs."""
    read = 0
    keys = [names.samples_key(names.DEFAULT_PROFILE, number) for number in range(names.SHARDS)]
    for key in keys:
        client.xgroup_create(key, "bare", id="0", mkstream=True)
        while reply := client.xreadgroup("bare", "one", {key: ">"}, count=512):
            ids = [entry_id for entry_id, _ in reply[0][1]]
            client.xack(key, "bare", *ids)
            read += len(ids)
    return read


def whole(url: str, expected: int) -> int:
    reader = StreamReader(AnalyzerSettings(redis_url=url), "bench")
    read = 0
    while read < expected:
        received = reader.poll()
        reader.ack(received)
        read += len(received)
    reader.close()
    return read


def each(iterable: Iterable[object]) -> None:
    """Make one after the other and keep none, as a reader does."""
    deque(iterable, maxlen=0)


def timed(name: str, call: Callable[[], object], count: int) -> Row:
    wall, core = time.perf_counter(), time.process_time()
    call()
    wall, core = time.perf_counter() - wall, time.process_time() - core
    return {"what": name, "cpu us a slice": core / count * 1e6, "wall us": wall / count * 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path, nargs="?", help="recording; default: this host now")
    parser.add_argument("--channels", type=int, default=700)
    parser.add_argument("--nodes", type=int, default=300)
    parser.add_argument("--seconds", type=int, default=30)
    arguments = parser.parse_args()
    recorded = slices(arguments.recording, arguments.seconds, arguments.channels)
    table = recorded[0][1]
    stream_entries = entries(recorded, arguments.nodes)
    gauges, count = wire.gauges(table), len(stream_entries)
    text = json.dumps({c.label: recorded[0][0].fast.T[0].tolist() for c in table.fast})
    with Broker() as broker:
        client = redis.Redis.from_url(broker.url, protocol=2)
        fill(client, stream_entries, table)
        rows = [
            timed("reader: leases, read, decode, order, acknowledge",
                  lambda: whole(broker.url, count), count),
            timed("redis-py alone: read and acknowledge", lambda: bare(client), count),
            timed("decode alone",
                  lambda: each(wire.decode(data, gauges) for _, data in stream_entries), count),
            timed("JSON of the same channels: parse alone",
                  lambda: each(json.loads(text) for _ in range(count // 10)), count // 10),
        ]  # fmt: skip
        client.close()
    first = float(rows[0]["cpu us a slice"])
    for row in rows:
        row["slices a cpu second"] = 1e6 / float(row["cpu us a slice"])
        row["of the reader"] = float(row["cpu us a slice"]) / first
    report("stream", rows, slices=count, nodes=arguments.nodes, channels=len(table.fast))
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
