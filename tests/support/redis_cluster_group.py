"""A Redis Cluster of three primaries with a replica each, as processes on loopback."""

from __future__ import annotations

import socket
from typing import Any

from reveal_contract.redis_cluster import SLOTS
from support.certificates import Certificate
from support.component_processes import free_port
from support.polling import wait_until
from support.redis_server import RedisLauncher, tls_flags
from support.sentinel_group import Member

_BUS = 10_000  # from the port of a server to that of its bus
_NODE_TIMEOUT_MS = 1000
_PRIMARIES = 3
_MOST_PORT = 65_535


class RedisCluster:
    """All of them; each slot is served, and each replica is in sync, when it is made.

    With a certificate they use TLS only, also among each other.
    """

    def __init__(
        self, launch: RedisLauncher, *flags: str, certificate: Certificate | None = None
    ) -> None:
        self._launch, self._flags, self._certificate = launch, flags, certificate
        self.primaries = [self.server() for _ in range(_PRIMARIES)]
        self.replicas = [self.server() for _ in range(_PRIMARIES)]
        for number, server in enumerate(self.primaries):
            server.client.execute_command("CLUSTER", "ADDSLOTS", *slots_of(number))
            server.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for server in (*self.primaries[1:], *self.replicas):
            self.introduce(server)
        for primary, replica in zip(self.primaries, self.replicas, strict=True):
            self.follow(primary, replica)
        wait_until(self.is_well, "all slots are served, and replicas are in sync")

    @property
    def servers(self) -> list[Member]:
        return [*self.primaries, *self.replicas]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.servers[:2])
        if self._certificate is None:
            return f"redis+cluster://{hosts}"
        return f"rediss+cluster://{hosts}?ssl_ca_certs={self._certificate.authority}"

    def server(self) -> Member:
        """Start a server that knows no other one."""
        port = _port_with_bus()
        return Member(
            self._launch, "--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0",
            "--cluster-node-timeout", str(_NODE_TIMEOUT_MS), *self._flags,
            *(_tls(self._certificate, port) if self._certificate else ()),
            port=port, needs="tls-port" if self._certificate else "",
        )  # fmt: skip

    def introduce(self, server: Member) -> None:
        """Let a server meet the others."""
        server.client.execute_command("CLUSTER", "MEET", "127.0.0.1", self.primaries[0].port)

    def follow(self, primary: Member, replica: Member) -> None:
        """Make a server the replica of another once both know each other."""
        name = identity(primary)
        wait_until(lambda: name in _nodes(replica), "the replica knows the primary")
        replica.client.execute_command("CLUSTER", "REPLICATE", name)

    def is_well(self) -> bool:
        return all(_is_well(each) for each in self.servers)

    def primary_of(self, slot: int) -> Member:
        """Return the server that says it has the slot."""
        [found] = [each for each in self.servers if _serves(each, slot)]
        return found

    def begin_move(self, slot: int, to: Member) -> Member:
        """Let a slot be about to move to another primary; return the one that has it."""
        source = self.primary_of(slot)
        _set_slot(to, slot, "IMPORTING", identity(source))
        _set_slot(source, slot, "MIGRATING", identity(to))
        return source

    def move(self, slot: int, to: Member) -> None:
        """Move a slot and its keys to another primary, as ``redis-cli --cluster reshard`` does."""
        source = self.begin_move(slot, to)
        while keys := source.client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 10):
            source.client.execute_command(
                "MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", *keys
            )
        for server in (to, source):
            _set_slot(server, slot, "NODE", identity(to))


def _tls(certificate: Certificate, port: int) -> tuple[str, ...]:
    """Return the flags of a server whose only port is one with TLS."""
    own = ("--port", "0", "--tls-cluster", "yes", "--tls-replication", "yes")
    return (*own, *tls_flags(certificate, port))


def slots_of(number: int) -> range:
    """Return the slots of one of the three primaries."""
    return range(SLOTS * number // _PRIMARIES, SLOTS * (number + 1) // _PRIMARIES)


def identity(server: Member) -> str:
    """Return the name of a server within the cluster."""
    name: bytes = server.client.execute_command("CLUSTER", "MYID")
    return name.decode()


def _set_slot(server: Member, slot: int, *words: str) -> None:
    server.client.execute_command("CLUSTER", "SETSLOT", slot, *words)


def _nodes(server: Member) -> str:
    found: Any = server.client.execute_command("CLUSTER", "NODES")
    return str(found)


def _serves(server: Member, slot: int) -> bool:
    found: Any = server.client.execute_command("CLUSTER", "SLOTS")
    name = identity(server)
    return any(first <= slot <= last and own[2].decode() == name for first, last, own, *_ in found)


def _is_well(server: Member) -> bool:
    found: Any = server.client.execute_command("CLUSTER", "INFO")
    replication: dict[str, Any] = server.client.info("replication")
    return (
        "cluster_state:ok" in str(found)
        and str(found).count(f"cluster_known_nodes:{2 * _PRIMARIES}") == 1
        and replication.get("master_link_status", "up") == "up"
        and (replication["role"] == "slave" or replication["connected_slaves"] == 1)
    )


def _port_with_bus() -> int:
    """Return a free port whose bus has a free port, too."""
    for _ in range(1000):
        port = free_port()
        if port + _BUS > _MOST_PORT:
            continue
        with socket.socket() as bus:
            try:
                bus.bind(("127.0.0.1", port + _BUS))
            except OSError:
                continue
        return port
    raise RuntimeError("no port is free for a server of a Redis Cluster")
