"""The user of the evaluation Redis may do what collector and analyzer do, and no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


@pytest.fixture
def secret(helm: Helm) -> dict[str, str]:
    result: dict[str, str] = find_object(
        helm.render("--set", "evaluationRedis.enabled=true"), "Secret"
    )["stringData"]
    return result


@pytest.fixture
def server(redis_launcher: RedisLauncher, secret: dict[str, str], tmp_path: Path) -> Path:
    """The socket of a Redis with the chart's users."""
    users = tmp_path / "users.acl"
    users.write_text(secret["users.acl"])
    return redis_launcher("--aclfile", str(users)).socket


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
    server: Path, secret: dict[str, str], tmp_path: Path
) -> None:
    environment = {
        names.REDIS_VARIABLE: f"unix://{server}",
        REDIS_USERNAME_VARIABLE: secret["username"],
        REDIS_PASSWORD_VARIABLE: secret["password"],
    }
    client = redis.Redis(
        unix_socket_path=str(server), username=secret["username"], password=secret["password"],
        decode_responses=True,
    )  # fmt: skip

    def judged() -> bool:
        groups = client.xinfo_groups(STREAM) if client.exists(STREAM) else []
        return any(group["last-delivered-id"] != "0-0" for group in groups)

    logs = [tmp_path / "collector.log", tmp_path / "analyzer.log"]
    with (
        component("reveal_collector", logs[0], environment, "--node", NODE, "--include", "loadavg"),
        component("reveal_analyzer", logs[1], environment, "--owner", "a"),
    ):
        wait_for(judged, 40, "slices are read in the consumer group")
    for log in logs:
        assert "NOPERM" not in log.read_text()


@pytest.mark.parametrize("command", ["FLUSHALL", "CONFIG GET dir", "KEYS *", "GET others:key"])
def test_the_evaluation_redis_refuses_dangerous_commands(
    server: Path, secret: dict[str, str], command: str
) -> None:
    client = redis.Redis(
        unix_socket_path=str(server), username=secret["username"], password=secret["password"]
    )
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.execute_command(*command.split())  # type: ignore[no-untyped-call]


def test_the_evaluation_redis_refuses_other_users(server: Path, secret: dict[str, str]) -> None:
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(unix_socket_path=str(server), retry=NO_RETRY).ping()
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(
            unix_socket_path=str(server), password=secret["password"], retry=NO_RETRY
        ).ping()
