"""Each engine reads the encoders that other engines have saved."""

from pathlib import Path

import pyarrow as pa
import pytest

from gpu_encode import TargetEncoder
from gpu_encode.scale.engines import DistributedEncoder
from tests.scale.engines.rows import rows, same
from tests.scale.engines.sessions import NEEDS_SPARK
from tests.scale.engines.test_ray import cluster, collect, ray

__all__ = ["cluster"]
dd = pytest.importorskip("dask.dataframe", reason="the extra dask has Dask")
pytestmark = [*NEEDS_SPARK, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")]


def test_each_engine_reads_what_any_has_saved(spark, tmp_path: Path):
    table, new = (rows(seed=seed).select(["id", "shop", "color", "sold"]) for seed in (3, 4))
    engines = {
        "ray": (ray.from_arrow, collect),
        "spark": (spark.createDataFrame, lambda found: found.toArrow()),
        "dask": (
            lambda given: dd.from_pandas(given.to_pandas(), npartitions=3),
            lambda found: pa.Table.from_pandas(found.compute(), preserve_index=False),
        ),
    }

    def make():
        return TargetEncoder(columns=["color", ("shop", "color")], cv=3, device="cpu")

    expected = make().fit(table.drop_columns(["sold"]), table["sold"]).transform(new.drop_columns(["sold"]))
    for saver, (given, _) in engines.items():
        frame = given(table)
        there = DistributedEncoder(make(), tables="shuffle")
        X, y = (frame.drop(columns="sold"), frame["sold"]) if saver == "dask" else (frame, "sold")
        there.fit(X, y).save(str(tmp_path / saver))
        for given_new, collected in engines.values():
            found = collected(DistributedEncoder.load(str(tmp_path / saver)).transform(given_new(new)))
            assert same(found, expected, "sold")
