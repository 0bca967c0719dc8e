"""The processes in containers of a real runtime, set up as the manifests say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from images.pod import bounding_set
from reveal_contract import names
from support import runc_container
from support.polling import becomes_true
from support.profile_factory import built, container
from support.redis_server import RedisLauncher

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: runs a container"),
    pytest.mark.skipif(runc_container.RUNC is None, reason="no runc on PATH"),
]
CAPABILITIES = ["PERFMON", "BPF", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_NICE"]
WRITING = (
    "touch /x",
    "touch /etc/reveal/x",
    "touch /host/sys/fs/cgroup/x",
    "mkdir /host/sys/fs/cgroup/cpu/x",
    "echo 1 > /host/proc/sys/vm/swappiness",
    "echo 1 > /host/sys/kernel/mm/ksm/run",
)


def reached(socket: Path) -> dict[str, Any]:
    """Defaults with a Redis that any network namespace sees."""
    return {"redis_url": f"unix://{socket}", "redis_credentials_secret": ""}


@contextmanager
def collector(
    tmp_path: Path, launch: RedisLauncher, privilege: str
) -> Iterator[tuple[runc_container.Container, redis.Redis, dict[str, Any]]]:
    """One that has delivered; its Redis and its DaemonSet."""
    server = launch()
    manifests = built({"collector": {"privilege": privilege}}, **reached(server.socket))
    folder = tmp_path / f"{tmp_path.name[-12:]}-{privilege.lower()}"
    files = manifests["ConfigMap"]["data"]
    with runc_container.running(
        manifests["DaemonSet"], folder, files, server.socket.parent
    ) as running:
        ready = container(manifests["DaemonSet"])["readinessProbe"]["exec"]["command"]
        assert becomes_true(lambda: running.execute(ready).returncode == 0, 25), (
            running.log.read_text()
        )
        yield running, redis.Redis(unix_socket_path=str(server.socket)), manifests["DaemonSet"]


def report(client: redis.Redis) -> dict[str, Any]:
    heartbeat: dict[str, Any] = json.loads(
        client.hget(names.node_key("p", runc_container.NODE), names.STATUS) or b"{}"
    )
    return heartbeat


def test_capabilities_give_the_same_sources_as_privileged(
    tmp_path: Path, redis_launcher: RedisLauncher
) -> None:
    """Under a read-only root, with the probes of the manifest, and nothing of the host writable."""
    with collector(tmp_path, redis_launcher, "Privileged") as (_, client, _):
        missing = {each["source"] for each in report(client)["missing"]}
    with collector(tmp_path, redis_launcher, "Capabilities") as (running, client, daemon_set):
        assert {each["source"] for each in report(client)["missing"]} == missing
        for name in ("startupProbe", "livenessProbe"):
            assert running.execute(container(daemon_set)[name]["exec"]["command"]).returncode == 0
        for command in WRITING:
            done = running.execute(["sh", "-c", command])
            assert done.returncode, command
            assert "Read-only file system" in done.stderr, done.stderr
        status = running.status()
        granted = bounding_set(f"CapEff: {status['CapEff']}")
        assert sorted(granted) == sorted(CAPABILITIES)
        assert status["CapBnd"] == status["CapEff"]
        assert status["NoNewPrivs"] == "1"


# by a process outside of the container
OF_THE_HOST = (f"ls /host/proc/{os.getpid()}/root/", f"cat /host/proc/{os.getpid()}/environ")


def test_restricted_reaches_no_file_of_the_host(
    tmp_path: Path, redis_launcher: RedisLauncher
) -> None:
    """By PIDs of the host the root directories of its processes can be entered with SYS_PTRACE."""
    with collector(tmp_path, redis_launcher, "Capabilities") as (running, client, _):
        missing = {each["source"] for each in report(client)["missing"]}
        for command in OF_THE_HOST:
            assert running.execute(["sh", "-c", command]).returncode == 0
    with collector(tmp_path, redis_launcher, "Restricted") as (running, client, _):
        assert {each["source"] for each in report(client)["missing"]} <= missing
        for command in OF_THE_HOST:
            done = running.execute(["sh", "-c", command])
            assert done.returncode, command
            assert "Permission denied" in done.stderr, done.stderr
        granted = bounding_set(f"CapEff: {running.status()['CapEff']}")
        assert sorted(granted) == ["SYS_NICE"]


ASK = """
import sys, urllib.request
with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}{sys.argv[2]}", timeout=2) as answer:
    print(answer.status)
"""


@pytest.mark.timeout(180)  # it compiles its loops, which takes a machine in use a while
def test_the_analyzer_works_as_nobody_without_any_right(
    tmp_path: Path, redis_launcher: RedisLauncher
) -> None:
    server = redis_launcher()
    manifests = built(**reached(server.socket))
    files = dict(manifests["ConfigMap"]["data"])
    # there is no API server in here
    alone = {"publish": "none", "originProof": "off"}
    files["analyzer.json"] = json.dumps({**json.loads(files["analyzer.json"]), **alone})
    os.chmod(server.socket, 0o777)  # noqa: PTH101 - of a string
    os.chmod(server.socket.parent, 0o755)  # noqa: PTH101
    folder = tmp_path / f"{tmp_path.name[-12:]}-analyzer"
    main = container(manifests["Deployment"])
    (port,) = (each["containerPort"] for each in main["ports"])
    with runc_container.running(
        manifests["Deployment"], folder, files, server.socket.parent
    ) as running:

        def answers(probe: str) -> bool:
            path = main[probe]["httpGet"]["path"]
            done = running.execute([sys.executable, "-c", ASK, str(port), path])
            return done.stdout.strip() == "200"

        assert becomes_true(lambda: answers("readinessProbe"), 120), running.log.read_text()
        assert answers("livenessProbe")
        status = running.status()
        assert status["Uid"].split() == ["65532"] * 4
        assert {status[f"Cap{kind}"] for kind in ("Prm", "Eff", "Bnd")} == {"0" * 16}
        assert status["NoNewPrivs"] == "1"
        done = running.execute(["sh", "-c", "touch /x || ls /run/reveal"])
        assert "Read-only file system" in done.stderr
        assert {"alive", "ready"} <= set(done.stdout.split())
