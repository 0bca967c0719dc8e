"""The users of the evaluation Redis may do what analyzers and collectors do, and no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from reveal_contract import names
from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE
from support.api_server import wait_for
from support.helm_chart import Helm, find_object
from support.redis_server import RedisLauncher

NODE = "n1"
NO_RETRY = Retry(NoBackoff(), 0)
STREAM = names.samples_key(names.DEFAULT_PROFILE, names.shard(NODE))


NAME = "reveal-evaluation-redis"


@dataclass(frozen=True)
class Logins:
    """The Secrets of the chart."""

    users: str
    analyzer: dict[str, str]
    collector: dict[str, str]


@pytest.fixture
def logins(helm: Helm) -> Logins:
    objects = helm.render("--set", "evaluationRedis.enabled=true")
    analyzer = find_object(objects, "Secret", NAME)["stringData"]
    collector = find_object(objects, "Secret", "reveal-redis-collector")["stringData"]
    return Logins(analyzer["users.acl"], analyzer, collector)


@pytest.fixture
def server(redis_launcher: RedisLauncher, logins: Logins, tmp_path: Path) -> Path:
    """The socket of a Redis with the chart's users."""
    users = tmp_path / "users.acl"
    users.write_text(logins.users)
    return redis_launcher("--aclfile", str(users)).socket


def connected(server: Path, login: dict[str, str], **options: Any) -> redis.Redis:
    return redis.Redis(
        unix_socket_path=str(server), username=login["username"], password=login["password"],
        **options,
    )  # fmt: skip


@contextmanager
def component(
    module: str, log: Path, environment: dict[str, str], *flags: str
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as out, subprocess.Popen(
        [sys.executable, "-m", module, *flags],
        env={**os.environ, **environment}, stdout=out, stderr=out,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()


def test_slices_pass_through_the_evaluation_redis(
    server: Path, logins: Logins, tmp_path: Path
) -> None:
    def environment(login: dict[str, str]) -> dict[str, str]:
        return {
            names.REDIS_VARIABLE: f"unix://{server}",
            REDIS_USERNAME_VARIABLE: login["username"],
            REDIS_PASSWORD_VARIABLE: login["password"],
        }

    client = connected(server, logins.analyzer, decode_responses=True)

    def judged() -> bool:
        groups = client.xinfo_groups(STREAM) if client.exists(STREAM) else []
        return any(group["last-delivered-id"] != "0-0" for group in groups)

    logs = [tmp_path / "collector.log", tmp_path / "analyzer.log"]
    with (
        component(
            "reveal_collector",
            logs[0],
            environment(logins.collector),
            "--node",
            NODE,
            "--include",
            "loadavg",
        ),
        component("reveal_analyzer", logs[1], environment(logins.analyzer), "--owner", "a"),
    ):
        wait_for(judged, 40, "slices are read in the consumer group")
    for log in logs:
        assert "NOPERM" not in log.read_text()


@pytest.mark.parametrize("command", ["FLUSHALL", "CONFIG GET dir", "KEYS *", "GET others:key"])
def test_the_evaluation_redis_refuses_dangerous_commands(
    server: Path, logins: Logins, command: str
) -> None:
    for login in (logins.analyzer, logins.collector):
        with pytest.raises(redis.exceptions.NoPermissionError):
            connected(server, login).execute_command(*command.split())  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    "command",
    [
        f"XRANGE {STREAM} - +", f"HGETALL {names.node_key('default', NODE)}", "EVAL return(1) 0",
        f"HSET {names.node_states_key('default', 0)} {NODE} forged",
        f"SET {names.owner_key('default', 0)} squatter",
        f"HSET {names.fleet_key('default', 'states')} a forged",
        f"SET {names.proven_key('default', NODE, b'k')} 1",  # who may trust a token without review
    ],
)  # fmt: skip
def test_collectors_only_write_what_is_of_nodes(server: Path, logins: Logins, command: str) -> None:
    """Their password is in a pod on every watched node."""
    with pytest.raises(redis.exceptions.NoPermissionError):
        connected(server, logins.collector).execute_command(*command.split())  # type: ignore[no-untyped-call]


def test_the_evaluation_redis_refuses_other_users(server: Path, logins: Logins) -> None:
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(unix_socket_path=str(server), retry=NO_RETRY).ping()
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(
            unix_socket_path=str(server), password=logins.analyzer["password"], retry=NO_RETRY
        ).ping()
