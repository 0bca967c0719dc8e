"""What a profile asks for, as manifests: built once a generation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


def plan_of(seen: ProfileSeen, defaults: Defaults) -> Plan:
    """Pure: the same profile and defaults give the same plan."""
    try:
        profile = parse(seen.body, defaults)
        made = tuple(stamped(child) for child in children(profile, defaults))
    except SpecError as error:
        return Plan(None, (), None, Trouble(error.reason, str(error)))
    pods = [child["spec"]["template"]["spec"] for child in made if child["kind"] == "DaemonSet"]
    return Plan(profile, made, placement_of(pods[0]) if pods else None)


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

    def owner(self, kind: str, name: str) -> str:
        """Whose plan has a child of that name, whatever that child says itself; "" for nobody's."""
        return self._owners.get((kind, name), "")

    def forget(self, name: str) -> bool:
        """Whether there was a plan of that profile."""
        self._owners = {key: owner for key, owner in self._owners.items() if owner != name}
        return self._known.pop(name, None) is not None
