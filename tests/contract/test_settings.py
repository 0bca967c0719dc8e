"""Settings: one side renders what the other parses, and one error lists every bad field."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.settings import (
    MODES,
    SENSITIVITIES,
    AnalyzerSettings,
    CollectorSettings,
    SettingsError,
)

COLLECTOR = {"node": "n1", "redisUrl": "unix:///run/redis.sock"}


@given(
    st.sampled_from(MODES), st.sampled_from(SENSITIVITIES), st.integers(1, 60), st.integers(10, 999)
)
def test_analyzer_settings_survive_the_way(
    mode: str, sensitivity: str, window: int, warmup: int
) -> None:
    settings = AnalyzerSettings(
        mode=mode, sensitivity=sensitivity, window_seconds=window, warmup_seconds=warmup
    )
    assert AnalyzerSettings.from_json(settings.to_json()) == settings
    assert AnalyzerSettings.from_json(settings.lenient_json()) == settings


def test_collector_settings_survive_the_way() -> None:
    settings = CollectorSettings("n1", "redis://r:6379/0", include=("stat", "vmstat"))
    assert CollectorSettings.from_json(settings.to_json()) == settings


def test_rendering_is_stable_and_camel_case() -> None:
    text = AnalyzerSettings().to_json()
    assert text == AnalyzerSettings().to_json()
    assert list(json.loads(text)) == sorted(json.loads(text))
    assert "windowSeconds" in json.loads(text)


def test_snake_case_is_taken_too() -> None:
    assert AnalyzerSettings.from_mapping({"warmup_seconds": 20}).warmup_seconds == 20


def test_the_former_name_of_publish_is_taken_too() -> None:
    """Operator and analyzer may be of different versions."""
    assert AnalyzerSettings.from_mapping({"report": "observe"}).publish == "observe"
    with pytest.raises(SettingsError, match=r"^report: is the same setting as publish$"):
        AnalyzerSettings.from_mapping({"publish": "none", "report": "observe"})


def test_defaults_are_good() -> None:
    assert AnalyzerSettings().problems() == []
    assert CollectorSettings.from_mapping(COLLECTOR).problems() == []


def test_an_error_lists_every_bad_field() -> None:
    with pytest.raises(SettingsError) as caught:
        CollectorSettings.from_mapping(
            {
                "node": 5,
                "wrongName": 1,
                "maxSubjects": "many",
                "include": "stat",
                "metricsPort": True,
            }
        )
    messages = str(caught.value).split("; ")
    assert [line.split(":")[0] for line in messages] == [
        "node", "wrongName", "maxSubjects", "include", "metricsPort", "redisUrl",
    ]  # fmt: skip


def test_wrong_types_and_wrong_values_are_listed_together() -> None:
    with pytest.raises(SettingsError) as caught:
        AnalyzerSettings.from_mapping({"mode": "magic", "windowSeconds": "3", "warmupSeconds": 1})
    for name in ("mode", "windowSeconds", "warmupSeconds"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("samplePeriodMilliseconds", 10),
        ("samplePeriodMilliseconds", 2000),
        ("samplePeriodMilliseconds", 300),
        ("node", ""),
        ("node", "n" * 254),
        ("bufferSeconds", 0),
        ("streamSeconds", 0),
        ("cpuBudgetMillicores", 0),
        ("maxSubjects", -1),
        ("metricsPort", 65_536),
        ("metricsPort", -1),
        ("metricsAccessFolder", "/access"),  # and no port
        ("redisUrl", "localhost:6379"),
        ("profile", ""),
        ("profile", "a{b}"),
        ("profile", "a:b"),
        ("profile", "a\n"),
    ],
)
def test_collector_values_out_of_range_are_named(field: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"^{field}: "):
        CollectorSettings.from_mapping({**COLLECTOR, field: value})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"sensitivity": "Huge"}, "sensitivity"),
        ({"strideSeconds": 4}, "windowSeconds"),
        ({"windowSeconds": 61}, "windowSeconds"),
        ({"strideSeconds": 0}, "strideSeconds"),
        ({"redisUrl": "http://x"}, "redisUrl"),
        ({"evidenceStore": "disk"}, "evidenceStore"),
        ({"evidenceStore": "folder"}, "evidenceFolder"),
        ({"evidenceFolder": "/x"}, "evidenceFolder"),
        ({"evidenceRetentionSeconds": 599}, "evidenceRetentionSeconds"),
        ({"evidenceMaxBytes": 16_383}, "evidenceMaxBytes"),
        ({"evidenceMaxBytes": 1_048_577}, "evidenceMaxBytes"),
        ({"evidenceHistoryHours": 169}, "evidenceHistoryHours"),
        ({"evidenceHistoryHours": 24, "evidenceStore": "none"}, "evidenceHistoryHours"),
    ],
)
def test_analyzer_values_out_of_range_are_named(given: dict[str, object], field: str) -> None:
    with pytest.raises(SettingsError, match=f"^{field}: "):
        AnalyzerSettings.from_mapping(given)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000])
def test_a_document_that_is_no_json_object_is_an_error(text: str) -> None:
    with pytest.raises(SettingsError, match="JSON"):
        AnalyzerSettings.from_json(text)


_values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers())


@given(
    st.dictionaries(
        st.sampled_from([spec.name for spec in fields(CollectorSettings)]) | st.text(max_size=5),
        _values,
    )
)
def test_any_mapping_gives_valid_settings_or_a_settings_error(given: dict[str, object]) -> None:
    try:
        settings = CollectorSettings.from_mapping(given)
    except SettingsError as error:
        assert str(error)
    else:
        assert settings.problems() == []
        assert CollectorSettings.from_json(settings.to_json()) == settings


def test_a_file_for_several_versions_may_have_unknown_settings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pods of an earlier image read the file of a newer operator during a roll-out."""
    later = json.loads(AnalyzerSettings(mode="paper").lenient_json()) | {"laterSetting": [1]}
    assert AnalyzerSettings.from_json(json.dumps(later)) == AnalyzerSettings(mode="paper")
    assert "laterSetting is not known to this version" in caplog.text


def test_a_file_that_somebody_wrote_may_not() -> None:
    with pytest.raises(SettingsError, match="laterSetting: no such setting"):
        AnalyzerSettings.from_json('{"laterSetting": 1}')


def test_settings_that_are_left_out_are_not_in_the_file() -> None:
    text = CollectorSettings("n", "redis://r").lenient_json(leave_out=("node", "redisUrl"))
    assert not {"node", "redisUrl"} & json.loads(text).keys()


@pytest.mark.parametrize("percent", [0, 101])
def test_the_share_of_nodes_is_bounded(percent: int) -> None:
    with pytest.raises(SettingsError, match="maxNodeConditionsPercent: must be between 1 and 100"):
        AnalyzerSettings.from_mapping({"maxNodeConditionsPercent": percent})
