"""Idle states of each CPU (admin-guide/pm/cpuidle.rst)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from support.hosts.machine import Machine
from support.hosts.tree import Tree, rising

_CPU = "sys/devices/system/cpu"


class State(NamedTuple):
    """``share`` of an idle CPU's time; ``latency`` in us."""

    name: str
    latency: int
    share: float


INTEL = (
    State("POLL", 0, 0.001), State("C1", 1, 0.05), State("C1E", 2, 0.15), State("C6", 290, 0.7),
)  # fmt: skip
AMD = (State("POLL", 0, 0.001), State("C1", 1, 0.2), State("C2", 100, 0.6))
ARM = (State("WFI", 1, 0.9),)


def add_cpuidle(
    tree: Tree, machine: Machine, driver: str = "intel_idle", states: Sequence[State] = INTEL
) -> None:
    tree.write(f"{_CPU}/cpuidle/current_driver", f"{driver}\n")
    tree.write(f"{_CPU}/cpuidle/current_governor", "menu\n")
    for cpu in range(machine.cpus):
        for index, state in enumerate(states):
            folder = f"{_CPU}/cpu{cpu}/cpuidle/state{index}"
            tree.write(f"{folder}/name", f"{state.name}\n")
            tree.write(f"{folder}/latency", state.latency)
            tree.write(f"{folder}/time", rising(state.share * 1e6, start=1000 * (cpu + 1)))
            tree.write(f"{folder}/usage", rising(200 * state.share, start=10 * (cpu + 1)))
            for name in ("above", "below", "rejected", "disable"):
                tree.write(f"{folder}/{name}", 0)
