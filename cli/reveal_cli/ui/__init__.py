"""``reveal ui``: findings in a browser, from a server on this machine."""
