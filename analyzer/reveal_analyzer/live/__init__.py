"""The live score: harm to the node's work beyond what the node has shown before.

A column is scaled to asinh(value / quantum): linear below the amount that matters, logarithmic
above.  The values sustained for 1 of 1, 2 of 3 and 5 of 10 seconds are compared with the range of
the accepted history.  A column that leaves its own range while the node is healthy is suppressed by
that distance.  Metrics of harm count fully and only in the harmful direction; metrics of activity
count little.  The score of a subsystem is the mean of its three worst metric groups, divided by a
threshold that follows the subsystem's own healthy scores.
"""
