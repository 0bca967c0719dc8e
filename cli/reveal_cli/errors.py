"""How a command ends: its exit codes and the one error that becomes one sentence."""

DONE = 0
ERROR = 1
USAGE = 2
FOUND = 3  # only with --fail-on


class CliError(Exception):
    """Something a user can act on; the text is the whole sentence that is shown."""

    def __init__(self, sentence: str, code: int = ERROR) -> None:
        super().__init__(sentence)
        self.code = code
