"""kubectl against a control plane of the tests, and what of its output is the same each time."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from cluster.plane import ControlPlane

Object = dict[str, Any]
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z")
_SECONDS = re.compile(r"\b\d{1,2}s( *)")
_COUNTED = re.compile(r"((?:Resource Version|UID): +)\S+")


def kubectl(plane: ControlPlane, *arguments: str) -> str:
    """What it prints; an AssertionError with its own words where it fails."""
    command = [
        str(plane.programs["kubectl"]), f"--kubeconfig={plane.kubeconfig}",
        f"--cache-dir={plane.folder / 'kubectl'}", *arguments,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    return done.stdout


def settled(text: str) -> str:
    """Ages of seconds, times, and what the server makes up, always the same, as wide as before."""
    head, spec, rest = text.partition("\nSpec:")
    text = _COUNTED.sub(r"\1...", head) + spec + rest
    text = _TIME.sub("2026-01-01T00:00:00Z", text)
    text = _SECONDS.sub(_five, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _five(found: re.Match[str]) -> str:
    return "5s".ljust(len(found.group()))
