"""The jobs of the soak as pods; what they run is in ``jobs``."""

from __future__ import annotations

from pathlib import Path

from soak.schedule import Step
from support.cluster_release import SINGLE_THREAD, Object

PORT = 8080
_JOBS = Path(__file__).with_name("jobs")
_DATA = "/data"
# steps of the long job have a rhythm of their own
_PERIODS = {"steady": "0.4"}


def objects(step: Step, image: str, namespace: str) -> list[Object]:
    """What is made when a job starts and deleted when it ends: a pod, a Service where asked."""
    commands = {
        "training": ("train.py", _PERIODS.get(step.name, "0.25"), _DATA),
        "serving": ("serve.py", str(PORT)),
        "asking": ("ask.py", _service(step), str(PORT), "20x80", "60x80"),
        "loading": ("load.py", _DATA, "6"),
    }
    manifests = [_pod(step, image, namespace, commands[step.kind])]
    return [*manifests, _serve(step, namespace)] if step.kind == "serving" else manifests


def _pod(step: Step, image: str, namespace: str, command: tuple[str, ...]) -> Object:
    program, *words = command
    return {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": step.name, "namespace": namespace, "labels": {"app": step.name}},
        "spec": {
            "nodeName": step.node, "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main", "image": image, "env": [SINGLE_THREAD],
                "command": ["python3", "-u", "-c", (_JOBS / program).read_text(), *words],
                "volumeMounts": [{"name": "data", "mountPath": _DATA}],
            }],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }  # fmt: skip


def _serve(step: Step, namespace: str) -> Object:
    return {
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": step.name, "namespace": namespace},
        "spec": {"selector": {"app": step.name}, "ports": [{"port": PORT}]},
    }  # fmt: skip


def _service(step: Step) -> str:
    return step.name.replace("asking", "serving")
