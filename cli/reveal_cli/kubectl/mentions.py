"""Which reports are about a pod, a job or a node: pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from reveal_cli.jobs import is_pod, job_of, present_subjects
from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract.finding import Finding
from reveal_contract.foreign_names import printable

_SIMILAR = 3  # names that an error suggests at most


def subjects(finding: Finding) -> frozenset[str]:
    """Return the names of all subjects that a finding mentions."""
    names = present_subjects(finding)
    names += [*finding.victims, *(loss.subject for loss in finding.lost_time)]
    names += [finding.impact.subject] if finding.impact else []
    return frozenset(filter(None, names))


def is_about(item: ClusterReport, name: str, namespace: str = "") -> bool:
    """Whether a report mentions the pod, job, subject or node ``name``, or has that name.

    With ``namespace`` only pods and jobs of it count.
    """
    found = subjects(item.finding)
    if namespace:
        return any(_is_named(each, name, namespace) for each in found)
    of_cluster = name in (item.report.node, item.name)
    return of_cluster or any(_is_named(each, name, "") for each in found)


def _is_named(subject: str, name: str, namespace: str) -> bool:
    if not is_pod(subject):
        return subject == name and not namespace
    of_pod, _, _ = subject.partition("/")
    if namespace and namespace != of_pod:
        return False
    return name in _spellings(subject)


def _spellings(subject: str) -> set[str]:
    """Return how a user may write a pod or its job, with the namespace and without."""
    whole = {subject, job_of(subject)}
    return whole | {each.partition("/")[2] for each in whole}


def known_names(items: Iterable[ClusterReport], namespace: str = "") -> Iterator[str]:
    """Yield the names by which the reports can be found; of one namespace, if it is given."""
    for item in items:
        if not namespace:
            yield item.report.node
        for subject in subjects(item.finding):
            if is_pod(subject) and namespace in ("", subject.partition("/")[0]):
                yield from _spellings(subject)
            elif not namespace:
                yield subject


def near(name: str, known: Iterable[str]) -> str:
    """Return a question for an error, with the names most like ``name``; "" without any."""
    names = sorted(set(known))
    similar = get_close_matches(name, names, _SIMILAR)
    containing = [each for each in names if name and name in each and each not in similar]
    found = [*similar, *containing][:_SIMILAR]
    return f": did you mean {' or '.join(map(printable, found))}?" if found else ""
