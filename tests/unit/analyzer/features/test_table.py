import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.features.numpy_impl import calculators
from reveal_analyzer.features.prepared import prepare
from reveal_analyzer.features.table import (
    FEATURES,
    FITS,
    SUM_ROW,
    Feature,
    FeatureFamily,
    FeatureNameError,
    column_name,
    column_names,
    columns,
    parse,
)
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Role

METRICS = st.from_regex(r"\A[a-z]{1,8}(\.[a-z0-9]+(_[a-z0-9]+){0,2}){1,2}\Z")


@given(METRICS, st.text(max_size=20), st.sampled_from(FEATURES))
def test_a_name_is_parsed_into_its_parts(metric: str, instance: str, feature: Feature) -> None:
    channel = Channel(metric, instance).label
    name = column_name(channel, feature)
    parsed = parse(name)
    assert parsed == (channel, feature.name, dict(feature.params))
    assert (parsed.name, parsed.metric) == (name, metric)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("cpu.busy__variance", ("cpu.busy", "variance", {})),
        (
            "cpu.busy{a__b}__autocorrelation__lag_1",
            ("cpu.busy{a__b}", "autocorrelation", {"lag": 1}),
        ),
        (
            'cpu.busy__agg_linear_trend__attr_"slope"__chunk_len_10__f_agg_"mean"',
            (
                "cpu.busy",
                "agg_linear_trend",
                {"attr": "slope", "chunk_len": 10, "f_agg": "mean"},
            ),
        ),
        (
            'disk.read__change_quantiles__f_agg_"var"__isabs_True__qh_0.8__ql_0.2',
            (
                "disk.read",
                "change_quantiles",
                {"f_agg": "var", "isabs": True, "qh": 0.8, "ql": 0.2},
            ),
        ),
    ],
)
def test_names_of_tsfresh_are_understood(
    name: str, parts: tuple[str, str, dict[str, object]]
) -> None:
    parsed = parse(name)
    assert parsed == parts
    assert parsed.name == name


@pytest.mark.parametrize(
    "name",
    ["", "cpu.busy", "__mean", "cpu.busy__", "cpu{0}", "c__f__lag", "c__f__lag_", "c__f__lag_(1,)",
     "c__f__lag_one", "c__f__lag_1__"],
)  # fmt: skip
def test_other_text_is_refused_with_its_name(name: str) -> None:
    with pytest.raises(FeatureNameError) as caught:
        parse(name)
    assert repr(name) in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(name: str) -> None:
    try:
        parsed = parse(name)
    except FeatureNameError:
        return
    assert parse(parsed.name) == parsed
    assert parsed.channel
    assert parsed.feature


def test_thirty_three_features_without_a_double() -> None:
    assert len({feature.suffix for feature in FEATURES}) == len(FEATURES) == 33


def test_the_table_has_the_order_and_number_of_what_each_family_computes() -> None:
    window = prepare(np.random.default_rng(0).normal(size=(30, 2)))
    computed = [family for family, calculate in calculators().items() for _ in calculate(window)]
    assert computed == [feature.family for feature in FEATURES]
    assert set(FITS) == set(FeatureFamily)
    assert sum(fit.cost for fit in FITS.values()) == 100


def test_dynamic_channels_get_all_events_their_sum_static_none() -> None:
    mask = columns([Role.DYNAMIC, Role.EVENT, Role.STATIC])
    assert mask.sum(0).tolist() == [33, 1, 0]
    assert mask[SUM_ROW, 1]


def test_states_have_no_trend_and_no_lags() -> None:
    mask = columns([Role.DYNAMIC, Role.DYNAMIC], [Kind.STATE, Kind.COUNTER])
    left_out = {FEATURES[row].family for row in np.flatnonzero(~mask[:, 0])}
    assert left_out == {
        FeatureFamily.TREND,
        FeatureFamily.AUTOCORRELATION,
        FeatureFamily.STATIONARITY,
    }
    assert mask[:, 1].all()


def test_column_names_stand_in_the_order_of_the_chosen_values() -> None:
    mask = columns([Role.EVENT, Role.STATIC, Role.DYNAMIC])
    names = column_names(["a", "b", "c{0}"], mask)
    assert names[:3] == ("a__sum_values", "c{0}__sum_values", "c{0}__mean")
    assert len(names) == mask.sum() == 34
