"""A frame of Dask that no single device can hold; its encodings have the bits of one frame of all rows.

    python examples/dask_cudf_partitions.py
    python examples/dask_cudf_partitions.py --frames pandas --device cpu --rows 20000

Each partition is read three times: to find the values of y, to be summed, and to be encoded.  Sums are exact, and are
added in a tree.  When `fit_transform` returns, the encoder is fitted; training encodings and encodings of new rows are
lazy frames.
"""

from importlib import import_module
from typing import Any

import dask
import numpy as np
from orders import KEYS, arguments, auc, frames, on_host

from gpu_encode import KFold, TargetEncoder

N_PARTITIONS = 10


def encoder(device: str) -> TargetEncoder:
    """Make an encoder; it needs no parameter for partitions."""
    return TargetEncoder(columns=KEYS, smooth=10, cv=KFold(5), device=device)


def partitioned(frame: Any, library: str) -> Any:
    """Give a frame of Dask; in practice it comes from `dask_cudf.read_parquet`."""
    if library == "cudf":
        return import_module("dask_cudf").from_cudf(frame, npartitions=N_PARTITIONS)
    return import_module("dask.dataframe").from_pandas(frame, npartitions=N_PARTITIONS)


def main() -> None:
    """Encode one partition at a time, since threads would share the single device."""
    options = arguments(__doc__.splitlines()[0])
    if options.frames == "polars":
        raise SystemExit("dask has no frames of polars: examples/dask_cluster.py has lists of them; or --frames pandas")
    # With several GPUs, a `Client` of dask-cuda's cluster, one worker for each, replaces this line.
    with dask.config.set(scheduler="synchronous"):
        compare(options)


def compare(options: Any) -> None:
    """Print whether the encodings are those of one frame, and the score of the encoded shop alone."""
    X, y, X_new, y_new = frames(options.frames, options.rows)
    rows, new_rows = partitioned(X.assign(returned=y), options.frames), partitioned(X_new, options.frames)

    fitted = encoder(options.device)
    lazy = fitted.fit_transform(rows.drop(columns="returned"), rows["returned"])
    codes, new_codes = dask.compute(lazy, fitted.transform(new_rows))

    whole = encoder(options.device)
    same = np.array_equal(on_host(codes), on_host(whole.fit_transform(X, y)))
    same_new = np.array_equal(on_host(new_codes), on_host(whole.transform(X_new)))
    print(f"the same bits as one frame of all rows: training {same}, new rows {same_new}")
    print(f"shop alone: train AUC {auc(y, codes['shop']):.3f}, test AUC {auc(y_new, new_codes['shop']):.3f}")


if __name__ == "__main__":
    main()
