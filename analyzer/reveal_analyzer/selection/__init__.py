"""Metric selection (paper, section 4.1): one metric represents others that move together with it.

``resampler`` makes rows of equal period from a recording, ``correlation`` correlates them,
``workload`` averages the matrices of a workload, ``priority`` orders metrics by preference,
``choice`` decides which are kept, ``curves`` computes the cost of each threshold (the paper's
Figure 4), ``file`` reads and writes the YAML file, and ``applied`` applies it to findings.  Scores
use all metrics by default.
"""
