"""Exit with the reason if the shared library of the C parts cannot be used.

The image build runs ``python -m reveal_collector.native``: the image has no NumPy, and so no
Python path to fall back to.
"""

import sys

from reveal_collector.native import load

sys.exit(load().unavailable or None)
