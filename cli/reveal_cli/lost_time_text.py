"""Lost time as the end of a scan says it: who lost how much, to what and to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reveal_analyzer.ledger.lost_time import Loss, LostTime

SMALL = 0.05  # share of the wanted time: less is no reason to say that something is wrong
_LEAST_NAMED = 0.01
_MOST_SUBJECTS, _MOST_LOSSES = 5, 4
_BY_CULPRIT = {
    "waiting for a CPU": "waiting for a CPU that {} used",
    "waiting for storage": "waiting for storage that {} kept busy",
}


def largest_share(lost: Sequence[LostTime]) -> float:
    """Return the largest share of its wanted time that a busy subject lost."""
    return max((each.share for each in lost), default=0.0)


def lost_time_lines(lost: Sequence[LostTime]) -> list[str]:
    """Return a line for each busy subject that lost time, most first; none without a ledger."""
    if not lost:
        return []
    named = [each for each in lost if each.share >= _LEAST_NAMED]
    if not named:
        busy = f"{len(lost)} busy subject{'s' if len(lost) > 1 else ''}"
        return [f"Lost time: none of {busy} lost 1 % of the time that it wanted."]
    lines = [f"Lost time: {_line(each)}" for each in named[:_MOST_SUBJECTS]]
    if more := len(named) - _MOST_SUBJECTS:
        lines += [f"Lost time: {more} more lost less."] if more > 0 else []
    return lines


def lost_time_rows(lost: Sequence[LostTime]) -> list[dict[str, Any]]:
    """Return the lost time of each busy subject for ``summary.json``; shares are 0 to 1."""
    return [
        {
            "subject": each.subject,
            "desiredCPUs": round(each.desired, 3),
            "lostShare": round(each.share, 4),
            "losses": [
                {"reason": loss.reason, "culprit": loss.culprit, "share": round(loss.share, 4)}
                for loss in each.losses
            ],
        }
        for each in lost
    ]


def _line(each: LostTime) -> str:
    parts = ", ".join(_loss(loss) for loss in each.losses[:_MOST_LOSSES])
    share = f"{each.subject} lost {_percent(each.share)} of the time that it wanted"
    return f"{share}: {parts}." if parts else f"{share}."


def _loss(loss: Loss) -> str:
    reason = loss.reason
    if reason in _BY_CULPRIT:
        reason = _BY_CULPRIT[reason].format(loss.culprit or "others")
    return f"{_percent(loss.share)} {reason}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= _LEAST_NAMED else "under 1 %"
