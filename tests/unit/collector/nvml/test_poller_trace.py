"""A trace that the bench records on a GPU machine is replayed by the fake driver."""

from __future__ import annotations

from pathlib import Path

import nvml_trace
from reveal_collector.nvml.poller import NvmlPoller
from reveal_collector.nvml.snapshots import QUICK, STATE
from reveal_collector.readers.source import Roots
from support import fake_nvml
from support.fake_nvml import GIB, Script, hgx_h100

Figures = dict[tuple[str, str], int | None]


def figures(poller: NvmlPoller) -> Figures:
    """Return the figures, except for those about the poller itself."""
    snapshots = [poller.snapshots[name] for name in (QUICK, STATE)]
    return {
        key: value
        for snapshot in snapshots
        for key, value in zip(snapshot.keys, snapshot.values, strict=True)
        if not key[0].startswith("gpu.driver.")
    }


def recorded(seconds: int, changes: Script, busy: list[object]) -> tuple[NvmlPoller, list[Figures]]:
    now = [0]
    poller = NvmlPoller(Roots(), clock=lambda: now[0])
    poller.open()
    steps = []
    for index in range(seconds):
        changes.change({"0.utilization": busy[index], "at": index})
        now[0] += 10**10
        poller.run_round()
        now[0] += 10**9
        poller.run_round()
        steps.append(figures(poller))
    return poller, steps


def test_a_recorded_driver_answers_as_the_original_driver(
    tmp_path: Path, nvml_library: Path
) -> None:
    script = Script(tmp_path / "real", hgx_h100(2))
    with fake_nvml.loaded(nvml_library, script.path) as pynvml:
        poller, steps = recorded(3, script, [90, 12, 55])
        assert [step["gpu.utilization", "0"] for step in steps] == [90, 12, 55]
        text = nvml_trace.trace(poller.gpus, steps, pynvml, step_ms=0)
    assert "0.utilization 90 12 55" in text
    assert f"1.memory.used {60 * GIB}\n" in text  # once, as it never changed
    again = tmp_path / "replayed"
    with fake_nvml.loaded(nvml_library, again):
        answers = dict(line.split(" ", 1) for line in text.splitlines())
        for index, step in enumerate(steps):
            script = Script(again, answers | {"at": index})
            poller = NvmlPoller(Roots())
            poller.open()
            replayed = figures(poller)
            missing = {metric for metric, _ in step.keys() - replayed.keys()}
            assert missing <= {"gpu.memory.free", "gpu.processes", "gpu.contention"}
            assert replayed == {key: step[key] for key in replayed}


def test_what_was_missing_fails_again(tmp_path: Path, nvml_library: Path) -> None:
    script = Script(tmp_path / "script", hgx_h100(1) | {"0.utilization": "1 ? 3"})
    with fake_nvml.loaded(nvml_library, script.path) as pynvml:
        poller, steps = recorded(1, script, ["1 ? 3"])
        steps += [{("gpu.utilization", "0"): None}, {("gpu.utilization", "0"): 3}]
        text = nvml_trace.trace(poller.gpus, steps, pynvml)
    assert "\n0.utilization 1 ? 3\n" in text
