"""Which channels show a finding: pure.

In the order of their importance: what its evidence was computed from, the shares and step times of
its subjects, what else moved most in its subsystem, and the ledger of its subjects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.evidence.excerpt import ChannelName
from reveal_analyzer.evidence.observed import ObservedChannels
from reveal_analyzer.heartbeat.series import FINE, USAGE
from reveal_contract import catalogue, ledger
from reveal_contract.channels import Channel
from reveal_contract.finding import Evidence, Finding
from reveal_contract.metric import Scope, Subsystem
from reveal_contract.subjects import Identity

MOST_CHANNELS = 128
MOST_SUBJECTS = 6
MOST_CULPRITS = 3  # before those that suffer
MOST_JOBS = 2  # whose step times are kept: each takes six channels of ten samples a second
MOST_MEMBERS = 4  # of a sum over subjects, or of the largest of all CPUs
MOST_INPUTS = 16  # of a formula: one over all subjects must leave room for what follows
LOUDEST = 8
_LEDGER = (*ledger.PARTS, ledger.THREAD_TIME)
_OF_SUBJECT = (USAGE, "cpu.subject.throttled_time", "cpu.subject.pressure")
_JOB_METRICS = (FINE, USAGE)


def channels_of(
    finding: Finding, observed: ObservedChannels, identities: Iterable[Identity]
) -> tuple[ChannelName, ...]:
    """Return the channels that show the finding, at most ``MOST_CHANNELS``."""
    departures = observed.departures(finding.first_observed_ns)
    known = list(identities)
    subjects = _instances(subject_names(finding), known)
    chosen = chain(
        chain.from_iterable(
            _inputs(observed.plan, evidence, departures) for evidence in finding.evidence
        ),
        _of_subjects(observed.channels, subjects, (finding.share_metric, *_OF_SUBJECT)),
        _step_times(observed, _instances(_suffering(finding), known) + subjects),
        _loudest(observed.channels, departures, finding.subsystem),
        _ledger(observed.channels, subjects),
    )
    names = dict.fromkeys(_name(observed.channels[index]) for index in chosen)
    return tuple(names)[:MOST_CHANNELS]


def subject_names(finding: Finding) -> tuple[str, ...]:
    """Return the subjects of a finding: who causes it, then who suffers."""
    causing = [f"{pod.namespace}/{pod.name}" for pod in finding.pods]
    causing += [subject.name for subject in finding.subjects]
    names = dict.fromkeys((*causing[:MOST_CULPRITS], *_suffering(finding), *causing))
    return tuple(names)[:MOST_SUBJECTS]


def _suffering(finding: Finding) -> list[str]:
    impact = [finding.impact.subject] if finding.impact else []
    return [*impact, *finding.victims, *(loss.subject for loss in finding.lost_time)]


def named_identities(finding: Finding, identities: Iterable[Identity]) -> list[Identity]:
    """Return the identities of the finding's subjects."""
    names = set(subject_names(finding))
    return [identity for identity in identities if names & _names(identity)]


def _instances(names: Sequence[str], known: Sequence[Identity]) -> tuple[str, ...]:
    """Return the instances of the channels of these subjects; an unknown name is one itself."""
    found = chain.from_iterable(
        (name, *(each.instance for each in known if name in _names(each))) for name in names
    )
    return tuple(dict.fromkeys(found))


def _names(identity: Identity) -> set[str]:
    return {identity.instance, f"{identity.namespace}/{identity.name}"}


def _inputs(plan: ColumnPlan, evidence: Evidence, departures: Floats) -> Iterator[int]:
    """Yield the channels that an evidence is computed from.

    It need not be a column: the comparison of nodes and the detectors of the paper have features of
    their own, of the same metrics.
    """
    columns = [
        index
        for index in plan.by_metric.get(evidence.metric, ())
        if plan.columns[index].instance == evidence.instance
    ]
    same = [index for index in columns if plan.columns[index].feature == evidence.feature]
    for index in same or columns:
        yield from column_inputs(plan, index, departures)
    for index, channel in enumerate(plan.channels):
        if _name(channel) == (evidence.metric, evidence.instance):
            yield index


def column_inputs(plan: ColumnPlan, column: int, departures: Floats) -> list[int]:
    """Return the channels of a column; of a fold those that moved most."""
    recipe = plan.recipe
    singles = np.concatenate([recipe.copied, recipe.changes])
    if column < singles.size:
        return [int(singles[column])]
    if column < plan.first_derived:
        members = np.split(recipe.folds.channels, recipe.folds.starts[1:])[column - singles.size]
        return _most(members, departures, MOST_MEMBERS)
    columns, channels = plan.derived_inputs
    return _most(channels[columns == column], departures, MOST_INPUTS)


def _of_subjects(
    channels: Sequence[Channel], subjects: Sequence[str], metrics: Sequence[str]
) -> Iterator[int]:
    desired = {(metric, subject) for metric in metrics for subject in subjects}
    return (index for index, channel in enumerate(channels) if _name(channel) in desired)


def _step_times(observed: ObservedChannels, subjects: Sequence[str]) -> Iterator[int]:
    """Yield the CPU clocks that step times are read from, of the first subjects that have some.

    If no subject of the finding has a fine clock, those of the busiest subject show what the work
    of the node did.
    """
    fine = {
        channel.instance.rpartition("#")[0]
        for channel in observed.channels
        if channel.metric == FINE
    }
    named = [subject for subject in dict.fromkeys(subjects) if subject in fine]
    jobs = named[:MOST_JOBS] or _busiest(observed, fine)
    for index, channel in enumerate(observed.channels):
        name = channel.instance.rpartition("#")[0] if channel.metric == FINE else channel.instance
        if channel.metric in _JOB_METRICS and name in jobs:
            yield index


def _busiest(observed: ObservedChannels, subjects: set[str]) -> list[str]:
    clocks = [
        index
        for index, channel in enumerate(observed.channels)
        if channel.metric == USAGE and channel.instance in subjects
    ]
    busiest = _most(np.array(clocks, np.intp), observed.means(), 1)
    return [observed.channels[index].instance for index in busiest]


def _loudest(channels: Sequence[Channel], departures: Floats, subsystem: Subsystem) -> list[int]:
    """Return the channels of a subsystem that moved most; those of subjects have their own rule."""
    own = [index for index, channel in enumerate(channels) if _is_of(channel, subsystem)]
    moved = [index for index in own if departures[index] > 1.0]
    return _most(np.array(moved, np.intp), departures, LOUDEST)


def _is_of(channel: Channel, subsystem: Subsystem) -> bool:
    try:
        metric = catalogue.find(channel.metric)
    except catalogue.UnknownMetricError:  # of a newer collector
        return False
    return metric.subsystem is subsystem and metric.scope not in (Scope.SUBJECT, Scope.PAIR)


def _ledger(channels: Sequence[Channel], subjects: Sequence[str]) -> Iterator[int]:
    """Yield the parts of the time of these subjects, and who of them took time from whom."""
    yield from _of_subjects(channels, subjects, _LEDGER)
    for index, channel in enumerate(channels):
        if channel.metric == ledger.TIER or _is_pair_of(channel, subjects):
            yield index


def _is_pair_of(channel: Channel, subjects: Sequence[str]) -> bool:
    """Return whether a channel has what one of these subjects lost to another of them."""
    return channel.metric in ledger.PAIRS and set(ledger.pair_of(channel.instance)) <= {*subjects}


def _most(indices: Indices, amounts: Floats, count: int) -> list[int]:
    """Return the indices with the largest amounts, the largest first."""
    order = np.argsort(-amounts[indices], kind="stable")
    return [int(index) for index in indices[order][:count]]


def _name(channel: Channel) -> ChannelName:
    return channel.metric, channel.instance
