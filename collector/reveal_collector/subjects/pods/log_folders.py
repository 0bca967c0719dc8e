"""Pods of this node by the folders of their logs, without access to the Kubernetes API.

The kubelet makes ``pods/NAMESPACE_NAME_UID`` in /var/log for each pod, and for each container a
link ``containers/NAME_NAMESPACE_CONTAINER-ID.log`` into it (Kubernetes: "Logging Architecture").
Neither has the controllers and labels of a pod, nor whether it has the network of the host.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from reveal_collector.subjects.pods.podlist import Pod
from reveal_collector.subjects.pods.polled import PolledPods

OVER_SECONDS = 120.0  # a pod stays known: its cgroups and the findings about it may, too
_MOST_PODS = 4096
# the time of a folder has the resolution of the kernel's tick: what changed just now may again
_SETTLED_NS = 1_000_000_000
# names of pods, namespaces and containers have no underscore (RFC 1123)
_FOLDER = re.compile(r"([^_/]+)_([^_/]+)_([^_/]+)\Z")
_LINK = re.compile(r"[^_/]+_[^_/]+_([^_/]+)-([0-9a-f]{64})\.log\Z")
_Container = tuple[str, str, str]  # uid of its pod, its name and its id


class LogFolderPods(PolledPods):
    """The pods whose logs are below ``path``, which is /var/log of the host."""

    def __init__(self, path: Path) -> None:
        super().__init__(path / "pods")
        self._links = path / "containers"
        self._loaded: tuple[int, int] | None = None
        self._containers: dict[str, _Container | None] = {}  # by the name of the link
        self._over: dict[str, tuple[Pod, float]] = {}  # uid -> pod, and when its folder was gone

    def _read(self) -> Iterable[Pod] | None:
        version = (_changed_ns(self._path), _changed_ns(self._links))
        if version == self._loaded:
            return None
        # what changes while it is read is read again
        self._loaded = version if time.time_ns() - max(version) >= _SETTLED_NS else None
        pods = {pod.uid: pod for pod in self._listed()}
        known = {pod.uid: pod for pod in self.index.pods}
        if self._loaded is None and self.is_listed and pods == known:
            return None
        return [*pods.values(), *self._kept(pods)]

    def _listed(self) -> Iterable[Pod]:
        containers = self._by_pod()
        names = sorted(entry.name for entry in os.scandir(self._path))[:_MOST_PODS]
        for namespace, name, uid in (
            match.groups() for match in map(_FOLDER.match, names) if match
        ):
            of_pod = containers.get(uid, {})
            mains = tuple(sorted(set(of_pod.values())))
            yield Pod(uid, namespace, name, of_pod, mains=mains)

    def _by_pod(self) -> dict[str, dict[str, str]]:
        """Return the names of containers by their ids, by the uids of their pods."""
        try:
            links = [entry.name for entry in os.scandir(self._links)]
        except FileNotFoundError:
            links = []  # a pod is found by its uid, too
        self._containers = {
            link: self._containers[link] if link in self._containers else self._container(link)
            for link in links
        }
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for uid, name, container_id in filter(None, self._containers.values()):
            found[uid][container_id] = name
        return found

    def _container(self, link: str) -> _Container | None:
        """Return the container of a link to NAMESPACE_NAME_UID/CONTAINER/FILE."""
        match = _LINK.match(link)
        try:
            target = (self._links / link).readlink() if match else None
        except OSError:  # it is gone, or no link
            return None
        folder = _FOLDER.match(target.parent.parent.name) if target else None
        return (folder[3], match[1], match[2]) if match and folder else None

    def _kept(self, pods: dict[str, Pod]) -> Iterable[Pod]:
        """Return pods whose folders were removed a short time ago."""
        now = time.monotonic()
        gone = {pod.uid: (pod, now) for pod in self.index.pods if pod.uid not in pods}
        kept = {**gone, **self._over}  # the time of the removal stays
        self._over = {
            uid: each for uid, each in kept.items()
            if uid not in pods and each[1] > now - OVER_SECONDS
        }  # fmt: skip
        return [pod for pod, _ in self._over.values()][-_MOST_PODS:]


def _changed_ns(folder: Path) -> int:
    """Return when a folder changed; 0 where there is none."""
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
