"""Pages for tests: one made by hand with everything that a page can show, and how it is parsed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

from reveal_cli.page_data.model import (
    BrushData,
    FindingPart,
    MetricSeries,
    PageData,
    Panel,
    PeerStrip,
    PeerValue,
    RankedRow,
    RuledOut,
    StepCurve,
    SubjectRow,
    Tick,
    Unit,
)
from reveal_cli.summary_text import Coverage
from reveal_contract.facts import Cpu, Facts
from reveal_contract.finding import Finding, JobLoss
from support.finding_factory import ONSET_NS, SECOND, idle_huge_pages, scan_finding

PERCENT = Unit(lambda value: f"{value / 1e7:.0f} %", ((1e7, " %"),))
START_NS = ONSET_NS - 60 * SECOND
_VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})


def page_of(
    findings: Sequence[Finding] = (), name: str = "job", panels: int = 2, samples: int = 1200
) -> PageData:
    """Return a page of two nodes over two minutes; ``name`` is what others chose everywhere."""
    several = findings or (replace(scan_finding(), lost_time=(JobLoss(name, 26.0, 9),)),)
    return PageData(
        title=name,
        nodes=("n", name),
        start_ns=START_NS,
        seconds=120.0,
        findings=[_part(finding, name, panels, samples) for finding in several],
        hints=[idle_huge_pages(ONSET_NS)],
        coverage=Coverage(120.0, 60.0, 60.0, 120, 500),
        steps=[StepCurve(name, [[(1.0, 80.0), (2.0, 81.0)], [(9.0, 120.0)]])],
        ticks=[Tick(30.0, "configuration", f"kernel.thp: {name}"), Tick(58.0, "subject", name)],
        gaps=[(10.0, 14.0)],
        brush=BrushData(1.0, 120, [_series(name)]),
        facts={"n": Facts(node="n", cpu=Cpu(model=name, online="0-1"))},
        missing=[{"source": name, "reason": "not there", "remedy": "mount it"}],
        limits=["While learning: 1.0 cores busy."],
    )


def _part(finding: Finding, name: str, panels: int, samples: int) -> FindingPart:
    points = [(index / 10, 1e7 * (5 + index % 7 * 11)) for index in range(samples)]
    panel = Panel(
        f"cpu.pressure.some{{{name}}}", "psi cpu some", PERCENT, [points], (0.0, 4e7), 0.1
    )
    return FindingPart(
        finding,
        (60.0, 70.0),
        (0.0, 120.0),
        [panel] * panels,
        [
            RuledOut("ForkStorm", "ruled out", f"cpu.forks{{{name}}} reached 0/s"),
            RuledOut("HungTasks", "unknown", "cpu.smi is not read on this host"),
        ],
        [SubjectRow(name, "causes it (87 %)", None, 0.26, 0.5, 1.75, f"waiting for a CPU: {name}")],
        [RankedRow("cpu.busy", name, "mean", f"cpu.busy{{{name}}}", "CPU", 9.5, "93 %", "5 %")],
        PeerStrip(name, PERCENT, [PeerValue("n", 9e8, True), PeerValue(name, 1e7, False)]),
    )


def _series(name: str) -> MetricSeries:
    ramp = bytes(range(120))
    return MetricSeries(f"cpu.busy{{{name}}}", "CPU", PERCENT, 5e7, 0.0, 1e9, ramp, ramp, ramp)


@dataclass
class Element:
    """An element of a page, with the text in it; ``parents`` are the tags around it."""

    tag: str
    attributes: dict[str, str | None]
    parents: tuple[str, ...]
    text: str = ""


@dataclass
class ParsedPage(HTMLParser):
    """The elements of a page in their order; raises ``ValueError`` for tags that do not match."""

    source: str
    elements: list[Element] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._open: list[Element] = []
        self.feed(self.source)
        self.close()
        if self._open:
            raise ValueError(f"{self._open[-1].tag} is not closed")

    def all(self, tag: str, **attributes: str) -> list[Element]:
        """Return the elements with a tag and these attributes."""
        return [
            each
            for each in self.elements
            if each.tag == tag and attributes.items() <= each.attributes.items()
        ]

    @property
    def visible(self) -> str:
        """Return the text that people see without scripts."""
        hidden = {"script", "style", "head"}
        return " ".join(
            each.text
            for each in self.elements
            if each.tag not in hidden and hidden.isdisjoint(each.parents)
        )

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            raise ValueError(f"{tag} has an attribute twice")
        element = Element(tag, dict(attrs), tuple(each.tag for each in self._open))
        self.elements.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].tag != tag:
            raise ValueError(f"</{tag}> closes nothing")
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open:
            self._open[-1].text += data
