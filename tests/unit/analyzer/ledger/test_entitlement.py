"""Entitlement: weighted max-min shares of the CPUs in the tree of the scheduler's groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.ledger.entitlement import ShareTree, shortfall
from reveal_contract import cpulist
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuGroup, CpuMember, CpuShares

DESIRED = st.lists(st.floats(0, 64), max_size=12)
NAMES = "abcdefghijkl"
POD, BURST, HOG = "ml/pod", "ml/burst", "/hog"


def entitled(
    desired: dict[str, float], cpus: float, shares: CpuShares = EQUAL_SHARES
) -> dict[str, float]:
    found = ShareTree.of([*desired], shares).entitled(np.array([*desired.values()], float), cpus)
    return {name: round(share, 6) for name, share in zip(desired, found.tolist(), strict=True)}


def equal_max_min(desired: list[float], cpus: float) -> list[float]:
    """Return equal max-min shares, by their definition."""
    shares, left = [0.0] * len(desired), cpus
    for position, row in enumerate(sorted(range(len(desired)), key=lambda row: desired[row])):
        shares[row] = min(desired[row], left / (len(desired) - position))
        left -= shares[row]
    return shares


@st.composite
def nodes(draw: st.DrawFn) -> tuple[list[float], int, CpuShares]:
    """Draw what subjects want, how many CPUs there are, and any tree, quotas and cpusets."""
    desired, cpus = draw(DESIRED), draw(st.integers(1, 8))
    groups = [
        CpuGroup(
            f"/{row}",
            draw(st.sampled_from(["", *(f"/{above}" for above in range(row))])),
            draw(st.floats(2, 1e5)),
            draw(st.sampled_from([0.0, 0.5, 3.0])),
        )
        for row in range(draw(st.integers(0, 5)))
    ]
    members = [
        CpuMember(
            NAMES[row],
            draw(st.sampled_from(["", *(group.path for group in groups)])),
            draw(st.floats(15, 9e4)),
            draw(st.sampled_from(["", *map(str, range(cpus)), f"0-{cpus - 1}"])),
        )
        for row in range(draw(st.integers(0, len(desired))))
    ]
    return desired, cpus, CpuShares(tuple(groups), tuple(members))


@pytest.mark.parametrize(
    ("desired", "cpus", "shares"),
    [
        ([1.0, 6.0], 2, [1.0, 1.0]),
        ([0.2, 6.0], 2, [0.2, 1.8]),
        ([0.5, 0.5], 2, [0.5, 0.5]),
        ([3.0, 0.1, 3.0], 4, [1.95, 0.1, 1.95]),
        ([], 2, []),
    ],
)
def test_what_a_subject_leaves_is_divided_among_the_others(
    desired: list[float], cpus: float, shares: list[float]
) -> None:
    tree = ShareTree.of(NAMES[: len(desired)], EQUAL_SHARES)
    assert tree.entitled(np.array(desired), cpus).tolist() == pytest.approx(shares)


@given(DESIRED, st.integers(1, 64), st.floats(15, 9e4))
def test_equal_weights_are_equal_max_min_shares(
    desired: list[float], cpus: int, weight: float
) -> None:
    members = tuple(CpuMember(name, weight=weight) for name in NAMES[: len(desired)])
    tree = ShareTree.of(NAMES[: len(desired)], CpuShares((), members))
    expected = equal_max_min(desired, cpus)
    assert tree.entitled(np.array(desired), cpus).tolist() == pytest.approx(expected)


@given(nodes())
def test_no_share_exceeds_what_is_desired_or_permitted(
    node: tuple[list[float], int, CpuShares],
) -> None:
    desired, cpus, shares = node
    names = NAMES[: len(desired)]
    tree = ShareTree.of(names, shares)
    found = tree.entitled(np.array(desired), cpus)
    assert (found <= np.array(desired) + 1e-6).all()
    assert (found >= 0).all()
    assert found.sum() <= cpus + 1e-6
    for group, inside in zip(shares.groups, tree.under, strict=True):
        assert not group.limit or found[inside].sum() <= group.limit + 1e-6
    bound = {m.subject: cpulist.parse(m.cpus) for m in shares.members if m.cpus}
    for permitted in set(bound.values()):
        only = [name in bound and bound[name] <= permitted for name in names]
        assert found[only].sum() <= len(permitted) + 1e-6


@given(nodes())
def test_without_quotas_and_cpusets_all_cpus_are_divided(
    node: tuple[list[float], int, CpuShares],
) -> None:
    desired, cpus, shares = node
    groups = tuple(CpuGroup(g.path, g.parent, g.weight) for g in shares.groups)
    members = tuple(CpuMember(m.subject, m.group, m.weight) for m in shares.members)
    tree = ShareTree.of(NAMES[: len(desired)], CpuShares(groups, members))
    total = tree.entitled(np.array(desired), cpus).sum()
    assert total == pytest.approx(min(sum(desired), cpus))


@given(nodes(), st.data(), st.floats(1, 100))
def test_more_weight_is_never_less_of_a_share(
    node: tuple[list[float], int, CpuShares], data: st.DataObject, factor: float
) -> None:
    desired, cpus, shares = node
    if not shares.members:
        return
    row = data.draw(st.integers(0, len(shares.members) - 1))
    old = shares.members[row]
    new = CpuMember(old.subject, old.group, old.weight * factor, old.cpus)
    changed = CpuShares(shares.groups, (*shares.members[:row], new, *shares.members[row + 1 :]))
    desired_cpus = np.array(desired)
    before = ShareTree.of(NAMES[: len(desired)], shares).entitled(desired_cpus, cpus)
    after = ShareTree.of(NAMES[: len(desired)], changed).entitled(desired_cpus, cpus)
    assert after[row] >= before[row] - 1e-6


def test_a_cpu_is_divided_by_weight() -> None:
    groups = CpuGroup("/a", weight=1024), CpuGroup("/b", weight=4096)
    shares = CpuShares(groups, (CpuMember("a", "/a"), CpuMember("b", "/b")))
    assert entitled({"a": 1, "b": 1}, 1, shares) == {"a": 0.2, "b": 0.8}
    assert entitled({"a": 1, "b": 0.1}, 1, shares) == {"a": 0.9, "b": 0.1}


def test_siblings_share_what_their_group_is_entitled_to() -> None:
    """Requests of 1 and 3 CPUs in ``kubepods``, beside a unit whose weight is that of 4."""
    groups = (
        CpuGroup("/kubepods", weight=4096),
        CpuGroup("/kubepods/pod", "/kubepods", 1024),
        CpuGroup("/kubepods/burst", "/kubepods", 3072),
        CpuGroup("/hog", weight=4096),
    )
    members = (
        CpuMember(POD, "/kubepods/pod"),
        CpuMember(BURST, "/kubepods/burst"),
        CpuMember(HOG, "/hog"),
    )
    shares = CpuShares(groups, members)
    assert entitled({POD: 8, BURST: 8, HOG: 8}, 8, shares) == {POD: 1, BURST: 3, HOG: 4}
    # what one pod leaves belongs to the other pod first
    assert entitled({POD: 8, BURST: 1, HOG: 8}, 8, shares) == {POD: 3, BURST: 1, HOG: 4}


def test_the_threads_of_a_group_itself_share_with_its_subgroups() -> None:
    groups = CpuGroup("/a"), CpuGroup("/a/b", "/a", weight=3072)
    shares = CpuShares(groups, (CpuMember("a", "/a"), CpuMember("b", "/a/b")))
    assert entitled({"a": 2, "b": 2}, 2, shares) == {"a": 0.5, "b": 1.5}


def test_a_quota_limits_the_share_and_others_get_the_rest() -> None:
    groups = CpuGroup("/a", limit=0.5), CpuGroup("/b")
    shares = CpuShares(groups, (CpuMember("a", "/a"), CpuMember("b", "/b")))
    assert entitled({"a": 2, "b": 2}, 2, shares) == {"a": 0.5, "b": 1.5}


def test_cpusets_that_overlap_in_part_share_what_they_have_in_common() -> None:
    shares = CpuShares((), (CpuMember("a", cpus="0-1"), CpuMember("b", cpus="1-2")))
    assert entitled({"a": 4, "b": 4}, 4, shares) == {"a": 1.5, "b": 1.5}
    assert set(entitled({"a": 4, "b": 4, "c": 4}, 4, shares).values()) == {1.333333}


def test_who_is_bound_to_a_cpu_is_entitled_to_it_beside_who_can_use_another() -> None:
    shares = CpuShares((), (CpuMember("bound", cpus="0"),))
    assert entitled({"bound": 1, "free": 2}, 2, shares) == {"bound": 1, "free": 1}


def test_two_that_are_bound_to_a_cpu_share_it() -> None:
    shares = CpuShares((), (CpuMember("a", cpus="0"), CpuMember("b", cpus="0")))
    assert entitled({"a": 1, "b": 1, "c": 2}, 2, shares) == {"a": 0.5, "b": 0.5, "c": 1}


def test_the_processes_of_an_autogroup_share_by_nice() -> None:
    groups = (CpuGroup("autogroup-7"),)
    members = CpuMember("a", "autogroup-7"), CpuMember("b", "autogroup-7", weight=15)
    found = entitled({"a": 2, "b": 2, "c": 2}, 2, CpuShares(groups, members))
    assert found["c"] == 1
    assert found["a"] == pytest.approx(1024 / 1039, abs=1e-5)


def test_groups_in_any_order_or_of_unusable_cpusets_are_a_tree() -> None:
    groups = CpuGroup("/a/b", "/a"), CpuGroup("/a", "/a/b", weight=0)
    shares = CpuShares(groups, (CpuMember("a", "/a", cpus="x"), CpuMember("b", "/a/b")))
    assert sum(entitled({"a": 2, "b": 2}, 2, shares).values()) == pytest.approx(2)


def test_only_what_is_missing_of_the_share_is_a_shortfall() -> None:
    missing = shortfall(np.array([1.0, 1.0, 0.0]), np.array([0.4, 1.6, 0.0]))
    assert missing.tolist() == pytest.approx([0.6, 0.0, 0.0])
