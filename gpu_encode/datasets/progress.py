"""How far work is, as a bar on stderr or by a function of the caller's; and what it did, in the end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

# Called with the stage, the rows done and the rows in all.
Teller = Callable[[str, int, int], object]


class Progress:
    """The stages of one run.

    Parameters
    ----------
    told : True, callable or None
        True: every stage is a bar on stderr.  A callable is called as ``told(stage, rows_done, rows_in_all)``.

    Examples
    --------
    >>> with Progress(print) as progress:
    ...     progress.stage("reading", total=2)
    ...     progress.advance(2)
    reading 0 2
    reading 2 2
    """

    def __init__(self, told: "bool | Teller | None" = None) -> None:
        if not (told is None or isinstance(told, bool) or callable(told)):
            raise TypeError(
                f"progress must be True, None or a function of (stage, rows_done, rows_in_all). Got {told!r}."
            )
        self.rows = 0
        self._name, self._total = "", 0
        self._tell: Teller | None = told if callable(told) else None
        self._bars: Any = bars() if told is True else None
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

    def stage(self, name: str, total: int | None = None, done: int = 0) -> None:
        """Begin the next stage, of `total` rows where that is known; an earlier run has done some of them."""
        if self._bars is not None:
            self._end_stage()
            self._task = self._bars.add_task(name, total=total, completed=done)
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
            # Not rich's own estimate: that needs several steps, and some stages are a single one.
            return Text(rate(task.completed / task.elapsed) if task.elapsed and task.completed else "")

    return Bars(
        TextColumn("{task.description:<9}"),
        BarColumn(),
        TextColumn("{task.completed:>13,.0f} rows"),
        Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
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


# As people say it: thread by thread.
STAGES = ("opening", "surveying", "measuring", "placing", "encoding", "waiting", "reading", "writing")


@dataclass(frozen=True)
class Summary:
    """What a run over files did.

    Parameters
    ----------
    rows, columns : int
        Of the output.
    chunks : int
        Chunks that were encoded.
    files : int
        Files that were written; a resumed run counts its own.
    bytes_read, bytes_written : int
        Of files, in all passes.
    seconds : mapping of str to float
        By stage.  "reading" and "writing" run beside the others, in threads of their own; "waiting" is for them.
    peak_bytes : int
        Most memory that the process ever had.

    Examples
    --------
    >>> Summary(2_000_000, 3, 4, 1, 10**8, 5 * 10**7, {"measuring": 1.5, "encoding": 2.25}, 10**9)
    2,000,000 rows of 3 columns in 4 chunks to 1 file
    read 100.0 MB, written 50.0 MB, at most 1.0 GB of memory
    seconds: measuring 1.5, encoding 2.2
    """

    rows: int
    columns: int
    chunks: int
    files: int
    bytes_read: int
    bytes_written: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_bytes: int = 0

    def __repr__(self) -> str:
        times = ", ".join(f"{name} {self.seconds[name]:.1f}" for name in STAGES if name in self.seconds)
        return (
            f"{self.rows:,} rows of {self.columns} columns in {self.chunks:,} chunks to {self.files:,} "
            f"{'file' if self.files == 1 else 'files'}\n"
            f"read {amount(self.bytes_read)}, written {amount(self.bytes_written)}, "
            f"at most {amount(self.peak_bytes)} of memory\n"
            f"seconds: {times}"
        )


def amount(n_bytes: float) -> str:
    """Write a number of bytes as people read it.

    Examples
    --------
    >>> amount(1_500_000)
    '1.5 MB'
    """
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} bytes"
