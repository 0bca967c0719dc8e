"""Code that all Reveal components share: catalogue, wire, settings, names, findings.

It imports no component.  Only ``envelope`` (zstandard), ``wire`` (numpy), ``kube.transport``
(kubernetes) and ``runtime.http_endpoints`` (prometheus_client) need other packages, so that
collector and operator stay small.
"""

VERSION = "0.1.0"
