"""Training encodings of a dataset of Ray, and the encodings of new rows.

    python examples/engines/ray_dataset.py
    python examples/engines/ray_dataset.py --rows 20000 --cpus 2

A row's fold follows from its order number (`KFold(by=)`), so blocks may come in any order and be cut anywhere.
"""

import argparse
import tempfile

import pyarrow as pa
import pyarrow.parquet
import ray
from made_rows import TARGET, compare, encoder, orders


def collect(rows: ray.data.Dataset) -> pa.Table:
    """Collect rows, in any order."""
    return pa.concat_tables(rows.iter_batches(batch_size=None, batch_format="pyarrow"))


def main() -> None:
    """Encode rows in Ray and in one table, and compare the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--cpus", type=int, default=2)
    options = parser.parse_args()
    ray.init(num_cpus=options.cpus, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    table, new = orders(options.rows, seed=7), orders(options.rows, seed=8).drop_columns([TARGET])
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            pyarrow.parquet.write_table(table.take(list(range(number, len(table), 3))), f"{folder}/{number}.parquet")
        fitted = encoder()
        encodings = collect(fitted.fit_transform(ray.data.read_parquet(folder), y=TARGET))
    print(f"{len(encodings)} rows: {', '.join(encodings.column_names)}")
    compare(encodings.drop_columns([TARGET]), table, collect(fitted.transform(ray.data.from_arrow(new))), new)
    ray.shutdown()


if __name__ == "__main__":
    main()
