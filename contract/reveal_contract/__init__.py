"""What every Reveal component shares: catalogue, wire, settings, names, finding.

Imported by all components, imports none of them.  Only ``reveal_contract.envelope``
(zstandard) and ``wire`` (numpy too) need third-party packages; the rest is standard library,
so that the operator stays light.
"""

VERSION = "0.1.0"
