"""What Redis may hold beside the stream, which must not lose slices."""

from __future__ import annotations

import redis

from reveal_analyzer.stream.cluster_client import servers_of

FULLEST = 0.8  # of the memory of Redis: the rest is for the stream


def refuse_when_full(client: redis.Redis) -> None:
    """Raise ``OSError`` where Redis, or one server of a Redis Cluster, has little memory left."""
    for server in servers_of(client):
        _refuse_when_full(server)


def _refuse_when_full(server: redis.Redis) -> None:
    try:
        memory = server.info("memory")
    except redis.ResponseError:  # a user without this right
        return
    used, most = int(memory.get("used_memory", 0)), int(memory.get("maxmemory", 0))
    if most and used > FULLEST * most:
        raise OSError(
            f"Redis uses {used >> 20} of {most >> 20} MiB, and the rest is for new samples:"
            " raise maxmemory"
        )
