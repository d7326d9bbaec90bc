"""Parquet files as Dask reads them: Dask joins partitions when it computes, if few columns are needed."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from gpu_encode import KFold, LeaveOneOut, Ordered, TargetEncoder
from tests.bits import assert_same_encoder
from tests.cases import some_of
from tests.scale.dask.cases import assert_same, rows

WHOLE = rows(150)
FEATURES = ["shop", "city"]
# A warning of Dask's own reader, with a pandas newer than itself.
pytestmark = [
    pytest.mark.usefixtures("synchronous"),
    pytest.mark.filterwarnings("ignore:.*inplace keyword", "ignore:.*see no rows"),
]


WAYS_OF_READING = [{}, {"split_row_groups": 1}, {"filesystem": "arrow"}]


@pytest.fixture(params=WAYS_OF_READING, ids=str)
def cut(request, tmp_path):
    """Give a frame of five files, or of ten row groups: fewer partitions, if they were left to Dask."""
    for number, start in enumerate(range(0, 150, 30)):
        WHOLE[start : start + 30].to_parquet(tmp_path / f"{number}.parquet", row_group_size=15)
    frame = dd.read_parquet(tmp_path, **request.param)
    assert frame[["shop"]].map_partitions(len).compute().size < frame.npartitions
    return frame


@pytest.mark.parametrize(
    ("cut", "scheme"),
    some_of(WAYS_OF_READING, [KFold(3, stratify=True), LeaveOneOut(), Ordered(2), Ordered(shuffle=False)]),
    indirect=["cut"],
    ids=str,
)
def test_partitions_stay_those_of_the_frame(cut, scheme):
    whole, encoder = (TargetEncoder(cv=scheme, columns=["shop"]) for _ in range(2))
    encodings = encoder.fit_transform(cut[FEATURES], cut["sold"])
    read = cut.compute()  # the order of files is Dask's
    wanted = whole.fit_transform(read[FEATURES], read["sold"])
    assert encodings.npartitions == cut.npartitions
    partitions = dask.compute(*encodings.partitions)
    assert {len(partition) for partition in partitions} == {150 // cut.npartitions}
    assert_same(pd.concat(partitions), wanted)
    assert_same(encodings.compute(), wanted)
    assert_same_encoder(encoder, whole)
    assert_same(encoder.transform(cut[FEATURES]).compute(), whole.transform(read[FEATURES]))


def test_a_column_beside_a_list_stays_in_its_partitions(cut):
    read = cut.compute()
    tables = [dask.delayed(read[FEATURES].iloc[places]) for places in np.split(np.arange(150), cut.npartitions)]
    encodings = TargetEncoder().fit_transform(tables, cut["sold"])
    assert_same(pd.concat(dask.compute(*encodings)), TargetEncoder().fit_transform(read[FEATURES], read["sold"]))
