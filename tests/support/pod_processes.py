"""The processes of pods on real nodes, as the kernel of the machine has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from images.pod import bounding_set
from support.api_server import Object

_PAUSE = "pause"


@dataclass(frozen=True)
class Process:
    """By its number on the machine, in whatever namespaces it is."""

    number: int

    @property
    def name(self) -> str:
        return (self._folder / "comm").read_text().strip()

    @property
    def capabilities(self) -> tuple[str, ...]:
        return bounding_set((self._folder / "status").read_text())

    @property
    def read_only_root(self) -> bool:
        rows = [line.split() for line in (self._folder / "mounts").read_text().splitlines()]
        [options] = [row[3] for row in rows if row[1] == "/"]
        return "ro" in options.split(",")

    def status(self, field: str) -> str:
        """A row of /proc/PID/status: ``Seccomp``, ``NoNewPrivs``, ``Uid``."""
        lines = (self._folder / "status").read_text().splitlines()
        [found] = [line for line in lines if line.startswith(f"{field}:")]
        return " ".join(found.split()[1:])

    @property
    def _folder(self) -> Path:
        return Path(f"/proc/{self.number}")


def processes_of(pod: Object) -> list[Process]:
    """Those of its containers: all but the one that holds its namespaces."""
    found = [Process(number) for number in _in_cgroups_of(pod["metadata"]["uid"])]
    return [process for process in found if process.name != _PAUSE]


def main_process(pod: Object) -> Process:
    """The first of the pod's only container."""
    return min(processes_of(pod), key=lambda item: item.number)


def _in_cgroups_of(uid: str) -> Iterator[int]:
    for file in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if f"pod{uid}" in file.read_text():
                yield int(file.parent.name)
        except OSError:  # it ended
            continue
