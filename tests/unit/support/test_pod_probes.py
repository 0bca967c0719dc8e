"""Which commands of probes count as a shell."""

from __future__ import annotations

import pytest

from support.pod_probes import needs_shell, probe_actions, shell_probes


@pytest.mark.parametrize(
    ("command", "shell"),
    [
        (["sh", "-c", "test -e /run/alive"], True),
        (["/bin/bash", "-c", "true"], True),
        (["/usr/bin/env", "sh", "-c", "true"], True),
        (["timeout", "5", "dash", "-c", "true"], True),
        (["test", "-e", "/run/sh"], False),
        (["env", "LANG=C", "redis-cli", "ping"], False),
    ],
)
def test_a_shell_is_found_behind_paths_and_wrappers(command: list[str], shell: bool) -> None:
    assert needs_shell(command) is shell


def test_hooks_and_containers_that_run_before_count_too() -> None:
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 5"]}}}}
    early = {"startupProbe": {"exec": {"command": ["ash", "-c", "true"]}}}
    main = {"livenessProbe": {"httpGet": {"path": "/healthz", "port": 8081}}, **hook}
    pods = {"containers": [main], "initContainers": [early]}
    workload = {"spec": {"template": {"spec": pods}}}
    assert len(probe_actions(workload)) == 3
    assert shell_probes(workload) == [["sh", "-c", "sleep 5"], ["ash", "-c", "true"]]
