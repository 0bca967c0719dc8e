"""The probes' commands, run as the kubelet runs them."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from reveal_contract.kube.names import RUN_FOLDER
from reveal_contract.runtime.liveness import LivenessFiles
from reveal_operator.manifests.daemonset import GRACE_SECONDS
from reveal_operator.manifests.probes import OLDEST_MINUTES
from support.pod_probes import probe_actions, shell_probes
from support.profile_factory import built, container


def command(probe: str, folder: Path) -> list[str]:
    """Return the collector's probe command with another run folder."""
    found: dict[str, Any] = container(built()["DaemonSet"])[probe]
    return [part.replace(RUN_FOLDER, str(folder)) for part in found["exec"]["command"]]


def passes(probe: str, folder: Path) -> bool:
    return subprocess.run(command(probe, folder), capture_output=True, check=False).returncode == 0


def aged(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder / "alive", (then, then))


def test_a_process_lives_from_its_first_beat_until_its_file_is_old(tmp_path: Path) -> None:
    assert not passes("startupProbe", tmp_path)
    assert not passes("livenessProbe", tmp_path)
    LivenessFiles(tmp_path).beat()
    assert passes("startupProbe", tmp_path)
    assert passes("livenessProbe", tmp_path)
    aged(tmp_path, 60 * OLDEST_MINUTES - 10)
    assert passes("livenessProbe", tmp_path)
    aged(tmp_path, 60 * OLDEST_MINUTES + 10)
    assert not passes("livenessProbe", tmp_path)


def test_it_is_ready_once_it_delivered_and_stays_so(tmp_path: Path) -> None:
    pulse = LivenessFiles(tmp_path)
    pulse.beat()
    assert not passes("readinessProbe", tmp_path)
    pulse.ready()
    assert passes("readinessProbe", tmp_path)
    aged(tmp_path, 1000)
    assert passes("readinessProbe", tmp_path)
    LivenessFiles(tmp_path)  # the container restarts in the same pod
    assert not passes("readinessProbe", tmp_path)


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment"])
def test_no_probe_needs_a_shell(kind: str) -> None:
    assert len(probe_actions(built()[kind])) == 3
    assert shell_probes(built()[kind]) == []


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment"])
def test_a_slow_start_is_allowed_longer_than_a_hang(kind: str) -> None:
    """No probe ends a container before the container can answer."""
    probes = {name: container(built()[kind])[name] for name in ("startupProbe", "livenessProbe")}
    start, live = (probe["periodSeconds"] * probe["failureThreshold"] for probe in probes.values())
    assert start >= 120
    assert live >= 60
    for probe in probes.values():
        assert probe["timeoutSeconds"] >= 5


@pytest.mark.parametrize(
    ("kind", "program", "module"),
    [("DaemonSet", "collector", "command"), ("Deployment", "analyzer", "__main__")],
)
def test_the_program_parses_its_command_line(kind: str, program: str, module: str) -> None:
    import importlib

    result = container(built()[kind])
    assert result["command"] == [f"reveal-{program}"]
    parser = importlib.import_module(f"reveal_{program}.{module}").parser()
    parsed = parser.parse_args(result["args"])
    assert parsed.settings == Path(f"/etc/reveal/{program}.json")
    assert parsed.run_folder == Path(RUN_FOLDER)
    assert parsed.log_format == "json"
    assert parsed.drain_seconds < GRACE_SECONDS - 5
