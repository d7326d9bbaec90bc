"""Lists of Delayed objects: tables of any library, and results that are such lists."""

import dask
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from dask import delayed

from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder
from tests.cases import some_of
from tests.scale.dask.cases import KEYS, assert_same, partitioned, pieces, rows

WHOLE = rows()
pytestmark = [pytest.mark.usefixtures("synchronous"), pytest.mark.filterwarnings("ignore:.*see no rows at all")]
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


@pytest.mark.parametrize(
    ("kind", "scheme"), some_of(MADE, [KFold(4), LeaveOneOut(), Ordered(2), Ordered(shuffle=False)]), ids=str
)
def test_tables_of_a_library_come_back_as_such(kind, scheme):
    names, columns = (NAMES, ["shop", ("city", "share")]) if kind != "numpy" else (["shop", "city"], None)
    encoder, whole = (TargetEncoder(cv=scheme, columns=columns) for _ in range(2))
    tables = [MADE[kind](part[names]) for part in pieces(WHOLE, 5)]
    trained = encoder.fit_transform(in_list(kind, names), vectors("amount"))
    wanted = whole.fit_transform(tables, WHOLE["amount"].to_numpy())
    assert isinstance(trained, list)
    for lazy, expected in ((trained, wanted), (encoder.transform(in_list(kind, names)), whole.transform(tables))):
        for mine, theirs in zip(dask.compute(*lazy), expected, strict=True):
            assert type(mine) is type(theirs)
            assert_same(
                *(
                    nw.from_native(table).to_pandas() if kind != "numpy" else pd.DataFrame(table)
                    for table in (mine, theirs)
                )
            )


def test_lists_beside_frames_and_frames_beside_lists():
    cut = partitioned(WHOLE, 5)
    wanted = TargetEncoder().fit_transform(WHOLE[KEYS], WHOLE["amount"], sample_weight=WHOLE["weight"])
    encodings = TargetEncoder().fit_transform(cut[KEYS], vectors("amount"), sample_weight=cut["weight"])
    assert_same(encodings.compute(), wanted)
    lazy = TargetEncoder().fit_transform(in_list("pandas", KEYS), cut["amount"], sample_weight=vectors("weight"))
    assert_same(pd.concat(dask.compute(*lazy)), wanted)


@pytest.mark.parametrize("cv", [5, LeaveOneOut(), Ordered(shuffle=False)], ids=str)
def test_told_default_frames_stay_frames_and_lists_become_arrays(cv):
    cut, told = partitioned(WHOLE, 3), TargetEncoder(cv=cv).set_output(transform="default")
    expected = TargetEncoder(cv=cv).fit_transform(WHOLE[KEYS], WHOLE["amount"])
    assert_same(told.fit_transform(cut[KEYS], cut["amount"]).compute(), expected)
    assert_same(told.transform(cut[KEYS]).compute(), told.set_output(transform="pandas").transform(WHOLE[KEYS]))
    told.set_output(transform="default")
    parts = dask.compute(*told.fit_transform(in_list("pandas", KEYS), vectors("amount")))
    assert {type(part) for part in parts} == {np.ndarray}
    assert np.array_equal(np.concatenate(parts), expected.to_numpy(), equal_nan=True)


def test_containers_asked_for():
    encoder = TargetEncoder().set_output(transform="polars")
    encodings = dask.compute(*encoder.fit_transform(in_list("pandas", KEYS), vectors("amount")))
    assert all(isinstance(part, pl.DataFrame) for part in encodings)
    wanted = TargetEncoder().fit_transform(WHOLE[KEYS], WHOLE["amount"])
    assert np.array_equal(pl.concat(encodings).to_numpy(), wanted.to_numpy())
