"""The recorder that the settings of an analyzer ask for."""

from __future__ import annotations

from pathlib import Path

from reveal_analyzer.evidence.endpoint import application
from reveal_analyzer.evidence.live_nodes import LiveNodes
from reveal_analyzer.evidence.piece import EvidenceWriter
from reveal_analyzer.evidence.recorder import EvidenceRecorder, RedisSource
from reveal_analyzer.evidence.store import EvidenceStore, FolderEvidence, RedisEvidence
from reveal_analyzer.stream.redis_connection import connect
from reveal_contract.runtime.http_endpoints import serve_locally
from reveal_contract.settings import AnalyzerSettings


def store_of(settings: AnalyzerSettings) -> EvidenceStore:
    """Return the store, with a connection of its own."""
    if settings.evidence_store == "folder":
        folder = Path(settings.evidence_folder)
        return FolderEvidence(folder, settings.evidence_retention_seconds)
    client = connect(settings.redis_url)
    return RedisEvidence(client, settings.profile, settings.evidence_retention_seconds)


def recorder_of(settings: AnalyzerSettings) -> EvidenceRecorder | None:
    """Return the recorder, whose thread runs; None if no samples are to be kept."""
    if settings.evidence_store == "none":
        return None
    source = RedisSource.of(connect(settings.redis_url), settings.profile)
    writer = EvidenceWriter(source, store_of(settings), settings.evidence_max_bytes)
    recorder = EvidenceRecorder(writer)
    recorder.start()
    return recorder


def serve_samples(settings: AnalyzerSettings) -> None:
    """Let samples be read on the port of the settings; raises ``OSError`` if it is in use."""
    if settings.samples_port:
        store = None if settings.evidence_store == "none" else store_of(settings)
        nodes = LiveNodes(connect(settings.redis_url), settings.profile)
        serve_locally(settings.samples_port, application(store, nodes))
