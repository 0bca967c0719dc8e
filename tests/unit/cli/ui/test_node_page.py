"""The page of a node, and its state."""

from __future__ import annotations

import math

from reveal_analyzer.ledger.lost_time import Loss, LostTime
from reveal_cli.page.markup import Markup
from reveal_cli.progress import ProgressView
from reveal_cli.ranking import RankedMetric, SpanRanking
from reveal_cli.ui.node_page import no_state, node_page, ranked, state_of
from reveal_contract import ledger
from reveal_contract.metric import Subsystem
from support.html_pages import ParsedPage

HOSTILE = "<script>alert(1)</script>\x1b[2J\u202e"


def view(name: str = "ml/train-0") -> ProgressView:
    """Return a state in which each part has something of this name."""
    losses = (Loss(ledger.WAIT_OTHERS, 0.25, name),)
    return ProgressView(
        "n1", "watching", 120.0, math.inf, 120, 3, 900, scores={Subsystem.CPU: 1.7},
        suspected=[name], changed=[name], step_times=[name],
        lost_time=[LostTime(name, 1.5, 0.3, losses)], ledger="tier 3, BPF programs", warning=name,
    )  # fmt: skip


def test_the_state_has_scores_lost_time_and_steps() -> None:
    page = ParsedPage(state_of(view()))
    assert "120 slices of 900 channels, 3 lost" in page.visible
    [meter] = page.all("meter")
    assert (meter.attributes["value"], meter.text) == ("1", "1.70")
    for text in ("ml/train-0", "1.50", "30 %", "25 % cpu", "Step times"):
        assert text in page.visible


def test_names_of_others_are_inert() -> None:
    metric = RankedMetric(HOSTILE, HOSTILE, "mean", None, 7, "1", "2", "1", "2")
    parts = [state_of(view(HOSTILE)), no_state(HOSTILE), ranked(SpanRanking("a", "b", (metric,)))]
    parts.append(Markup(node_page(HOSTILE, parts[0], [], (HOSTILE, HOSTILE), None)))
    for text in parts:
        assert "<script>" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_the_form_keeps_its_times() -> None:
    page = ParsedPage(node_page("n1", Markup("state"), [], ("03:10", "03:15"), None))
    values = {each.attributes["name"]: each.attributes["value"] for each in page.all("input")}
    assert values == {"from": "03:10", "to": "03:15", "name": "n1"}
    assert "No finding is selected." in page.visible
