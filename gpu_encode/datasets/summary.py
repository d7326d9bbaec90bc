"""What a run over files did, and where its time went."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
