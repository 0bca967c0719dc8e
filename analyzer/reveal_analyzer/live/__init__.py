"""The live score: harm, in the direction that hurts, beyond what this node has shown before.

A column is seen as asinh(value / quantum): linear below what matters, logarithmic above.  Its
values held for 1 of 1, 2 of 3 and 5 of 10 seconds are compared with the range the accepted
past covered.  A column that leaves its own range while all is well is silenced by how far it
did.  Metrics that say harm count fully and only where it hurts, activity counts little.  A
subsystem's score is the mean of its three worst families over a cut that follows its own
healthy scores.
"""
