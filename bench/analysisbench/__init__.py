"""Parts of ``bench/analysis.py``."""
