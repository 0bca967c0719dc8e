"""Jobs of several ranks on this host, and what delays one of them."""
