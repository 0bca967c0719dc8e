"""The channels that show a finding."""

from __future__ import annotations

from reveal_analyzer.evidence.channels import (
    MOST_CHANNELS,
    MOST_SUBJECTS,
    channels_of,
    named_identities,
    subject_names,
)
from reveal_analyzer.evidence.observed import ObservedChannels
from reveal_contract import ledger
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    Impact,
    JobLoss,
    Pod,
    Subject,
)
from reveal_contract.metric import Kind
from reveal_contract.subjects import Identity, SubjectKind
from support.evidence_samples import finding, slices
from support.ledger_node import ledger_table
from support.synthetic_node import TABLE, WORK

IMPACT = Impact("/job.service", 9.1, 8.0, 10.2, 1716.4, 1572.7, 0, 30, "cpu.subject.usage", 88)


def chosen(
    of: Finding, table: ChannelTable = TABLE, identities: tuple[Identity, ...] = ()
) -> list[tuple[str, str]]:
    observed = ObservedChannels.of(slices(110, table)[40:], table)
    return list(channels_of(of, observed, identities))


def named(**other: object) -> Finding:
    return finding(subjects=(Subject("Unit", WORK, 50, 40, Confidence.MEASURED),), **other)


def test_evidence_comes_first_and_what_else_moved_in_the_subsystem_after_the_subjects() -> None:
    names = chosen(named(share_metric="cpu.subject.usage"))
    assert names[0] == ("cpu.pressure.some", "")
    assert names.index(("cpu.subject.usage", WORK)) < names.index(("cpu.procs_running", ""))
    assert ("memory.mem_available", "") not in names


def test_computed_evidence_is_kept_as_what_it_is_computed_from() -> None:
    for feature in ("mean", "peers"):
        busy = Evidence("cpu.busy", feature, "", "3", "1", "cores", "up")
        assert chosen(finding(evidence=(busy,)))[0] == ("cpu.user", "")


def test_evidence_folded_over_subjects_is_kept_as_those_that_moved_most() -> None:
    sums = Evidence("cpu.subject.usage", "sum_values", "", "3e9", "1e9", "ns/s", "up")
    table = ledger_table(tuple(f"/{number}.service" for number in range(20)))
    names = chosen(finding(evidence=(sums,)), table)
    assert 1 <= sum(metric == "cpu.subject.usage" for metric, _ in names) <= 5


def test_a_pod_is_found_by_its_name_and_by_the_instance_of_its_container() -> None:
    pod = Pod("a", "b", "u", "c", 50, 40, Confidence.MEASURED)
    identity = Identity("/kubepods/x", SubjectKind.CONTAINER, "1", "a", "b", "c")
    other = Identity("/other", SubjectKind.UNIT)
    table = ChannelTable(
        (*TABLE.fast, *(Channel("cpu.subject.usage", name, Kind.COUNTER)
                        for name in ("/kubepods/x", "a/b", "/other"))), TABLE.slow,
    )  # fmt: skip
    of = finding(pods=(pod,), evidence=())
    names = chosen(of, table, (identity, other))
    found = {instance for metric, instance in names if metric == "cpu.subject.usage"}
    assert found == {"/kubepods/x", "a/b"}
    assert named_identities(of, (identity, other)) == [identity]


def test_the_ledger_of_named_subjects_is_kept_with_what_they_took_from_each_other() -> None:
    table = ledger_table((WORK, "/noisy.service", "/calm.service"))
    of = named(lost_time=(JobLoss("/noisy.service", 30.0, 60),))
    names = chosen(of, table)
    parts = {metric for metric, instance in names if instance == "/noisy.service"}
    assert parts >= {*ledger.PARTS, ledger.THREAD_TIME}
    pairs = {instance for metric, instance in names if metric == ledger.LOST_CPU}
    assert pairs == {f"{WORK}</noisy.service", f"/noisy.service<{WORK}"}


def test_the_clock_of_the_slowed_job_is_kept_finely() -> None:
    fine = [
        Channel("cpu.subject.usage.fine", f"{name}#{number}", Kind.GAUGE)
        for name in (WORK, "/job.service")
        for number in range(1, 6)
    ]
    usage = Channel("cpu.subject.usage", "/job.service", Kind.COUNTER)
    table = ChannelTable((*TABLE.fast, *fine, usage), TABLE.slow)
    jobs = lambda names: {i.partition("#")[0] for m, i in names if m.endswith(".fine")}  # noqa: E731
    assert jobs(chosen(finding(impact=IMPACT), table)) == {"/job.service"}
    assert jobs(chosen(finding(), table)) == {WORK}  # the busiest, if none is named


def test_channels_and_subjects_are_bounded() -> None:
    names = tuple(f"/{number}.service" for number in range(40))
    of = finding(victims=names)
    assert len(subject_names(of)) == MOST_SUBJECTS
    assert len(chosen(of, ledger_table(names))) <= MOST_CHANNELS


def test_a_formula_over_all_subjects_leaves_room_for_the_ledger() -> None:
    names = tuple(f"/{number}.service" for number in range(60))
    stalled = Evidence("cpu.stalled_subjects", "mean", "", "9", "0", "1", "up")
    table = ledger_table(names[:1])
    added = [
        Channel(metric, name, kind)
        for name in names[1:]
        for metric, kind in (
            ("cpu.subject.usage", Kind.COUNTER),
            ("cpu.subject.tasks", Kind.GAUGE),
            ("memory.subject.anon", Kind.GAUGE),
        )
    ]
    table = ChannelTable((*table.fast, *added), table.slow)
    found = chosen(finding(evidence=(stalled,), victims=names[:1]), table)
    assert len([name for name in found if name[1] in names]) < len(names)
    assert (ledger.RUN, names[0]) in found
