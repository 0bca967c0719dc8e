"""Parts of ``scale.py``."""
