"""Tables of categories that stay in Spark: the bits of one table for all partitions, and clear errors."""

import math
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gpu_encode import KFold, LeaveOneOut, MEstimate, TargetEncoder
from gpu_encode.scale.engines import DistributedEncoder, distributed_encoder, spark_tables
from gpu_encode.scale.engines.spark import in_few_tasks
from gpu_encode.scale.files.look_up import Joined
from tests.scale.engines.rows import encoder, marked, rows, same
from tests.scale.engines.sessions import NEEDS_SPARK, check_killed_workers, code_of_page
from tests.scale.killed import check_killed_saves

pytestmark = NEEDS_SPARK
BY_ID = KFold(3, by="id")


def shuffled(cv=BY_ID, **parameters):
    """Make an encoder whose tables stay in Spark."""
    return DistributedEncoder(encoder(cv, **parameters), tables="shuffle")


def in_memory(cv=BY_ID, table=None, **parameters):
    """Give the training encodings of one table."""
    table = rows() if table is None else table
    return encoder(cv, **parameters).fit_transform(table.drop_columns(["sold"]), table["sold"])


CUTS = {
    "1 partition": lambda frame: frame.repartition(1),
    "3 partitions, one of them empty": lambda frame: frame,
    "8 partitions": lambda frame: frame.repartition(8, "day"),
    "coalesce": lambda frame: frame.coalesce(1),
    "union": lambda frame: frame.where("day < 4").union(frame.where("day >= 4")),
}


@pytest.fixture
def joined_by_shuffle(spark, monkeypatch):
    """Treat tables as large, here and in Spark: small ones are sent to all processes."""
    monkeypatch.setattr(spark_tables, "SMALL", 0)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    yield
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


@pytest.fixture(params=["true", "false"], ids=["adaptive", "not adaptive"])
def adaptive(spark, request):
    spark.conf.set("spark.sql.adaptive.enabled", request.param)
    yield
    spark.conf.unset("spark.sql.adaptive.enabled")


@pytest.mark.usefixtures("adaptive", "joined_by_shuffle")
@pytest.mark.parametrize("cut", marked(CUTS, "8 partitions"))
def test_bits_are_those_of_one_table(spark, frame, cut):
    there = shuffled()
    found = CUTS[cut](there.fit_transform(CUTS[cut](frame), "sold"))
    assert found.columns[-1] == "sold"
    assert same(found.toArrow(), in_memory(), "sold")
    alone = encoder(BY_ID).fit(rows().drop_columns(["sold"]), rows()["sold"])
    new = rows(seed=4)
    made = there.transform(CUTS[cut](spark.createDataFrame(new)))
    assert same(made.toArrow(), alone.transform(new.drop_columns(["sold"])), "sold")
    there.unpersist()


@pytest.mark.parametrize("most", [0, 1000, 1 << 20], ids=["no key", "the smallest key", "all keys"])
def test_small_keys_are_looked_up_without_a_shuffle(spark, frame, most, monkeypatch):
    monkeypatch.setattr(spark_tables, "SMALL", most)
    there, alone = shuffled(), encoder(BY_ID).fit(rows().drop_columns(["sold"]), rows()["sold"])
    found = there.fit_transform(frame, "sold")
    plan = found._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("Join LeftOuter") == {0: 3, 1000: 2}.get(most, 0)
    assert same(found.toArrow(), in_memory(), "sold")
    new = rows(seed=4)
    found = there.transform(spark.createDataFrame(new)).toArrow()
    assert same(found, alone.transform(new.drop_columns(["sold"])), "sold")


def test_many_small_partitions_are_few_tasks(spark, frame):
    many = frame.repartition(60)
    assert in_few_tasks(many).rdd.getNumPartitions() == 8
    assert in_few_tasks(frame).rdd.getNumPartitions() == frame.rdd.getNumPartitions()
    # Nothing is known of the size of rows behind an RDD.
    hidden = spark.createDataFrame(many.rdd, many.schema)
    assert in_few_tasks(hidden).rdd.getNumPartitions() == 60
    assert same(encoder(BY_ID).fit_transform(many, "sold").toArrow(), in_memory(), "sold")


def test_each_row_left_out(frame):
    assert same(shuffled(LeaveOneOut()).fit_transform(frame, "sold").toArrow(), in_memory(LeaveOneOut()), "sold")


def test_weights_and_a_target_of_numbers(frame):
    table = rows()
    X = table.drop_columns(["price", "weight"])
    expected = encoder(BY_ID).fit_transform(X, table["price"], sample_weight=table["weight"])
    found = shuffled().fit_transform(frame, "price", sample_weight="weight")
    assert same(found.toArrow(), expected, "price", "weight")


@pytest.mark.usefixtures("joined_by_shuffle")
def test_most_rows_in_one_category(spark):
    table = rows(4000)
    customers = pa.array([7 if row % 50 else row for row in range(len(table))], pa.int64())
    table = table.set_column(table.column_names.index("customer"), "customer", customers)
    found = shuffled().fit_transform(spark.createDataFrame(table).repartition(5), "sold")
    assert same(found.toArrow(), in_memory(table=table), "sold")


@pytest.mark.usefixtures("joined_by_shuffle")
@pytest.mark.parametrize("policy", ["category", "prior", "nan"])
def test_missing_values_and_zeros_of_either_sign(spark, policy):
    table = rows()
    floats = pa.array([[None, math.nan, 0.0, -0.0, 1.5][row % 5] for row in range(len(table))])
    table = table.set_column(table.column_names.index("price"), "price", floats)
    frame = spark.createDataFrame(table).repartition(3)

    def make(**tables):
        return encoder(BY_ID, handle_missing=policy).set_params(columns=["price", "customer", ("customer", "color")])

    expected, there = make(), DistributedEncoder(make(), tables="shuffle")
    X = table.drop_columns(["sold"])
    assert same(there.fit_transform(frame, "sold").toArrow(), expected.fit_transform(X, table["sold"]), "sold")
    assert same(there.transform(frame).toArrow(), expected.transform(X), "sold")


def test_types_of_keys(spark):
    frame = spark.sql(
        "select id, id % 2 = 0 as even, cast(id % 3 as decimal(9, 2)) as price, "
        "date_add(date '2026-01-01', int(id % 4)) as day, timestamp_seconds(id % 5) as at, "
        "cast(string(id % 6) as binary) as code, cast(id % 7 as short) as short, "
        "cast(id % 3 as float) as real, id % 11 % 2 as sold from range(60)"
    )
    columns = frame.columns[1:-1]
    table = frame.toArrow()

    def make():
        return TargetEncoder(columns=columns, cv=BY_ID, smooth=MEstimate(2.0), device="cpu")

    expected = make().fit_transform(table.drop_columns(["sold"]), table["sold"])
    there = DistributedEncoder(make(), tables="shuffle")
    assert same(there.fit_transform(frame, "sold").toArrow(), expected, "sold")
    wider = frame.withColumn("short", frame["short"].cast("long"))
    assert same(there.transform(wider).toArrow(), there.transform(frame).toArrow())
    with pytest.raises(ValueError, match="fitted on smallint values and now holds string"):
        there.transform(frame.withColumn("short", frame["short"].cast("string")))


@pytest.mark.parametrize("most", [0, 1 << 20], ids=["joined by Spark", "looked up"])
def test_text_is_compared_byte_by_byte_whatever_its_collation(frame, most, monkeypatch):
    monkeypatch.setattr(spark_tables, "SMALL", most)
    table, at = rows(), rows().column_names.index("color")
    odd = pc.equal(pc.bit_wise_and(table["id"], 1), 1)
    color = pc.if_else(odd, pc.utf8_upper(table["color"]), table["color"])
    collated = frame.selectExpr("*", "if(id % 2 = 0, color, upper(color)) collate utf8_lcase as text")
    found = shuffled().fit_transform(collated.drop("color").withColumnRenamed("text", "color"), "sold").toArrow()
    assert same(found.select(in_memory().column_names), in_memory(table=table.set_column(at, "color", color)))


def test_a_row_never_sees_its_own_target(spark):
    table, row = rows(), 77
    flipped = np.where(table["id"].to_numpy() == row, 1 - table["sold"].to_numpy(), table["sold"].to_numpy())
    changed = table.set_column(table.column_names.index("sold"), "sold", pa.array(flipped))
    before, after = (
        shuffled().fit_transform(spark.createDataFrame(given), "sold").toArrow().sort_by("id").select([0, 1, 2])
        for given in (table, changed)
    )
    assert after.slice(row, 1).equals(before.slice(row, 1))
    assert not after.equals(before)


@pytest.mark.daily
def test_saved_and_loaded(spark, frame, tmp_path):
    by_day = KFold(3, by="day")
    there = shuffled(by_day, dtype="float32", handle_missing="prior")
    there.fit_transform(frame, "sold")
    path = str(tmp_path / "encodings")
    there.save(path)
    new = spark.createDataFrame(rows(seed=4)).drop("day")
    expected = there.transform(new).toArrow()
    there.unpersist()
    found = DistributedEncoder.load(path).transform(new).toArrow()
    assert found.schema == expected.schema
    assert same(found, expected)
    alone = encoder(by_day, dtype="float32", handle_missing="prior").fit(rows().drop_columns(["sold"]), rows()["sold"])
    assert same(found, alone.transform(rows(seed=4).drop_columns(["sold", "day"])), "sold")


@pytest.mark.daily
def test_a_folder_holds_one_encoder(spark, frame, tmp_path):
    path = str(tmp_path / "encodings")
    zeros = encoder(BY_ID, handle_missing="nan").set_params(scale="logit")
    first, second = shuffled().fit(frame, "sold"), DistributedEncoder(zeros, tables="shuffle").fit(frame, "held")
    first.save(path)
    expected = DistributedEncoder.load(path).transform(frame).toArrow()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        second.save(path)
    assert same(DistributedEncoder.load(path).transform(frame).toArrow(), expected)
    with pytest.MonkeyPatch.context() as patch:
        # The save ends before the record.
        patch.setattr(spark_tables, "count_lines", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            second.save(path, overwrite=True)
    with pytest.raises(FileNotFoundError, match="ended before it was done"):
        DistributedEncoder.load(path).transform(frame)
    second.save(path, overwrite=True)
    # The checksum that Spark wrote is that of this library, also of zeros and NaN.
    assert Joined.read(path).n_lines == second.encodings_.count()
    assert same(DistributedEncoder.load(path).transform(frame).toArrow(), second.transform(frame).toArrow())
    next((tmp_path / "encodings" / "encodings").glob("*.parquet")).unlink()
    with pytest.raises(ValueError, match="lines of encodings with checksum"):
        DistributedEncoder.load(path).transform(frame)


# The steps are the record of no encoder, the lines, and the record.
KILLED = """
import sys
from pyspark.sql import DataFrameWriter
from tests.scale.engines import rows, sessions, test_distributed_encoder as tests
from tests.scale.killed import die, end
session = sessions.start(sessions.SETTINGS | sessions.UNCOMPILED)
encoder = tests.shuffled().fit(session.createDataFrame(rows.rows()), "held")
die(sys.argv[1], int(sys.argv[2]), (DataFrameWriter, "parquet"))
encoder.save(sys.argv[1], overwrite=True)
end(0)
"""


def test_a_save_that_is_ended_at_any_point_is_refused_or_whole(frame, tmp_path):
    def codes_of(encoder):
        return encoder.transform(frame).toArrow().sort_by("id")["color"].to_pylist()

    def loaded(path):
        return codes_of(DistributedEncoder.load(str(path)))

    first, second = (shuffled().fit(frame, target) for target in ("sold", "held"))
    first.save(str(tmp_path / "saved"))
    check_killed_saves(KILLED, tmp_path / "saved", second, loaded, codes_of(first), codes_of(second))


def test_a_setting_is_put_back(spark, frame):
    name = "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning"
    for before in (None, "false"):
        if before is not None:
            spark.conf.set(name, before)
        found = spark.conf.get(name)
        shuffled().fit(frame, "sold").unpersist()
        assert spark.conf.get(name) == found
    spark.conf.unset(name)


def test_killed_workers_change_nothing(frame, tmp_path):
    check_killed_workers(frame, tmp_path / "die", shuffled(), in_memory())


@pytest.mark.parametrize("most", [0, 1 << 20], ids=["joined by Spark", "looked up"])
def test_what_the_policies_refuse(spark, frame, most, monkeypatch):
    monkeypatch.setattr(spark_tables, "SMALL", most)
    there = shuffled(handle_unknown="error").fit(frame, "sold")
    with pytest.raises(Exception, match="'color' have unknown values" if most == 0 else "unknown .* column 'color'"):
        there.transform(frame.selectExpr("*").withColumn("color", frame["shop"])).toArrow()
    with pytest.raises(Exception, match="handle_missing"):
        shuffled(handle_missing="error").fit(frame, "sold")
    there = shuffled(handle_missing="error").fit(frame.where("customer is not null"), "sold")
    with pytest.raises(Exception, match="'customer' have missing values" if most == 0 else "'customer' holds"):
        there.transform(frame).toArrow()
    with pytest.raises(ValueError, match="'color'"):
        there.transform(frame.drop("color"))


@pytest.mark.usefixtures("joined_by_shuffle")
def test_more_categories_than_the_driver_takes(spark):
    """With a hundredth of the rows and categories, and less than that of the driver's limit, tables are too large."""
    many = spark.range(40_000).selectExpr("id", "sha1(string(id % 30000)) as customer", "id % 7 % 2 as sold")

    def make():
        return TargetEncoder(columns=["customer"], cv=BY_ID, device="cpu")

    with pytest.raises(MemoryError, match=r"spark\.driver\.maxResultSize"):
        DistributedEncoder(make(), tables="broadcast").fit(many, "sold")
    encodings = DistributedEncoder(make(), tables="shuffle").fit_transform(many, "sold")
    table = many.where("id < 500 or (id >= 30000 and id < 30500)").toArrow()
    found = encodings.where("id < 500 or (id >= 30000 and id < 30500)").toArrow().sort_by("id")
    whole = pa.table(
        {"id": np.arange(40_000), "sold": np.arange(40_000) % 7 % 2, "customer": np.arange(40_000) % 30000}
    )
    expected = make().fit_transform(whole.select(["id", "customer"]), whole["sold"])
    assert found["customer"].to_pylist() == expected["customer"].take(table.sort_by("id")["id"]).to_pylist()


def test_where_tables_lie_by_the_number_of_categories(frame, monkeypatch):
    few = DistributedEncoder(encoder(BY_ID)).fit(frame, "sold")
    assert few.tables_ == "broadcast"
    assert few.encoder_.transform(rows().drop_columns(["sold"])).num_rows == 203
    monkeypatch.setattr(distributed_encoder, "MANY_CATEGORIES", 100)
    many = DistributedEncoder(encoder(BY_ID)).fit(frame, "sold")
    assert many.tables_ == "shuffle"
    assert same(many.transform(frame).toArrow(), few.transform(frame).toArrow())
    with pytest.raises(ValueError, match=r"encoder_\.save"):
        few.save("nowhere")
    with pytest.raises(ValueError, match="'tables' parameter of DistributedEncoder"):
        DistributedEncoder(encoder(BY_ID), tables="join").fit(frame, "sold")


def test_a_fit_alone_asks_for_no_folds_and_warns_of_nothing(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        there = shuffled(KFold(3)).fit(frame, "sold")
    alone = encoder(KFold(3)).fit(rows().drop_columns(["sold"]), rows()["sold"])
    assert same(there.transform(frame).toArrow(), alone.transform(rows().drop_columns(["sold"])), "sold")


def test_values_that_are_drawn_anew_and_names_that_are_taken(frame):
    with pytest.raises(ValueError, match="localCheckpoint"):
        shuffled().fit(frame.selectExpr("*", "rand() as drawn"), "sold")
    with pytest.raises(ValueError, match="two columns named 'customer_x_color'"):
        shuffled().fit_transform(frame.withColumnRenamed("sold", "customer_x_color"), "customer_x_color")


def test_the_page_runs(spark, tmp_path):
    code = code_of_page()[2].replace('"visitors"', f'"{tmp_path}/visitors"')
    exec(code.replace('.parquet("', f'.parquet("{tmp_path}/'), {})
    for name, columns in (("training", ["visitor", "visit_id", "bought"]), ("new", ["visitor", "visit_id"])):
        assert spark.read.parquet(f"{tmp_path}/{name}").columns == columns
