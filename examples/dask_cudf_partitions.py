"""A dask frame that no single device holds: one encoder for each partition, merged; training codes fold by fold.

    python examples/dask_cudf_partitions.py
    python examples/dask_cudf_partitions.py --frames pandas --device cpu --rows 20000

Sums are exact, so merged encoders know what one encoder of all rows would know, to the last bit.  Here the partitions
are dealt out to folds: partition p is in fold p modulo 5, and is encoded by what was learned of the other four folds.
That is what `TargetEncoder(cv=folds).fit_transform` gives for one frame of all rows.
"""

from copy import deepcopy
from importlib import import_module
from typing import Any

import dask
import numpy as np
from orders import KEYS, arguments, auc, frames, on_host

from gpu_encode import TargetEncoder

N_FOLDS = 5
N_PARTITIONS = 10


def encoder(device: str, **parameters: Any) -> TargetEncoder:
    """Make an encoder; the kind of target is given, since a partition may happen to hold one class only."""
    return TargetEncoder(columns=KEYS, smooth=10, target_type="binary", device=device, **parameters)


def partitioned(frame: Any, library: str) -> Any:
    """Give a dask frame; in life it comes from `dask_cudf.read_parquet`."""
    if library == "cudf":
        return import_module("dask_cudf").from_cudf(frame, npartitions=N_PARTITIONS)
    return import_module("dask.dataframe").from_pandas(frame, npartitions=N_PARTITIONS)


def learned(partition: Any, device: str) -> TargetEncoder:
    """Fit on one partition; what comes back is as large as its categories, not as its rows."""
    return encoder(device).fit(partition.drop(columns="returned"), partition["returned"])


def merged(encoders: list[TargetEncoder]) -> TargetEncoder:
    """Give an encoder that knows what all of these know; `merge` changes the first, so that one is copied."""
    return deepcopy(encoders[0]).merge(*encoders[1:])


def encoded(rows: Any, fitted: TargetEncoder) -> Any:
    """Encode each partition where it lies."""
    keys = rows.drop(columns="returned", errors="ignore")
    return keys.map_partitions(fitted.transform, meta=fitted.transform(keys._meta_nonempty).iloc[:0])


def main() -> None:
    """Encode partition by partition, one at a time: threads would share the one device."""
    options = arguments(__doc__.splitlines()[0])
    if options.frames == "polars":
        raise SystemExit("dask has no frames of polars: pass --frames pandas or --frames cudf")
    # With several GPUs, a `Client` of dask-cuda's cluster, one worker for each, takes the place of this line.
    with dask.config.set(scheduler="synchronous"):
        compare(options)


def compare(options: Any) -> None:
    """Print whether the codes are those of one frame, and the score of the encoded shop alone."""
    X, y, X_new, y_new = frames(options.frames, options.rows)
    rows, new_rows = partitioned(X.assign(returned=y), options.frames), partitioned(X_new, options.frames)

    encoders = dask.compute(*(dask.delayed(learned)(part, options.device) for part in rows.to_delayed()))
    in_folds = [encoders[fold::N_FOLDS] for fold in range(N_FOLDS)]
    others = [
        merged([each for at, part in enumerate(in_folds) if at != fold for each in part]) for fold in range(N_FOLDS)
    ]
    parts = dask.compute(*(encoded(rows.partitions[p], others[p % N_FOLDS]) for p in range(rows.npartitions)))
    codes = np.concatenate([on_host(part) for part in parts])
    new_codes = encoded(new_rows, merged(list(encoders))).compute()

    folds = np.repeat(np.arange(rows.npartitions) % N_FOLDS, [len(part) for part in parts])
    whole = encoder(options.device, cv=folds)
    same = np.array_equal(codes, on_host(whole.fit_transform(X, y)))
    same_new = np.array_equal(on_host(new_codes), on_host(whole.transform(X_new)))
    print(f"the same bits as one frame of all rows: training {same}, new rows {same_new}")
    print(f"shop alone: train AUC {auc(y, codes[:, 0]):.3f}, test AUC {auc(y_new, new_codes['shop']):.3f}")


if __name__ == "__main__":
    main()
