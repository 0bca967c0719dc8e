"""``reveal top`` of a node through the Redis of its collector."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from reveal_cli.errors import DONE, ERROR, USAGE
from reveal_contract import names
from support.ledger_node import Times
from support.ledger_stream import send_seconds
from support.redis_streams import Stream

JOB, HOG = "/train.service", "/hog.service"


@pytest.fixture
def watched(stream: Stream) -> Stream:
    """A stream with 100 s of a node on which a job loses time to another one."""
    stream.client.hset(names.node_key("default", "n1"), names.STATUS, "{}")
    times = {JOB: Times(run=0.5, cpu={HOG: 0.5}), HOG: Times(run=1.0)}
    send_seconds(stream, times, 100)
    return stream


def top(*flags: str) -> subprocess.CompletedProcess[str]:
    environment = {key: text for key, text in os.environ.items() if key != names.REDIS_VARIABLE}
    return subprocess.run(
        [sys.executable, "-m", "reveal_cli", "top", "--once", "--profile", "default", *flags],
        env=environment, timeout=60, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_frame_is_that_of_the_node(watched: Stream) -> None:
    keys = sorted(watched.client.keys())
    done = top("--redis", watched.url, "--node", "n1")
    assert done.returncode == DONE, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("reveal · n1")
    assert any(JOB in line and HOG in line for line in lines)
    assert sorted(watched.client.keys()) == keys  # nothing was written
    assert watched.client.xinfo_groups(names.samples_key("default", names.shard("n1"))) == []


def test_a_node_without_slices_is_a_sentence_with_those_that_are_known(watched: Stream) -> None:
    done = top("--redis", watched.url, "--node", "n2")
    assert done.returncode == ERROR
    [line] = done.stderr.splitlines()
    assert "has sent nothing to this Redis in the last two minutes" in line
    assert line.endswith("nodes of the profile: n1")


def test_a_profile_needs_a_redis() -> None:
    done = top()
    assert done.returncode == USAGE
    assert "--profile needs --redis URL" in done.stderr
