"""Which seconds of a finding are kept, and how finely."""

import pytest

from reveal_analyzer.evidence.timing import AROUND_S, LAG_S, Detail, Span, span_of
from reveal_contract.time_units import NS_PER_SECOND
from support.evidence_samples import FIRST_NS, finding


def detail(second: int, newest: int, span: Span) -> Detail:
    return span.detail(second * NS_PER_SECOND, newest * NS_PER_SECOND)


OPEN = Span(1000 * NS_PER_SECOND)
ENDED = Span(1000 * NS_PER_SECOND, 2000 * NS_PER_SECOND)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (939, Detail.NOTHING), (940, Detail.TICKS), (1060, Detail.TICKS), (1061, Detail.SECOND),
        (1939, Detail.SECOND), (1940, Detail.TICKS), (2060, Detail.TICKS), (2061, Detail.NOTHING),
    ],
)  # fmt: skip
def test_a_minute_around_onset_and_end_is_kept_whole(second: int, expected: Detail) -> None:
    assert detail(second, 2100, ENDED) is expected


def test_the_newest_minute_of_an_open_finding_is_kept_whole_and_a_little_more() -> None:
    newest = 1500
    first = newest - AROUND_S - LAG_S
    assert detail(first - 1, newest, OPEN) is Detail.SECOND
    assert detail(first, newest, OPEN) is Detail.TICKS


def test_a_stride_leaves_every_so_many_seconds_in_between() -> None:
    sparse = Span(OPEN.onset_ns, ENDED.end_ns, stride=4)
    kept = [second for second in range(1061, 1940) if detail(second, 2100, sparse) is Detail.SECOND]
    assert kept == list(range(1064, 1940, 4))


def test_a_finding_has_an_end_once_it_is_resolved() -> None:
    assert span_of(finding(100)).end_ns is None
    assert span_of(finding(100, end=160)) == Span(
        FIRST_NS + 100 * NS_PER_SECOND, FIRST_NS + 160 * NS_PER_SECOND
    )
