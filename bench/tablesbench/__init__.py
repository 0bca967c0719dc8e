"""Parts of the bench of channel tables."""
