"""Partitions that other passes read otherwise are refused, also where encodings are computed later."""

from uuid import uuid4

import numpy as np
import pandas as pd
import pytest

from gpu_encode import KFold, LeaveOneOut, TargetEncoder
from gpu_encode.scale.engines import DistributedEncoder

dask = pytest.importorskip("dask", reason="the extra dask has Dask")
dd = pytest.importorskip("dask.dataframe")
pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::gpu_encode.LeakWarning")]
N_ROWS = 40


def rows(number, change=None):
    random = np.random.default_rng(number)
    table = pd.DataFrame(
        {
            "id": np.arange(N_ROWS) + N_ROWS * number,
            "shop": random.integers(0, 3, N_ROWS),
            "visit": [f"visit {row}" for row in range(N_ROWS)],
            "sold": np.arange(N_ROWS) % 2,
        }
    )
    if change is not None:
        # Only the order of two values is another one.
        table.loc[[0, 1], change] = table.loc[[1, 0], change].to_numpy()
    return table


def frame(changes):
    """Give rows that read otherwise, once `changes` says which column does."""
    # Dask would take two frames with equal `changes` for one.
    changes["mine"] = str(uuid4())
    return dd.from_map(lambda number: rows(number, changes.get("column")), range(3), meta=rows(0))


@pytest.mark.parametrize(
    ("column", "cv"), [("sold", LeaveOneOut()), ("id", KFold(3, by="id")), ("visit", KFold(2, by="visit"))]
)
@pytest.mark.parametrize("tables", ["broadcast", "shuffle"])
def test_rows_that_change_before_encodings_are_computed(column, cv, tables):
    changes = {}
    X = frame(changes)
    make = TargetEncoder(columns=["shop"], cv=cv, device="cpu")
    make = make if tables == "broadcast" else DistributedEncoder(make, tables=tables)
    with dask.config.set(scheduler="synchronous"):
        encodings = make.fit_transform(X[["id", "shop", "visit"]], X["sold"])
        changes["column"] = column
        with pytest.raises(ValueError, match=r"partition \d has rows, or values of rows, that were not there"):
            encodings.compute()


def test_rows_that_change_between_the_passes_of_a_fit():
    reads = []

    def read(number):
        reads.append(number)
        return rows(number, "sold" if len(reads) > 3 else None)

    X = dd.from_map(read, range(3), meta=rows(0))
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match="not there in the first pass"):
        TargetEncoder(columns=["shop"], device="cpu").fit(X[["shop"]], X["sold"])
