"""What derived metrics are made of a second, for tests of their formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from reveal_analyzer.derive.ratios import find_ratios
from reveal_analyzer.kernels.formulas import Program
from reveal_contract.channels import Channel


def derived(channels: Sequence[Channel], seconds: Iterable[float]) -> dict[str, float]:
    """All that these channels allow, by ``metric`` or ``metric{instance}``."""
    result = find_ratios(channels, range(len(channels)))
    values = Program.of([ratio.formula for ratio in result]).run(np.array([*seconds], np.float64))
    labels = (Channel(ratio.metric.name, ratio.instance).label for ratio in result)
    return dict(zip(labels, values.tolist(), strict=True))
