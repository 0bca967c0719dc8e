"""How far channels left their level from before an onset."""

import numpy as np

from reveal_analyzer.evidence.observed import ObservedChannels
from support.evidence_samples import finding, slices
from support.synthetic_node import TABLE


def departures(seconds: int, onset: int = 100) -> dict[str, float]:
    observed = ObservedChannels.of(slices(seconds)[40:], TABLE)
    amounts = observed.departures(finding(onset).first_observed_ns)
    labels = [channel.label for channel in observed.channels]
    return dict(zip(labels, amounts.tolist(), strict=True))


def test_what_the_fault_moved_departs_most() -> None:
    amounts = departures(110)
    assert sorted(amounts, key=amounts.__getitem__)[-2:] == [
        "cpu.procs_running", "cpu.pressure.some",
    ]  # fmt: skip
    assert amounts["cpu.user{0}"] < 3


def test_without_seconds_before_or_after_nothing_departs() -> None:
    assert not any(departures(110, onset=300).values())
    assert not any(departures(110, onset=0).values())


def test_means_of_what_was_never_read_are_zero() -> None:
    none = ObservedChannels.of([], TABLE)
    np.testing.assert_array_equal(none.means(), np.zeros(len(none.channels)))
