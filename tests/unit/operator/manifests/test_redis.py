"""The address of Redis, or of Sentinels, in the environment of pods, and the logins."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_contract.redis_address import parse_url, with_credentials
from reveal_operator.manifests import redis
from reveal_operator.profile import RedisCredentials, RedisSpec, SecretKey

SENTINELS = "redis+sentinel://a.example:26379,b.example/jobs/2"
LOGIN = RedisCredentials("login")


def names(environment: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in environment]


@pytest.mark.parametrize(
    ("url", "extra"),
    [
        ("redis://a.example/2", []),
        (SENTINELS, ["REVEAL_REDIS_SENTINEL_USERNAME", "REVEAL_REDIS_SENTINEL_PASSWORD"]),
    ],
)
def test_the_login_of_sentinels_is_asked_for_only_with_sentinels(
    url: str, extra: list[str]
) -> None:
    expected = ["REVEAL_REDIS_URL", "REVEAL_REDIS_USERNAME", "REVEAL_REDIS_PASSWORD", *extra]
    assert names(redis.of_analyzer(RedisSpec(url, credentials=LOGIN))) == expected


def test_the_login_of_sentinels_may_be_missing_in_the_secret() -> None:
    found = redis.of_analyzer(RedisSpec(SENTINELS, credentials=LOGIN))
    for each in found[-2:]:
        assert each["valueFrom"]["secretKeyRef"]["optional"] is True
    assert [each["valueFrom"]["secretKeyRef"]["key"] for each in found[-2:]] == [
        "sentinelUsername", "sentinelPassword",
    ]  # fmt: skip


def test_a_pod_finds_the_sentinels_with_both_logins() -> None:
    spec = RedisSpec(
        SENTINELS.replace("redis", "rediss"), SecretKey("ca", "ca.crt"), credentials=LOGIN
    )
    (url, *_) = redis.of_analyzer(spec)
    address = parse_url(
        with_credentials(
            url["value"],
            {
                "REVEAL_REDIS_PASSWORD": "data",
                "REVEAL_REDIS_SENTINEL_PASSWORD": "asking\n",
            },
        )
    )
    assert address.password == "data"
    assert (address.tls, address.database) == (True, 2)
    assert address.ssl_ca_certs.endswith("/ca.crt")
    assert [(each.host, each.port, each.password) for each in address.of_sentinels()] == [
        ("a.example", 26379, "asking"),
        ("b.example", 26379, "asking"),
    ]
    assert redis.mounts(spec)
