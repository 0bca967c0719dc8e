"""A strip for each finding: the same metric on all nodes, this one marked."""

from __future__ import annotations

from reveal_cli.findings_table import claim_text
from reveal_cli.page.markup import Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page_data.model import FindingPart, PageData, PeerStrip

_WIDTH = 1000


def peers(data: PageData) -> Markup | None:
    """Return the strips; None where the recording has one node."""
    strips = [_strip(part, part.peers) for part in data.findings if part.peers]
    return fragment(strips) if strips else None


def _strip(part: FindingPart, strip: PeerStrip) -> Markup:
    values = [each.value for each in strip.values]
    low, high = min([0.0, *values]), max(values)
    label = f"{strip.title} on {len(values)} nodes: {strip.unit.text(min(values))} to "
    picture = element(
        "svg", [_dot(each.value, each.is_own, low, high) for each in strip.values],
        viewBox=f"0 0 {_WIDTH} 40", role="img", aria_label=f"{label}{strip.unit.text(high)}",
        class_="strip",
    )  # fmt: skip
    rows = [
        [name(each.node), strip.unit.text(each.value), "this node" if each.is_own else ""]
        for each in sorted(strip.values, key=lambda each: -each.value)
    ]
    caption = fragment(name(strip.title), " on all nodes in: ", name(claim_text(part.finding)))
    listing = table(caption, ["Node", "Median", ""], rows)
    return element(
        "figure", element("figcaption", name(strip.title)), picture,
        element("details", element("summary", "All nodes"), listing),
    )  # fmt: skip


def _dot(value: float, is_own: bool, low: float, high: float) -> Markup:
    share = (value - low) / (high - low) if high > low else 0.5
    return element(
        "circle", cx=f"{20 + round(share * (_WIDTH - 40))}", cy="20", r="9",
        class_="own" if is_own else "peer",
    )  # fmt: skip
