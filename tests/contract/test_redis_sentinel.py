"""Sentinels are asked in turn, within a limit of time; an error names each and no password."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.redis_address import RedisAddress, parse_url
from reveal_contract.redis_sentinel import NoPrimaryError, PrimarySearch, is_primary
from support.property_tests import examples

URL = "redis+sentinel://user:pw@a,b:2,[::1]:3/jobs/4?sentinel_password=s3cret"
PRIMARY = [b"10.0.0.9", b"6380"]
ANSWERS: dict[str, Any] = {
    "names it": PRIMARY, "unknown": None, "refuses": OSError("s3cret is wrong"), "odd": [b"x"],
    "no port": [b"h", b"p"],
}  # fmt: skip


class Group:
    """Sentinels with these replies; ``asked`` has the host and timeout of each call."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers, self.asked = answers, list[tuple[str, float]]()
        self.search = PrimarySearch(parse_url(URL), self._ask, (OSError,))

    def _ask(self, sentinel: RedisAddress, command: tuple[str, ...], timeout: float) -> Any:
        assert command == ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "jobs")
        assert (sentinel.username, sentinel.password, sentinel.database) == ("", "s3cret", 0)
        self.asked.append((sentinel.host, timeout))
        answer = self.answers[sentinel.host]
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    @property
    def hosts(self) -> list[str]:
        return [host for host, _ in self.asked]


@given(
    st.fixed_dictionaries({host: st.sampled_from(sorted(ANSWERS)) for host in ("a", "b", "::1")})
)
@examples(60)
def test_the_first_that_names_a_primary_decides(replies: dict[str, str]) -> None:
    group = Group({host: ANSWERS[kind] for host, kind in replies.items()})
    if "names it" in replies.values():
        found = group.search.find(1.0)
        assert found == RedisAddress("10.0.0.9", 6380, "", "user", "pw", 4)
        assert [replies[host] == "names it" for host in group.hosts].index(True) == (
            len(group.hosts) - 1
        )
    else:
        with pytest.raises(
            NoPrimaryError, match="no Sentinel names a primary of jobs: "
        ) as refused:
            group.search.find(1.0)
        assert sorted(group.hosts) == ["::1", "a", "b"]
        assert all(text in str(refused.value) for text in ("a:26379: ", "b:2: ", "::1:3: "))
        assert "s3cret" not in str(refused.value)


def test_each_search_begins_with_the_next_sentinel() -> None:
    group = Group(dict.fromkeys(("a", "b", "::1"), PRIMARY))
    for _ in range(6):
        group.search.find(1.0)
    assert sorted(group.hosts[:3]) == ["::1", "a", "b"]
    assert group.hosts[3:] == group.hosts[:3]


def test_processes_do_not_all_begin_with_the_same_sentinel() -> None:
    first = set()
    for _ in range(100):
        group = Group(dict.fromkeys(("a", "b", "::1"), PRIMARY))
        group.search.find(1.0)
        first.add(group.hosts[0])
    assert len(first) == 3


def test_a_search_takes_no_longer_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Sentinel that is away takes the whole of its timeout twice: to connect, and to reply."""
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def is_away() -> Any:
        nonlocal now
        now += 2 * group.asked[-1][1]
        raise OSError("timed out")

    away: Callable[[], Any] = is_away
    group = Group(dict.fromkeys(("a", "b", "::1"), away))
    with pytest.raises(NoPrimaryError):
        group.search.find(0.9)
    assert len(group.asked) == 3
    assert now == pytest.approx(0.9)


def test_an_address_without_sentinels_has_none_to_ask() -> None:
    with pytest.raises(ValueError, match="not an address of Sentinels"):
        PrimarySearch(parse_url("redis://h"), lambda *_: None, (OSError,))


@pytest.mark.parametrize(("role", "expected"), [(b"master", True), (b"replica", False)])
def test_the_role_is_in_the_reply_of_the_server(role: bytes, expected: bool) -> None:
    reply = [b"server", b"redis", b"proto", 2, b"role", role, b"modules", []]
    assert is_primary(reply) is expected
    assert not is_primary([])
