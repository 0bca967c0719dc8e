"""When subjects started survives an analyzer: a job that was there is not new again."""

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.live.job_starts import JobStarts
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane, Subsystem
from support.synthetic_node import Node

HOST = (
    Channel("storage.pressure.some", "", Kind.COUNTER, 1e3),
    Channel("storage.disk.queue_time", "vda", Kind.COUNTER, 1e6),
)
OLD, NEW = "/train", "/loader"


def reads(name: str) -> Channel:
    return Channel("storage.subject.read_bytes", name, Kind.COUNTER, 1.0, Lane.SLOW)


def suppressed(starts: JobStarts, seconds: int, *subjects: str) -> set[Subsystem]:
    """What is suppressed in any of some seconds in which all subjects read."""
    node, deriver = Node(ChannelTable(HOST, tuple(map(reads, subjects)))), Deriver()
    busy = {reads(name).label: 4e7 if name == subjects[-1] else 1e5 for name in subjects}
    found: set[Subsystem] = set()
    for _ in range(seconds):
        found |= starts.push(deriver.second(node.slice(busy), node.table))
    return found


def test_only_subjects_that_appeared_meanwhile_are_new() -> None:
    before = JobStarts()
    assert suppressed(before, 20, OLD) == set()
    after = JobStarts()
    after.restore(before.save())
    assert suppressed(after, 5, OLD) == set()
    assert suppressed(after, 5, OLD, NEW) == {Subsystem.STORAGE}


def test_a_young_subject_is_still_young_afterwards() -> None:
    before = JobStarts()
    suppressed(before, 20, OLD)
    assert suppressed(before, 5, OLD, NEW) == {Subsystem.STORAGE}
    after = JobStarts()
    after.restore(before.save())
    assert suppressed(after, 5, OLD, NEW) == {Subsystem.STORAGE}
