"""Parts of ``bench/churn.py``."""
