"""What a saved state takes: KiB a node, the cost of a save, seconds to restore many nodes.

The nodes of the last rows wait in a Redis, each with its saved state and one new slice.  The time
is that of a new analyzer, from its first turn until it has judged the last of these slices.  Nodes
with pods of their own have a channel table each, which the analyzer reads and parses too.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from dataclasses import replace
from pathlib import Path

import redis

from analysisbench.analyzed_nodes import HISTORY_S, Node
from analysisbench.live_analyzer import Delays, announce, encoded, on_core
from analysisbench.slice_load import Load, post
from benchmark_report import Row, median_seconds, report, use_single_core
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.kernels.selection import use_fastest
from reveal_analyzer.node import OPTIONAL_STATE, NodeAnalyzer
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.state.codec import Position, SavedState, decode, encode
from reveal_analyzer.state.store import NodeStateStore
from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.subjects.means import is_subject_level
from reveal_analyzer.worker import Worker
from reveal_cli.broker import Broker
from reveal_contract import names, wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.settings import AnalyzerSettings
from slice_sources import Slice, slices

AGES = (70, 150, HISTORY_S)  # seconds: just learned, half of the history, all of it
CALLS = 20
SETTINGS = AnalyzerSettings()


def main() -> None:
    given = parser().parse_args()
    use_single_core()
    print(use_fastest())
    rows: list[Row] = []
    for channels in given.channels:
        recorded = of_first_table(slices(given.recording, given.recorded, channels))
        nodes = {age: Node(recorded, SETTINGS, age) for age in AGES}
        rows += [costs(recorded, nodes[age], age) for age in AGES]
        state = saved(nodes[AGES[-1]], "bench")
        for count in given.nodes if channels == given.channels[0] else ():
            rows += [restored(recorded, state, count, own_pods=own) for own in (False, True)]
    report("state", rows)


def of_first_table(recorded: list[Slice]) -> list[Slice]:
    table = recorded[0][1]
    return [(message, table) for message, _ in recorded]


def saved(node: Node, name: str) -> SavedState:
    return SavedState(Position(name, b"b" * 16, 1, 1), int(time.time()), node.analysis.save())


def costs(recorded: list[Slice], node: Node, age: int) -> Row:
    """The size of one state, and what it costs to make and to use it."""
    data = encode(saved(node, "bench"), OPTIONAL_STATE)
    rules = loader.load(())

    def restore() -> None:
        NodeAnalyzer("bench", SETTINGS, rules=rules).restore(decode(data).tree)

    second = median_seconds(node.step, CALLS)
    save = median_seconds(lambda: encode(saved(node, "bench"), OPTIONAL_STATE), CALLS)
    return {
        "what": f"a node after {age} s",
        "channels": len(recorded[0][1].fast) + len(recorded[0][1].slow),
        "KiB a node": len(data) / 1024,
        "save ms": save * 1e3,
        "% of a minute's analysis": 100 * save / (60 * second),
        "restore ms": median_seconds(restore, CALLS) * 1e3,
    }


def restored(
    recorded: list[Slice], state: SavedState, count: int, *, own_pods: bool = False
) -> Row:
    """So many nodes that a new analyzer takes over."""
    named = [f"node-{number:06d}" for number in range(count)]
    rules = loader.load(())
    with Broker() as broker:
        announce(broker.url, recorded[0][1])
        client = connect(broker.url)
        store = NodeStateStore(client, names.DEFAULT_PROFILE)
        for name in named:
            position = Position(name, b"b" * 16, 0, 0)
            store.save({name: encode(SavedState(position, state.saved_s, state.tree))})
        memory = int(client.info("memory")["used_memory"])
        if own_pods:
            post_own(client, recorded[0], named)
        else:
            load = Load(broker.url, encoded(recorded, named[0])[:1], named, time.time(), 1)
            for first in range(0, count, 500):
                post(client, load, named[first : first + 500], 1, time.time_ns())
        metrics, delays = Metrics(), Delays()
        metrics.verdict = delays  # type: ignore[assignment]
        reader = StreamReader(AnalyzerSettings(redis_url=broker.url), "bench")
        worker = Worker(reader, lambda name: NodeAnalyzer(name, SETTINGS, rules=rules), [], metrics)
        with on_core(0):
            began, cpu, turns, owned = time.monotonic(), time.process_time(), [], [0]
            while len(delays.seconds) < count:
                turn = time.monotonic()
                worker.turn()
                turns.append(time.monotonic() - turn)
                owned.append(len(reader.shards))
            seconds, cpu = time.monotonic() - began, time.process_time() - cpu
        counts = metrics.registry.get_sample_value
        assert counts("reveal_node_states_total", {"result": "restored"}) == count
        client.close()
    return {
        "what": f"{count} nodes taken over" + (", pods of their own" if own_pods else ""),
        "seconds": seconds,
        "CPU seconds": cpu,
        "CPU ms a node": 1e3 * cpu / count,
        "MiB in Redis": memory / 2**20,
        "median turn ms": statistics.median(turns) * 1e3,
        "longest turn ms": max(turns) * 1e3,
        "leases lost": sum(max(0, a - b) for a, b in itertools.pairwise(owned)),
    }


def post_own(client: redis.Redis, example: Slice, named: list[str]) -> None:
    """Announce a table for each node, in which its subjects have names of their own; one slice."""
    message, table = example
    for name in named:
        own = ChannelTable(*(tuple(renamed(each, name) for each in part)
                             for part in (table.fast, table.slow)))  # fmt: skip
        sent = replace(message, node=name, table=own.key, sequence=1, start_ns=time.time_ns())
        data = wire.encode(sent, wire.gauges(own))
        client.set(names.table_key(names.DEFAULT_PROFILE, own.key), own.announcement())
        key = names.samples_key(names.DEFAULT_PROFILE, names.shard(name))
        client.xadd(key, {names.FIELD_DATA: data})


def renamed(channel: Channel, node: str) -> Channel:
    own = is_subject_level(channel)
    return replace(channel, instance=f"{channel.instance}-{node}") if own else channel


def parser() -> argparse.ArgumentParser:
    argument_parser = argparse.ArgumentParser(description=__doc__)
    argument_parser.add_argument(
        "recording", type=Path, nargs="?", help="recording; default: this host now"
    )
    argument_parser.add_argument("--recorded", type=int, default=67, help="seconds that come round")
    argument_parser.add_argument("--channels", type=int, nargs="+", default=[400, 1221])
    argument_parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 4000])
    return argument_parser


if __name__ == "__main__":
    main()
