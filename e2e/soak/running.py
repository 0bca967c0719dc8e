"""One soak on a cluster: jobs by the schedule, a look at findings, the costs of each minute."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster.handle import Log
from reveal_contract.kube.names import LABEL_COMPONENT
from soak import schedule, usage, workloads
from soak.result import NAME, Result, memory
from soak.schedule import Step
from support.api_server import ApiError, Object
from support.cluster_release import Release, summary
from support.helm_chart import NAMESPACE

_TURN_S = 1.0
_LOOK_S = 10.0
_MINUTE_S = 60.0
# a failed call is logged and the soak continues: it measures an hour, not a moment
_FAILURES = (OSError, ApiError, LookupError, subprocess.CalledProcessError)


class Soak:
    """``namespace`` is where the jobs run; ``folder`` is where results go."""

    def __init__(
        self, watched: Release, namespace: str, folder: Path, result: Result, log: Log
    ) -> None:
        self._watched, self._namespace, self._folder = watched, namespace, folder
        self._result, self._log = result, log
        self._began = time.monotonic()
        self._running: dict[str, Step] = {}
        self._restarts = self._restarted()

    def run(self) -> None:
        """Until its minutes are over."""
        seconds = self._result.planned_minutes * 60
        steps = schedule.steps(seconds, self._watched.cluster.nodes)
        turns = {_LOOK_S: self._look, _MINUTE_S: self._minute}
        due = dict.fromkeys(turns, 0.0)
        while (now := self._elapsed) < seconds:
            while steps and steps[0].start_s <= now:
                self._guarded(self._step, steps.pop(0))
            for period, do in turns.items():
                if now >= due[period]:
                    due[period] = (now // period + 1) * period
                    self._guarded(do)
            time.sleep(_TURN_S)
        self._result.finished = True

    def close(self) -> None:
        """What came of it, also when it was interrupted."""
        for step in list(self._running.values()):
            self._guarded(self._end, step)
        self._guarded(self._look)
        self._guarded(self._minute)
        self._guarded(self._compare_restarts)
        if self._result.findings:
            self._guarded(self._keep_all)

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _guarded(self, do: Callable[..., None], *given: Any) -> None:
        try:
            do(*given)
        except _FAILURES as error:
            detail = getattr(error, "stderr", "") or error
            self._problem(f"{self._elapsed / 60:.1f} min: {do.__name__}: {detail}")

    def _problem(self, text: str) -> None:
        self._result.problems.append(text)
        self._log(f"PROBLEM {text}")

    def _step(self, step: Step) -> None:
        if not step.starts:
            self._end(step)
            return
        self._running[step.name] = step
        for manifest in self._objects(step):
            self._watched.kube.create(manifest)

    def _end(self, step: Step) -> None:
        started = self._running.pop(step.name)
        try:
            self._log_step(step, round(self._elapsed - started.start_s))
        finally:
            for manifest in self._objects(step):
                self._watched.kube.delete(manifest)

    def _log_step(self, step: Step, seconds: int) -> None:
        """Its last line says that it worked."""
        pod = self._watched.kube.get("v1", "Pod", step.name, self._namespace) or {}
        last_line = self._watched.cluster.kubectl(
            "-n", self._namespace, "logs", step.name, "--tail=1"
        )
        self._result.jobs.append({
            "name": step.name, "kind": step.kind, "node": step.node, "seconds": seconds,
            "last line": last_line.strip(),
        })  # fmt: skip
        [state] = pod.get("status", {}).get("containerStatuses") or [{}]
        if state.get("restartCount") != 0:
            self._problem(f"{step.name} did not run through: {state}")

    def _objects(self, step: Step) -> list[Object]:
        image = self._watched.cluster.image("reveal-workload")
        return workloads.objects(step, image, self._namespace)

    def _look(self) -> None:
        """Log a finding immediately and in full, with the jobs that run."""
        for report in self._watched.reports(self._result.started):
            name = str(report["metadata"]["name"])
            if name not in self._result.findings:
                beside = " ".join(sorted(self._running))
                line = f"{self._elapsed / 60:.1f} min: {summary(report)} (beside {beside})"
                self._result.findings[name] = line
                self._log(f"FINDING {line}")
                self._keep(name, "opened")

    def _keep(self, name: str, when: str) -> None:
        text = self._watched.cluster.kubectl("get", "anomalyreport", name, "-o", "yaml")
        (self._found / f"{name}.{when}.yaml").write_text(text)

    def _keep_all(self) -> None:
        """As they are at the end, and the analyzer's own words."""
        for name in self._result.findings:
            self._keep(name, "end")
        chosen = ("-l", f"{LABEL_COMPONENT}=analyzer", "--tail=-1", "--prefix")
        log = self._watched.cluster.kubectl("-n", NAMESPACE, "logs", *chosen)
        (self._found / "analyzer.log").write_text(log)

    @property
    def _found(self) -> Path:
        folder = self._folder / f"{NAME}_findings"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _minute(self) -> None:
        minute = self._elapsed / 60
        self._result.minutes = minute
        taken = self._samples(minute)
        self._result.samples += taken
        load, waiting = os.getloadavg()[0], _waiting_percent()
        self._result.by_minute.append({
            "minute": round(minute, 1), "load": round(load, 2), "waiting for a CPU, %": waiting,
            "jobs": sorted(self._running), "findings": len(self._result.findings),
            "MB": memory(taken),
        })  # fmt: skip
        self._result.save(self._folder)
        sizes = " ".join(f"{name} {size:.0f}" for name, size in memory(taken).items())
        self._log(
            f"{minute:5.1f} min  {len(self._running)} jobs, {len(self._result.findings)} findings,"
            f" load {load:.1f}, MB: {sizes}"
        )

    def _samples(self, minute: float) -> list[usage.Sample]:
        pods = [pod["metadata"] for pod in self._pods()]
        components = {(NAMESPACE, pod["name"]): pod["labels"][LABEL_COMPONENT] for pod in pods}
        found = []
        for node in self._watched.kube.items("v1", "Node"):
            path = f"/api/v1/nodes/{node['metadata']['name']}/proxy/stats/summary"
            summary = self._watched.kube.request("GET", path)
            found += usage.samples(summary, components, minute)
        return found

    def _restarted(self) -> dict[str, int]:
        return {
            str(pod["metadata"]["name"]): sum(
                int(each["restartCount"]) for each in pod["status"].get("containerStatuses", ())
            )
            for pod in self._pods()
        }

    def _pods(self) -> list[Object]:
        return self._watched.kube.items("v1", "Pod", NAMESPACE, LABEL_COMPONENT)

    def _compare_restarts(self) -> None:
        now = self._restarted()
        if now != self._restarts:
            self._problem(f"pods of Reveal were restarted: {self._restarts} became {now}")


def _waiting_percent() -> float:
    """Of the last minute, how much of it somebody on the machine waited for a CPU."""
    try:
        some = Path("/proc/pressure/cpu").read_text().split()
    except OSError:
        return 0.0
    return float(some[2].removeprefix("avg60="))
