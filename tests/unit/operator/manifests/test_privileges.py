"""The table of privileges, the security contexts built from it, and its page."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given

from reveal_contract import catalogue
from reveal_contract.sources import NAMES, WITH_PERF_CGROUPS
from reveal_operator.manifests.privileges import NEEDS, NeedKind, needs_of, sources_of
from reveal_operator.manifests.privileges_page import page
from reveal_operator.profile import WITHHELD, WITHHELD_SOURCES, CollectorSpec, SourcesSpec
from reveal_operator.settings import collector_settings
from reveal_operator.spec import SpecError, parse
from support.profile_factory import ANY_SOURCES, ROOT, built, container, profile
from support.property_tests import examples

PAGE = ROOT / "docs/reference/privileges.md"
# capabilities(7); a capability without a row must be in no manifest
HARMLESS = {"PERFMON", "BPF", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_NICE", "NET_BIND_SERVICE"}


def context(**collector: Any) -> dict[str, Any]:
    found: dict[str, Any] = container(built({"collector": collector})["DaemonSet"])[
        "securityContext"
    ]
    return found


def test_the_page_is_current() -> None:
    rendered = page().splitlines()
    assert rendered == PAGE.read_text().splitlines(), "run `make docs`"


def test_every_row_gives_its_reason_and_names_sources_there_are() -> None:
    for need in NEEDS:
        assert need.why
        assert need.lost
        assert set(need.sources) <= set(NAMES)
        assert len(set(need.sources)) == len(need.sources)
    assert len({(need.kind, need.what) for need in NEEDS}) == len(NEEDS)


def test_what_is_lost_whole_has_metrics_to_lose() -> None:
    known = {row.source for row in catalogue.rows()}
    lost = {source for need in NEEDS if need.kind is NeedKind.CAPABILITY for source in need.gone}
    assert lost <= known


def test_privileged_is_privileged() -> None:
    given = context()
    assert given["privileged"] is True
    assert given["seccompProfile"] == {"type": "Unconfined"}
    assert "capabilities" not in given


def test_capabilities_are_those_of_the_table_and_no_other() -> None:
    given = context(privilege="Capabilities")
    assert given["privileged"] is False
    assert given["allowPrivilegeEscalation"] is False
    assert given["capabilities"] == {
        "drop": ["ALL"],
        "add": ["PERFMON", "BPF", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_NICE"],
    }
    assert given["appArmorProfile"] == {"type": "Unconfined"}
    assert given["seLinuxOptions"] == {"type": "spc_t"}


def test_restricted_withholds_what_leads_to_the_files_and_the_kernel_of_the_host() -> None:
    given = context(privilege="Restricted")
    assert given["capabilities"] == {"drop": ["ALL"], "add": ["SYS_NICE"]}
    assert given["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"appArmorProfile", "seLinuxOptions"} & given.keys()
    gone = {source for need in NEEDS if need.what in WITHHELD for source in need.gone}
    assert gone == set(WITHHELD_SOURCES)
    for perf_cgroups in (False, True):
        spec = {"privilege": "Restricted", "perfCgroups": perf_cgroups}
        settings = collector_settings(parse(profile({"collector": spec})), "n", "redis://r")
        # the collector refuses names of sources that it does not have
        absent = set() if perf_cgroups else set(WITH_PERF_CGROUPS)
        assert set(settings.exclude) == set(WITHHELD_SOURCES) - absent
    assert {need.what for need in NEEDS} >= set(WITHHELD)


def test_a_source_that_needs_a_withheld_right_is_refused_by_name() -> None:
    spec = {"privilege": "Restricted", "sources": {"include": ["stat", "filesystems"]}}
    with pytest.raises(SpecError, match="include: filesystems needs collector"):
        parse(profile({"collector": spec}))


@pytest.mark.parametrize(("port", "asked"), [(0, False), (917, True), (1024, False)])
def test_a_low_port_takes_a_capability(port: int, asked: bool) -> None:
    given = context(privilege="Capabilities", metricsPort=port)
    assert ("NET_BIND_SERVICE" in given["capabilities"]["add"]) == asked


def test_pods_by_the_folders_of_their_logs_need_two_mounts_and_no_token_of_the_api() -> None:
    by_logs, by_api = (
        built({"collector": {"podSource": source}})["DaemonSet"] for source in ("Logs", "API")
    )
    given, by_default = (each["spec"]["template"]["spec"] for each in (by_logs, by_api))
    assert (given["automountServiceAccountToken"], by_default["automountServiceAccountToken"]) == (
        False, True,
    )  # fmt: skip
    mounts, without = (
        {each["mountPath"]: each for each in container(daemon_set)["volumeMounts"]}
        for daemon_set in (by_logs, by_api)
    )
    assert mounts.keys() - without.keys() == {"/host/var/log/pods", "/host/var/log/containers"}
    assert mounts["/host/var/log/pods"]["readOnly"] is True


def test_excluded_sources_need_no_privileges() -> None:
    given = context(privilege="Capabilities", sources={"include": ["stat", "psi"]})
    assert given["capabilities"]["add"] == ["SYS_NICE"]
    assert given["seccompProfile"] == {"type": "RuntimeDefault"}
    assert "appArmorProfile" not in given
    assert "seLinuxOptions" not in given
    daemon_set = built({"collector": {"sources": {"include": ["stat"]}}})["DaemonSet"]
    pod = daemon_set["spec"]["template"]["spec"]
    # the facts of a node (rings of cards, users of GPUs) need them whatever is sampled
    assert (pod["hostPID"], pod["hostNetwork"]) == (True, True)
    assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert not [each for each in container(daemon_set)["env"] if each["name"].startswith("NVIDIA")]


def test_the_example_of_least_privilege_has_only_its_stated_privileges() -> None:
    (given,) = yaml.safe_load_all((ROOT / "examples/least-privilege.yaml").read_text())
    result = context(**given["spec"]["collector"])
    assert result["capabilities"]["add"] == ["SYS_PTRACE", "DAC_READ_SEARCH", "SYS_NICE"]
    assert result["seccompProfile"] == {"type": "RuntimeDefault"}


def test_an_included_source_adds_its_privileges() -> None:
    for source, capability in (
        ("tracepoints", "PERFMON"),
        ("ledger", "PERFMON"),
        ("ledger", "BPF"),
        ("subject-network", "SYS_PTRACE"),
        ("filesystems", "DAC_READ_SEARCH"),
    ):
        given = context(privilege="Capabilities", sources={"include": ["stat", source]})
        assert capability in given["capabilities"]["add"]
    with_gpus = built({"collector": {"sources": {"include": ["nvml"]}}})["DaemonSet"]
    variables = {each["name"]: each.get("value") for each in container(with_gpus)["env"]}
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert variables["NVIDIA_DRIVER_CAPABILITIES"] == "utility"


@given(ANY_SOURCES, ANY_SOURCES)
@examples(100)
def test_more_sources_never_need_less(some: list[str], more: list[str]) -> None:
    few = CollectorSpec(sources=SourcesSpec(include=tuple(some or ["stat"])), perf_cgroups=True)
    many = CollectorSpec(
        sources=SourcesSpec(include=(*(some or ["stat"]), *more)), perf_cgroups=True
    )
    assert sources_of(few) <= sources_of(many)
    assert set(needs_of(few)) <= set(needs_of(many))
    assert set(needs_of(many)) <= set(needs_of(CollectorSpec(perf_cgroups=True)))
    assert {each.what for each in NEEDS if each.kind is NeedKind.CAPABILITY} == HARMLESS


def test_an_older_api_server_gets_apparmor_as_an_annotation() -> None:
    daemon_set = built({"collector": {"privilege": "Capabilities"}}, kubernetes_minor=29)[
        "DaemonSet"
    ]
    annotations = daemon_set["spec"]["template"]["metadata"]["annotations"]
    assert annotations["container.apparmor.security.beta.kubernetes.io/collector"] == "unconfined"
    assert "appArmorProfile" not in container(daemon_set)["securityContext"]
