"""How many examples a property test tries: the same few each time, or many new ones.

``REVEAL_EXPLORE=20 make tests`` tries 20 times as many, others each time; what it finds belongs
into a test of its own.
"""

from __future__ import annotations

import os

from hypothesis import settings

TIMES = int(os.environ.get("REVEAL_EXPLORE", "0"))


def examples(count: int) -> settings:
    """The settings of a test that tries ``usual`` examples where nobody explores."""
    return settings(max_examples=count * max(TIMES, 1), derandomize=not TIMES, deadline=None)


def use_as_default() -> None:
    """All tests without settings of their own."""
    settings.register_profile("reveal", examples(100))
    settings.load_profile("reveal")
