"""Redis URLs are parsed as in redis-py; errors never show a secret."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.kube.names import (
    REDIS_PASSWORD_VARIABLE,
    REDIS_USERNAME_VARIABLE,
    SENTINEL_PASSWORD_VARIABLE,
    SENTINEL_USERNAME_VARIABLE,
)
from reveal_contract.redis_address import (
    IS_OF_CLUSTER,
    AddressError,
    RedisAddress,
    Sentinels,
    explained,
    is_of_sentinels,
    is_tls,
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
        (
            "redis+sentinel://u:p%40@a:1,[::1],b.example/my-jobs/3?sentinel_username=s",
            RedisAddress(
                "", 6379, "", "u", "p@", 3,
                sentinels=Sentinels(
                    "my-jobs", (("a", 1), ("::1", 26379), ("b.example", 26379)), "s"
                ),
            ),
        ),
        (
            "rediss+sentinel://a/m?ssl_ca_certs=/ca&sentinel_password=p&db=2&password=q",
            RedisAddress(
                "", password="q", database=2, tls=True, ssl_ca_certs="/ca",
                sentinels=Sentinels("m", (("a", 26379),), password="p"),
            ),
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
        ("redis-cluster://h", r"must begin with .*redis\+cluster://"),
        ("redis://u:sec@a:1,b:2/0", r"one Redis; for several servers .*redis\+cluster://"),
        ("redis+cluster://", "needs the hosts of servers of the Redis Cluster"),
        ("redis+cluster://a,,b", "needs the hosts of servers of the Redis Cluster"),
        ("redis+cluster://a:0", "with numbers as ports"),
        ("redis+cluster://u:sec#ret@a", "escape special characters"),
        ("redis+cluster://a,b/1", "only the database 0"),
        ("redis+cluster://a,b/x", "the database must be a number"),
        ("redis-sentinel://h/m", r"must begin with .*redis\+sentinel://"),
        ("redis+sentinel://", "needs the hosts of Sentinels"),
        ("redis+sentinel:///m", "needs the hosts of Sentinels"),
        ("redis+sentinel://a,,b/m", "needs the hosts of Sentinels"),
        ("redis+sentinel://a:0/m", "needs the hosts of Sentinels, .* with numbers as ports"),
        ("redis+sentinel://a:65536/m", "needs the hosts of Sentinels, .* with numbers as ports"),
        ("redis+sentinel://::1/m", "needs the hosts of Sentinels"),
        ("redis+sentinel://u:sec#ret@h/m", "escape special characters"),
        ("redis+sentinel://u:1/sec@h/m", "needs the name of the service"),
        ("redis+sentinel://u:[sec@h/m", "escape special characters"),
        ("redis+sentinel://h", "needs the name of the service"),
        ("redis+sentinel://h//", "needs the name of the service"),
        ("redis+sentinel://h/a%20b", "needs the name of the service"),
        ("redis+sentinel://h/m/x", "the database must be a number"),
        ("redis+sentinel://h/m?nope=1", "no such option: nope"),
        ("redis://h?sentinel_password=secret", "no such option: sentinel_password"),
    ],
)
def test_an_invalid_url_is_refused_without_showing_its_password(url: str, message: str) -> None:
    with pytest.raises(AddressError, match=message) as refused:
        parse_url(url)
    assert "sec" not in str(refused.value)
    for settings in (CollectorSettings("n", url), AnalyzerSettings(redis_url=url)):
        assert settings.problems() == [f"redisUrl: {refused.value}"]


PORTS = st.none() | st.integers(1, 65_535)
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


HOSTS = st.one_of(
    st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True),
    st.ip_addresses().map(str),
)


def authority(hosts: list[tuple[str, int | None]]) -> str:
    """The hosts as in a URL, those that are IPv6 addresses in brackets."""
    return ",".join(
        (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
        for host, port in hosts
    )


@given(
    st.lists(st.tuples(HOSTS, PORTS), min_size=1, max_size=5),
    st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True),
    st.none() | st.integers(0, 99),
    st.tuples(WORDS, WORDS, WORDS, WORDS),
    st.booleans(),
)
@examples(150)
def test_an_url_of_sentinels_has_all_its_parts(
    hosts: list[tuple[str, int | None]],
    service: str,
    database: int | None,
    secrets: tuple[str, ...],
    tls: bool,
) -> None:
    user, password, asker, word = (quote(secret, safe="") for secret in secrets)
    url = (
        f"redis{'s' * tls}+sentinel://{user}:{password}@{authority(hosts)}/{service}"
        f"{'' if database is None else f'/{database}'}"
        f"?sentinel_username={asker}&sentinel_password={word}"
    )
    found = parse_url(url)
    known = tuple((host, port or 26379) for host, port in hosts)
    assert found.sentinels == Sentinels(service, known, *secrets[2:])
    assert (found.username, found.password) == secrets[:2]
    assert (found.database, found.tls) == (database or 0, tls)
    assert (is_of_sentinels(url), is_tls(url)) == (True, tls)
    asked = found.of_sentinels()
    assert [(each.host, each.port) for each in asked] == list(known)
    assert {(each.username, each.password, each.database) for each in asked} == {(*secrets[2:], 0)}
    assert found.with_server("p", 1) == RedisAddress("p", 1, "", *secrets[:2], database or 0, tls)


@given(st.lists(st.tuples(HOSTS, PORTS), min_size=1, max_size=5), WORDS, WORDS, st.booleans())
@examples(100)
def test_an_url_of_a_cluster_has_all_its_parts(
    hosts: list[tuple[str, int | None]], user: str, password: str, tls: bool
) -> None:
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    url = f"redis{'s' * tls}+cluster://{login}@{authority(hosts)}/0"
    found = parse_url(url)
    assert found.seeds == tuple((host, port or 6379) for host, port in hosts)
    assert (found.username, found.password, found.tls) == (user, password, tls)
    assert is_tls(url) == tls
    own = RedisAddress("p", 1, "", user, password, 0, tls, is_of_cluster=True)
    assert found.with_server("p", 1) == own
    assert found.of_seeds() == [own.with_server(*each) for each in found.seeds]


@given(st.text("redis+sentinel:/@,?#[]%&=ab1.", max_size=40))
@examples(300)
def test_any_text_is_an_address_or_has_a_sentence(text: str) -> None:
    for url in (text, f"redis+sentinel://{text}", f"redis+cluster://{text}"):
        try:
            parse_url(url)
        except AddressError as error:
            assert str(error)


LOCATIONS = st.sampled_from((
    "redis://h:1/2", "rediss://[::1]?ssl_cert_reqs=none", "unix:///run/r.sock", "redis://",
    "redis+cluster://a,b:1", "redis+sentinel://a,b/m", "rediss+sentinel://[::1]:1/m/2?ssl_cert_reqs=none",
))  # fmt: skip


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
    assert whole.sentinels == bare.sentinels


@given(LOCATIONS, WORDS, st.just("") | WORDS)
@examples(100)
def test_secrets_for_sentinels_are_theirs_alone(url: str, username: str, password: str) -> None:
    environment = {
        SENTINEL_USERNAME_VARIABLE: username,
        SENTINEL_PASSWORD_VARIABLE: f"{password}\n",
    }
    whole, bare = parse_url(with_credentials(url, environment)), parse_url(url)
    if bare.sentinels is not None:
        assert whole.sentinels is not None
        assert (whole.sentinels.username, whole.sentinels.password) == (username, password)
    assert replace(whole, sentinels=None) == replace(bare, sentinels=None)
    own = "redis+sentinel://h/m?sentinel_password=mine"
    assert with_credentials(own, environment) == own


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
    assert "secret" not in repr(parse_url("redis+sentinel://h/m?sentinel_password=secret"))


def test_an_error_reply_is_explained_and_repeats_no_password() -> None:
    reply, server = "ERR unknown command 'AUTH' 'p4ss'", RedisAddress(password="p4ss")
    assert explained(reply, server) == "ERR unknown command 'AUTH' '***'"
    assert explained("NOPERM this user", RedisAddress()) == "NOPERM this user"
    for reply in ("MOVED 3999 10.0.0.1:6381", "CLUSTERDOWN Hash slot not served"):
        assert explained(reply, RedisAddress()).startswith(IS_OF_CLUSTER)
        assert explained(reply, RedisAddress(is_of_cluster=True)) == reply
