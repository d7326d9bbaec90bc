"""An encoder in pipelines of pyspark.ml: training encodings for the training frame, those of new rows for others."""

import shutil
import warnings

import numpy as np
import pytest

from gpu_encode import CountEncoder, KFold, LeakWarning, LeaveOneOut, TargetEncoder, load
from gpu_encode.engines import DistributedEncoder
from tests.scale.engines.rows import encoder, rows, same
from tests.scale.engines.sessions import NEEDS_SPARK, code_of_page

# CrossValidator leaves its threads to the garbage collector.
POOLS = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
pytestmark = [*NEEDS_SPARK, POOLS]
BY_ID = KFold(3, by="id")


def estimator(given=None, **parameters):
    from gpu_encode.engines import SparkEncoder

    return SparkEncoder(encoder=given or encoder(BY_ID), labelCol="sold", **parameters)


def expected(new=None, **weights):
    """Give the training encodings of one table, and those of new rows."""
    alone, table = encoder(BY_ID), rows()
    training = alone.fit_transform(
        table.drop_columns(["sold", *weights.values()]),
        table["sold"],
        **{name: table[column] for name, column in weights.items()},
    )
    return training, alone.transform((table if new is None else new).drop_columns(["sold", *weights.values()]))


@pytest.fixture(scope="module")
def stored(spark, tmp_path_factory):
    """Rows of a file, so that it can be read again."""
    path = str(tmp_path_factory.mktemp("stored") / "rows.parquet")
    spark.createDataFrame(rows()).coalesce(1).write.parquet(path)
    return path


@pytest.mark.daily
def test_the_training_frame_gets_training_encodings(spark, stored):
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import SQLTransformer

    training, new = expected(sample_weight="weight")
    frame = spark.read.parquet(stored)
    learned = SQLTransformer(statement="select *, 1 as one from __THIS__")
    model = Pipeline(stages=[estimator(weightCol="weight"), learned]).fit(frame)
    fitted = model.stages[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakWarning)
        for again in (frame, spark.read.parquet(stored)):
            assert same(model.transform(again).drop("one").toArrow(), training, "sold", "weight")
        others = spark.createDataFrame(rows())
        for encodings in (model.transform(others).drop("one"), fitted.encoder_.transform(frame)):
            assert same(encodings.toArrow(), new, "sold", "weight")


@pytest.mark.daily
def test_later_stages_are_fitted_to_training_encodings(spark, stored):
    from pyspark.ml import Pipeline
    from pyspark.ml.feature import StandardScaler, VectorAssembler

    frame = spark.read.parquet(stored)
    vector = VectorAssembler(inputCols=["color"], outputCol="vector")
    model = Pipeline(stages=[estimator(), vector, StandardScaler(inputCol="vector", outputCol="scaled")]).fit(frame)
    training = expected()[0]["color"].to_numpy()
    assert model.stages[-1].std[0] == pytest.approx(training.std(ddof=1), rel=1e-12)


def test_frames_made_of_the_training_frame_are_told(spark, stored):
    frame = spark.read.parquet(stored)
    model = estimator().fit(frame)
    made = [
        frame.drop("sold"),
        frame.where("id < 50"),
        frame.selectExpr("*", "1 as one").orderBy("id"),
        frame.withColumnRenamed("price", "cost").withColumnRenamed("cost", "price").where("id > 3"),
    ]
    for rows_of_fit in made:
        with pytest.warns(LeakWarning, match="made of the training frame"):
            model.transform(rows_of_fit)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakWarning)
        for others in (spark.createDataFrame(rows()), frame.groupBy(frame.columns).count().drop("count")):
            model.transform(others)


def test_the_same_plan_with_other_files_is_another_frame(spark, tmp_path):
    path = str(tmp_path / "rows")
    spark.createDataFrame(rows()).write.parquet(path)
    model = estimator().fit(spark.read.parquet(path))
    spark.createDataFrame(rows(seed=4)).write.mode("append").parquet(path)
    with pytest.warns(LeakWarning, match="other files"):
        found = model.transform(spark.read.parquet(path))
    assert found.count() == 2 * rows().num_rows


def test_columns_of_other_names_are_another_frame(spark, stored):
    from gpu_encode.scale.engines.spark_estimator import is_made_of, is_same

    frame = spark.read.parquet(stored)
    one, again, other = (frame.selectExpr("*", f"price as {name}") for name in ("cost", "cost", "value"))
    assert is_same(one, again)
    assert one.sameSemantics(other)
    assert not is_same(one, other)
    assert is_made_of(other, one)


@pytest.mark.daily
@pytest.mark.parametrize("distributed", [False, "shuffle", "broadcast"])
def test_stages_are_saved_with_their_pipeline(spark, stored, tmp_path, distributed):
    from pyspark.ml import Pipeline, PipelineModel

    given = DistributedEncoder(encoder(BY_ID), tables=distributed) if distributed else encoder(BY_ID)
    frame = spark.read.parquet(stored)
    Pipeline(stages=[estimator(given)]).save(str(tmp_path / "unfitted"))
    loaded = Pipeline.load(str(tmp_path / "unfitted"))
    assert repr(loaded.getStages()[0].getOrDefault("encoder")) == repr(given)
    model = loaded.fit(frame)
    training, new = expected()
    assert same(model.transform(frame).toArrow(), training, "sold")
    model.save(str(tmp_path / "model"))
    again = PipelineModel.load(str(tmp_path / "model"))
    assert again.stages[0].uid == model.stages[0].uid
    # A loaded model remembers no frame.
    assert same(again.transform(frame).toArrow(), new, "sold")
    again.save(str(tmp_path / "copy"))
    shutil.rmtree(tmp_path / "model")
    assert same(PipelineModel.load(str(tmp_path / "copy")).transform(frame).toArrow(), new, "sold")
    if not distributed:
        again.stages[0].encoder_.save(tmp_path / "alone")
        assert load(tmp_path / "alone").transform(rows().drop_columns(["sold"])).equals(new)


def test_a_folder_is_not_replaced_unasked(spark, stored, tmp_path):
    from gpu_encode.engines import SparkEncoder, SparkEncoderModel

    stage, path = estimator(), str(tmp_path / "stage")
    for each, kind in ((stage, SparkEncoder), (stage.fit(spark.read.parquet(stored)), SparkEncoderModel)):
        each.save(path, overwrite=True)
        with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
            each.save(path)
        assert type(kind.load(path)) is kind
    with pytest.raises(TypeError, match=r"cannot be saved before its fit: no file can hold cv=\[0, 1\]"):
        estimator(TargetEncoder(cv=[0, 1])).save(str(tmp_path / "other"))


def test_each_fold_of_a_cross_validator_fits_anew(spark, stored):
    from pyspark.ml.evaluation import Evaluator
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder

    class Indifferent(Evaluator):
        def _evaluate(self, dataset):
            return 0.0

    frame = spark.read.parquet(stored).selectExpr("*", "int(id % 2) as outer")
    stage, encoders = estimator(), [encoder(BY_ID), encoder(LeaveOneOut())]
    grid = ParamGridBuilder().addGrid(stage.encoder, encoders).build()
    settings = {"estimatorParamMaps": grid, "evaluator": Indifferent(), "numFolds": 2, "collectSubModels": True}
    chosen = CrossValidator(estimator=stage, foldCol="outer", **settings).fit(frame)
    for fold, models in enumerate(chosen.subModels):
        table = frame.where(f"outer != {fold}").toArrow()
        for model, given in zip(models, encoders, strict=True):
            assert not hasattr(given, "encodings_")
            alone = encoder(given.cv).fit(table.drop_columns(["sold"]), table["sold"])
            assert repr(model.encoder_.cv) == repr(given.cv)
            assert all(map(np.array_equal, model.encoder_.encodings_, alone.encodings_))
    with pytest.raises(ValueError, match="localCheckpoint"):
        CrossValidator(estimator=stage, **settings).fit(frame)


def test_what_the_encoder_may_be(spark, stored):
    frame = spark.read.parquet(stored)
    counts = estimator(CountEncoder(columns=["color"])).fit(frame).transform(frame)
    assert same(counts.toArrow(), CountEncoder(columns=["color"]).fit(rows()).transform(rows()))
    from gpu_encode.engines import SparkEncoder

    for wrong in (None, "mean"):
        with pytest.raises(TypeError, match=f"encoder of SparkEncoder must be an encoder.* Got {wrong!r}"):
            SparkEncoder(encoder=wrong).fit(frame)


def test_the_page_runs(spark, tmp_path):
    code = code_of_page()[1]
    for name in ("visits.pipeline", "scored"):
        code = code.replace(f'"{name}"', f'"{tmp_path}/{name}"')
    exec(code, {})
    assert {"shop", "probability"} < {*spark.read.parquet(f"{tmp_path}/scored").columns}
