"""Which reports are about a pod, a job or a node: pure.

A report has the names of pods and not of their controllers.  A job is the name of its pods without
the part that the controller generates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract.finding import Finding, Pod, Subject
from reveal_contract.foreign_names import printable

# what controllers append to their name: apimachinery/pkg/util/rand uses these characters
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
_GENERATED = re.compile(
    rf"(?:-{_RANDOM}{{6,10}}-{_RANDOM}{{5}}"  # of a Deployment: its ReplicaSet, the pod
    rf"|(?:-\d+)*-{_RANDOM}{{5}}"  # of a Job, with an index or without
    r"|(?:-\d+)+)\Z",  # of a StatefulSet, also of one in groups
    re.ASCII,
)
_SIMILAR = 3  # names that an error suggests at most


def job_of(subject: str) -> str:
    """Return the job of a pod (``namespace/name``); any other subject is a job by itself."""
    if not is_pod(subject):
        return subject
    namespace, _, name = subject.partition("/")
    return f"{namespace}/{_GENERATED.sub('', name)}"


def is_pod(subject: str) -> bool:
    """Whether the name of a subject is that of a pod, and not a path or the name of a unit."""
    namespace, separator, name = subject.partition("/")
    return bool(namespace and separator and name) and "/" not in name


def affected_job(finding: Finding) -> str:
    """Return the job that suffers most, else the one that causes it; "" if there is neither."""
    if finding.impact is not None:
        return job_of(finding.impact.subject)
    suffering = [loss.subject for loss in finding.lost_time] + list(finding.victims)
    foremost = finding.foremost
    causing = [] if foremost is None else [subject_name(foremost)]
    return next(map(job_of, [*suffering, *causing, *present_subjects(finding)]), "")


def present_subjects(finding: Finding) -> list[str]:
    """Return the names of the pods and other subjects of a finding: pods first."""
    known: list[Pod | Subject] = [*finding.pods, *finding.subjects]
    return list(map(subject_name, known))


def subject_name(subject: Pod | Subject) -> str:
    """Return ``namespace/name`` of a pod, the name of another subject."""
    return f"{subject.namespace}/{subject.name}" if isinstance(subject, Pod) else subject.name


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
