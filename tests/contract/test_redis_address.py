"""Redis URLs are parsed as in redis-py; errors never show a secret."""

from __future__ import annotations

from urllib.parse import quote

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE
from reveal_contract.redis_address import (
    CLUSTER_UNSUPPORTED,
    AddressError,
    RedisAddress,
    explained,
    parse_url,
    with_credentials,
)
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from support.property_tests import examples


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://", RedisAddress("localhost")),
        ("redis://db.example:7000/3", RedisAddress("db.example", 7000, database=3)),
        ("redis://u:p%40%2F@[::1]:1", RedisAddress("::1", 1, username="u", password="p@/")),
        ("redis://h?db=2&password=x&username=y", RedisAddress("h", 6379, "", "y", "x", 2)),
        ("redis://u:p@h?password=x", RedisAddress("h", username="u", password="p")),
        ("unix:///run/r.sock", RedisAddress(socket="/run/r.sock")),
        ("unix://:s@/a%20b.sock?db=1", RedisAddress(socket="/a b.sock", password="s", database=1)),
        (
            "rediss://h?ssl_cert_reqs=none&ssl_ca_certs=/ca",
            RedisAddress("h", tls=True, ssl_ca_certs="/ca", ssl_cert_reqs="none"),
        ),
    ],
)  # fmt: skip
def test_an_url_has_address_and_credentials(url: str, address: RedisAddress) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "must begin with"),
        ("http://h", "must begin with"),
        ("unix://", "path of a socket"),
        ("redis://h/x", "number"),
        ("redis://h?db=-1", "number"),
        ("redis://h:port", "port"),
        ("redis://u:sec#ret@h", "port"),
        ("redis://:?sec=ret@h", "escape special characters"),
        ("redis://:#sec@h", "escape special characters"),
        ("redis://[sec", "not a URL"),
        ("redis://h:99999", "port"),
        ("redis://h?nope=1", "no such option: nope"),
        ("rediss://h?ssl_cert_reqs=maybe", "ssl_cert_reqs"),
        ("redis+sentinel://h:26379/mymaster", "Cluster and Sentinel are not supported"),
        ("redis-cluster://h", "Cluster and Sentinel are not supported"),
        ("redis://u:sec@a:1,b:2/0", "Cluster and Sentinel are not supported"),
    ],
)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str, message: str) -> None:
    with pytest.raises(AddressError, match=message) as refused:
        parse_url(url)
    assert "sec" not in str(refused.value)
    for settings in (CollectorSettings("n", url), AnalyzerSettings(redis_url=url)):
        assert settings.problems() == [f"redisUrl: {refused.value}"]


WORDS = st.text("abc@:/#?%& é", min_size=1, max_size=8)


@given(WORDS, WORDS, st.integers(1, 65_535), st.integers(0, 99))
@examples(100)
def test_redis_py_parses_the_same_address(
    username: str, password: str, port: int, database: int
) -> None:
    given = f"{quote(username, safe='')}:{quote(password, safe='')}"
    url = f"redis://{given}@h.example:{port}/{database}"
    theirs = redis.Redis.from_url(url).connection_pool.connection_kwargs
    ours = parse_url(url)
    for name in ("host", "port", "username", "password"):
        assert getattr(ours, name) == theirs[name]
    assert ours.database == theirs.get("db", 0)


LOCATIONS = st.sampled_from(
    ("redis://h:1/2", "rediss://[::1]?ssl_cert_reqs=none", "unix:///run/r.sock", "redis://")
)


@given(LOCATIONS, st.just("") | WORDS, WORDS)
@examples(100)
def test_secrets_of_the_environment_come_back_as_they_are(
    url: str, username: str, password: str
) -> None:
    environment = {REDIS_USERNAME_VARIABLE: username, REDIS_PASSWORD_VARIABLE: f"{password}\n"}
    whole = parse_url(with_credentials(url, environment))
    assert (whole.username, whole.password) == (username, password)
    bare = parse_url(url)
    assert (whole.host, whole.socket, whole.tls) == (bare.host, bare.socket, bare.tls)


@pytest.mark.parametrize(
    "url", ["", "redis://u@h", "redis://:p@h", "redis://h?password=p", "nonsense"]
)
def test_an_url_with_secrets_of_its_own_keeps_them(url: str) -> None:
    environment = {REDIS_USERNAME_VARIABLE: "other", REDIS_PASSWORD_VARIABLE: "one"}
    assert with_credentials(url, environment) == url


def test_without_secrets_in_the_environment_an_url_stays() -> None:
    assert with_credentials("redis://h", {REDIS_PASSWORD_VARIABLE: "\n"}) == "redis://h"
    assert with_credentials("unix:///a@b.sock", {REDIS_PASSWORD_VARIABLE: "p"}) == (
        "unix://:p@/a@b.sock"
    )


def test_a_printed_address_has_no_password() -> None:
    assert "secret" not in repr(parse_url("redis://u:secret@h"))


def test_an_error_reply_is_explained_and_repeats_no_password() -> None:
    assert (
        explained("ERR unknown command 'AUTH' 'p4ss'", "p4ss") == "ERR unknown command 'AUTH' '***'"
    )
    assert explained("NOPERM this user") == "NOPERM this user"
    for reply in ("MOVED 3999 10.0.0.1:6381", "CLUSTERDOWN Hash slot not served"):
        assert explained(reply).startswith(CLUSTER_UNSUPPORTED)
