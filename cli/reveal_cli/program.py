"""How a program of the command line runs: signals, guarded output, errors as one sentence.

``reveal_cli.commands`` has the commands of ``reveal``, ``reveal_cli.kubectl`` those of the plugin.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reveal_cli.errors import ERROR, CliError
from reveal_cli.guarded_output import GuardedOutput, guarded_streams
from reveal_cli.interrupt import Interrupt, Interrupted
from reveal_cli.stderr_lines import note


@dataclass(frozen=True)
class Program:
    """A program by the name that the user types, with the extras of the package it needs."""

    name: str
    extras: str

    def missing(self, error: ModuleNotFoundError) -> str:
        """Return what to do where only a component is installed, such as the collector.

        Raises the error again if the module is none of another project: that is a defect.
        """
        module = (error.name or "").partition(".")[0]
        if not module or module.startswith("reveal_"):
            raise error
        noun = "extras" if "," in self.extras else "extra"
        return (
            f"{self.name}: the Python module {module} is not installed: install the {noun}"
            f" `{self.extras}`, that is pip install '/path/to/checkout[{self.extras}]'"
        )

    def main(
        self, parser: Callable[[], argparse.ArgumentParser], argv: Sequence[str] | None
    ) -> int:
        """Run a command and return its exit code.

        The arguments have the command as ``run``.
        """
        interrupt = Interrupt()
        interrupt.install()
        # the commands print what matters; a log line would break the progress block
        logging.basicConfig(handlers=[logging.NullHandler()])
        with guarded_streams() as output:
            try:
                code = self._run(parser, argv, interrupt)
            except SystemExit:  # argparse has printed the help, the version or a usage error
                if not self._incomplete(output):
                    raise
                return ERROR
            return ERROR if self._incomplete(output) else code

    def _run(
        self,
        parser: Callable[[], argparse.ArgumentParser],
        argv: Sequence[str] | None,
        interrupt: Interrupt,
    ) -> int:
        """Run a command and return its exit code; an error is one sentence on stderr."""
        try:
            arguments = parser().parse_args(argv)
            code: int = arguments.run(arguments, interrupt)
        except CliError as error:
            return self._failed(str(error), error.code)
        except Interrupted:
            return self._failed("interrupted")
        except ModuleNotFoundError as error:  # commands import what only they need
            print(self.missing(error), file=sys.stderr)
            return ERROR
        except OSError as error:  # such as a full disk: no defect, and no traceback
            return self._failed(_sentence(error))
        return code

    def _failed(self, sentence: str, code: int = ERROR) -> int:
        note(sentence, self.name)
        return code

    def _incomplete(self, output: GuardedOutput) -> bool:
        """Return whether stdout could not take everything; the reason is printed then."""
        output.flush()
        if output.error is None:
            return False
        self._failed(f"cannot write the output: {_sentence(output.error)}")
        return True


def _sentence(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason
