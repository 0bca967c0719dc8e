"""Thousands of nodes with many pods each, through a real Redis Cluster, and some of them judged.

    python bench/scale.py [--nodes 10000] [--pods 64] [--seconds 240]

Each node sends a slice a second and replaces a pod every ``--replace`` seconds; processes send for
all of them.  The cluster has three primaries with a replica each.  ``--judges`` analyzers judge the
nodes of a shard each.  The shards of the others belong to ``--others`` analyzers, which read and
acknowledge slices and judge nothing: a machine of few cores can judge a sample only.  Each node has
a fault of 15 s every five minutes; those of the sample are compared with the findings.  CPU time
and delays are of the second half.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil

from analyzer_process import MeasuredAnalyzer, totals
from benchmark_report import Row, report
from failoverbench.findings import Findings, compared
from failoverbench.fleet import WARMUP_S
from reveal_analyzer.stream.leases import rank
from reveal_contract import names
from reveal_contract.redis_cluster import key_slot
from scalebench.crowded_node import generations
from scalebench.other_analyzers import OtherAnalyzers, member_names
from scalebench.senders import Load, Sender, Sent, name_of
from support.redis_cluster_group import RedisCluster
from support.redis_server import launcher

MIB = 1 << 20
AHEAD_S = 10.0  # until the processes that send are ready
SETTINGS = {"warmupSeconds": WARMUP_S, "evidenceStore": "none"}
_COUNTS = ("slices", "slices_missing", "messages_refused", "messages_trimmed", "node_failures")


def run(asked: argparse.Namespace, folder: Path) -> Row:
    with ExitStack() as stack:
        cluster = RedisCluster(stack.enter_context(launcher()))
        announce(cluster, asked)
        owners = judges(asked.judges, member_names(asked.others))
        analyzers = [
            MeasuredAnalyzer(cluster.url, folder, "--owner", name, settings=SETTINGS)
            for name in owners
        ]
        for analyzer in analyzers:
            stack.callback(analyzer.end)
            analyzer.await_ready()
        others = OtherAnalyzers(cluster.url, asked.others)
        stack.callback(others.end)
        senders = [Sender(load) for load in loads(cluster, asked)]
        found = Findings(*(analyzer.file for analyzer in analyzers))
        found.follow(AHEAD_S + asked.seconds / 2)
        before, earlier = usage(cluster, analyzers), counted(analyzers)
        found.follow(asked.seconds / 2)
        after = usage(cluster, analyzers)
        sent = [sender.join() for sender in senders]
        found.follow(10.0)
        counts = counted(analyzers)
        judged = {names.shard(each.node) for each in found.reported}
        row = fleet_row(asked, sent, counts, earlier)
        row |= {name: after[name] - before[name] for name in ("Redis cores", "analyzers cores")}
        row = {name: value / (asked.seconds / 2) if "cores" in name else value
               for name, value in row.items()}  # fmt: skip
        row |= memory(cluster, analyzers, row["judged nodes"])
        every = (fault for each in sent for fault in each.faults)
        faults = [fault for fault in every if names.shard(fault.node) in judged]
        return row | compared(faults, found, ())


def judges(number: int, others: Sequence[str]) -> list[str]:
    """Return names of analyzers that own a shard each beside the others."""
    chosen: list[str] = []
    for candidate in (f"judge-{each}" for each in range(10_000)):
        members = [*others, *chosen, candidate]
        owned = [sum(not rank(shard, name, members) for shard in range(names.SHARDS))
                 for name in (*chosen, candidate)]  # fmt: skip
        if set(owned) == {1}:
            chosen.append(candidate)
        if len(chosen) == number:
            break
    return chosen


def announce(cluster: RedisCluster, asked: argparse.Namespace) -> None:
    """Write the channel tables that nodes will use."""
    for generation in generations(asked.pods, asked.seconds, asked.replace):
        table = generation.table
        key = names.table_key(names.DEFAULT_PROFILE, table.key)
        server = cluster.primary_of(key_slot(key))
        server.client.set(key, table.announcement())


def loads(cluster: RedisCluster, asked: argparse.Namespace) -> list[Load]:
    """Return a load for each process that sends."""
    keys = (names.samples_key(names.DEFAULT_PROFILE, shard) for shard in range(names.SHARDS))
    ports = [cluster.primary_of(key_slot(key)).port for key in keys]
    each = asked.nodes // asked.processes
    begin_s = time.time() + AHEAD_S
    return [
        Load(number * each, each, asked.nodes, asked.pods, asked.replace, ports, begin_s,
             asked.seconds, 2 * WARMUP_S)
        for number in range(asked.processes)
    ]  # fmt: skip


def usage(cluster: RedisCluster, analyzers: Sequence[MeasuredAnalyzer]) -> dict[str, float]:
    """Return the CPU seconds that servers and analyzers have used."""
    servers = (server.client.info("cpu") for server in cluster.servers)
    of_redis = sum(row["used_cpu_user"] + row["used_cpu_sys"] for row in servers)
    of_analyzers = sum(sum(psutil.Process(each.pid).cpu_times()[:2]) for each in analyzers)
    return {"Redis cores": of_redis, "analyzers cores": of_analyzers}


def counted(analyzers: Sequence[MeasuredAnalyzer]) -> Counter[str]:
    return sum(map(counts_of, analyzers), Counter[str]())


def counts_of(analyzer: MeasuredAnalyzer) -> Counter[str]:
    """Return what an analyzer counted, and how late its judgements were."""
    metrics = analyzer.metrics()
    found = totals(metrics, _COUNTS)
    found["verdict_s"] = round(metrics["reveal_verdict_seconds_sum"])
    found["verdicts"] = int(metrics["reveal_verdict_seconds_count"])
    return found


def fleet_row(
    asked: argparse.Namespace, sent: Sequence[Sent], counts: Counter[str], earlier: Counter[str]
) -> Row:
    slices = sum(each.slices for each in sent)
    late_s, verdicts = (counts[name] - earlier[name] for name in ("verdict_s", "verdicts"))
    return {
        "nodes": asked.nodes, "pods": asked.pods * asked.nodes, "slices": slices,
        "MB/s": sum(each.bytes for each in sent) / asked.seconds / 1e6,
        "sent late s": max(each.latest_s for each in sent),
        "pods replaced": sum(each.tables for each in sent) - asked.nodes,
        "judged nodes": counts["slices"] / asked.seconds, "judged slices": counts["slices"],
        "lost slices": sum(counts[name] for name in _COUNTS[1:]),
        "verdict after s": late_s / max(1, verdicts),
        "Redis cores": 0.0, "analyzers cores": 0.0,
    }  # fmt: skip


def memory(cluster: RedisCluster, analyzers: Sequence[MeasuredAnalyzer], nodes: float) -> Row:
    primaries = [server.client.info("memory")["used_memory"] for server in cluster.primaries]
    resident = sum(psutil.Process(each.pid).memory_info().rss for each in analyzers)
    return {
        "primaries MiB": sum(primaries) / MIB, "largest MiB": max(primaries) / MIB,
        "analyzer MiB a node": resident / MIB / max(1.0, nodes),
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--pods", type=int, default=64, help="of each node")
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--replace", type=float, default=120.0, help="seconds until a node"
                        " replaces a pod")  # fmt: skip
    parser.add_argument("--judges", type=int, default=1, help="analyzers that judge")
    parser.add_argument("--others", type=int, default=62, help="analyzers that judge nothing")
    parser.add_argument("--processes", type=int, default=2, help="that send")
    asked = parser.parse_args(argv)
    assert len(name_of(asked.nodes)) == len(name_of(0)), "at most 99,999 nodes"
    with tempfile.TemporaryDirectory() as folder:
        report("scale", [run(asked, Path(folder))])
    return 0


if __name__ == "__main__":
    sys.exit(main())
