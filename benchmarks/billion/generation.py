"""Writing the rows as Parquet, several files at a time; what is there already stays."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet

from benchmarks.billion.drawn import SCHEMA, Rows

COMPRESSION = "snappy"


def generate(rows: Rows, folder: Path, threads: int, tell: Callable[[str], None]) -> dict[str, Any]:
    """Write all files that are not there yet, and give what that took."""
    begun = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    note, described = folder.parent / "rows.json", asdict(rows)
    if not note.exists() or json.loads(note.read_text()) != described:
        for path in folder.glob("*.parquet"):
            path.unlink()
        note.write_text(json.dumps(described))
    wanted = [file for file in range(rows.n_files) if not path_of(folder, file).exists()]
    _ = rows.products, rows.leanings
    with ThreadPoolExecutor(threads) as pool:
        for done, file in enumerate(pool.map(lambda file: write_file(rows, folder, file), wanted), start=1):
            tell(f"{done} of {len(wanted)} files ({path_of(folder, file).name})")
    seconds = time.perf_counter() - begun
    found = {"seconds": seconds, "files written": len(wanted), "compression": COMPRESSION}
    return found | described_files(folder)


def path_of(folder: Path, file: int) -> Path:
    """Path of a file."""
    return folder / f"rows-{file:05d}.parquet"


def write_file(rows: Rows, folder: Path, file: int) -> int:
    """Write a file, under its name only when it is whole."""
    path = path_of(folder, file)
    partial = path.with_suffix(".partial")
    # Without Arrow's own schema, text that was written as a dictionary is read as text.
    with pyarrow.parquet.ParquetWriter(partial, SCHEMA, compression=COMPRESSION, store_schema=False) as writer:
        for number in rows.groups_of(file):
            writer.write_table(rows.group(number), row_group_size=rows.group_rows)
    partial.rename(path)
    return file


def described_files(folder: Path) -> dict[str, Any]:
    """Rows and bytes of Parquet files, on disk and as they lie in memory when they are read."""
    paths = sorted(folder.rglob("*.parquet"))
    feet = [pyarrow.parquet.read_metadata(path) for path in paths]
    return {
        "rows": sum(foot.num_rows for foot in feet),
        "files": len(paths),
        "row groups": sum(foot.num_row_groups for foot in feet),
        "bytes": sum(path.stat().st_size for path in paths),
    }
