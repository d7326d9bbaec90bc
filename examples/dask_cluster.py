"""A cluster of Dask: worker processes make, sum and encode the partitions, and no row comes to this process.

    python examples/dask_cluster.py --frames pandas
    python examples/dask_cluster.py --frames polars --rows 20000
    python examples/dask_cluster.py --frames cudf

With cuDF it is a cluster of dask-cuda, with one worker for each GPU.  Partitions of polars are a list of Delayed
objects, since Dask has no frames of polars; the result is such a list, too.
"""

from importlib import import_module
from typing import Any

import dask
from orders import KEYS, arguments, auc, frames

from gpu_encode import KFold, TargetEncoder

N_PARTITIONS = 8


def part(library: str, rows: int, number: int, new: bool) -> Any:
    """Make one partition, on a worker; in practice it is read from a file."""
    X, y, X_new, y_new = frames(library, rows)
    first, last = (number * rows // N_PARTITIONS, (number + 1) * rows // N_PARTITIONS)
    table, target = (X_new, y_new) if new else (X, y)
    table, target = table[first:last], target[first:last]
    return table.with_columns(target) if library == "polars" else table.assign(returned=target)


def partitions(library: str, rows: int, new: bool) -> tuple[Any, Any]:
    """Give X and y, not computed yet."""
    if library == "polars":
        tables = [dask.delayed(part)(library, rows, number, new) for number in range(N_PARTITIONS)]
        return [each.drop("returned") for each in tables], [each.get_column("returned") for each in tables]
    meta = part(library, N_PARTITIONS, 0, new).iloc[:0]
    made = [dask.delayed(part)(library, rows, number, new) for number in range(N_PARTITIONS)]
    frame = import_module("dask.dataframe").from_delayed(made, meta=meta, verify_meta=False)
    return frame.drop(columns="returned"), frame["returned"]


def cluster(library: str) -> Any:
    """Start workers: processes on this machine; with cuDF, one for each GPU."""
    if library == "cudf":
        return import_module("dask_cuda").LocalCUDACluster(dashboard_address=None)
    return import_module("distributed").LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)


def gathered(lazy: Any, library: str) -> Any:
    """Compute all partitions, and give one table, which is small in this example."""
    if library == "polars":
        return import_module("polars").concat(dask.compute(*lazy))
    return lazy.compute()


def main() -> None:
    """Print how well the encoded shop alone predicts returned orders, in training and on new rows."""
    options = arguments(__doc__.splitlines()[0])
    encoder = TargetEncoder(columns=KEYS, smooth=10, cv=KFold(5), device=options.device)
    with cluster(options.frames) as workers, import_module("distributed").Client(workers):
        X, y = partitions(options.frames, options.rows, new=False)
        X_new, _ = partitions(options.frames, options.rows, new=True)
        # The encoder is fitted now; all encodings are lazy.
        training = encoder.fit_transform(X, y)
        codes, new_codes = (gathered(each, options.frames) for each in (training, encoder.transform(X_new)))
    _, target, _, new_target = frames(options.frames, options.rows)
    print(f"{N_PARTITIONS} partitions, {len(codes)} rows")
    print(f"shop alone: train AUC {auc(target, codes['shop']):.3f}, test AUC {auc(new_target, new_codes['shop']):.3f}")


if __name__ == "__main__":
    main()
