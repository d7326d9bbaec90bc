"""Training encodings in Ray Data: three passes of `map_batches`, and the encodings of new rows in a fourth.

    python examples/engines/ray_map_batches.py
    python examples/engines/ray_map_batches.py --rows 20000 --cpus 2

A row's fold follows from its order number (`KFold(by=)`), so blocks may come in any order and be cut anywhere.
States travel pickled.
Whoever can write them can run code where they are read, so they stay in Ray's object store, which holds pickled
functions anyway, and go into no file.
"""

import argparse
import pickle
import tempfile
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import ray
from made_rows import TARGET, compare, encoder, orders

from gpu_encode import TargetEncoder
from gpu_encode.parts import Part, encode, fit, measure, plan, profile

# States that one task adds up.
FAN_IN = 4
ARROW = {"batch_format": "pyarrow"}


def part(table: Any) -> Part:
    """Give a batch as a part of all rows; columns that are not encoded pass through."""
    return Part(table.drop_columns([TARGET]), table[TARGET])


def state(value: Any) -> Any:
    """Give one row with a state."""
    return pa.table({"state": pa.array([pickle.dumps(value)], pa.large_binary())})


def profile_batch(table: Any, encoder: TargetEncoder) -> Any:
    """Profile a batch."""
    return state(profile(encoder, part(table)))


def measure_batch(table: Any, sent: Any) -> Any:
    """Sum a batch."""
    return state(measure(ray.get(sent), part(table)))


def add_states(states: Any) -> Any:
    """Add up several states."""
    return state(reduce(add, map(pickle.loads, states["state"].to_pylist())))


def encode_batch(table: Any, sent: Any) -> Any:
    """Encode a batch."""
    return encode(ray.get(sent), part(table))


def transform_batch(table: Any, sent: Any) -> Any:
    """Give the encodings of new rows."""
    return ray.get(sent).transform(table)


def total(states: Any) -> Any:
    """Add up states, a few in each task and the rest here, in any order."""
    few = states.map_batches(add_states, batch_size=FAN_IN, **ARROW)
    return reduce(add, (pickle.loads(row["state"]) for row in few.take_all()))


def read_groups(paths: list[str]) -> Any:
    """Read Parquet files, one row group at a time."""
    groups = [
        {"path": path, "group": group}
        for path in paths
        for group in range(pyarrow.parquet.read_metadata(path).num_row_groups)
    ]
    return ray.data.from_items(groups, override_num_blocks=len(groups)).map_batches(read, batch_size=1, **ARROW)


def read(place: Any) -> Any:
    """Read one row group."""
    [group] = place.to_pylist()
    return pyarrow.parquet.ParquetFile(group["path"]).read_row_group(group["group"])


def fit_transform(rows: Any, encoder: TargetEncoder) -> Any:
    """Fit the encoder here, and give the training encodings when Ray is asked for them."""
    # Each block is one batch.
    blocks = {"batch_size": None, **ARROW}
    total_profile = total(rows.map_batches(profile_batch, fn_args=(encoder,), **blocks))
    encoding_plan = plan(encoder, total_profile)
    sums = total(rows.map_batches(measure_batch, fn_args=(ray.put(encoding_plan),), **blocks))
    tables = fit(encoder, encoding_plan, sums)
    # Once in each node's memory, whatever runs there.
    return rows.map_batches(encode_batch, fn_args=(ray.put(tables),), **blocks)


def collect(rows: Any) -> Any:
    """Collect rows, in whatever order they come."""
    return pa.concat_tables(rows.iter_batches(batch_size=None, **ARROW))


def files(table: Any, folder: str, count: int) -> list[str]:
    """Write rows to files, of two row groups each."""
    paths = []
    for number in range(count):
        start, stop = (len(table) * place // count for place in (number, number + 1))
        paths.append(str(Path(folder, f"{number:05d}.parquet")))
        size = max(1, -(-(stop - start) // 2))
        pyarrow.parquet.write_table(table.slice(start, stop - start), paths[-1], row_group_size=size)
    return paths


def main() -> None:
    """Encode in Ray and in one piece, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--cpus", type=int, default=2)
    options = parser.parse_args()
    ray.init(num_cpus=options.cpus, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    try:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as new_folder:
            table, new = orders(options.rows, seed=7), orders(options.rows, seed=8).drop_columns([TARGET])
            rows, new_rows = (
                read_groups(files(*given)) for given in ((table, folder, options.files), (new, new_folder, 3))
            )
            fitted = encoder()
            encodings = collect(fit_transform(rows, fitted))
            sent = {"fn_args": (ray.put(fitted),), "batch_size": None, **ARROW}
            print(f"{len(encodings)} rows: {', '.join(encodings.column_names)}")
            compare(encodings, table, collect(new_rows.map_batches(transform_batch, **sent)), new)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
