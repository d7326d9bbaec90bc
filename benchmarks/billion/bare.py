"""The least that the same files cost: pyarrow alone reads them, and writes what was read or the codes."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks.billion.process import answer, question

BATCH = 1 << 18


def batches(paths: list[str], columns: list[str] | None = None) -> Iterator[Any]:
    """Give the rows of files, in tables of a quarter of a million."""
    for path in paths:
        file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        for batch in file.iter_batches(BATCH, columns=columns):
            yield pa.Table.from_batches([batch])


def read(paths: list[str], columns: list[str] | None = None) -> dict[str, Any]:
    """Read files and forget what was in them."""
    begun, rows, n_bytes = time.perf_counter(), 0, 0
    for table in batches(paths, columns):
        rows += table.num_rows
        n_bytes += table.nbytes
    return {"seconds": time.perf_counter() - begun, "rows": rows, "bytes in memory": n_bytes}


def written(paths: list[str], scratch: Path, compression: str) -> dict[str, Any]:
    """Read files and write them again, the one after the other; the seconds of both apart."""
    reading = writing = 0.0
    rows = n_bytes = 0
    for number, path in enumerate(paths):
        target = scratch / f"bare-{number:05d}.parquet"
        writer = None
        found = batches([path])
        while True:
            begun = time.perf_counter()
            table = next(found, None)
            read_at = time.perf_counter()
            reading += read_at - begun
            if table is None:
                break
            writer = writer or pyarrow.parquet.ParquetWriter(target, table.schema, compression=compression)
            writer.write_table(table)
            rows += table.num_rows
            writing += time.perf_counter() - read_at
        begun = time.perf_counter()
        if writer is not None:
            writer.close()
            n_bytes += target.stat().st_size
            target.unlink()
        writing += time.perf_counter() - begun
    return {"seconds": reading + writing, "reading": reading, "writing": writing, "rows": rows, "bytes": n_bytes}


def main() -> None:
    """Read and write the files that are asked for."""
    asked = question()
    source, codes = asked["source"], asked["codes"]
    found = {
        "read all columns": read(source),
        "read the target": read(source, [asked["target"]]),
        "read and write as it is": written(source, Path(asked["scratch"]), asked["compression"]),
        "read and write the codes": written(codes, Path(asked["scratch"]), asked["compression"]),
    }
    answer(found)


if __name__ == "__main__":
    main()
