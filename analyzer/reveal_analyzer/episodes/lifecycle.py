"""Life of one case: a cause that was found on a node, from its opening to its end.

This is the state machine of ``docs/architecture.md``.  It knows neither metrics nor findings: each
second of the node is one observation of the case, and a gap in the stream is a number of seconds
without any.

- A case is ``ACTIVE`` while its evidence is observed, and ``CALM`` from the first second in which
  its evidence is observed to be normal.
- ``calm`` calm seconds in a row end it.  Seconds in which nothing of it was read do not count.
- A level that has lasted for so long that it counts as normal is ``ACCEPTED``: the case ends as
  after calm seconds, but it says that its level lasts.
- A case whose evidence is not read is ``UNOBSERVED``.  After ``unobserved`` seconds in a row it is
  closed, because nobody knows whether it lasts.

So no phase can last without observations that justify it.

Findings that are no cases end elsewhere: slowdowns of jobs in ``heartbeat.slowdown_state``, nodes
and ranks that differ from others in ``fleet.findings`` and ``gangs.findings``, settings in
``configuration.watch``, and reports that no analyzer updates in ``sinks.kube.observation``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from reveal_contract.finding import Resolution


class Observation(StrEnum):
    """What one second shows of a case."""

    ACTIVE = "Active"  # its evidence
    CALM = "Calm"  # its metrics were read, and are normal
    ACCEPTED = "Accepted"  # its metrics are as they have been, which counts as normal by now
    UNOBSERVED = "Unobserved"  # none of its metrics was read


class Phase(StrEnum):
    """Where a case is in its life."""

    ACTIVE = "Active"
    CALM = "Calm"
    UNOBSERVED = "Unobserved"
    CLOSED = "Closed"


@dataclass(frozen=True)
class LifecycleSettings:
    """Seconds after which a case ends."""

    calm: int = 10
    unobserved: int = 60  # a restart of the collector is shorter


@dataclass(frozen=True)
class Lifecycle:
    """Phase of a case, and how long it has been calm or unobserved; immutable."""

    phase: Phase = Phase.ACTIVE
    calm_s: int = 0
    unobserved_s: int = 0
    resolution: Resolution = Resolution.NONE

    @property
    def is_closed(self) -> bool:
        return self.phase is Phase.CLOSED

    def after(self, observation: Observation, settings: LifecycleSettings) -> Lifecycle:
        """Return the state after one more second."""
        if self.is_closed:
            return self
        if observation is Observation.ACTIVE:
            return Lifecycle()
        if observation is Observation.UNOBSERVED:
            return self.after_gap(1, settings)
        calm_s = self.calm_s + 1
        if calm_s >= settings.calm:
            lasts = observation is Observation.ACCEPTED
            resolution = Resolution.ACCEPTED if lasts else Resolution.ENDED
            return Lifecycle(Phase.CLOSED, calm_s, resolution=resolution)
        return Lifecycle(Phase.CALM, calm_s)

    def ended(self) -> Lifecycle:
        """Return the state of a case whose end is known otherwise."""
        return Lifecycle(Phase.CLOSED, resolution=Resolution.ENDED)

    def after_gap(self, seconds: int, settings: LifecycleSettings) -> Lifecycle:
        """Return the state after seconds in which nothing of the case was read."""
        if self.is_closed or seconds <= 0:
            return self
        # calm seconds from before the gap stay counted: they were observed
        unobserved_s = self.unobserved_s + seconds
        if unobserved_s >= settings.unobserved:
            closed = replace(self, phase=Phase.CLOSED, unobserved_s=unobserved_s)
            return replace(closed, resolution=Resolution.UNOBSERVED)
        return replace(self, phase=Phase.UNOBSERVED, unobserved_s=unobserved_s)
