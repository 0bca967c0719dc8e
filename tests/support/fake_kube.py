"""The Kubernetes API in memory, behind ``sinks.kube.api.SinkApi``, with failures on demand.

For what a real API server does not do when asked (be overloaded, fail in the middle of a
delivery); what it takes and refuses is tried on a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from reveal_analyzer.sinks.kube.api import Object
from reveal_contract.kube.errors import AlreadyExistsError, NotFoundError
from reveal_contract.kube.names import LABEL_NODE, LABEL_PROFILE, LABEL_SEVERITY, LABEL_STATE
from reveal_contract.kube.node_condition import URGENT

READS = (
    "profile", "open_reports", "open_reports_on", "urgent_metadata", "node", "node_names",
    "pod_metadata",
)  # fmt: skip


class FakeKube:
    """``calls`` has all that was asked; ``fail`` may raise for a call (name, about)."""

    def __init__(self) -> None:
        self.profiles: dict[str, Object] = {"p": {"metadata": {"uid": "puid", "generation": 3}}}
        self.reports: dict[str, Object] = {}
        self.verified: dict[str, Object] = {}  # of reports: what another manager owns
        self.events: dict[str, Object] = {}
        self.nodes: dict[str, str] = {"n1": "n1-uid"}
        self.conditions: list[tuple[str, Object]] = []
        self.pods: dict[str, list[Object]] = {}  # by node
        self.tokens: dict[str, Object] = {}  # and the status of their reviews
        self.calls: list[tuple[str, str]] = []
        self.closed = False
        self.fail: Callable[[str, str], Exception | None] = lambda name, about: None

    def _asked(self, name: str, about: str) -> None:
        self.calls.append((name, about))
        if (error := self.fail(name, about)) is not None:
            raise error

    @property
    def writes(self) -> list[str]:
        return [name for name, _ in self.calls if name not in READS]

    def profile(self, name: str) -> Object:
        self._asked("profile", name)
        if name not in self.profiles:
            raise NotFoundError(name)
        return self.profiles[name]

    def apply_profile_status(self, name: str, status: Mapping[str, Any]) -> None:
        self._asked("apply_profile_status", name)
        self.profiles[name].setdefault("status", {}).update(status)

    def open_reports(self, profile: str) -> Iterator[Object]:
        self._asked("open_reports", profile)
        yield from self._open(LABEL_PROFILE, profile)

    def open_reports_on(self, node: str) -> Iterator[Object]:
        self._asked("open_reports_on", node)
        yield from self._open(LABEL_NODE, node)

    def _open(self, label: str, value: str) -> Iterator[Object]:
        for report in list(self.reports.values()):
            labels = report["metadata"]["labels"]
            if (labels.get(LABEL_STATE), labels.get(label)) == ("Open", value):
                yield report

    def create_report(self, body: Object) -> Object:
        name = body["metadata"]["name"]
        self._asked("create_report", name)
        if name in self.reports:
            raise AlreadyExistsError(name)
        self.reports[name] = {**body, "metadata": {**body["metadata"]}}
        return self.reports[name]

    def urgent_metadata(self, profile: str) -> Iterator[Object]:
        self._asked("urgent_metadata", profile)
        for report in self._open(LABEL_PROFILE, profile):
            if report["metadata"]["labels"][LABEL_SEVERITY] in URGENT:
                yield {"metadata": report["metadata"]}

    def annotate(self, name: str, annotations: Mapping[str, str | None]) -> None:
        """Set and remove annotations of a report, as a user does."""
        metadata = self.reports[name]["metadata"]
        merged = {**metadata.get("annotations", {}), **annotations}
        metadata["annotations"] = {key: text for key, text in merged.items() if text is not None}

    def apply_report_status(self, name: str, body: Object) -> Object:
        self._asked("apply_report_status", name)
        if name not in self.reports:
            raise NotFoundError(name)
        self.reports[name]["status"] = body["status"]
        return self.reports[name]

    def apply_verification(self, name: str, body: Object) -> None:
        self._asked("apply_verification", name)
        if name not in self.reports:
            raise NotFoundError(name)
        self.verified[name] = body["status"]["verification"]

    def label_report(self, name: str, labels: Mapping[str, str]) -> None:
        self._asked("label_report", name)
        if name not in self.reports:
            raise NotFoundError(name)
        metadata = self.reports[name]["metadata"]
        metadata["labels"] = {**metadata["labels"], **labels}

    def create_event(self, namespace: str, body: Object) -> None:
        self._asked("create_event", body["reason"])
        if body["metadata"]["name"] in self.events:
            raise AlreadyExistsError(body["metadata"]["name"])
        self.events[body["metadata"]["name"]] = body

    def patch_event(self, namespace: str, name: str, patch: Object) -> None:
        self._asked("patch_event", name)
        if name not in self.events:
            raise NotFoundError(name)
        self.events[name] = {**self.events[name], **patch}

    def node(self, name: str) -> Object:
        self._asked("node", name)
        if name not in self.nodes:
            raise NotFoundError(name)
        has = self.condition(name)
        return {
            "metadata": {"name": name, "uid": self.nodes[name]},
            "status": {"conditions": [has] if has else []},
        }

    def node_names(self) -> Iterator[str]:
        self._asked("node_names", "")
        yield from list(self.nodes)

    def pod_metadata(self, node: str) -> Iterator[Object]:
        self._asked("pod_metadata", node)
        yield from self.pods.get(node, [])

    def condition(self, name: str) -> Object | None:
        """Return the condition that a node has after all patches."""
        patches = [patch for node, patch in self.conditions if node == name]
        return None if not patches or "$patch" in patches[-1] else patches[-1]

    def patch_node_conditions(self, name: str, conditions: list[Object]) -> None:
        self._asked("patch_node_conditions", name)
        self.conditions += [(name, condition) for condition in conditions]

    def review_token(self, token: str, audience: str) -> Object:
        self._asked("review_token", token)
        return self.tokens.get(token, {})

    def close(self) -> None:
        self.closed = True

    def reasons(self) -> list[str]:
        return [str(event["reason"]) for event in self.events.values()]
