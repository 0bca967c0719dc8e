"""The handlers of kopf: indices of small records, and handlers that queue profiles.

No handler writes anything, and none needs a finalizer, timer, daemon or annotation: nothing of ours
delays a deletion, in whatever order objects are deleted.
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
from reveal_operator.observed import (
    ObservedObject,
    ObservedProfile,
    observed_object,
    observed_profile,
    profile_of,
)

# the profiles that an object of a kind and name concerns
Concerned = Callable[[str, str], set[str]]
Add = Callable[[str, float], None]  # queues a profile, due after so many seconds

SELECTOR = f"{LABEL_MANAGED_BY}={OPERATOR_MANAGER}"
# kind -> group, version, resource; the index has the name of the resource
OWNED = {
    "ConfigMap": ("", "v1", "configmaps"),
    "DaemonSet": ("apps", "v1", "daemonsets"),
    "Deployment": ("apps", "v1", "deployments"),
    "PodDisruptionBudget": ("policy", "v1", "poddisruptionbudgets"),
}
CONTENTS = "contents"  # of all ConfigMaps in the namespace: a profile may name any of them
# a workload changes many times while its pods start: one visit for all changes of half a second
DEBOUNCE_S = 0.5


class Indices:
    """The indices of kopf as ``reconcile.View``, of its last run.

    kopf changes them in its own thread, so every read makes a copy at once.
    """

    def __init__(self) -> None:
        self._indices: Mapping[str, Mapping[str, Any]] = {}

    def use(self, indices: Mapping[str, Mapping[str, Any]]) -> None:
        """Use the indices of a new run."""
        self._indices = indices

    def profile(self, name: str) -> ObservedProfile | None:
        return next(iter(self._of(PROFILES, name)), None)

    def profiles(self) -> Iterable[ObservedProfile]:
        known = self._indices.get(PROFILES, {})
        return [each for name in list(known) for each in list(known.get(name, ()))]

    def owned(self, profile: str) -> list[ObservedObject]:
        return [each for _, _, index in OWNED.values() for each in self._of(index, profile)]

    def content(self, config: str) -> str:
        """Return a hash of what a ConfigMap holds; "" where there is none."""
        return next(iter(self._of(CONTENTS, config)), "")

    def all_owned(self) -> list[ObservedObject]:
        """Return the objects of all profiles."""
        names = {name for _, _, index in OWNED.values() for name in self._names(index)}
        return [each for name in names for each in self.owned(name)]

    @property
    def count(self) -> int:
        """The number of profiles; any thread may use it."""
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
    """Return the handlers of one run of kopf."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, **known: Any) -> None:
        configure(settings)
        indices.use({name: known[name] for name in index_names()})

    _register_profiles(registry, add)
    for kind in OWNED:
        _register_owned(registry, add, concerned, kind)
    _register_contents(registry)
    return registry


def index_names() -> list[str]:
    """Return the names of all indices."""
    return [PROFILES, *(index for _, _, index in OWNED.values()), CONTENTS]


def _register_profiles(registry: kopf.OperatorRegistry, add: Add) -> None:
    selector = (GROUP, VERSION, PROFILES)

    # async: kopf runs other handlers in threads, one for each object at the start
    @kopf.index(*selector, registry=registry, id=PROFILES)
    async def index(body: kopf.Body, name: str, **_: Any) -> dict[str, ObservedProfile]:
        return {name: observed_profile(body)}

    @kopf.on.event(*selector, registry=registry, id=f"{PROFILES}-changed")
    async def changed(name: str, **_: Any) -> None:
        add(name, 0.0)


def _register_contents(registry: kopf.OperatorRegistry) -> None:
    @kopf.index(*OWNED["ConfigMap"], registry=registry, id=CONTENTS)
    async def index(body: kopf.Body, name: str, **_: Any) -> dict[str, str]:
        return {name: content(body)}


def _register_owned(
    registry: kopf.OperatorRegistry, add: Add, concerned: Concerned, kind: str
) -> None:
    selector, labels = OWNED[kind], {LABEL_MANAGED_BY: OPERATOR_MANAGER}

    @kopf.index(*selector, registry=registry, id=selector[-1], labels=labels)
    async def index(body: kopf.Body, **_: Any) -> dict[str, ObservedObject]:
        return {profile_of(body): observed_object(kind, body)}

    @kopf.on.event(*selector, registry=registry, id=f"{selector[-1]}-changed")
    async def changed(body: kopf.Body, name: str, **_: Any) -> None:
        # also by the plans: somebody may have removed its owner and labels
        for profile in ({profile_of(body)} | concerned(kind, name)) - {""}:
            add(profile, DEBOUNCE_S)
