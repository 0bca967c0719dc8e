"""One module for each command: ``add`` declares its flags, ``run`` executes it."""
