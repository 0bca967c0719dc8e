"""The kind of a subject, as its collector announced it, or else by its name."""

from __future__ import annotations

from reveal_analyzer.subjects.job_name import has_process_id
from reveal_contract.subjects import Identity, SubjectKind

PROCESS_GROUP = "ProcessGroup"
_UNITS = (".service", ".scope", ".slice")  # of systemd


def kind_of(instance: str, identity: Identity | None) -> str:
    """Return the kind of a subject; ``identity`` is None where it was not announced."""
    if identity is not None:
        return identity.kind.value
    if has_process_id(instance):
        return PROCESS_GROUP
    return SubjectKind.UNIT.value if instance.endswith(_UNITS) else SubjectKind.CGROUP.value
