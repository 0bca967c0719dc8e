"""Hardware events of each vendor's CPUs as plain tables, one module a vendor.

A ``Platform`` says which CPUs it is for and which event counts which metric, as the perf tool
would be told: a generic name (``instructions``) or terms (``event=0xd0,umask=0x81``) that the
PMU's ``format`` folder turns into config bits.  The codes are those of the kernel's
tools/perf/pmu-events.  A new platform is a row of a vendor's ``PLATFORMS``.
"""
