"""Lists of Delayed objects: tables of any library, which come back as such a list."""

import dask
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dask import delayed

from gpu_encode import KFold, LeaveOneOut, TargetEncoder
from tests.distributed.cases import KEYS, assert_same, partitioned, pieces, rows

WHOLE = rows()
pytestmark = pytest.mark.usefixtures("synchronous")
NAMES = [*KEYS, "price"]
MADE = {
    "pandas": lambda part: part,
    "polars": lambda part: pl.from_arrow(pa.Table.from_pandas(part, preserve_index=False)),
    "pyarrow": lambda part: pa.table({name: pa.array(part[name], from_pandas=True) for name in part}),
    "numpy": lambda part: part.to_numpy(),
}


def in_list(kind, names, number=5):
    return [delayed(MADE[kind])(part[names]) for part in pieces(WHOLE, number)]


def vectors(name, number=5):
    return [delayed(part[name].to_numpy()) for part in pieces(WHOLE, number)]


@pytest.mark.parametrize("scheme", [KFold(4), LeaveOneOut()], ids=["folds", "leave one out"])
@pytest.mark.parametrize("kind", MADE)
def test_tables_of_a_library_come_back_as_such(kind, scheme):
    names = NAMES if kind != "numpy" else ["shop", "city"]
    parameters = {"columns": ["shop", ("city", "share")]} if kind != "numpy" else {}
    encoder = TargetEncoder(cv=scheme, **parameters)
    lazy = encoder.fit_transform(in_list(kind, names), vectors("amount"))
    whole = TargetEncoder(cv=scheme, **parameters)
    wanted = whole.fit_transform([MADE[kind](part[names]) for part in pieces(WHOLE, 5)], WHOLE["amount"].to_numpy())
    assert isinstance(lazy, list)
    for codes in (
        zip(dask.compute(*lazy), wanted, strict=True),
        zip(
            dask.compute(*encoder.transform(in_list(kind, names))),
            whole.transform([MADE[kind](part[names]) for part in pieces(WHOLE, 5)]),
            strict=True,
        ),
    ):
        for mine, theirs in codes:
            assert type(mine) is type(theirs)
            as_pandas = pd.DataFrame if kind in ("numpy", "pandas") else lambda table: table.to_pandas()
            assert_same(as_pandas(mine), as_pandas(theirs))


def test_lists_beside_frames_and_frames_beside_lists():
    cut = partitioned(WHOLE, 5)
    wanted = TargetEncoder().fit_transform(WHOLE[KEYS], WHOLE["amount"], sample_weight=WHOLE["weight"])
    codes = TargetEncoder().fit_transform(cut[KEYS], vectors("amount"), sample_weight=cut["weight"])
    assert_same(codes.compute(), wanted)
    listed = TargetEncoder().fit_transform(in_list("pandas", KEYS), cut["amount"], sample_weight=vectors("weight"))
    assert_same(pd.concat(dask.compute(*listed)), wanted)


def test_one_partition_and_tuples():
    codes = TargetEncoder().fit_transform((delayed(WHOLE[KEYS]),), (delayed(WHOLE["amount"]),))
    assert_same(dask.compute(*codes)[0], TargetEncoder().fit_transform(WHOLE[KEYS], WHOLE["amount"]))


def test_containers_asked_for():
    encoder = TargetEncoder().set_output(transform="polars")
    codes = dask.compute(*encoder.fit_transform(in_list("pandas", KEYS), vectors("amount")))
    assert all(isinstance(part, pl.DataFrame) for part in codes)
    wanted = TargetEncoder().fit_transform(WHOLE[KEYS], WHOLE["amount"])
    assert np.array_equal(pl.concat(codes).to_numpy(), wanted.to_numpy())
