"""How far a command is: a bar with rows per second on a terminal, nothing in a pipe."""

import sys

from gpu_encode.datasets import progress


class Progress(progress.Progress):
    """The stages of one command.

    On a terminal (of stderr) every stage is a bar; elsewhere nothing is written and rich is not imported.

    Examples
    --------
    >>> with Progress() as shown:
    ...     shown.stage("reading", total=2)
    ...     shown.advance(2)
    ...     shown.rows
    2
    """

    def __init__(self) -> None:
        super().__init__(on_terminal())


def on_terminal() -> bool | None:
    """Tell whether there is a terminal to show bars on, as `progress` has it."""
    return True if sys.stderr.isatty() else None
