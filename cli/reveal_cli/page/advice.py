"""What to do, and which causes were ruled out and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reveal_cli.findings_table import claim_text
from reveal_cli.page.markup import Markup, element, fragment, name
from reveal_cli.page.tables import table
from reveal_cli.page_data.model import FindingPart, PageData
from reveal_contract.finding import FindingScope


def advice(data: PageData) -> Markup:
    """Return remedies by cause, the worst finding's first, and what was ruled out."""
    return fragment(_remedies(data), [*_all_ruled_out(data)])


def _remedies(data: PageData) -> Markup:
    known = [part.finding.hypothesis for part in data.findings if part.finding.hypothesis]
    remedies = {each.name: each.remediation for each in known if each.remediation}
    if not remedies:
        return element("p", _nothing_known(data))
    rows = [(element("dt", cause), element("dd", name(text))) for cause, text in remedies.items()]
    return element("dl", rows)


def _nothing_known(data: PageData) -> str:
    if not data.findings:
        return "Nothing: no finding."
    return "No known cause fits. Look at the evidence and at who changed when it began."


def _all_ruled_out(data: PageData) -> Iterator[Markup]:
    described = [part for part in data.findings if part.ruled_out]
    if described:
        yield element("h3", "Ruled out, and why")
    for number, part in enumerate(described):
        yield element(
            "details",
            element(
                "summary", f"Other causes ({_count(part)}) of: ", name(claim_text(part.finding))
            ),
            *_peer_line(part),
            table(
                fragment("Other causes of: ", name(claim_text(part.finding))),
                ["Cause", "Result", "Why"],
                [(each.name, each.result, name(each.reason)) for each in part.ruled_out],
            ),
            open=number == 0,
        )


def _count(part: FindingPart) -> str:
    """Return how many causes have which result: ``10 ruled out, 3 unknown``."""
    results = Counter(each.result for each in part.ruled_out)
    return ", ".join(f"{count} {result}" for result, count in results.most_common())


def _peer_line(part: FindingPart) -> Iterator[Markup]:
    """Yield whether the nodes beside it have the same, where there are any."""
    if part.peers is None or part.finding.scope is FindingScope.CROSS_NODE:
        return
    own = [each.value for each in part.peers.values if each.is_own]
    others = [each.value for each in part.peers.values if not each.is_own]
    if own and others:
        text = part.peers.unit.text
        yield element(
            "p", "On the other nodes ", name(part.peers.title),
            f" was {text(min(others))} to {text(max(others))} then, here {text(own[0])}.",
        )  # fmt: skip
