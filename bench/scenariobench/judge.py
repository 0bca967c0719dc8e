"""What became of the truths of a timeline: one answer a column for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scenariobench.findings_file import HeardRow, second_of
from scenariobench.player import Played
from scenariobench.timeline import SETTLE_S, Timeline, Truth
from scenariobench.truth import TrueValues, wrong_values

COLUMNS = (
    "found", "subsystem", "cause", "culprit_opening", "culprit_end", "values", "opened", "resolved",
    "one_report", "one_series", "stated",
)  # fmt: skip
_EARLY_S = 3.0  # a finding may begin so long before the onset: its first second is a whole one
_BEFORE_END_S = 2.0  # and end so long before the end, as its last second is
_NAMED_WRONG_S = 30.0  # what opens so soon may be of the fault, by a wrong name
_TIMED_S = 3  # seconds between two readings of the file up to which they time a row

Answers = dict[str, bool | None]


@dataclass
class Reported:
    """One finding: all its rows, in order."""

    rows: list[HeardRow]
    start_ns: int

    @property
    def id(self) -> str:
        return self.rows[0].id

    @property
    def first(self) -> dict[str, Any]:
        return self.rows[0].row

    @property
    def last(self) -> dict[str, Any]:
        return self.rows[-1].row

    @property
    def began(self) -> float:
        """The onset that the finding states."""
        return second_of(self.first["firstSeenTime"], self.start_ns)

    @property
    def opened(self) -> float:
        """When it was first reported."""
        return self._heard(self.rows[0], "lastSeenTime")

    @property
    def resolved(self) -> float | None:
        """When it was first reported as resolved."""
        row = next((each for each in self.rows if each.resolved), None)
        return None if row is None else self._heard(row, "lastSeenTime")

    @property
    def series(self) -> tuple[int, int]:
        """How often it was opened and resolved: each change of its state counts."""
        states = [each.resolved for each in self.rows]
        turns = [now for before, now in zip([True, *states], states, strict=False) if before != now]
        return turns.count(False), turns.count(True)

    def _heard(self, heard: HeardRow, stated: str) -> float:
        by = heard.by + 1  # a second is known when it is over
        if by - heard.after <= _TIMED_S:
            return float(by)
        return min(max(second_of(heard.row[stated], self.start_ns), heard.after), by)

    @property
    def in_order(self) -> bool:
        """Whether its times are possible: nothing ends before it begins."""
        return all(
            each.row["firstSeenTime"] <= each.row["lastSeenTime"]
            and each.row["firstSeenTime"] <= each.row.get("resolvedTime", "9")
            for each in self.rows
        )


@dataclass
class Judged:
    """The answers for one truth of one timeline.  None: the column does not apply."""

    timeline: str
    truth: str
    answers: Answers
    notes: list[str] = field(default_factory=list)

    @property
    def right(self) -> bool:
        return all(answer is not False for answer in self.answers.values())


@dataclass
class Verdict:
    """One timeline as one checkout reported it; ``false`` are findings that nothing explains."""

    truths: list[Judged]
    false: list[str]
    failure: str = ""  # what the analyzer failed at


def judge(timeline: Timeline, played: Played, values: dict[str, TrueValues]) -> Verdict:
    """Compare what was reported with what was done."""
    reported = _reported(played)
    assigned, others = _assigned(timeline.truths, reported)
    judged = [
        _judged(timeline, truth, assigned[truth.name], values[truth.name])
        for truth in timeline.truths
    ]
    return Verdict(judged, [_sentence(each) for each in others], "; ".join(played.failures))


def _reported(played: Played) -> list[Reported]:
    by_id: dict[str, list[HeardRow]] = {}
    for row in played.rows:
        by_id.setdefault(row.id, []).append(row)
    return [Reported(rows, played.start_ns) for rows in by_id.values()]


def _assigned(
    truths: Sequence[Truth], reported: Sequence[Reported]
) -> tuple[dict[str, list[Reported]], list[Reported]]:
    """Return which findings are of which truth, and those of none."""
    result: dict[str, list[Reported]] = {truth.name: [] for truth in truths}
    others = []
    for finding in sorted(reported, key=lambda each: each.opened):
        candidates = [truth for truth in truths if _may_be(truth, finding)]
        best = max(candidates, key=lambda t: _fit(t, finding, bool(result[t.name])), default=None)
        if best is None or (result[best.name] and not _fits(best, finding)):
            others.append(finding)
        else:
            result[best.name].append(finding)
    return result, others


def _may_be(truth: Truth, finding: Reported) -> bool:
    """Whether a finding opened while the fault was there; a lasting one explains its own only."""
    if not truth.onset - _EARLY_S <= finding.opened <= truth.end + SETTLE_S:
        return False
    return _fits(truth, finding) or finding.opened <= truth.onset + _NAMED_WRONG_S


def _fits(truth: Truth, finding: Reported) -> bool:
    return finding.last["subsystem"] in truth.subsystems or _cause(finding.last) in truth.causes


def _fit(truth: Truth, finding: Reported, matched: bool) -> tuple[bool, bool, bool, bool, float]:
    """Return the sort key of a truth for a finding: by cause, culprit, subsystem, then age."""
    cause = any(_cause(each.row) in truth.causes for each in finding.rows)
    subsystem = any(each.row["subsystem"] in truth.subsystems for each in finding.rows)
    culprit = not truth.culprits or _culprit(finding.first) in truth.culprits
    return cause and culprit, cause, subsystem, not matched, truth.onset


def _judged(
    timeline: Timeline, truth: Truth, findings: Sequence[Reported], values: TrueValues
) -> Judged:
    judged = Judged(timeline.label, truth.name, dict.fromkeys(COLUMNS))
    answers = judged.answers
    answers["found"] = bool(findings)
    if not findings:
        judged.notes.append("nothing was reported")
        return judged
    first, last = findings[0], findings[-1]
    answers["subsystem"] = last.last["subsystem"] in truth.subsystems
    answers["cause"] = _cause(last.last) in truth.causes if truth.causes else None
    if truth.culprits:
        answers["culprit_opening"] = _settled_culprit(first) in truth.culprits
        answers["culprit_end"] = _culprit(last.last) in truth.culprits
    compared, wrong = wrong_values(last.last["evidence"], values)
    answers["values"] = not wrong if compared else None
    # the first second that is all in the fault is the first that can show it
    answers["opened"] = first.opened - math.ceil(truth.onset) <= truth.open_within
    answers["resolved"] = _resolved_in_time(truth, last, timeline.seconds) and all(
        each.in_order for each in findings
    )
    answers["one_report"] = len(findings) in truth.reports
    answers["one_series"] = all(each.series == (1, _ends(truth, timeline)) for each in findings)
    if truth.unobserved:
        answers["stated"] = last.last.get("resolution") == "Unobserved"
    judged.notes += [*_notes(truth, findings, answers), *wrong]
    return judged


def _ends(truth: Truth, timeline: Timeline) -> int:
    """How often the finding should resolve before the timeline is over."""
    return 1 if truth.end + truth.resolve_within <= timeline.seconds else 0


def _resolved_in_time(truth: Truth, finding: Reported, seconds: int) -> bool:
    resolved = finding.resolved
    if not truth.end + truth.resolve_within <= seconds:
        return resolved is None
    if resolved is None:
        return False
    return truth.end - _BEFORE_END_S <= resolved <= truth.end + truth.resolve_within


def _settled_culprit(finding: Reported) -> str:
    """Return who was named first within five seconds of the opening.

    A cgroup that starts with the fault gets its pod's name a moment later.
    """
    early = [each for each in finding.rows if each.by <= finding.opened + 5]
    named = [_culprit(each.row) for each in early or finding.rows[:1]]
    return next((name for name in named if name), "")


def _culprit(row: dict[str, Any]) -> str:
    """Return the name of the pod or subject that comes first."""
    for named in (*row["pods"], *row["subjects"]):
        return str(named["name"])
    return ""


def _cause(row: dict[str, Any]) -> str:
    return str(row["hypothesis"]["name"]) if row["hypothesis"] else ""


def _notes(truth: Truth, findings: Sequence[Reported], answers: Answers) -> list[str]:
    """Return what a person needs to understand each wrong answer."""
    if all(answer is not False for answer in answers.values()):
        return []
    return [
        f"onset {truth.onset:.0f} s, end {truth.end:.0f} s",
        *(_sentence(finding) for finding in findings[:4]),
    ]


def _sentence(finding: Reported) -> str:
    resolved = "" if finding.resolved is None else f", resolved at {finding.resolved:.0f} s"
    cause = _cause(finding.last) or "score"
    culprits = f"{_culprit(finding.first) or '-'} then {_culprit(finding.last) or '-'}"
    return (
        f"{finding.id} at {finding.opened:.0f} s{resolved}: {finding.last['subsystem']} {cause}, "
        f"culprit {culprits}: {finding.last['claim']}"
    )
