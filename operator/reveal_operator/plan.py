"""The desired state of a profile as manifests, built once for each generation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reveal_contract.kube.names import ANNOTATION_HYPOTHESES
from reveal_operator.drift import stamped
from reveal_operator.manifests import owned_manifests
from reveal_operator.observed import ObservedProfile
from reveal_operator.placement import Placement, placement_of
from reveal_operator.pod_failures import Failure
from reveal_operator.spec import Defaults, Profile, SpecError, parse

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class ProfilePlan:
    """A profile and its manifests; ``rejected`` is set where its author must act."""

    profile: Profile | None
    manifests: tuple[Manifest, ...]
    placement: Placement | None
    rejected: Failure | None = None

    @property
    def hypotheses(self) -> str:
        """The ConfigMap that analyzers read at their start; "" for none."""
        return self.profile.analyzer.hypotheses if self.profile else ""


def plan_of(observed: ObservedProfile, defaults: Defaults) -> ProfilePlan:
    """Return the plan; the same profile and defaults give the same one."""
    try:
        profile = parse(observed.body, defaults)
        manifests = tuple(stamped(each) for each in owned_manifests(profile, defaults))
    except SpecError as error:
        return ProfilePlan(None, (), None, Failure(error.reason, str(error)))
    pods = [each["spec"]["template"]["spec"] for each in manifests if each["kind"] == "DaemonSet"]
    return ProfilePlan(profile, manifests, placement_of(pods[0]) if pods else None)


def with_hypotheses(manifests: Iterable[Manifest], content: str) -> tuple[Manifest, ...]:
    """Return the manifests with a hash of the analyzers' hypotheses: new ones mean new pods.

    Without ``content`` the ConfigMap does not exist; the pods report that themselves.
    """
    if not content:
        return tuple(manifests)
    return tuple(
        _annotated(manifest, content) if manifest["kind"] == "Deployment" else manifest
        for manifest in manifests
    )


def _annotated(deployment: Manifest, content: str) -> Manifest:
    spec, template = deployment["spec"], deployment["spec"]["template"]
    annotations = {**template["metadata"]["annotations"], ANNOTATION_HYPOTHESES: content}
    metadata = {**template["metadata"], "annotations": annotations}
    return stamped({**deployment, "spec": {**spec, "template": {**template, "metadata": metadata}}})


class PlanCache:
    """Plans by profile, kept until uid or generation changes."""

    def __init__(self, defaults: Defaults) -> None:
        self._defaults = defaults
        self._known: dict[str, tuple[tuple[str, int], ProfilePlan]] = {}
        self._owners: dict[tuple[str, str], str] = {}

    def of(self, observed: ObservedProfile) -> ProfilePlan:
        """Return the plan of a profile."""
        version = (observed.uid, observed.generation)
        known = self._known.get(observed.name)
        if known is None or known[0] != version:
            known = self._known[observed.name] = (version, plan_of(observed, self._defaults))
            for manifest in known[1].manifests:
                self._owners[manifest["kind"], manifest["metadata"]["name"]] = observed.name
        return known[1]

    def use(self, defaults: Defaults) -> None:
        """Use other defaults for all plans from now on."""
        if defaults != self._defaults:
            self._defaults = defaults
            self._known.clear()

    def concerned(self, kind: str, name: str) -> set[str]:
        """Return the profiles that own an object by their plans, or that read it as ConfigMap."""
        found = {self._owners.get((kind, name), "")}
        if kind == "ConfigMap":
            known = list(self._known.items())  # a copy: kopf calls this in its own thread
            found |= {profile for profile, (_, plan) in known if plan.hypotheses == name}
        return found - {""}

    def forget(self, name: str) -> bool:
        """Forget a profile; return whether there was a plan."""
        self._owners = {key: owner for key, owner in self._owners.items() if owner != name}
        return self._known.pop(name, None) is not None
