"""The stream of a node, from an analyzer of its profile through the API server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from reveal_cli.errors import CliError
from reveal_cli.kubectl.pod_samples import AnalyzerPods, NoSamplesError
from reveal_cli.node_stream import Slice, StreamOutageError, last_known
from reveal_cli.recordings import Slices
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares
from reveal_contract.foreign_names import printable
from reveal_contract.subjects import Identity

if TYPE_CHECKING:
    from reveal_analyzer.node import Announced


class PodNodeStream:
    """A stream that the analyzers of a profile read for a user."""

    def __init__(self, node: str, pods: AnalyzerPods) -> None:
        self.node, self._pods = node, pods
        self._name = quote(node, safe="")
        self._nothing: CliError | None = None

    @property
    def is_known(self) -> bool:
        """Whether its collector has published anything; raises ``CliError``."""
        return bool(self._announced("status") or self._announced("subjects"))

    def recording(self) -> bytes:
        """Return the last two minutes as a recording; raises ``CliError``."""
        return self._pods.get(f"/slices/{self._name}")

    def since(self, start_ns: int) -> list[Slice]:
        try:
            data = self._pods.get(f"/slices/{self._name}?since={start_ns}")
            return list(Slices(Path(f"the stream of {printable(self.node)}"), data))
        except NoSamplesError as error:
            self._nothing = error
            return []
        except CliError as error:
            raise StreamOutageError(str(error)) from None

    def announced(self) -> Announced:
        from reveal_analyzer.node import Announced  # noqa: PLC0415 - numpy

        return Announced(
            last_known(self._subjects, (), (CliError,)),
            last_known(self._shares, EQUAL_SHARES, (CliError,)),
        )

    def state(self) -> dict[str, Any]:
        try:
            state = json.loads(self._announced("status") or "{}")
        except (CliError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def why_empty(self) -> CliError:
        return self._nothing or CliError(f"node {self.node} has sent nothing")

    def close(self) -> None:
        pass

    def _subjects(self) -> tuple[Identity, ...]:
        from reveal_analyzer.telemetry.node_records import subjects_of  # noqa: PLC0415 - redis

        return subjects_of(self.node, self._announced("subjects"))

    def _shares(self) -> CpuShares:
        from reveal_analyzer.telemetry.node_records import shares_of  # noqa: PLC0415 - redis

        return shares_of(self.node, self._announced("cpuShares"))

    def _announced(self, field: str) -> str:
        """Return a text that the collector published, empty for none."""
        try:
            found = json.loads(self._pods.get(f"/announced/{self._name}"))
        except ValueError:
            return ""
        text = found.get(field) if isinstance(found, dict) else None
        return text if isinstance(text, str) else ""
