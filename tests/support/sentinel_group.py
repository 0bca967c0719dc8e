"""A primary, its replica and three Sentinels, as processes on loopback."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import redis

from support.component_processes import free_port
from support.polling import wait_until
from support.redis_server import RedisLauncher, RedisServer

SERVICE = "jobs"
_QUORUM = 2
_DOWN_MS, _FAILOVER_MS = 500, 2000


class Member:
    """A server of the group, with a client that looks at it."""

    def __init__(self, launch: RedisLauncher, *flags: str, port: int = 0, **more: Any) -> None:
        self.port = port or free_port()
        self.server: RedisServer = launch("--port", str(self.port), *flags, **more)
        self.client = redis.Redis(unix_socket_path=str(self.server.socket), protocol=2)

    @property
    def role(self) -> str:
        found: dict[str, Any] = self.client.info("replication")
        return str(found["role"])

    def kill(self) -> None:
        self.server.stop()

    def signal(self, number: int) -> None:
        """Send a signal to the server, as to pause it."""
        self.server.signal(number)

    def close(self) -> None:
        self.client.close()

    def client_names(self) -> set[str]:
        """Return the names of the clients that are connected."""
        return {str(each["name"]) for each in self.client.client_list()}


class SentinelGroup:
    """All of them; the replica is in sync and the Sentinels know each other when it is made."""

    def __init__(self, launch: RedisLauncher) -> None:
        self._launch = launch
        self.primary = Member(launch)
        self.replica = self.replica_of(self.primary)
        self.sentinels = self._sentinels()
        wait_until(self._is_ready, "the Sentinels know the replica and each other")

    def replica_of(self, primary: Member, port: int = 0) -> Member:
        """Start a replica and wait until it has what the primary has."""
        flags = ("--replicaof", "127.0.0.1", str(primary.port), "--repl-diskless-sync-delay", "0")
        replica = Member(self._launch, *flags, port=port)
        wait_until(
            lambda: replica.client.info("replication")["master_link_status"] == "up",
            "the replica is in sync",
        )
        return replica

    def url(self, service: str = SERVICE, options: str = "") -> str:
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.sentinels)
        return f"redis+sentinel://{hosts}/{service}/0{options}"

    def fail_over(self) -> bool:
        """Ask for a planned failover; ask again where a slow machine made Sentinel give one up."""
        if self.replica.role != "master":
            with suppress(redis.ResponseError):  # one is in progress, or was given up just now
                self.sentinels[0].client.sentinel_failover(SERVICE)
        return self.replica.role == "master"

    def _sentinels(self) -> list[Member]:
        known = [(free_port(), secrets.token_hex(20)) for _ in range(3)]
        return [
            Member(
                self._launch, "--sentinel", port=port, configuration=self._configuration(known, own)
            )
            for port, own in known
        ]

    def _configuration(self, known: Sequence[tuple[int, str]], own: str) -> str:
        """Return a configuration with all members: to find each other takes them seconds."""
        others = [
            f"sentinel known-sentinel {SERVICE} 127.0.0.1 {port} {name}"
            for port, name in known
            if name != own
        ]
        return "\n".join([
            f"sentinel myid {own}",
            f"sentinel monitor {SERVICE} 127.0.0.1 {self.primary.port} {_QUORUM}",
            f"sentinel down-after-milliseconds {SERVICE} {_DOWN_MS}",
            f"sentinel failover-timeout {SERVICE} {_FAILOVER_MS}",
            f"sentinel known-replica {SERVICE} 127.0.0.1 {self.replica.port}",
            *others,
            "",
        ])  # fmt: skip

    def _is_ready(self) -> bool:
        return all(map(_can_fail_over, self.sentinels))


def _can_fail_over(sentinel: Member) -> bool:
    reply: dict[bytes | str, Any] = sentinel.client.sentinel_master(SERVICE)
    return (reply["num-slaves"], reply["num-other-sentinels"], reply["flags"]) == (
        1, 2, "master",
    )  # fmt: skip
