"""The address of Redis in the pods' environment, with credentials from a Secret."""

from __future__ import annotations

from reveal_contract.kube.names import (
    REDIS_AUTHORITY_FOLDER,
    REDIS_PASSWORD_VARIABLE,
    REDIS_USERNAME_VARIABLE,
    SENTINEL_PASSWORD_VARIABLE,
    SENTINEL_USERNAME_VARIABLE,
)
from reveal_contract.names import REDIS_VARIABLE
from reveal_contract.redis_address import is_of_sentinels, is_tls
from reveal_operator.manifests.common import Manifest, mount
from reveal_operator.profile import RedisCredentials, RedisSpec

AUTHORITY_VOLUME = "redis-authority"
AUTHORITY_FILE = "ca.crt"
# keys of the Secret, both optional
_SENTINEL_USERNAME_KEY, _SENTINEL_PASSWORD_KEY = "sentinelUsername", "sentinelPassword"


def address(redis: RedisSpec) -> str:
    """Return the URL with the options of TLS, named as in redis-py."""
    option = ""
    if not is_tls(redis.url):
        return redis.url
    if redis.insecure_skip_verify:
        option = "ssl_cert_reqs=none"
    elif redis.authority is not None:
        option = f"ssl_ca_certs={REDIS_AUTHORITY_FOLDER}/{AUTHORITY_FILE}"
    if not option:
        return redis.url
    return f"{redis.url}{'&' if '?' in redis.url else '?'}{option}"


def of_collector(redis: RedisSpec) -> list[Manifest]:
    """Return the environment of a collector, with a user of its own if there is one."""
    return _environment(redis, redis.collector_credentials or redis.credentials)


def of_analyzer(redis: RedisSpec) -> list[Manifest]:
    """Return the environment of an analyzer."""
    return _environment(redis, redis.credentials)


def _environment(redis: RedisSpec, secret: RedisCredentials | None) -> list[Manifest]:
    """Return the address, and user and password as the Secret has them when the pod starts."""
    variables: list[Manifest] = [{"name": REDIS_VARIABLE, "value": address(redis)}]
    if secret is not None:
        variables += [
            # a Secret without a user name is for the default user of Redis
            _from_secret(REDIS_USERNAME_VARIABLE, secret.name, secret.username_key, optional=True),
            _from_secret(REDIS_PASSWORD_VARIABLE, secret.name, secret.password_key, optional=False),
        ]
        variables += _of_sentinels(secret.name) if is_of_sentinels(redis.url) else []
    return variables


def _of_sentinels(secret: str) -> list[Manifest]:
    """Return user and password for Sentinels, which many installations do not ask for."""
    return [
        _from_secret(SENTINEL_USERNAME_VARIABLE, secret, _SENTINEL_USERNAME_KEY, optional=True),
        _from_secret(SENTINEL_PASSWORD_VARIABLE, secret, _SENTINEL_PASSWORD_KEY, optional=True),
    ]


def volumes(redis: RedisSpec) -> list[Manifest]:
    """Return the volume with the CA certificate, if the profile names one."""
    if not _has_authority(redis) or redis.authority is None:
        return []
    items = [{"key": redis.authority.key, "path": AUTHORITY_FILE}]
    return [
        {
            "name": AUTHORITY_VOLUME,
            "secret": {"secretName": redis.authority.name, "items": items},
        }
    ]


def mounts(redis: RedisSpec) -> list[Manifest]:
    """Return the mount of the CA certificate, if the profile names one."""
    return [mount(AUTHORITY_VOLUME, REDIS_AUTHORITY_FOLDER)] if _has_authority(redis) else []


def _has_authority(redis: RedisSpec) -> bool:
    trusted = redis.authority is not None and not redis.insecure_skip_verify
    return trusted and is_tls(redis.url)


def _from_secret(variable: str, secret: str, key: str, *, optional: bool) -> Manifest:
    reference = {"name": secret, "key": key, **({"optional": True} if optional else {})}
    return {"name": variable, "valueFrom": {"secretKeyRef": reference}}
