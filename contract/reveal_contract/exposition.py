"""What the endpoints for Prometheus of collector and analyzer share."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily

from reveal_contract import VERSION


def serve(registry: CollectorRegistry, port: int) -> int:
    """Answer scrapes on ``port`` (0: any free one) from threads; gives the port.

    Raises ``OSError`` with a sentence where it is taken.
    """
    try:
        server, _ = start_http_server(port, registry=registry)
    except OSError as error:
        raise OSError(error.errno, f"port {port} for metrics: {error.strerror}") from None
    return int(server.server_port)


def build_info(name: str) -> GaugeMetricFamily:
    """``NAME{version="1.2.3"} 1``."""
    family = GaugeMetricFamily(name, "1, with the version.", labels=["version"])
    family.add_metric([VERSION], 1)
    return family
