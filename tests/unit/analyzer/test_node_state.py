"""The analysis of a node goes on in another process as if nothing had happened."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.node import OPTIONAL_STATE, NodeAnalyzer
from reveal_analyzer.state.codec import MAX_BYTES, Position, SavedState, decode, encode
from reveal_analyzer.state.tree import StateError, StateTree
from reveal_contract.finding import FindingChange, FindingUpdate, Resolution
from reveal_contract.settings import AnalyzerSettings
from support.property_tests import examples
from support.synthetic_node import TABLE, Node

SETTINGS = AnalyzerSettings()
FAULT = {
    "cpu.pressure.some": 700_000.0, "cpu.context_switches": 3000.0, "cpu.user": 60.0,
    "cpu.procs_running": 9.0,
}  # fmt: skip
ONSET, END, LAST = 110, 260, 320


def moved(analyzer: NodeAnalyzer, settings: AnalyzerSettings = SETTINGS) -> NodeAnalyzer:
    """The same analysis in another process."""
    data = encode(SavedState(Position("n1", b"", 0, 0), 0, analyzer.save()), OPTIONAL_STATE)
    assert len(data) <= MAX_BYTES
    result = NodeAnalyzer("n1", settings)
    result.restore(decode(data).tree)
    return result


def timeline(*moves: int) -> list[tuple[int, FindingUpdate]]:
    """A fault of some minutes; the analysis moves before these seconds."""
    node, analyzer = Node(), NodeAnalyzer("n1", SETTINGS)
    updates = []
    for second in range(LAST):
        if second in moves:
            analyzer = moved(analyzer)
        changed = FAULT if ONSET <= second < END else None
        updates += [(second, each) for each in analyzer.analyze(node.slice(changed), TABLE)]
    return [(second, each) for second, each in updates if each.change in REPORTED]


REPORTED = (FindingChange.OPENED, FindingChange.RESOLVED)


@pytest.fixture(scope="module")
def undisturbed() -> list[tuple[int, FindingUpdate]]:
    found = timeline()
    assert [each.change for _, each in found] == list(REPORTED)
    return found


@pytest.mark.parametrize("move", [61, 100, 112, 115, 125, 175, 200, 263, 275])
def test_a_finding_goes_on_after_a_move(
    undisturbed: list[tuple[int, FindingUpdate]], move: int
) -> None:
    found = timeline(move)
    assert [each.change for _, each in found] == list(REPORTED)
    for (second, expected), (when, update) in zip(undisturbed, found, strict=True):
        assert abs(when - second) <= 6
        assert update.finding.subsystem is expected.finding.subsystem
        assert update.finding.severity is expected.finding.severity
    assert len({update.finding.id for _, update in found}) == 1


def test_an_analysis_that_moves_all_the_time_finds_the_same(
    undisturbed: list[tuple[int, FindingUpdate]],
) -> None:
    found = timeline(*range(65, LAST, 15))
    assert [each.change for _, each in found] == list(REPORTED)
    assert found[0][1].finding.id == found[1][1].finding.id


def test_nothing_is_learned_again() -> None:
    node, analyzer = Node(), NodeAnalyzer("n1", SETTINGS)
    for _ in range(90):
        analyzer.analyze(node.slice(), TABLE)
    assert not analyzer.learning
    after = moved(analyzer)
    assert not after.learning
    after.analyze(node.slice(), TABLE)
    before, now = analyzer.status(), after.status()
    assert now.warmup_load == before.warmup_load
    assert now.seconds == before.seconds + 1


def test_a_state_that_no_slice_follows_is_saved_again_as_it_is(busy_state: StateTree) -> None:
    node = NodeAnalyzer("n1", SETTINGS)
    node.restore(busy_state)
    again = decode(encode(SavedState(Position("n1", b"", 0, 0), 0, node.save()))).tree
    saved, expected = dict(leaves(again)), dict(leaves(busy_state))
    assert saved.keys() == expected.keys()
    for path, value in expected.items():
        if isinstance(value, float):  # sums are formed again
            assert saved[path] == pytest.approx(value), path
        else:
            np.testing.assert_equal(saved[path], value, str(path))


def test_what_was_learned_outlives_two_moves_between_two_slices() -> None:
    node, analyzer = Node(), NodeAnalyzer("n1", SETTINGS)
    for _ in range(ONSET):
        analyzer.analyze(node.slice(), TABLE)
    once, twice = moved(analyzer), moved(moved(analyzer))
    message = node.slice(FAULT)
    for each in (once, twice):
        each.analyze(message, TABLE)
    assert not twice.learning
    assert twice.status().over == once.status().over
    assert max(once.status().over.values()) > 1


def test_other_settings_change_thresholds_and_not_what_was_learned() -> None:
    node, analyzer = Node(), NodeAnalyzer("n1", SETTINGS)
    for _ in range(ONSET):
        analyzer.analyze(node.slice(), TABLE)
    high = moved(analyzer, AnalyzerSettings(sensitivity="High", warmup_seconds=30))
    assert not high.learning
    slightly = {name: value * 0.2 for name, value in FAULT.items()}
    for _ in range(8):
        message = node.slice(slightly)
        analyzer.analyze(message, TABLE)
        high.analyze(message, TABLE)
    worst = [max(each.status().over.values(), default=0.0) for each in (analyzer, high)]
    assert worst[1] > worst[0]


@pytest.fixture(scope="module")
def busy_state() -> StateTree:
    """The state of a node with an open finding, as it comes out of its bytes."""
    node, analyzer = Node(), NodeAnalyzer("n1", SETTINGS)
    for second in range(ONSET + 70):
        analyzer.analyze(node.slice(FAULT if second >= ONSET else None), TABLE)
    data = encode(SavedState(Position("n1", b"", 0, 0), 0, analyzer.save()), OPTIONAL_STATE)
    return decode(data).tree


Path = tuple[Any, ...]
_GONE = object()


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """The places of all values in a tree."""
    if path:
        yield path
    if isinstance(value, Mapping):
        rows = value.items()
    elif isinstance(value, list):
        rows = enumerate(value[:20])
    else:
        return
    for key, inner in rows:
        yield from paths(inner, (*path, key))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The places of all values in a tree that hold no others, and these values."""
    if not isinstance(value, Mapping | list):
        yield path, value
        return
    for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
        yield from leaves(inner, (*path, key))


def with_value(tree: Any, path: Path, value: Any) -> Any:
    """A copy of a tree in which one value is another, or gone."""
    key, *rest = path
    changed = with_value(tree[key], tuple(rest), value) if rest else value
    if isinstance(tree, Mapping):
        copied = {**tree, key: changed}
        if changed is _GONE:
            del copied[key]
        return copied
    rows = list(tree)
    rows[key : key + 1] = [] if changed is _GONE else [changed]
    return rows


def unfit(old: Any) -> st.SearchStrategy[Any]:
    """What may stand where a value was: of another type, another shape, out of any range."""
    others: list[Any] = [
        _GONE, None, True, -1, 0, 2**62, 2**80, 1.5, float("nan"), float("inf"), "", "x", [], ["x"],
        [1], {}, {"x": 1}, np.zeros(0), np.zeros((2, 3)), np.array(1.0), np.zeros(3, np.bool_),
    ]  # fmt: skip
    if isinstance(old, np.ndarray):
        others += [old[..., :-1] if old.ndim and old.size else old, old[np.newaxis]]
        if old.dtype.kind == "f":
            others += [np.full_like(old, np.nan), np.full_like(old, np.inf)]
        elif old.dtype.kind in "iu":
            others += [np.full_like(old, np.iinfo(old.dtype).max)]
            others += [np.full_like(old, np.iinfo(old.dtype).min)]
    return st.sampled_from(others)


@given(st.data())
@examples(400)
def test_an_unfit_state_raises_only_state_errors(
    busy_state: StateTree, data: st.DataObject
) -> None:
    path = data.draw(st.sampled_from(list(paths(busy_state))))
    old: Any = busy_state
    for key in path:
        old = old[key]
    tree = with_value(busy_state, path, data.draw(unfit(old)))
    analyzer, node = NodeAnalyzer("n1", SETTINGS, rules=()), Node()
    try:
        analyzer.restore(tree)
    except StateError:
        return
    with np.errstate(all="ignore"):
        for _ in range(3):
            analyzer.analyze(node.slice(), TABLE)


PAPER = AnalyzerSettings(mode="paper")
LOSS = {"network.tcp.retrans_segs": 60.0, "network.nic.rx_bytes{eth0}": 9e7}


def test_paper_mode_learns_again_after_a_move() -> None:
    node, analyzer = Node(), NodeAnalyzer("n1", PAPER)
    for _ in range(90):
        analyzer.analyze(node.slice(), TABLE)
    assert not analyzer.learning
    after = moved(analyzer, PAPER)
    assert after.learning
    for _ in range(65):
        after.analyze(node.slice(), TABLE)
    assert not after.learning


BUSY = {"network.nic.rx_bytes{eth0}": 9e7, "network.tcp.out_segs": 9e4}


@pytest.mark.parametrize(
    ("fault", "ends"), [(LOSS, []), (BUSY, [Resolution.UNOBSERVED])], ids=["signature", "vote"]
)
def test_a_finding_of_paper_mode_is_not_over_because_its_analyzer_moves(
    fault: dict[str, float], ends: list[Resolution]
) -> None:
    """A signature shows that it lasts.  Detectors that learned the fault cannot know."""
    node, analyzer = Node(), NodeAnalyzer("n1", PAPER)
    for _ in range(90):
        analyzer.analyze(node.slice(), TABLE)
    for _ in range(10):
        analyzer.analyze(node.slice(fault), TABLE)
    (before,) = analyzer.finish()
    after = moved(analyzer, PAPER)
    (now,) = after.finish()
    assert now.finding.id == before.finding.id
    assert now.finding.hypothesis == before.finding.hypothesis
    updates = [each for _ in range(130) for each in after.analyze(node.slice(fault), TABLE)]
    resolved = [each.finding for each in updates if each.change is FindingChange.RESOLVED]
    assert [each.resolution for each in resolved] == ends
    assert {each.id for each in resolved} <= {before.finding.id}


def test_cases_of_another_mode_do_not_come_back() -> None:
    node, online = Node(), NodeAnalyzer("n1", SETTINGS)
    for second in range(ONSET + 20):
        online.analyze(node.slice(FAULT if second >= ONSET else None), TABLE)
    assert online.finish()
    paper = moved(online, PAPER)
    paper.analyze(node.slice(), TABLE)
    assert moved(paper).finish() == []
