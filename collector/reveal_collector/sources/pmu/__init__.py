"""Hardware events of CPUs as plain tables, one module per vendor.

A ``Platform`` says which CPUs it describes and which event counts which metric, in the syntax of
the perf tool: a generic name (``instructions``) or terms (``event=0xd0,umask=0x81``) that the
``format`` folder of the PMU maps to config bits.  The codes are those of the kernel's
tools/perf/pmu-events.  A new platform is a new row in a vendor's ``PLATFORMS``.
"""
