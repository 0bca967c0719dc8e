"""The chart as Helm renders it: what tests ask Helm, and how they take its answer."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import binaries

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "reveal"
NAMESPACE = "reveal-system"
KUBERNETES = "1.34.0"
VALUES = tuple(sorted((CHART / "ci").glob("*-values.yaml")))

Object = dict[str, Any]
# libyaml's where it is there: it takes a tenth of the time
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class HelmError(Exception):
    """Helm refused; the text is what it said."""


class Helm:
    """The ``helm`` command, with folders of its own; with a kubeconfig it may change a cluster."""

    def __init__(self, program: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self._program = program
        self._rendered: dict[tuple[str | Path, ...], str] = {}
        # /dev/null: rendering must not meet somebody's cluster
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "KUBECACHEDIR": str(folder / "kube"),
            "KUBECONFIG": str(kubeconfig or os.devnull),
        }

    def __call__(self, *words: str | Path, seconds: float = 120) -> str:
        """Its standard output; ``HelmError`` where it fails."""
        done = subprocess.run(
            [self._program, *words], env=self._environment, timeout=seconds,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise HelmError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    def render(
        self,
        *flags: str | Path,
        release: str = "reveal",
        namespace: str = NAMESPACE,
        kubernetes: str = KUBERNETES,
    ) -> list[Object]:
        """Every object of the release, hooks too, in the order of its output."""
        words = (
            "template", release, CHART, "--namespace", namespace, "--kube-version", kubernetes,
            *flags,
        )  # fmt: skip
        # not of files, whose content may change
        lasting = "--values" not in flags
        text = self._rendered.get(words) or self(*words)
        if lasting:
            self._rendered[words] = text
        return [item for item in yaml.load_all(text, Loader=LOADER) if item]


@cache
def program() -> Path:
    """Helm as it was built for the tests; skips where it is not there."""
    found = binaries.find()
    if "helm" not in found:
        pytest.skip("no helm: `make assets` builds it")
    return found["helm"]


def find_object(objects: Sequence[Object], kind: str, name: str = "") -> Object:
    """The only object of that kind, and of that name where one is given."""
    [found] = [
        each for each in objects
        if each["kind"] == kind and (not name or each["metadata"]["name"] == name)
    ]  # fmt: skip
    return found


def kinds(objects: Sequence[Object]) -> set[str]:
    return {each["kind"] for each in objects}


def identity(thing: Mapping[str, Any]) -> tuple[str, str]:
    return thing["kind"], thing["metadata"]["name"]


def pods(objects: Sequence[Object]) -> Iterator[Object]:
    """The specs of all pods, those of workloads too."""
    for each in objects:
        if each["kind"] == "Pod":
            yield each["spec"]
        elif "template" in each.get("spec", {}):
            yield each["spec"]["template"]["spec"]


def rules(objects: Sequence[Object]) -> Iterator[tuple[Object, Object]]:
    """Every rule of every role, with its role."""
    for each in objects:
        for rule in each.get("rules", ()) if each["kind"] in ("Role", "ClusterRole") else ():
            yield each, rule
