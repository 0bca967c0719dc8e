"""Metric selection (paper, section 4.1): of metrics that move together one stands for the others.

``resampled`` makes even rows of a recording, ``moments`` their correlations, ``averaged`` the
matrix of a workload, ``priority`` the order in which metrics are preferred, ``choice`` who stays,
``curves`` what that costs at each threshold (the paper's Figure 4), ``file`` the YAML file and
``shown`` what of a finding is told by whom.  Scoring sees all metrics unless asked otherwise.
"""
