"""Parts of ``bench/ledger.py``."""
