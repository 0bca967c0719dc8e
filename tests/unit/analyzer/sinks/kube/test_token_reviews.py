"""Whose token it is: each is reviewed once, and only those of collectors of the profile count."""

from __future__ import annotations

import time
from typing import Any

import pytest

from reveal_analyzer.sinks.kube import token_reviews
from reveal_analyzer.sinks.kube.token_reviews import TokenReviews
from reveal_analyzer.stream.origin import TokenOwner
from reveal_contract.kube.errors import ForbiddenError, InvalidObjectError, UnavailableError
from reveal_contract.kube.names import COLLECTOR, child_name
from reveal_contract.origin import AUDIENCE
from support.fake_kube import FakeKube

POD = f"{child_name(COLLECTOR, 'p')}-x7k2p"
ACCOUNT = "system:serviceaccount:reveal-system:reveal-collector"
NODE_NAME, POD_NAME = token_reviews._NODE_NAME, token_reviews._POD_NAME


def valid(**changed: Any) -> dict[str, Any]:
    """The status of the review of a token of the collector on n1."""
    user = {"username": ACCOUNT, "extra": {NODE_NAME: ["n1"], POD_NAME: [POD]}}
    status = {"authenticated": True, "audiences": [AUDIENCE], "user": user, **changed}
    return {key: value for key, value in status.items() if value is not None}


def reviewed(status: dict[str, Any], node: str = "n1") -> TokenOwner:
    api = FakeKube()
    api.tokens["t"] = status
    reviews = TokenReviews(api, "p", "reveal-system")
    assert reviews.owner(node, b"t") is TokenOwner.PENDING
    reviews.step(time.monotonic())
    return reviews.owner(node, b"t")


def test_a_token_of_the_collector_on_the_node() -> None:
    assert reviewed(valid()) is TokenOwner.NODE


@pytest.mark.parametrize(
    "user",
    [
        {"username": "system:serviceaccount:reveal-system:reveal-collector"},
        {"username": ACCOUNT, "extra": {NODE_NAME: ["n1"]}},
        {"username": ACCOUNT, "extra": {NODE_NAME: ["n2"], POD_NAME: [POD]}},
        {"username": ACCOUNT, "extra": {NODE_NAME: ["n1"], POD_NAME: ["reveal-collector-q-a"]}},
        {
            "username": "system:serviceaccount:tenant:reveal-collector",
            "extra": {NODE_NAME: ["n1"], POD_NAME: [POD]},
        },
        {"username": "system:node:n1", "extra": {NODE_NAME: ["n1"], POD_NAME: [POD]}},
        {},
    ],
)
def test_a_token_of_something_else(user: dict[str, Any]) -> None:
    assert reviewed(valid(user=user)) is TokenOwner.FOREIGN


@pytest.mark.parametrize(
    "status",
    [{}, valid(authenticated=False), valid(audiences=["https://kubernetes.default.svc"]),
     valid(audiences=None)],
)  # fmt: skip
def test_a_token_that_is_not_valid_is_of_nobody(status: dict[str, Any]) -> None:
    assert reviewed(status) is TokenOwner.NOBODY


def test_a_token_is_reviewed_once_for_each_node_that_has_it() -> None:
    api = FakeKube()
    api.tokens["t"] = valid()
    reviews = TokenReviews(api, "p", "reveal-system")
    for _ in range(3):
        reviews.owner("n1", b"t")
        reviews.owner("n2", b"t")
        reviews.step(time.monotonic())
    assert reviews.owner("n1", b"t") is TokenOwner.NODE
    assert reviews.owner("n2", b"t") is TokenOwner.FOREIGN
    assert len(api.calls) == 2


def test_without_the_right_nothing_is_known_until_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = FakeKube()
    api.tokens["t"] = valid()
    api.fail = lambda name, about: ForbiddenError("no")
    reviews = TokenReviews(api, "p", "reveal-system")
    reviews.owner("n1", b"t")
    reviews.step(time.monotonic())
    assert reviews.owner("n1", b"t") is TokenOwner.UNKNOWN
    assert not reviews.waiting
    api.fail = lambda name, about: None
    monkeypatch.setattr(reviews, "_forbidden_s", time.monotonic())
    assert reviews.owner("n1", b"t") is TokenOwner.PENDING
    reviews.step(time.monotonic())
    assert reviews.owner("n1", b"t") is TokenOwner.NODE


def test_an_outage_leaves_tokens_waiting() -> None:
    api = FakeKube()
    api.tokens["t"] = valid()
    api.fail = lambda name, about: UnavailableError("away")
    reviews = TokenReviews(api, "p", "reveal-system")
    reviews.owner("n1", b"t")
    with pytest.raises(UnavailableError):
        reviews.step(time.monotonic())
    assert reviews.owner("n1", b"t") is TokenOwner.PENDING
    api.fail = lambda name, about: None
    reviews.step(time.monotonic())
    assert reviews.owner("n1", b"t") is TokenOwner.NODE


def test_a_token_that_the_server_refuses_holds_back_no_other() -> None:
    api = FakeKube()
    api.tokens["t"] = valid()
    api.fail = lambda name, about: InvalidObjectError("bad") if about == "bad" else None
    reviews = TokenReviews(api, "p", "reveal-system")
    reviews.owner("n1", b"bad")
    reviews.owner("n1", b"t")
    reviews.step(time.monotonic())
    assert reviews.owner("n1", b"bad") is TokenOwner.NOBODY
    assert reviews.owner("n1", b"t") is TokenOwner.NODE


def test_only_the_last_reviews_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_reviews, "MOST_KNOWN", 2)
    api = FakeKube()
    reviews = TokenReviews(api, "p", "reveal-system")
    for number in range(4):
        reviews.owner("n1", b"%d" % number)
        reviews.step(time.monotonic())
    assert reviews.owner("n1", b"3") is TokenOwner.NOBODY
    assert reviews.owner("n1", b"0") is TokenOwner.PENDING
