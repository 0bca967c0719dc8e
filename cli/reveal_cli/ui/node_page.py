"""The page of a node: its state now, its findings, and its metrics ranked for a span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlencode

from reveal_analyzer.ledger.lost_time import LostTime
from reveal_cli.lost_time_text import percent, short_lines
from reveal_cli.options import format_duration
from reveal_cli.page.markup import Child, Markup, element, fragment, name, section
from reveal_cli.page.tables import table
from reveal_cli.progress import ProgressView
from reveal_cli.ranking import SpanRanking
from reveal_cli.ui.finding_rows import findings_table
from reveal_cli.ui.frame import page
from reveal_cli.ui.source import ListedFinding

MOST_RANKED = 30
_RANKED = ("Metric", "Feature", "Subsystem", "Score", "Value", "Usual")
_HINT = (
    "Times are by the clock of this machine, of the last 24 hours. What is older than two minutes"
    " needs spec.evidence.historyHours in the profile."
)


def node_link(node: str) -> str:
    """Return the address of the page of a node."""
    return f"/node?{urlencode({'name': node})}"


def node_page(
    node: str,
    state: Markup,
    findings: Sequence[ListedFinding],
    span: tuple[str, str],
    result: Child,
) -> str:
    """Return the HTML.

    ``state`` is that of now, ``span`` the times that were asked for, ``result`` their ranking.
    """
    source = f"/node/now?{urlencode({'name': node})}"
    pause = element("button", "Pause", type="button", id="now-pause", hidden=True)
    return page(
        f"Reveal: {node}",
        element("header", element("h1", "Node ", name(node), class_="verdict"),
                element("p", element("a", "All findings", href="/"), class_="extent")),
        element(
            "main",
            section("now", "Now", [pause, element("div", state, id="now-state",
                                                  data_source=source)]),
            section("findings", "Findings", findings_table(findings)),
            section("ranking", "What was abnormal?", [_form(node, span), result]),
        ),
        element("script", src="/live.js", defer=True),
    )  # fmt: skip


def state_of(view: ProgressView) -> Markup:
    """Return the state of a node now."""
    lost = f", {view.lost} lost" if view.lost else ""
    return fragment(
        element("p", f"{view.phase}, {format_duration(view.elapsed)}, {view.slices} slices of"
                     f" {view.channels} channels{lost}"),
        element("p", name(view.warning), role="alert") if view.warning else None,
        _subsystems(view),
        _lost_time(view),
        _lines("Step times", view.step_times),
        _lines("Suspected", view.suspected),
        _lines("Changed", view.changed),
    )  # fmt: skip


def no_state(sentence: str) -> Markup:
    """Return the same where the node cannot be watched."""
    return element("p", name(sentence), role="alert")


def ranked(ranking: SpanRanking) -> Markup:
    """Return the table of a ranking."""
    rows = [
        [name(metric.metric), metric.feature, metric.subsystem.value if metric.subsystem else "-",
         f"{metric.percent} %", metric.value_text, metric.baseline_text]
        for metric in ranking.ranking[:MOST_RANKED]
    ]  # fmt: skip
    caption = f"{ranking.begin} to {ranking.end}, the most abnormal first"
    return table(caption, _RANKED, rows)


def _subsystems(view: ProgressView) -> Child:
    if not view.scores:
        return None
    rows = [
        [subsystem.value,
         element("meter", f"{score:.2f}", min=0.0, max=1.0, high=0.6, optimum=0.0,
                 value=min(1.0, score), aria_label=subsystem.value),
         f"{score:.2f}"]
        for subsystem, score in view.scores.items()
    ]  # fmt: skip
    return table("How near a finding is: 1 is one", ("Subsystem", "Score", "Number"), rows)


def _lost_time(view: ProgressView) -> Child:
    if not view.lost_time:
        return element("p", f"Lost time: {view.ledger}") if view.ledger else None
    rows = [[*_lost(each)] for each in view.lost_time]
    return table("Lost time of the last 10 s", ("Subject", "CPUs wanted", "Lost", "To what"), rows)


def _lost(each: LostTime) -> Iterator[Child]:
    yield name(each.subject)
    yield f"{each.desired:.2f}"
    yield percent(each.share)
    line = next(iter(short_lines([each])), "")
    yield name(line.partition(": ")[2] or "nothing")


def _lines(title: str, lines: Sequence[str]) -> Child:
    if not lines:
        return None
    return [element("h3", title), element("ul", [element("li", name(line)) for line in lines])]


def _form(node: str, span: tuple[str, str]) -> Markup:
    begin, end = span
    fields = [
        element("label", f"{label} ",
                element("input", type="time", step="1", name=field, value=value, required=True))
        for label, field, value in (("From", "from", begin), ("To", "to", end))
    ]  # fmt: skip
    return element(
        "form",
        element("fieldset", element("legend", "Rank every metric for a span of time"), fields,
                element("input", type="hidden", name="name", value=node),
                element("button", "Show", type="submit")),
        element("p", _HINT, class_="extent"),
        method="get", action="/node",
    )  # fmt: skip
