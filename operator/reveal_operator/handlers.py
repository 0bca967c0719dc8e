"""What kopf calls: indices of small records, and handlers that put a key into the queue.

No handler writes anything, none needs a finalizer, a timer, a daemon or an annotation: whatever is
deleted in whatever order, nothing of ours keeps it from going.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import kopf

from reveal_contract.kube.names import (
    GROUP,
    LABEL_MANAGED_BY,
    OPERATOR_MANAGER,
    PROFILES,
    VERSION,
)
from reveal_operator.drift import content
from reveal_operator.seen import ChildSeen, ProfileSeen, child_seen, profile_of, profile_seen

# the profiles that one of that kind and name is meant for
Concerned = Callable[[str, str], set[str]]
Add = Callable[[str, float], None]  # to the queue: a key, after so many seconds

SELECTOR = f"{LABEL_MANAGED_BY}={OPERATOR_MANAGER}"
# kind -> group, version, resource; the resource is the name of its index as well
CHILDREN = {
    "ConfigMap": ("", "v1", "configmaps"),
    "DaemonSet": ("apps", "v1", "daemonsets"),
    "Deployment": ("apps", "v1", "deployments"),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets"),
}
CONTENTS = "contents"  # of all ConfigMaps there: profiles may name any
# changes of a child come in swarms while pods start: one visit for all of half a second
CHILD_S = 0.5


class Indices:
    """The indices of kopf as ``reconcile.View``, of the run that started last.

    kopf changes them in its own thread: what is read is copied at once.
    """

    def __init__(self) -> None:
        self._indices: Mapping[str, Mapping[str, Any]] = {}

    def use(self, indices: Mapping[str, Mapping[str, Any]]) -> None:
        self._indices = indices

    def profile(self, name: str) -> ProfileSeen | None:
        return next(iter(self._of(PROFILES, name)), None)

    def profiles(self) -> Iterable[ProfileSeen]:
        known = self._indices.get(PROFILES, {})
        return [seen for name in list(known) for seen in list(known.get(name, ()))]

    def children(self, profile: str) -> list[ChildSeen]:
        return [seen for _, _, index in CHILDREN.values() for seen in self._of(index, profile)]

    def content(self, config: str) -> str:
        """A hash of what the ConfigMap of that name holds; "" where there is none."""
        return next(iter(self._of(CONTENTS, config)), "")

    def all_children(self) -> list[ChildSeen]:
        names = {name for _, _, index in CHILDREN.values() for name in self._names(index)}
        return [child for name in names for child in self.children(name)]

    @property
    def count(self) -> int:
        """How many profiles there are; any thread may ask."""
        return len(self._indices.get(PROFILES, ()))

    def _names(self, index: str) -> list[str]:
        return list(self._indices.get(index, ()))

    def _of(self, index: str, key: str) -> Iterable[Any]:
        return list(self._indices.get(index, {}).get(key, ()))


def register(
    add: Add,
    indices: Indices,
    concerned: Concerned,
    configure: Callable[[kopf.OperatorSettings], None],
) -> kopf.OperatorRegistry:
    """The handlers of one run of kopf."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, **known: Any) -> None:
        configure(settings)
        indices.use({name: known[name] for name in index_names()})

    _register_profiles(registry, add)
    for kind in CHILDREN:
        _register_children(registry, add, concerned, kind)
    _register_contents(registry)
    return registry


def index_names() -> list[str]:
    return [PROFILES, *(index for _, _, index in CHILDREN.values()), CONTENTS]


def _register_profiles(registry: kopf.OperatorRegistry, add: Add) -> None:
    selector = (GROUP, VERSION, PROFILES)

    # async, as kopf runs others in threads, one an object at the start
    @kopf.index(*selector, registry=registry, id=PROFILES)
    async def index(body: kopf.Body, name: str, **_: Any) -> dict[str, ProfileSeen]:
        return {name: profile_seen(body)}

    @kopf.on.event(*selector, registry=registry, id=f"{PROFILES}-changed")
    async def changed(name: str, **_: Any) -> None:
        add(name, 0.0)


def _register_contents(registry: kopf.OperatorRegistry) -> None:
    @kopf.index(*CHILDREN["ConfigMap"], registry=registry, id=CONTENTS)
    async def index(body: kopf.Body, name: str, **_: Any) -> dict[str, str]:
        return {name: content(body)}


def _register_children(
    registry: kopf.OperatorRegistry, add: Add, concerned: Concerned, kind: str
) -> None:
    selector, labels = CHILDREN[kind], {LABEL_MANAGED_BY: OPERATOR_MANAGER}

    @kopf.index(*selector, registry=registry, id=selector[-1], labels=labels)
    async def index(body: kopf.Body, **_: Any) -> dict[str, ChildSeen]:
        return {profile_of(body): child_seen(kind, body)}

    @kopf.on.event(*selector, registry=registry, id=f"{selector[-1]}-changed")
    async def changed(body: kopf.Body, name: str, **_: Any) -> None:
        # also whose it is meant to be: somebody may have taken its owner and labels away
        for profile in ({profile_of(body)} | concerned(kind, name)) - {""}:
            add(profile, CHILD_S)
