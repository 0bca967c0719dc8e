"""One file a command: ``add(commands)`` declares it, ``run(arguments, interrupt)`` does it."""
