"""Redis URLs: what redis-py takes is taken alike, all else is refused without showing a secret."""

from __future__ import annotations

from urllib.parse import quote

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from exploring import examples
from reveal_collector.resp import Address, parse_url
from reveal_contract.settings import SettingsError


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://", Address("localhost")),
        ("redis://db.example:7000/3", Address("db.example", 7000, database=3)),
        ("redis://u:p%40%2F@[::1]:1", Address("::1", 1, username="u", password="p@/")),
        ("redis://h?db=2&password=x&username=y", Address("h", 6379, "", "y", "x", 2)),
        ("unix:///run/r.sock", Address(socket="/run/r.sock")),
        ("unix://:s@/a%20b.sock?db=1", Address(socket="/a b.sock", password="s", database=1)),
        (
            "rediss://h?ssl_cert_reqs=none&ssl_ca_certs=/ca",
            Address("h", tls=True, ssl_ca_certs="/ca", ssl_cert_reqs="none"),
        ),
    ],
)  # fmt: skip
def test_an_url_says_where_and_as_whom(url: str, address: Address) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("nonsense", "must begin with"),
        ("http://h", "must begin with"),
        ("unix://", "path of a socket"),
        ("redis://h/x", "number"),
        ("redis://h?db=-1", "number"),
        ("redis://h:port", "port"),
        ("redis://u:sec#ret@h", "port"),
        ("redis://h:99999", "port"),
        ("redis://h?nope=1", "no such option: nope"),
        ("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs"),
    ],
)
def test_what_is_no_redis_url_is_refused_in_a_sentence_without_its_password(
    url: str, said: str
) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        parse_url(url)
    assert "sec" not in str(refused.value)


WORDS = st.text("abc@:/#?%& é", min_size=1, max_size=8)


@given(WORDS, WORDS, st.integers(1, 65_535), st.integers(0, 99))
@examples(100)
def test_redis_py_reads_the_same_out_of_it(
    username: str, password: str, port: int, database: int
) -> None:
    given = f"{quote(username, safe='')}:{quote(password, safe='')}"
    url = f"redis://{given}@h.example:{port}/{database}"
    theirs = redis.Redis.from_url(url).connection_pool.connection_kwargs
    ours = parse_url(url)
    for name in ("host", "port", "username", "password"):
        assert getattr(ours, name) == theirs[name]
    assert ours.database == theirs.get("db", 0)


def test_a_connection_begins_with_who_and_where() -> None:
    assert Address("h").greeting() == []
    assert Address("h", password="p", database=2).greeting() == [("AUTH", "p"), ("SELECT", 2)]
    assert Address("h", username="u", password="p").greeting() == [("AUTH", "u", "p")]
