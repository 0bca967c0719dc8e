"""The rows and totals of an evaluation, for a table and for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from benchmark_report import Row
from ledgerbench.judged_faults import JUDGES, Verdict
from ledgerbench.truth_evaluation import CaseResult, SessionResult
from ledgerbench.window_accounts import Account

HARM = 0.05  # of the job's rate: a fault that costs less need not be found
_LEAST_NAMED = 0.01
_PREFIXES = ("/reveal-work-", "/reveal-fault-")


def row(result: CaseResult) -> Row:
    """Return one line of the table; shares in percent, errors in points."""
    before, during, account = result.before, result.during, result.during.account
    found = {name: _found(each) for name, each in result.verdicts.items()}
    return {
        "job": result.job,
        "host": result.state,
        "fault": result.case.fault,
        "steps": _percent(during.truth),
        "ledger": _percent(account.lost) if result.has_ledger else "off",
        "error": _percent(result.error) if result.has_ledger and result.is_comparable else "",
        "before": _percent(before.truth),
        "cost": _percent(result.cost),
        "parts": _parts(account),
        "culprits": _culprits(account),
        **found,
    }


def details(result: CaseResult) -> dict[str, Any]:
    """Return all figures of one fault, for JSON."""
    return {
        "job": result.job,
        "host": result.state,
        "fault": result.case.fault,
        "culprit": result.case.subject,
        "lost_share": {
            name: {"steps": round(each.truth, 4), "ledger": round(each.account.lost, 4)}
            for name, each in (("before", result.before), ("during", result.during))
        },
        "waited_share": {"steps": _rounded(result.during.work.waited),
                         "ledger": _rounded(result.during.account.waited)},
        "cost": {"steps": _rounded(result.cost), "ledger": _rounded(result.accounted_cost),
                 "slowdown": _rounded(result.slowdown)},
        "comparable": result.is_comparable,
        "has_ledger": result.has_ledger,
        "parts": {name: _rounded(share) for name, share in result.during.account.parts.items()},
        "culprits": {name: _rounded(s) for name, s in result.during.account.culprits.items()},
        "unbalanced": round(result.during.account.unbalanced, 6),
        "refused_seconds": result.during.account.refused,
        "found": {
            name: {
                "seconds": each.seconds, "cause": each.cause, "culprit": each.culprit,
                "cause_right": each.cause_right, "culprit_right": each.culprit_right,
            }
            for name, each in result.verdicts.items()
        },
    }  # fmt: skip


def totals(sessions: Sequence[SessionResult]) -> list[Row]:
    """Return a line for each host state and one for all: errors, and faults found."""
    cases = [case for session in sessions for case in session.cases]
    states = list(dict.fromkeys(case.state for case in cases))
    rows = [_totals(state, [case for case in cases if case.state == state]) for state in states]
    return [*rows, *([_totals("all", cases)] if len(states) > 1 else [])]


def _totals(state: str, cases: Sequence[CaseResult]) -> Row:
    counted = [case for case in cases if case.has_ledger]
    fair = [case for case in counted if case.is_comparable]
    harmful = [case for case in cases if case.cost >= HARM]
    result: Row = {
        "host": state,
        "cases": len(cases),
        "ledger off": len(cases) - len(counted),
        **_errors("error", [case.error for case in fair]),
        **_errors("waited", [_waited_error(case) for case in counted]),
        **_errors("cost", [case.accounted_cost - case.cost for case in fair]),
        "unbalanced %": round(
            100 * max((abs(case.during.account.unbalanced) for case in cases), default=0.0), 3
        ),
        "harmful": len(harmful),
    }
    for name in JUDGES:
        right = [case.verdicts[name] for case in harmful if case.verdicts[name].right]
        result[f"{name}: right"] = f"{len(right)} of {len(harmful)}"
        delays = [each.seconds for each in right if each.seconds is not None]
        result[f"{name}: s"] = round(median(delays), 1) if delays else ""
    return result


def _waited_error(case: CaseResult) -> float:
    return case.during.account.waited - case.during.work.waited


def _errors(name: str, values: Sequence[float]) -> Row:
    sizes = [100 * abs(value) for value in values]
    return {
        f"{name} mean": round(fmean(sizes), 2) if sizes else "",
        f"{name} worst": round(max(sizes), 2) if sizes else "",
    }


def _found(verdict: Verdict) -> str:
    """Return the delay of a right finding, else what was wrong with the one there was."""
    if verdict.seconds is None:
        return "-"
    if verdict.right:
        return f"{verdict.seconds:.1f} s"
    culprit = "" if verdict.culprit_right else f" by {_short(verdict.culprit) or 'nobody'}"
    return f"({verdict.cause or 'score'}{culprit})"


def _parts(account: Account) -> str:
    lost = sorted(account.parts.items(), key=lambda item: -item[1])
    named = [(name.removeprefix("ledger."), share) for name, share in lost]
    return " ".join(f"{name} {100 * share:.0f}" for name, share in named if share >= _LEAST_NAMED)


def _culprits(account: Account) -> str:
    ranked = sorted(account.culprits.items(), key=lambda item: -item[1])
    named = [(_short(name), share) for name, share in ranked if share >= _LEAST_NAMED]
    return " ".join(f"{name} {100 * share:.0f}" for name, share in named[:3])


def _short(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name


def _percent(share: float) -> float:
    return round(100 * share, 1)


def _rounded(share: float) -> float:
    return round(share, 4)
