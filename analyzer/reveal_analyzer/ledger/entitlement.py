"""The share of the CPUs that each subject is entitled to: who got it is no victim.

Equal max-min shares: nobody gets more than it wants, and what it leaves is divided among the
others.  A subject that wants more than its share and got it lost nothing, however long its threads
waited.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats


def entitled(desired: Floats, cpus: float) -> Floats:
    """Return the max-min shares (n,) of ``cpus`` among subjects that want so many CPUs (n,)."""
    shares = np.zeros(desired.size)
    order = np.argsort(desired, kind="stable")
    left, count = cpus, desired.size
    for position, index in enumerate(order.tolist()):
        fair = max(left, 0.0) / (count - position)
        shares[index] = min(float(desired[index]), fair)
        left -= shares[index]
    return shares


def shortfall(shares: Floats, run: Floats) -> Floats:
    """Return the part (n,) of its entitlement that each subject did not run, 0 to 1."""
    missing = np.maximum(shares - run, 0.0)
    result: Floats = np.divide(missing, shares, out=np.zeros(shares.size), where=shares > 0)
    return result
