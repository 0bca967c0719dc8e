"""Lost time as the end of a scan says it: who lost how much, to what and to whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from reveal_contract import ledger

if TYPE_CHECKING:
    from reveal_analyzer.ledger.lost_time import Loss, LostTime

SMALL = 0.05  # share of the wanted time: less is no reason to say that something is wrong
_LEAST_NAMED = 0.01
_MOST_SUBJECTS, _MOST_LOSSES = 5, 4
_BY_CULPRIT = {
    "waiting for a CPU": "waiting for a CPU that {} used",
    "waiting for storage": "waiting for storage that {} kept busy",
}
ByNode: TypeAlias = "Mapping[str, Sequence[LostTime]]"


def largest_share(lost: ByNode) -> float:
    """Return the largest share of its wanted time that a busy subject lost."""
    return max((each.share for of_node in lost.values() for each in of_node), default=0.0)


def lost_time_lines(lost: ByNode) -> list[str]:
    """Return a line for each busy subject that lost time, most first; none without a ledger.

    With several nodes each line names its own.
    """
    several = len(lost) > 1
    return [
        f"Lost time{f' on {node}' if several else ''}: {line}"
        for node, of_node in lost.items()
        for line in _lines(of_node)
    ]


def short_lines(lost: Sequence[LostTime]) -> list[str]:
    """Return a short line for each busy subject that lost time, for a live view."""
    return [
        f"{each.subject} {percent(each.share)}: {', '.join(map(_short, named))}"
        for each in lost
        if (named := [loss for loss in each.losses if loss.share >= _LEAST_NAMED])
    ]


def _short(loss: Loss) -> str:
    return f"{percent(loss.share)} {loss.word}{f' ({loss.culprit})' if loss.culprit else ''}"


def lost_time_rows(lost: Sequence[LostTime]) -> list[dict[str, Any]]:
    """Return the lost time of each busy subject for ``summary.json``; shares are 0 to 1."""
    return [
        {
            "subject": each.subject,
            "desiredCPUs": round(each.desired, 3),
            "lostShare": round(each.share, 4),
            "losses": [
                {"reason": loss.word, "culprit": loss.culprit, "share": round(loss.share, 4)}
                for loss in each.losses
            ],
        }
        for each in lost
    ]


def lost_time_of(rows: Iterable[object]) -> list[LostTime]:
    """Return what ``lost_time_rows`` wrote; rows of another form are left out."""
    from reveal_analyzer.ledger.lost_time import REASONS  # noqa: PLC0415 - heavy

    parts = {word: part for part, word in REASONS.items()}
    found = (_lost_time(row, parts) for row in rows)
    return [each for each in found if each is not None]


def _lost_time(row: Any, parts: Mapping[str, str]) -> LostTime | None:
    from reveal_analyzer.ledger.lost_time import Loss, LostTime  # noqa: PLC0415 - heavy

    try:
        losses = tuple(
            Loss(parts[each["reason"]], float(each["share"]), str(each["culprit"]))
            for each in row["losses"]
        )
        subject, desired, share = row["subject"], row["desiredCPUs"], row["lostShare"]
        return LostTime(str(subject), float(desired), float(share), losses)
    except (KeyError, TypeError, ValueError):
        return None


def node_rows(lost: ByNode) -> list[dict[str, Any]]:
    """Return the same rows of all nodes, each with the name of its node."""
    return [
        {"nodeName": node, **row}
        for node, of_node in lost.items()
        for row in lost_time_rows(of_node)
    ]


def _lines(lost: Sequence[LostTime]) -> list[str]:
    if not lost:
        return []
    named = [each for each in lost if each.share >= _LEAST_NAMED]
    if not named:
        busy = f"{len(lost)} busy subject{'s' if len(lost) > 1 else ''}"
        return [f"none of {busy} lost 1 % of the time that it wanted."]
    more = len(named) - _MOST_SUBJECTS
    return [_line(each) for each in named[:_MOST_SUBJECTS]] + (
        [f"{more} more lost less."] if more > 0 else []
    )


def _line(each: LostTime) -> str:
    named = [loss for loss in each.losses if loss.share >= _LEAST_NAMED]
    parts = ", ".join(_loss(loss) for loss in named[:_MOST_LOSSES])
    share = f"{each.subject} lost {percent(each.share)} of the time that it wanted"
    return f"{share}: {parts}." if parts else f"{share}."


def _loss(loss: Loss) -> str:
    reason = loss.reason
    if reason in _BY_CULPRIT:
        reason = _BY_CULPRIT[reason].format(culprit_text(loss.culprit))
    return f"{percent(loss.share)} {reason}"


def culprit_text(name: str) -> str:
    """Return a culprit as a sentence names it."""
    return {"": "others", ledger.KERNEL: "the kernel"}.get(name, name)


def percent(share: float) -> str:
    """Return a share as whole percents."""
    return f"{100 * share:.0f} %"
