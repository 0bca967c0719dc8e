"""Subjects as a finding lists them, with their shares of one metric and how these are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reveal_analyzer.subjects.comparison import Change
from reveal_analyzer.subjects.directory import Directory, SubjectKey
from reveal_analyzer.subjects.subject_kind import kind_of
from reveal_contract.finding import Confidence, Pod, Subject


@dataclass(frozen=True)
class NamedSubjects:
    """Subjects as a finding lists them: pods, and all others; shares are of ``metric``.

    ``foremost`` is the subject that explains most, whichever list it is in.
    ``undecided``: nobody is named yet, because the case is too young to tell.
    """

    pods: tuple[Pod, ...] = ()
    subjects: tuple[Subject, ...] = ()
    metric: str = ""
    foremost: SubjectKey | None = None
    first: str = ""  # the name of the foremost culprit; empty if there is none
    undecided: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Pods by namespace and name, then the others."""
        pods = (f"{pod.namespace}/{pod.name}" for pod in self.pods)
        return tuple(dict.fromkeys((*pods, *(subject.name for subject in self.subjects))))

    @property
    def identities(self) -> tuple[object, ...]:
        """What a reader of the finding acts on: the foremost culprit, and which pods there are."""
        pods = tuple((pod.namespace, pod.name, pod.uid) for pod in self.pods)
        return self.first, pods[:1], frozenset(pods), self.undecided

    @property
    def culprits(self) -> tuple[str, ...]:
        """The names of those that explain the finding, not only share its node."""
        return self.names if self.first else ()


def named_subjects(
    metric: str, known: Iterable[tuple[Change, Confidence]], directory: Directory
) -> NamedSubjects:
    """Return these subjects, most first; an identity with a namespace is a pod's."""
    pods, subjects = [], []
    listed = list(known)
    shares = _whole_percents([change.percent for change, _ in listed])
    for (change, confidence), share in zip(listed, shares, strict=True):
        identity = directory.identity(change.key)
        gain = round(change.percent - change.percent_before)
        if identity is not None and identity.namespace:
            pod = directory.identity(
                directory.key(f"{identity.namespace}/{identity.name}", identity.since_ns)
            )
            uid = pod.uid if pod is not None else identity.uid
            pods.append(Pod(identity.namespace, identity.name, uid, identity.container,
                            share, gain, confidence))  # fmt: skip
        else:
            kind = kind_of(change.key.instance, identity)
            subjects.append(Subject(kind, change.key.instance, share, gain, confidence))
    if not listed:
        return NamedSubjects()
    foremost, confidence = listed[0]
    is_culprit = confidence is not Confidence.CO_LOCATED
    first = foremost.owner if is_culprit else ""
    return NamedSubjects(tuple(pods), tuple(subjects), metric, foremost.key, first)


def _whole_percents(shares: Sequence[float]) -> list[int]:
    """Return whole percents that add up to at most 100, as the shares do."""
    rounded = [round(share) for share in shares]
    return rounded if sum(rounded) <= 100 else [int(share) for share in shares]
