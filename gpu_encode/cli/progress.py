"""How far a command is: a bar with rows per second on a terminal, nothing in a pipe."""

import sys
from types import TracebackType
from typing import Any, Self


class Progress:
    """The stages of one command.

    On a terminal (of stderr) every stage is a bar; elsewhere nothing is written and rich is not imported.

    Examples
    --------
    >>> with Progress() as progress:
    ...     progress.stage("reading", total=2)
    ...     progress.advance(2)
    ...     progress.rows
    2
    """

    def __init__(self) -> None:
        self.rows = 0
        self._bars: Any = bars() if sys.stderr.isatty() else None
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            if error is None:
                self._end_stage()
            self._bars.stop()

    def stage(self, name: str, total: int | None = None) -> None:
        """Begin the next stage, of `total` rows where that is known."""
        if self._bars is not None:
            self._end_stage()
            self._task = self._bars.add_task(name, total=total)
        self.rows = 0

    def advance(self, rows: int) -> None:
        """Tell that `rows` more rows are done in this stage."""
        self.rows += rows
        if self._bars is not None:
            self._bars.advance(self._task, rows)

    def _end_stage(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, total=self.rows, completed=self.rows)


def bars() -> Any:
    """Return rich's display of the stages."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):  # type: ignore[misc,unused-ignore]
        def render(self, task: Any) -> Text:
            # Not rich's own estimate: that needs several steps, and encoding is a single one.
            return Text(rate(task.completed / task.elapsed) if task.elapsed and task.completed else "")

    return Bars(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.completed:>13,.0f} rows"),
        Rate(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )


def rate(speed: float) -> str:
    """Write a speed as people read it.

    Examples
    --------
    >>> rate(2_345_678)
    '2.3 M rows/s'
    """
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if speed >= size:
            return f"{speed / size:.1f}{letter} rows/s"
    return f"{speed:.0f} rows/s"
