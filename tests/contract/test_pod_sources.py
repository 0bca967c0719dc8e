"""From where collectors know pods: from the field of a profile to the source that is opened."""

from __future__ import annotations

from reveal_collector import registry
from reveal_collector.subjects.pods.api import ApiPods
from reveal_collector.subjects.pods.log_folders import LogFolderPods
from reveal_collector.subjects.pods.podlist import PodSource
from reveal_operator.settings import analyzer_settings, collector_settings
from reveal_operator.spec import parse
from support.profile_factory import profile


def source_of(**fields: str) -> PodSource:
    given = parse(profile({"collector": fields}))
    return registry.pod_source(collector_settings(given, "n", "redis://r"))


def test_pods_are_known_from_where_the_profile_has_it() -> None:
    assert isinstance(source_of(), ApiPods)
    by_logs = source_of(podSource="Logs")
    assert isinstance(by_logs, LogFolderPods)
    by_logs.poll()
    assert "/host/var/log/pods" in by_logs.health_error


def test_analyzers_add_controllers_where_collectors_do_not_know_them() -> None:
    for source, joined in (("API", False), ("Logs", True)):
        given = parse(profile({"collector": {"podSource": source}}))
        assert analyzer_settings(given, "redis://r").join_pods is joined
