"""What an analyzer keeps and serves of samples, as its settings ask for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import redis

from reveal_analyzer.evidence.endpoint import application
from reveal_analyzer.evidence.live_nodes import LiveNodes
from reveal_analyzer.evidence.piece import EvidenceWriter
from reveal_analyzer.evidence.recorder import EvidenceRecorder, RedisSource
from reveal_analyzer.evidence.store import EvidenceStore, FolderEvidence, RedisEvidence
from reveal_analyzer.node_history.keeper import HistoryKeeper
from reveal_analyzer.node_history.stores import FolderHistory, HistoryStore, RedisHistory
from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.telemetry.node_records import IsProven, any_origin
from reveal_contract.runtime.http_endpoints import serve_locally
from reveal_contract.settings import AnalyzerSettings

_HISTORY = "history"  # the folder beside the recordings of findings


def store_of(settings: AnalyzerSettings, client: redis.Redis | None = None) -> EvidenceStore:
    """Return the store of findings; without ``client`` it has a connection of its own."""
    if settings.evidence_store == "folder":
        folder = Path(settings.evidence_folder)
        return FolderEvidence(folder, settings.evidence_retention_seconds)
    client = client or connect(settings.redis_url)
    return RedisEvidence(client, settings.profile, settings.evidence_retention_seconds)


def history_store_of(settings: AnalyzerSettings, client: redis.Redis) -> HistoryStore:
    """Return the store of nodes."""
    hours = settings.evidence_history_hours
    if settings.evidence_store == "folder":
        return FolderHistory(Path(settings.evidence_folder) / _HISTORY, hours)
    return RedisHistory(client, settings.profile, hours)


@dataclass(frozen=True)
class KeptSamples:
    """What keeps samples of findings and nodes; None where nothing is to be kept."""

    recorder: EvidenceRecorder | None
    keeper: HistoryKeeper | None


def keep_samples(settings: AnalyzerSettings, is_proven: IsProven = any_origin) -> KeptSamples:
    """Start to keep samples that prove their origin, and serve them on the port of the settings.

    The threads have one client, which gives each a connection.  Raises ``OSError`` if the port is
    in use.
    """
    client = connect(settings.redis_url)
    store = None if settings.evidence_store == "none" else store_of(settings, client)
    history = history_store_of(settings, client) if settings.evidence_history_hours else None
    recorder = keeper = None
    if store is not None:
        source = RedisSource.of(client, settings.profile, is_proven)
        recorder = EvidenceRecorder(EvidenceWriter(source, store, settings.evidence_max_bytes))
        recorder.start()
    if history is not None:
        keeper = HistoryKeeper(history)
        keeper.start()
    if settings.samples_port:
        nodes = LiveNodes(client, settings.profile, is_proven)
        serve_locally(settings.samples_port, application(store, nodes, history))
    return KeptSamples(recorder, keeper)
