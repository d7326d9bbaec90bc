"""The measured process, which runs only `encode_dataset`, or only pyarrow."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks.harness import machine
from benchmarks.harness.memory import resident

N_FOLDS, SMOOTHING = 5, 10
BATCH = 1 << 18
Document = dict[str, Any]


def ask(question: Document, threads: int) -> Document:
    """Let a new process do `question["work"]`, with as many processors as threads."""
    environment = machine.environment(NUMBA_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads))
    text, command = json.dumps(question | {"threads": threads}), [sys.executable, "-m", "studies.billion.encoding"]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if done.returncode != 0:
        return {"wrong": f"its process ended with status {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


def make_encoder(columns: Iterable[str], dtype: str) -> Any:
    """Make the encoder: five random folds, an m-estimate, no GPU."""
    from gpu_encode import KFold, MEstimate, TargetEncoder

    options = {"cv": KFold(N_FOLDS), "smooth": MEstimate(SMOOTHING), "dtype": dtype, "device": "cpu"}
    return TargetEncoder(columns=list(columns), target_type="binary", **options)


def encode(asked: Document) -> Document:
    """Encode, save the model, and report time and memory."""
    begun, processor = time.perf_counter(), time.process_time()
    from gpu_encode import encode_dataset

    fitted = make_encoder(asked["columns"], asked["dtype"])
    summary = encode_dataset(
        asked["source"],
        asked["destination"],
        fitted,
        target=asked["target"],
        memory_limit=asked["memory limit"],
        progress=True if sys.stderr.isatty() else None,
    )
    seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    fitted.save(asked["model"])
    figures: Document = {"seconds": seconds, "processor seconds": processor, "stages": dict(summary.seconds)}
    figures |= {name: getattr(summary, name) for name in ("rows", "chunks", "bytes_read", "bytes_written")}
    counts = zip(asked["columns"], map(len, fitted.categories_), strict=True)
    figures |= {f"categories of {name}": count for name, count in counts}
    return figures | {"most resident memory, bytes": resident("VmHWM")}


def read_and_write(asked: Document) -> Document:
    """Give the seconds a row of pyarrow alone: to read the target, to read all columns, and to write the encodings."""
    figures: Document = {}
    for name, columns in (("read the target", [asked["target"]]), ("read all columns", None)):
        begun, rows = time.perf_counter(), 0
        for path in asked["source"]:
            file = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
            rows += sum(len(batch) for batch in file.iter_batches(BATCH, columns=columns))
        figures[name] = (time.perf_counter() - begun) / rows
    seconds, rows, scratch = 0.0, 0, Path(asked["scratch"])
    for path in asked["encodings"]:
        table = pyarrow.parquet.read_table(path)
        begun = time.perf_counter()
        pyarrow.parquet.write_table(table, scratch, compression=asked["compression"])
        seconds, rows = seconds + time.perf_counter() - begun, rows + len(table)
        scratch.unlink()
    return figures | {"write the encodings": seconds / rows}


def main() -> None:
    """Answer the question, on the requested number of processors."""
    asked: Document = json.loads(sys.stdin.read())
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked["threads"]])
    pa.set_cpu_count(asked["threads"])
    pa.set_io_thread_count(asked["threads"])
    print("\n" + json.dumps({"encode": encode, "bare": read_and_write}[asked["work"]](asked)))


if __name__ == "__main__":
    main()
