"""The jobs that a finding is about, by the names of their pods: pure.

A finding has the names of pods and not of their controllers.  A job is the name of its pods without
the part that the controller generates.
"""

from __future__ import annotations

import re

from reveal_contract.finding import Finding, Pod, Subject

# what controllers append to their name: apimachinery/pkg/util/rand uses these characters
_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]"
_GENERATED = re.compile(
    rf"(?:-{_RANDOM}{{6,10}}-{_RANDOM}{{5}}"  # of a Deployment: its ReplicaSet, the pod
    rf"|(?:-\d+)*-{_RANDOM}{{5}}"  # of a Job, with an index or without
    r"|(?:-\d+)+)\Z",  # of a StatefulSet, also of one in groups
    re.ASCII,
)


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
