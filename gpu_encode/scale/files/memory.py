"""How much memory is free and how much this process has; how many rows a chunk may have below a limit."""

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator
from numbers import Integral
from pathlib import Path
from typing import Any

import pyarrow as pa

from cpu_fallback.memory_pool import pool
from gpu_encode.scale.files.source import Size
from gpu_encode.scale.files.writing import MOST_GROUP_ROWS
from gpu_encode.seam.devices import available_bytes

MOST_ROWS = 1 << 23
# Smaller chunks cost more time than they save memory.
FEWEST_ROWS = 1 << 12
# Beyond this an Arrow array of text would need wider offsets.
MOST_BYTES = 1 << 30
# Rows of the sample that tells how many bytes a row takes.
SAMPLE = 1 << 12
# Bytes that Python, Arrow, NumPy, scikit-learn, numba and our kernels take once all of them are loaded.
LOADED = 450 << 20
# Bytes per row that one column or joint key takes while it is encoded: codes, folds, and their inputs.
WORK_PER_KEY = 48
# Bytes that reading and writing take for every column, whatever a chunk holds: pages and dictionaries of Parquet.
BUFFERS_PER_COLUMN = 4 << 20
# Bytes in memory of a row group of Parquet, or of a batch of Arrow, that is written.
GROUP_BYTES = 16 << 20
# The share of a limit that may be free memory, kept for the next arrays.
KEPT_SHARE = 64
UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {f"{letter}i": 1 << (10 * power) for power, letter in enumerate("kmgt", start=1)}


def limit_of(memory_limit: Any) -> int:
    """Read a limit in bytes or in words such as "2GiB", or choose one: memory held already, and a quarter of the free.

    Examples
    --------
    >>> limit_of("1.5 GiB"), limit_of("500MB"), limit_of(1 << 20)
    (1610612736, 500000000, 1048576)
    """
    if memory_limit is None:
        return resident_bytes() + max(available_bytes() // 4, 512 << 20)
    if isinstance(memory_limit, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]i?)?b?\s*", memory_limit.lower())
        if match is not None:
            memory_limit = int(float(match[1]) * UNITS[match[2] or ""])
    if isinstance(memory_limit, bool) or not isinstance(memory_limit, Integral) or memory_limit <= 0:
        raise ValueError(
            f"memory_limit must be a whole number of bytes or a text such as '2GiB' or '500 MB'. Got {memory_limit!r}."
        )
    return int(memory_limit)


def resident_bytes() -> int:
    """Bytes of memory that this process has now; where the system does not tell, the most that it ever had."""
    with contextlib.suppress(OSError, ValueError, IndexError, AttributeError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return peak_bytes()


def peak_bytes() -> int:
    """Most bytes of memory that this process ever had."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


@contextlib.contextmanager
def few_kept(limit: int) -> Iterator[None]:
    """Keep little free memory for later calls while a limit is to hold."""
    most, pool.most = pool.most, min(pool.most, limit // KEPT_SHARE)
    try:
        yield
    finally:
        pool.most = most


def release() -> None:
    """Give unused memory back to the system, so that resident memory does not grow with the number of chunks."""
    pool.free.clear()
    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def chunk_size(
    limit: int,
    row_bytes: float,
    n_columns: int,
    n_keys: int,
    output_row_bytes: float,
    begun: bool = False,
    n_rows: int | None = None,
) -> Size:
    """Choose how much a chunk may hold.

    Three chunks exist at once, one that is read, one at work and one that is written; and the encodings of two.

    Parameters
    ----------
    limit : int
        Bytes that this process may have.
    row_bytes : float
        Bytes of a row in memory.
    n_columns : int
        Columns of the source.
    n_keys : int
        Columns and joint keys that are encoded.
    output_row_bytes : float
        Bytes of the encodings of a row.
    begun : bool, default=False
        Whether the encoder has learned something already.
    n_rows : int, optional
        Rows of the source: few rows need less than the smallest chunk.

    Raises
    ------
    ValueError
        If the limit leaves no room for a chunk.
    """
    release()
    held, buffers = max(resident_bytes(), LOADED), buffer_bytes(row_bytes, n_columns, n_rows)
    alive = bytes_at_work(row_bytes, n_keys, output_row_bytes)
    # A fifth stays free for bytes that were not foreseen.
    rows = int(0.8 * (limit - held - buffers) / alive)
    if rows < fewest_rows(n_rows):
        needed = held + least_bytes(row_bytes, n_columns, n_keys, output_row_bytes, n_rows)
        learned = ", what was learned of the categories included," if begun else ""
        given = f"{limit / 2**20:,.0f} MiB" if limit >= 1 << 20 else f"{limit:,} bytes ('2GiB' has a unit)"
        raise ValueError(
            f"memory_limit is {given}, of which this process holds {held / 2**20:,.0f} MiB{learned} "
            f"already, and the smallest chunk needs more than is left. Give at least {-(-needed // 2**20):,} MiB."
        )
    whole = max(FEWEST_ROWS, rows // FEWEST_ROWS * FEWEST_ROWS)
    rows = min(whole, MOST_ROWS, max(FEWEST_ROWS, int(MOST_BYTES / row_bytes)))
    batch_rows = max(1 << 10, min(rows, 1 << 18, int((8 << 20) / row_bytes)))
    # The texts of the sample may have been short.
    n_bytes = min(int(rows * row_bytes * 1.25) + 1, MOST_BYTES)
    return Size(rows, n_bytes, batch_rows)


def group_rows(row_bytes: float) -> int:
    """Choose the rows of a row group by the bytes of a row; no byte of a file may depend on the limit."""
    return max(FEWEST_ROWS, min(MOST_GROUP_ROWS, int(GROUP_BYTES / row_bytes)) // FEWEST_ROWS * FEWEST_ROWS)


def fewest_rows(n_rows: int | None) -> int:
    """Rows of the smallest chunk."""
    return FEWEST_ROWS if n_rows is None else min(FEWEST_ROWS, n_rows)


def buffer_bytes(row_bytes: float, n_columns: int, n_rows: int | None) -> int:
    """Bytes that reading and writing take, independent of the chunk."""
    buffers = BUFFERS_PER_COLUMN * n_columns
    return buffers if n_rows is None else min(buffers, int(2 * n_rows * row_bytes))


def least_bytes(row_bytes: float, n_columns: int, n_keys: int, output_row_bytes: float, n_rows: int | None) -> int:
    """Bytes that the smallest chunk takes while it is read, encoded and written."""
    at_work = fewest_rows(n_rows) * bytes_at_work(row_bytes, n_keys, output_row_bytes)
    return buffer_bytes(row_bytes, n_columns, n_rows) + int(at_work / 0.8) + 1


def bytes_at_work(row_bytes: float, n_keys: int, output_row_bytes: float) -> float:
    """Bytes that one row takes while it is read, encoded and written."""
    return 3 * row_bytes + 2 * output_row_bytes + WORK_PER_KEY * n_keys + 64


def check_room_for_all(limit: int, n_rows: int, row_bytes: float, n_keys: int) -> None:
    """Refuse rows that must be in memory all at once where the limit leaves no room for them."""
    release()
    needed = max(resident_bytes(), LOADED) + int(n_rows * bytes_at_work(row_bytes, n_keys, 8 * n_keys) / 0.8)
    if needed > limit:
        raise ValueError(
            f"This scheme, or these borders, take all rows at once, and memory_limit is {limit / 2**20:,.0f} MiB. "
            f"Give at least {-(-needed // 2**20):,} MiB; or folds, which take rows in chunks (of splits, a "
            'column of fold numbers, cv="fold"), or borders as a list.'
        )
