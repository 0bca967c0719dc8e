"""Announced subjects stay known for a while after a collector stops listing them."""

from __future__ import annotations

from reveal_analyzer.subjects.directory import KEPT_S, KnownSubjects
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND


def pod(name: str, uid: str = "1", until_s: int = 0) -> Identity:
    until_ns = until_s * NS_PER_SECOND
    return Identity(f"ml/{name}", SubjectKind.POD, uid, "ml", name, until_ns=until_ns)


def current(subjects: KnownSubjects, second: int) -> list[Identity]:
    return list(subjects.current(second * NS_PER_SECOND))


def test_an_unannounced_subject_is_not_known() -> None:
    announced = [pod("gone")]
    subjects = KnownSubjects(lambda: announced)
    announced[:] = [pod("here")]
    assert current(subjects, 100) == [pod("here")]


def test_a_restarted_collector_removes_no_subject() -> None:
    announced = [pod("gone"), pod("here")]
    subjects = KnownSubjects(lambda: announced)
    current(subjects, 100)
    announced[:] = [pod("here")]
    assert current(subjects, 110) == [pod("gone", until_s=110), pod("here")]
    assert current(subjects, 110 + KEPT_S - 1) == [pod("gone", until_s=110), pod("here")]
    assert current(subjects, 110 + KEPT_S) == [pod("here")]


def test_a_subject_that_is_announced_again_has_not_ended() -> None:
    announced = [pod("job")]
    subjects = KnownSubjects(lambda: announced)
    current(subjects, 100)
    announced.clear()
    current(subjects, 110)
    announced[:] = [pod("job"), pod("job", "2")]
    assert current(subjects, 120) == [pod("job"), pod("job", "2")]


def test_an_announced_end_time_is_kept() -> None:
    announced = [pod("done", until_s=90)]
    subjects = KnownSubjects(lambda: announced)
    current(subjects, 100)
    announced.clear()
    assert current(subjects, 110) == [pod("done", until_s=90)]
