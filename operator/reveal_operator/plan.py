"""What a profile asks for, as manifests: built once a generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reveal_contract.kube.names import ANNOTATION_HYPOTHESES
from reveal_operator.drift import stamped
from reveal_operator.manifests import children
from reveal_operator.overlap import Placement, placement_of
from reveal_operator.seen import ProfileSeen
from reveal_operator.spec import Defaults, Profile, SpecError, parse
from reveal_operator.troubles import Trouble

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """A profile and its children with their intents; ``rejected`` where its author must act."""

    profile: Profile | None
    children: tuple[Manifest, ...]
    placement: Placement | None
    rejected: Trouble | None = None

    @property
    def hypotheses(self) -> str:
        """The ConfigMap that analyzers read when they start; "" for none."""
        return self.profile.analyzer.hypotheses if self.profile else ""


def plan_of(seen: ProfileSeen, defaults: Defaults) -> Plan:
    """Pure: the same profile and defaults give the same plan."""
    try:
        profile = parse(seen.body, defaults)
        made = tuple(stamped(child) for child in children(profile, defaults))
    except SpecError as error:
        return Plan(None, (), None, Trouble(error.reason, str(error)))
    pods = [child["spec"]["template"]["spec"] for child in made if child["kind"] == "DaemonSet"]
    return Plan(profile, made, placement_of(pods[0]) if pods else None)


def reading(children: Iterable[Manifest], content: str) -> tuple[Manifest, ...]:
    """The same, with analyzers that are other pods where their hypotheses are others.

    Without ``content`` there is nothing to read, and the pods say so themselves.
    """
    if not content:
        return tuple(children)
    return tuple(_annotated(one, content) if one["kind"] == "Deployment" else one
                 for one in children)  # fmt: skip


def _annotated(deployment: Manifest, content: str) -> Manifest:
    spec, template = deployment["spec"], deployment["spec"]["template"]
    annotations = {**template["metadata"]["annotations"], ANNOTATION_HYPOTHESES: content}
    metadata = {**template["metadata"], "annotations": annotations}
    return stamped({**deployment, "spec": {**spec, "template": {**template, "metadata": metadata}}})


class Plans:
    """Plans by profile, kept while uid and generation stay."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._known: dict[str, tuple[tuple[str, int], Plan]] = {}
        self._owners: dict[tuple[str, str], str] = {}

    def of(self, seen: ProfileSeen) -> Plan:
        about = (seen.uid, seen.generation)
        known = self._known.get(seen.name)
        if known is None or known[0] != about:
            known = self._known[seen.name] = (about, plan_of(seen, self._defaults))
            for child in known[1].children:
                self._owners[child["kind"], child["metadata"]["name"]] = seen.name
        return known[1]

    def use(self, defaults: Defaults) -> None:
        """Other defaults, for all that is planned from now on."""
        if defaults != self._defaults:
            self._defaults = defaults
            self._known.clear()

    def concerned(self, kind: str, name: str) -> set[str]:
        """Whose plan has a child of that name, whatever it says itself, and who reads it."""
        found = {self._owners.get((kind, name), "")}
        if kind == "ConfigMap":
            known = list(self._known.items())  # kopf asks, in a thread of its own
            found |= {who for who, (_, plan) in known if plan.hypotheses == name}
        return found - {""}

    def forget(self, name: str) -> bool:
        """Whether there was a plan of that profile."""
        self._owners = {key: owner for key, owner in self._owners.items() if owner != name}
        return self._known.pop(name, None) is not None
