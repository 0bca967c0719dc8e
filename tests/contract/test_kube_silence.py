"""The annotations of a silenced report: what the plugin writes, analyzers and people read."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_contract.kube.names import ANNOTATION_SILENCED_BECAUSE, ANNOTATION_SILENCED_UNTIL
from reveal_contract.kube.silence import (
    MAX_REASON_BYTES,
    NO_SILENCE,
    Silence,
    is_silenced,
    silence_of,
)

UNTIL_NS = 1_700_000_000_000_000_000


def annotated(annotations: object) -> dict[str, Any]:
    return {"metadata": {"name": "p-n1-cpu-1", "annotations": annotations}}


def test_a_silence_is_read_as_it_was_written() -> None:
    silence = Silence(UNTIL_NS, "new memory")
    assert silence_of(annotated(silence.to_annotations())) == silence
    assert silence.to_annotations().keys() == NO_SILENCE.keys()


def test_a_silence_ends_when_its_time_is_over() -> None:
    found = annotated(Silence(UNTIL_NS, "new memory").to_annotations())
    assert is_silenced(found, UNTIL_NS - 1)
    assert not is_silenced(found, UNTIL_NS)


@pytest.mark.parametrize(
    "text", ["2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "2023-11-14 22:13:20.5+00:00"]
)
def test_a_time_with_any_zone_is_read(text: str) -> None:
    silence = silence_of(annotated({ANNOTATION_SILENCED_UNTIL: text}))
    assert silence == Silence(UNTIL_NS, "")


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2h", "2023-11-14T22:13:20", "0001-01-01T00:00:00+14:00", None, 7, []]
)
def test_a_text_that_is_no_time_silences_nothing(text: object) -> None:
    found = annotated({ANNOTATION_SILENCED_UNTIL: text})
    assert silence_of(found) is None
    assert not is_silenced(found, 0)


@pytest.mark.parametrize("found", [{}, {"metadata": None}, annotated(None), annotated({})])
def test_a_report_without_annotations_is_not_silenced(found: dict[str, Any]) -> None:
    assert silence_of(found) is None


def test_a_long_reason_is_shortened() -> None:
    found = annotated(
        {ANNOTATION_SILENCED_UNTIL: "2023-11-14T22:13:20Z", ANNOTATION_SILENCED_BECAUSE: "x" * 9999}
    )
    silence = silence_of(found)
    assert silence is not None
    assert len(silence.reason.encode()) == MAX_REASON_BYTES
    assert silence.to_annotations()[ANNOTATION_SILENCED_BECAUSE] == silence.reason
