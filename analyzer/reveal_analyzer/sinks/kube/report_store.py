"""All reports an analyzer speaks of: what is wanted, what the API has, what is due.

No I/O and no clock: ``now_s`` is monotonic, ``now_ns`` since the epoch.  A report is written when
its state, severity, subsystem, cause or pods change, else every five minutes while it is open.

What the API lists as open is compared with what is found here.  A report whose finding nobody is
behind any more (its analyzer was restarted, its node taken over or gone) is taken on by a like
finding that opens on the same node, or resolved after ``ORPHANED_S`` in which it would have been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reveal_analyzer.sinks.kube import event_policy, summary
from reveal_analyzer.sinks.kube.entry import Admission, Entry, Said
from reveal_analyzer.telemetry.snapshot import Situation
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity, State
from reveal_contract.kube import events
from reveal_contract.kube.anomaly_report import Report, report
from reveal_contract.kube.report_parser import parse_report
from reveal_contract.runtime.token_bucket import TokenBucket
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_MINUTE

MAX_ENTRIES = 10_000
REFRESH_S = 300.0
REFRESH_SETTING_S = 3600.0  # a setting stays as it is for months
REFRESH_SUMMARY_S = 60.0
ORPHANED_S = 60.0  # nobody is behind it though its node is learned: detection takes ten seconds
ABANDONED_S = 300.0  # nor is its node heard; and across nodes minutes are compared
SILENT_S = 900.0  # its node sends nothing
RETOLD_NS = 15 * NS_PER_MINUTE  # shorter than the hour for which the API keeps an Event
RESERVE = 5  # one in so many of a minute's reports is kept for what is High or Critical
CALM = 2  # and one in so many for what is new, before what was too much is told one by one

_ORPHANED = "nobody follows it any more: its analyzer began anew and has not seen it since"
_SILENT = f"its node has sent nothing for {SILENT_S / 60:.0f} minutes: nobody can say more of it"
_ALL_TOLD = "all of them are resolved, or reported one by one"


@dataclass(frozen=True)
class Listed:
    """A report as the API has it; ``whole`` where its status and its labels agree."""

    report: Report
    labels: Mapping[str, str]
    whole: bool

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Listed | None:
        """None for what is no report of ours at all."""
        made = parse_report(found)
        if made is None:
            return None
        labels = dict(found["metadata"].get("labels") or {})
        agree = all(labels.get(key) == value for key, value in made.labels().items())
        return cls(made, labels, agree and bool(found.get("status")))


class Ledger:
    """Not for several threads at once."""

    def __init__(self, settings: AnalyzerSettings) -> None:
        self.counts: Counter[str] = Counter()
        self._profile, self._stride = settings.profile, settings.stride_seconds
        self._events, self._limit = settings.events, settings.reports_per_minute
        self._least = Severity(settings.min_severity).rank
        self._bucket = TokenBucket(self._limit, 60.0 / self._limit)
        self._entries: dict[str, Entry] = {}
        self._names: dict[str, str] = {}  # of reports, by the ids of findings
        self._summary: tuple[str, int] | None = None  # its name, and when it began
        self._known = False
        self._connected_s: float | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def change(self, update: FindingUpdate, now_s: float) -> None:
        """What became of a finding."""
        finding = update.finding
        if update.change is FindingChange.SUSPECTED:
            return
        entry = self._entries.get(self._names.get(finding.id, ""))
        if entry is None:
            self._first(finding, now_s)
            return
        made = report(finding, self._profile, 0, self._stride)
        said = event_policy.changed(finding, entry.worst, was_open=entry.report.open)
        grew = finding.severity.rank > entry.worst.rank
        entry.report = made.continuing(entry.report)
        entry.changed_s, entry.followed, entry.unheld_s = now_s, True, None
        entry.worst = max(entry.worst, finding.severity, key=lambda one: one.rank)
        if entry.admission is not Admission.SUMMED:
            self._say(entry, said)
            self._blame(entry, finding)
        elif grew and entry.high:
            entry.admission = Admission.WAITING
            entry.events.clear()
            self._open(entry, finding)

    def restore(self, entries: Iterable[Entry]) -> None:
        """What an earlier run could not deliver."""
        for entry in entries:
            self._add(entry)

    def listed(self, found: Iterable[Listed], now_s: float) -> None:
        """All that the API has as open; what we took for open and is not there is gone."""
        by_name = {one.report.name: one for one in found}
        for name, entry in list(self._entries.items()):
            if name not in by_name and entry.told is not None and entry.report.open:
                entry.told = None
                if entry.changed_s is None or entry.unheld_s is not None:
                    self._drop(entry)
        for name, one in by_name.items():
            self._take_listed(self._entries.get(name), one, now_s)
        self._known = True

    def forget_listed(self) -> None:
        """Others may have written meanwhile: nothing is decided before the API is asked again."""
        self._known = False

    def follow(self, situation: Situation, now_ns: int) -> None:
        """Who is behind what is open; resolve what nobody is behind."""
        if not situation.connected:
            self._connected_s = None
        elif self._connected_s is None:
            self._connected_s = situation.at_s
        for entry in self:
            if entry.report.open and entry.report.name != (self._summary or ("",))[0]:
                self._judge(entry, situation, now_ns)

    def admit(self, now_s: float, now_ns: int) -> None:
        """Decide on what waits, once it is known what the API has."""
        if not self._known:
            return
        waiting = [one for one in self if one.admission is Admission.WAITING]
        orphans = self._orphans() if waiting else {}
        for entry in sorted(waiting, key=lambda one: -one.report.severity.rank):
            self._admit(entry, orphans, now_ns)
        self._sum_up(now_s, now_ns)

    def due(self, now_s: float, now_ns: int) -> list[Entry]:
        """What is to be written now, the most severe first."""
        if not self._known:
            return []
        found = []
        for entry in self._entries.values():
            if entry.admission is not Admission.ADMITTED or now_s < entry.again_s:
                continue
            if not entry.dirty:
                if not self._stale(entry, now_s):
                    continue
                entry.report = entry.report.refreshed(now_ns, self._stride)
            found.append(entry)
        return sorted(found, key=lambda one: -one.report.severity.rank)

    def delivered(self, entry: Entry, written: Report, now_s: float) -> None:
        """``written`` is what the API has now; the finding may have moved on meanwhile."""
        entry.told, entry.told_s, entry.tries = written.core, now_s, 0
        if not entry.report.open and not entry.dirty:
            self._drop(entry)

    def refused(self, entry: Entry) -> None:
        """The API will never take it."""
        self._drop(entry)

    def pending(self) -> list[Entry]:
        """What has not been delivered."""
        return [one for one in self if one.dirty and one.admission is not Admission.SUMMED]

    def alarmed(self) -> dict[str, list[Report]]:
        """By node, what is open there for a person to look at now."""
        found: dict[str, list[Report]] = {}
        for entry in self._entries.values():
            if entry.high and entry.admission is Admission.ADMITTED:
                found.setdefault(entry.report.node, []).append(entry.report)
        return found

    def _first(self, finding: Finding, now_s: float) -> None:
        resolved = finding.state is State.RESOLVED
        if finding.severity.rank < self._least and not resolved:
            return
        made = report(finding, self._profile, 0, self._stride)
        entry = Entry(finding.id, made, finding.severity, changed_s=now_s)
        entry.followed = entry.fresh = not resolved
        if self._add(entry) and not resolved:
            self._open(entry, finding)

    def _add(self, entry: Entry) -> bool:
        if len(self._entries) >= MAX_ENTRIES:
            self.counts["dropped"] += 1
            return False
        self._entries[entry.report.name] = entry
        self._names[entry.finding] = entry.report.name
        return True

    def _drop(self, entry: Entry) -> None:
        name = entry.report.name
        if self._entries.get(name) is entry:
            del self._entries[name]
        if self._names.get(entry.finding) == name:
            del self._names[entry.finding]

    def _say(self, entry: Entry, said: list[Said]) -> None:
        if self._events:
            entry.events += said

    def _open(self, entry: Entry, finding: Finding) -> None:
        self._say(entry, event_policy.opened(finding))
        entry.blamed = event_policy.culprit(finding) is not None

    def _blame(self, entry: Entry, finding: Finding) -> None:
        """A pod that is known only after the opening hears of it, too; one pod does."""
        if entry.blamed or not entry.report.open:
            return
        said = event_policy.of_culprit(finding)
        entry.blamed = bool(said)
        self._say(entry, said)

    def _take_listed(self, entry: Entry | None, one: Listed, now_s: float) -> None:
        told = one.report.core if one.whole else ()
        if entry is None:
            identity = one.report.identity.finding_id
            entry = Entry(identity, one.report, one.report.severity, Admission.ADMITTED)
            entry.blamed = True
            entry.told, entry.told_s, entry.labels = told, now_s, dict(one.labels)
            self._add(entry)
        elif entry.told is None:
            self._continue(entry, Entry(entry.finding, one.report, one.report.severity, told=told))
            entry.labels, entry.told_s = dict(one.labels), now_s

    def _continue(self, entry: Entry, other: Entry) -> None:
        """What is found here is what ``other`` told of: its report goes on.

        Whoever began it may have died before its opening was told: a young one's is told again,
        and the API knows an Event that it has.
        """
        entry.report = entry.report.continuing(other.report)
        entry.told, entry.told_s, entry.labels = other.told, other.told_s, other.labels
        entry.worst = max(entry.worst, other.worst, key=lambda one: one.rank)
        entry.admission = Admission.ADMITTED
        if entry.changed_s is None or entry.report.age_ns < RETOLD_NS:
            return  # of an earlier run is what it had to say still to be said, under the same name
        entry.blamed = True
        entry.events = [
            one for one in entry.events if not isinstance(one, Said) or not one.reason.once
        ]

    def _judge(self, entry: Entry, situation: Situation, now_ns: int) -> None:
        held = self._held(entry, situation)
        entry.followed = held and situation.connected
        if held:
            entry.unheld_s = None
            return
        ours = situation.leads if entry.report.cross_node else situation.follows(entry.report.node)
        waits = entry.dirty and entry.admission is not Admission.SUMMED
        if not ours and situation.connected and not waits:
            self._drop(entry)  # another analyzer speaks of it
        elif not ours or self._connected_s is None:
            entry.unheld_s = None
        elif self._silent(entry, situation):
            self._resolve(entry, _SILENT, now_ns)
        else:
            self._wait(entry, situation, now_ns)

    def _wait(self, entry: Entry, situation: Situation, now_ns: int) -> None:
        """Nobody is behind it: what its node still shows is found anew once that is learned."""
        watched = None if entry.report.cross_node else situation.nodes.get(entry.report.node)
        if entry.unheld_s is None or (watched is not None and watched.learning):
            entry.unheld_s = situation.at_s
        patience = ABANDONED_S if watched is None else ORPHANED_S
        if situation.at_s - entry.unheld_s >= patience:
            self._resolve(entry, _ORPHANED, now_ns)

    def _held(self, entry: Entry, situation: Situation) -> bool:
        """Whether a finding that is followed here is behind the report."""
        if entry.report.cross_node:
            return situation.leads and entry.finding in situation.cases
        watched = situation.nodes.get(entry.report.node)
        if watched is None or entry.changed_s is None or entry.changed_s < watched.since_s:
            return False
        return not self._silent(entry, situation)

    def _silent(self, entry: Entry, situation: Situation) -> bool:
        watched = situation.nodes.get(entry.report.node)
        if watched is None or self._connected_s is None or entry.report.cross_node:
            return False
        return situation.at_s - max(watched.seen_s, self._connected_s) >= SILENT_S

    def _resolve(self, entry: Entry, why: str, now_ns: int) -> None:
        if entry.report.anomaly and entry.admission is not Admission.SUMMED:
            self._say(entry, [Said(events.ANOMALY_RESOLVED, why, now_ns)])
        entry.report = entry.report.resolved(why, now_ns)

    def _orphans(self) -> dict[str, list[Entry]]:
        """By node, reports that nobody is behind."""
        found: dict[str, list[Entry]] = {}
        for entry in self._entries.values():
            unheld = entry.changed_s is None or entry.unheld_s is not None
            if unheld and entry.admission is Admission.ADMITTED:
                found.setdefault(entry.report.node, []).append(entry)
        return found

    def _admit(self, entry: Entry, orphans: dict[str, list[Entry]], now_ns: int) -> None:
        near = orphans.get(entry.report.node, [])
        other = next((one for one in near if _goes_on(entry, one)), None)
        reserve = 0 if entry.high else self._limit // RESERVE
        if entry.told is not None:
            entry.admission = Admission.ADMITTED
        elif other is not None:
            near.remove(other)
            self._drop(entry)
            self._drop(other)
            self._continue(entry, other)
            self._add(entry)
        elif not entry.report.open and not entry.fresh:
            self._drop(entry)  # over before it was told
        elif self._bucket.take(now_ns, leave=reserve):
            entry.admission = Admission.ADMITTED
            if entry.changed_s is None:  # of an earlier run: what is found now may go on with it
                orphans.setdefault(entry.report.node, []).append(entry)
        else:
            entry.admission = Admission.SUMMED
            self.counts["summed"] += 1

    def _sum_up(self, now_s: float, now_ns: int) -> None:
        """Tell of what was too much by one report, as long as any of it is open."""
        summed = [one for one in self if one.admission is Admission.SUMMED]
        for entry in summed:
            if not entry.report.open:
                self._drop(entry)
        lasting = sorted(
            (one for one in summed if one.report.open), key=lambda one: -one.report.severity.rank
        )
        # what lasts is told by itself when the flood is over, a setting for example
        while lasting and self._bucket.take(now_ns, leave=self._limit // CALM):
            lasting.pop(0).admission = Admission.ADMITTED
        still = [one.report for one in lasting]
        before = self._entries.get(self._summary[0]) if self._summary else None
        if still:
            self._write_summary(still, before, now_s, now_ns)
        elif before is not None:
            before.report = before.report.resolved(_ALL_TOLD, now_ns)
            self._say(before, [Said(events.ANOMALY_RESOLVED, _ALL_TOLD, now_ns)])
            self._summary = None

    def _write_summary(
        self, still: list[Report], before: Entry | None, now_s: float, now_ns: int
    ) -> None:
        first_ns = self._summary[1] if self._summary and before else now_ns
        finding = summary.summary(still, self._limit, first_ns, now_ns)
        made = report(finding, self._profile, 0, self._stride)
        if before is not None:
            before.report = made.continuing(before.report)
            return
        entry = Entry(finding.id, made, finding.severity, Admission.ADMITTED, changed_s=now_s)
        entry.followed = True
        if self._add(entry):
            self._summary = made.name, now_ns
            self._say(entry, event_policy.opened(finding))

    def _stale(self, entry: Entry, now_s: float) -> bool:
        """Whether what the API has is so old that it must hear that it is still so."""
        if not entry.report.open or not entry.followed:
            return False
        if self._summary and entry.report.name == self._summary[0]:
            limit = REFRESH_SUMMARY_S
        else:
            limit = REFRESH_S if entry.report.anomaly else REFRESH_SETTING_S
        return now_s - entry.told_s >= limit


def _goes_on(entry: Entry, other: Entry) -> bool:
    """Whether what was found is what ``other``, which nobody is behind, told of."""
    mine, theirs = entry.report, other.report
    if other is entry or not (mine.anomaly and theirs.anomaly and theirs.open):
        return False
    touched = {mine.finding.subsystem, *mine.finding.subsystems}
    return mine.cross_node == theirs.cross_node and theirs.finding.subsystem in touched
