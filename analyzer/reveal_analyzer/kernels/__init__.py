"""Numeric kernels with a numpy and a numba implementation, and the choice between them."""
