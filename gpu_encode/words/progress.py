"""Progress bars, on a terminal and in a notebook."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

# A function that is called with the stage, the number of rows done, and the number of all rows.
Teller = Callable[[str, int, int], object]


class Progress:
    """The stages of one run.

    Parameters
    ----------
    teller : True, callable or None
        True: every stage is a bar, on stderr or in the notebook.  A callable is called as
        ``teller(stage, rows_done, rows_in_all)``.

    Examples
    --------
    >>> with Progress(print) as progress:
    ...     progress.stage("reading", total=2)
    ...     progress.advance(2)
    reading 0 2
    reading 2 2
    """

    def __init__(self, teller: "bool | Teller | None" = None) -> None:
        if not (teller is None or isinstance(teller, bool) or callable(teller)):
            raise TypeError(
                f"progress must be True, None or a function of (stage, rows_done, rows_in_all). Got {teller!r}."
            )
        self.rows = 0
        self._name, self._total = "", 0
        self._tell: Teller | None = teller if callable(teller) else None
        self._bars: Any = bars() if teller is True else None
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
            # In a notebook, rich does not draw the last state of the bar itself.
            self._bars.refresh()
            self._bars.stop()

    def stage(self, name: str, total: int | None = None, done: int = 0) -> None:
        """Begin the next stage, of `total` rows if that is known; an earlier run may have done some of them."""
        if self._bars is not None:
            self._end_stage()
            self._task = self._bars.add_task(name, total=total, completed=done, done_before=done)
        self.rows, self._name, self._total = done, name, total or 0
        if self._tell is not None:
            self._tell(name, done, self._total)

    def advance(self, rows: int) -> None:
        """Tell that `rows` more rows are done in this stage."""
        self.rows += rows
        if self._bars is not None:
            self._bars.advance(self._task, rows)
        if self._tell is not None:
            self._tell(self._name, self.rows, self._total)

    def _end_stage(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, total=self.rows, completed=self.rows)


def bars() -> Any:
    """Return rich's display of the stages."""
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.text import Text

    class Rate(ProgressColumn):  # type: ignore[misc,unused-ignore]
        def render(self, task: Any) -> Text:
            # rich's own estimate needs several steps, and some stages have a single one.  Its clock runs on after a
            # stage has ended.
            seconds, rows = task.finished_time or task.elapsed, task.completed - task.fields["done_before"]
            return Text(rate(rows / seconds) if seconds and rows else "")

    class Remaining(TimeRemainingColumn):  # type: ignore[misc,unused-ignore]
        def render(self, task: Any) -> Text:
            time = super().render(task)
            return Text("") if task.finished or not time else time.append(" left")

    return Bars(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.completed:>13,.0f} rows"),
        Rate(),
        TimeElapsedColumn(),
        Remaining(),
        console=Console(stderr=True),
    )


def rate(speed: float) -> str:
    """Write a speed as people read it.

    Examples
    --------
    >>> rate(2_345_678)
    '2.3 M rows/s'
    """
    for size, letter in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if speed >= size:
            return f"{speed / size:.1f}{letter} rows/s"
    return f"{speed:.0f} rows/s"
