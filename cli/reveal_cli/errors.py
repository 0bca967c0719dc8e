"""Exit codes of the commands, and the error that ends a command with one sentence."""

DONE = 0
ERROR = 1
USAGE = 2
FOUND = 3  # only with --fail-on


class CliError(Exception):
    """An error that the user can act on; its text is the sentence that is printed."""

    def __init__(self, sentence: str, code: int = ERROR) -> None:
        super().__init__(sentence)
        self.code = code
