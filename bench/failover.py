"""Findings while a primary of a Redis, with Sentinels or of a cluster, is lost again and again.

    python bench/failover.py [--nodes 200] [--outages 20] [--kind kill|pause|full|move] [--cluster]

Nodes send made-up seconds through the collector's sink, and the analyzer's own process reads them.
Each node has a fault of 15 s once a minute, at a time of its own.  ``kill`` ends the primary and
starts it again as a replica, ``pause`` stops its process for as long as a failover takes, and
``full`` leaves it no memory for some seconds.  A cluster has three primaries with a replica each,
which have outages in turn; ``move`` moves slots among them while nodes send.  A finding that is not
reported is lost, a second one of the same fault is a duplicate, and the gap is from the onset to
the report.
"""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from analyzer_process import AnalyzerProcess
from benchmark_report import Row, report
from failoverbench.findings import Findings, compared
from failoverbench.fleet import CYCLE_S, WARMUP_S, Fleet
from reveal_contract import names
from reveal_contract.redis_cluster import key_slot
from support.polling import wait_until
from support.redis_cluster_group import RedisCluster
from support.redis_server import launcher
from support.sentinel_group import Member, SentinelGroup

BETWEEN_S = 20  # from one outage to the next
DOWN_S = 4  # of a primary that is paused or full


class Outages(ABC):
    """Takes a primary away and gives it back; ``times`` are when (s since the epoch).

    ``pairs`` are primaries with their replicas, which have outages in turn.
    """

    def __init__(self, pairs: Sequence[tuple[Member, Member]], kind: str) -> None:
        self._pairs, self._take_away = list(pairs), getattr(self, f"_{kind}")
        self.times: list[float] = []

    def next(self) -> None:
        turn = len(self.times) % len(self._pairs)
        self.times.append(time.time())
        self._pairs[turn] = self._take_away(*self._pairs[turn])

    def _kill(self, primary: Member, replica: Member) -> tuple[Member, Member]:
        primary.kill()
        wait_until(lambda: replica.role == "master", "the replica is promoted", 30)
        return replica, self._revived(primary, replica)

    @abstractmethod
    def _revived(self, lost: Member, primary: Member) -> Member:
        """Start a server that was killed again, as a replica of its replica."""

    def _pause(self, primary: Member, replica: Member) -> tuple[Member, Member]:
        primary.signal(signal.SIGSTOP)
        wait_until(lambda: replica.role == "master", "the replica is promoted", 30)
        time.sleep(DOWN_S)
        primary.signal(signal.SIGCONT)
        wait_until(lambda: primary.role == "slave", "the old primary is a replica", 30)
        return replica, primary

    def _full(self, primary: Member, replica: Member) -> tuple[Member, Member]:
        primary.client.config_set("maxmemory", 1)
        time.sleep(DOWN_S)
        primary.client.config_set("maxmemory", 0)
        return primary, replica


class SentinelOutages(Outages):
    """Those of a primary that Sentinels watch."""

    def __init__(self, group: SentinelGroup, kind: str) -> None:
        super().__init__([(group.primary, group.replica)], kind)
        self._group = group

    def _revived(self, lost: Member, primary: Member) -> Member:
        return self._group.replica_of(primary, port=lost.port)


class ClusterOutages(Outages):
    """Those of the servers of a Redis Cluster; ``move`` moves the slots of the streams."""

    def __init__(self, cluster: RedisCluster, kind: str) -> None:
        super().__init__(list(zip(cluster.primaries, cluster.replicas, strict=True)), kind)
        self._cluster = cluster
        keys = [names.samples_key(names.DEFAULT_PROFILE, shard) for shard in range(names.SHARDS)]
        self._slots = [key_slot(key) for key in keys]

    def _revived(self, lost: Member, primary: Member) -> Member:
        lost.server.start()  # it knows the others, and follows who has its slots
        wait_until(self._cluster.is_well, "the cluster is whole again", 30)
        return lost

    def _move(self, primary: Member, replica: Member) -> tuple[Member, Member]:
        """Move a slot in eight of the streams to this primary."""
        for slot in self._slots[len(self.times) % 8 :: 8]:
            if self._cluster.primary_of(slot) is not primary:
                self._cluster.move(slot, primary)
        return primary, replica


def run(asked: argparse.Namespace, kind: str, folder: Path) -> Row:
    outages = asked.outages
    with ExitStack() as stack:
        taken, url = _servers(stack, kind, asked.cluster)
        settings = {"warmupSeconds": WARMUP_S}
        analyzer = AnalyzerProcess(url, folder / "findings.jsonl", settings=settings)
        stack.callback(analyzer.end)
        found = Findings(analyzer.file)
        fleet = Fleet(url, asked.nodes)
        stack.enter_context(fleet.sending())
        found.follow(2 * WARMUP_S + CYCLE_S)
        for number in range(outages):
            began = time.time()
            taken.next()
            took = time.time() - began
            print(f"{kind} {number + 1}: {took:.1f} s, {len(found.reported)} findings", flush=True)
            found.follow(BETWEEN_S - took)
        found.follow(CYCLE_S)
        row = compared(fleet.faults, found, taken.times)
        row |= {"slices dropped": fleet.dropped, "slices waiting": fleet.buffered}
    servers = "cluster" if asked.cluster else "sentinels"
    return {"servers": servers, "kind": kind, "nodes": asked.nodes, "outages": outages, **row}


def _servers(stack: ExitStack, kind: str, is_cluster: bool) -> tuple[Outages, str]:
    launch = stack.enter_context(launcher())
    if is_cluster:
        cluster = RedisCluster(launch)
        return ClusterOutages(cluster, kind), cluster.url
    group = SentinelGroup(launch)
    return SentinelOutages(group, kind), group.url()


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--outages", type=int, default=20)
    parser.add_argument("--cluster", action="store_true", help="a Redis Cluster of 3 + 3 servers")
    kinds = ("kill", "pause", "full", "move")
    parser.add_argument("--kind", choices=kinds, action="append", help="default: all, in turn")
    asked = parser.parse_args(argv)
    if not asked.cluster and "move" in (asked.kind or ()):
        parser.error("only a cluster has slots to move: add --cluster")
    logging.disable(logging.WARNING)  # each sink reports each outage
    rows = []
    for kind in asked.kind or kinds[: len(kinds) if asked.cluster else -1]:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(run(asked, kind, Path(folder)))
    report("failover-cluster" if asked.cluster else "failover", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
