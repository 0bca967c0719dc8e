"""Analyzers that a benchmark runs as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.component_processes import answer, free_port
from support.polling import wait_until

_READY_S = 180.0  # an analyzer whose compiled kernels are not cached yet
_ENDS_S = 60.0


class AnalyzerProcess:
    """A process that analyzes and appends findings to ``file``, with its log beside it.

    Without ``settings`` it has the default ones, without ``environment`` that of this process.
    """

    def __init__(
        self,
        url: str,
        file: Path,
        *flags: str,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.file = file
        file.touch()
        command = [sys.executable, "-m", "reveal_analyzer", "--redis", url, "--jsonl", str(file)]
        command += [*_settings_flags(file, settings), *flags]
        with file.with_suffix(".log").open("wb") as log:
            self._process = subprocess.Popen(command, env=environment, stderr=log)
        self.pid = self._process.pid

    def end(self, seconds: float | None = _ENDS_S) -> None:
        """Ask the process to end, and wait for ``seconds`` at most; None is without a limit."""
        self._process.terminate()
        self._process.wait(seconds)


class MeasuredAnalyzer(AnalyzerProcess):
    """An analyzer that serves its metrics; its file in ``folder`` has the name of its port."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *flags: str,
        settings: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._port = free_port()
        file, flags = folder / f"{self._port}.jsonl", ("--metrics-port", f"{self._port}", *flags)
        super().__init__(url, file, *flags, settings=settings, environment=environment)

    def await_ready(self) -> None:
        wait_until(lambda: answer(self._port, "/readyz")[0] == 200, "it is ready", _READY_S)

    def metrics(self) -> dict[str, float]:
        """Return the values of its metrics by their names."""
        lines = answer(self._port, "/metrics")[1].splitlines()
        rows = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in rows}


def totals(metrics: Mapping[str, float], names: Iterable[str]) -> Counter[str]:
    """Return the counters ``reveal_NAME_total`` of an analyzer by these names."""
    return Counter({name: int(metrics[f"reveal_{name}_total"]) for name in names})


def _settings_flags(file: Path, settings: Mapping[str, Any] | None) -> list[str]:
    """Write the settings beside the file of the findings; return the flags that name them."""
    if settings is None:
        return []
    path = file.with_suffix(".settings.json")
    path.write_text(json.dumps(settings))
    return ["--settings", str(path)]
