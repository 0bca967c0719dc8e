"""What a profile may name, where flags of the operator limit it: pure.

Without limits, whoever may write RevealProfiles is root on the nodes that they select, can send
each Secret of the namespace to an address of their own, and have analyzers write to each
PersistentVolumeClaim of the namespace and read each of its ConfigMaps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reveal_operator.profile import Profile, ProfileLimits

_VALUE = "the value profileLimits.{} of the chart"
_IMAGE_ENDS = ("/", ":", "@")  # of a registry or a repository in a reference


def refusals(profile: Profile, limits: ProfileLimits) -> list[str]:
    """Return a sentence for each field that names what the limits do not permit."""
    return [
        f"spec.{field}: {named} is not permitted: name another, or ask whoever installed Reveal to"
        f" add it to {_VALUE.format(value)}"
        for field, named, value, permitted in _named(profile, limits)
        if not permitted
    ]


def _named(profile: Profile, limits: ProfileLimits) -> Iterator[tuple[str, str, str, bool]]:
    """Yield field, what it names, the value of the chart, and whether that is permitted."""
    yield from _named_by_beginning(profile, limits)
    yield from _named_exactly(profile, limits)


def _named_by_beginning(
    profile: Profile, limits: ProfileLimits
) -> Iterator[tuple[str, str, str, bool]]:
    for component, image in (
        ("collector", profile.collector.image),
        ("analyzer", profile.analyzer.image),
    ):
        if image:
            permitted = _begins(image, limits.images, _IMAGE_ENDS)
            yield f"{component}.image", image, "images", permitted
    for path in profile.collector.extra_host_paths:
        permitted = _begins(path, limits.host_paths, ("/",))
        yield "collector.extraHostPaths", path, "hostPaths", permitted
    for field, address in _addresses(profile):
        yield field, address, "addresses", _begins(address, limits.addresses, ("/",))


def _named_exactly(profile: Profile, limits: ProfileLimits) -> Iterator[tuple[str, str, str, bool]]:
    for field, secret in _secrets(profile):
        yield field, secret, "secrets", secret in limits.secrets
    if claim := profile.evidence.claim_name:
        yield "evidence.claimName", claim, "claims", claim in limits.claims
    if name := profile.analyzer.hypotheses:
        field = "analyzer.hypothesesConfigMapRef.name"
        yield field, name, "configMaps", name in limits.config_maps


def _addresses(profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.redis is not None:
        yield "redis.url", profile.redis.url
    if profile.reporting.otlp is not None:
        yield "reporting.otlp.endpoint", profile.reporting.otlp.endpoint


def _secrets(profile: Profile) -> Iterator[tuple[str, str]]:
    redis, otlp = profile.redis, profile.reporting.otlp
    if redis is not None and redis.credentials is not None:
        yield "redis.credentialsSecretRef.name", redis.credentials.name
    if redis is not None and redis.collector_credentials is not None:
        yield "redis.collectorCredentialsSecretRef.name", redis.collector_credentials.name
    if redis is not None and redis.authority is not None:
        yield "redis.tls.caSecretRef.name", redis.authority.name
    if otlp is not None and otlp.headers is not None:
        yield "reporting.otlp.headersSecretRef.name", otlp.headers.name


def _begins(named: str, permitted: Iterable[str], ends: tuple[str, ...]) -> bool:
    """Return whether a name is permitted, or begins with whole parts of one that is."""
    return any(
        named == each or named.startswith(tuple(f"{each.rstrip('/')}{end}" for end in ends))
        for each in permitted
    )
