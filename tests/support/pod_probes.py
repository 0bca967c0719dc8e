"""The probes and lifecycle hooks of a workload's containers, and which of them need a shell."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
SHELLS = frozenset({"sh", "ash", "bash", "busybox", "dash", "ksh", "zsh"})
# run the program that follows them
_WRAPPERS = frozenset({"env", "nice", "timeout"})


def probe_actions(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what each probe and lifecycle hook of the workload does."""
    spec = workload["spec"]["template"]["spec"]
    containers = [*spec["containers"], *spec.get("initContainers", ())]
    return [
        action
        for container in containers
        for action in (
            *(container[name] for name in PROBES if name in container),
            *container.get("lifecycle", {}).values(),
        )
    ]


def shell_probes(workload: dict[str, Any]) -> list[list[str]]:
    """Return the commands of probes and hooks that start a shell."""
    commands = [each["exec"]["command"] for each in probe_actions(workload) if "exec" in each]
    return [command for command in commands if needs_shell(command)]


def needs_shell(command: list[str]) -> bool:
    """Return whether the command is a shell, or starts one through a wrapper."""
    program, *rest = (PurePosixPath(word).name for word in command)
    return program in SHELLS or (program in _WRAPPERS and bool(SHELLS.intersection(rest)))
