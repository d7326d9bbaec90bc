"""Encoders take frames of Spark: the bits of one table for all partitions, and errors that say what to write."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from gpu_encode import GroupKFold, KFold, OneHotEncoder, Ordered, StatisticEncoder, TargetEncoder, load
from gpu_encode.scale.engines import DistributedEncoder, orders
from gpu_encode.scale.engines.spark import SparkRows
from tests.scale.engines.rows import (
    ORDERS,
    SCHEMES,
    UNORDERED,
    counter,
    encoder,
    in_time,
    marked,
    oddly_named,
    rows,
    same,
)
from tests.scale.engines.sessions import NEEDS_SPARK, ROOT, check_killed_workers, code_of_page

pytestmark = NEEDS_SPARK
BY_ID = KFold(3, by="id")


def in_memory(encoder, *aside, table=None, **vectors):
    """Give the training encodings of one table."""
    table = rows() if table is None else table
    return encoder.fit_transform(table.drop_columns(list(aside)), table["sold"], **vectors)


@pytest.mark.filterwarnings("ignore:.* rows see no rows", "ignore::gpu_encode.LeakWarning")
@pytest.mark.parametrize("name", marked(SCHEMES, "by value", "all others"))
def test_schemes_give_the_bits_of_one_table(frame, name):
    alone, there = encoder(SCHEMES[name]), encoder(SCHEMES[name])
    expected = in_memory(alone, "sold", "weight", sample_weight=rows()["weight"])
    found = there.fit_transform(frame, y="sold", sample_weight="weight")
    assert same(found.toArrow(), expected, "sold", "weight")
    assert found.columns[-2:] == ["weight", "sold"]
    only_fitted = encoder(SCHEMES[name]).fit(frame, y="sold", sample_weight="weight")
    for fitted in (there, only_fitted):
        assert all(map(np.array_equal, fitted.encodings_, alone.encodings_))
        assert list(fitted.feature_names_in_) == list(alone.feature_names_in_)


MOVES = {
    "coalesce": lambda codes: codes.coalesce(1),
    "union": lambda codes: codes.limit(0).union(codes),
    "repartition": lambda codes: codes.repartition(7),
    "sort": lambda codes: codes.orderBy("price"),
    "cache": lambda codes: codes.cache(),
}


@pytest.fixture
def groups_of_few_rows(monkeypatch):
    monkeypatch.setattr(orders, "MOST_GROUPS", 5)
    monkeypatch.setattr(orders, "FEWEST_ROWS", 1)


@pytest.mark.usefixtures("groups_of_few_rows")
@pytest.mark.parametrize("name", marked(ORDERS, "by age"))
def test_orders_in_time_give_the_bits_of_one_table(frame, name):
    alone = ORDERS[name]()
    expected = in_memory(alone, "sold", "weight", sample_weight=rows()["weight"])
    there = ORDERS[name]()
    found = there.fit_transform(frame, y="sold", sample_weight="weight")
    assert same(found.toArrow(), expected, "sold", "weight")
    assert found.columns[-2:] == ["weight", "sold"]
    assert all(map(np.array_equal, there.encodings_, alone.encodings_))


@pytest.mark.usefixtures("groups_of_few_rows")
@pytest.mark.parametrize(("number", "move"), [(1, "repartition"), (3, "coalesce"), (8, "union")])
def test_orders_in_time_of_any_partitions(frame, number, move):
    found = MOVES[move](in_time().fit_transform(frame.repartition(number), "sold"))
    assert same(found.toArrow(), in_memory(in_time(), "sold"), "sold")


def test_groups_are_a_column_beside_the_features(frame):
    expected = in_memory(encoder(GroupKFold(3)), "sold", "shop", groups=rows()["shop"])
    found = encoder(GroupKFold(3)).fit_transform(frame, "sold", groups="shop")
    assert same(found.toArrow(), expected, "sold", "shop")


def test_several_targets_and_statistics(frame):
    def statistics():
        names = ["mean", "median", "nunique"]
        return StatisticEncoder(columns=["customer"], statistics=names, cv=BY_ID, device="cpu")

    table = rows()
    expected = statistics().fit_transform(table.drop_columns(["sold", "price"]), table.select(["sold", "price"]))
    found = statistics().fit_transform(frame, ["sold", "price"])
    assert same(found.toArrow(), expected, "sold", "price")


@pytest.mark.parametrize("make", [counter, lambda: OneHotEncoder(columns=["color"])])
def test_encoders_without_a_target(frame, make):
    expected = make()
    expected.set_params(**({"sparse_output": False} if "sparse_output" in expected.get_params() else {}))
    expected = expected.fit(rows()).transform(rows())
    assert same(make().fit_transform(frame).toArrow(), expected)
    assert same(make().fit(frame).transform(frame).toArrow(), expected)


@pytest.mark.parametrize("move", marked(MOVES, "coalesce", "union"))
def test_rows_move_after_the_call(frame, move):
    expected = in_memory(encoder(BY_ID), "sold")
    assert same(MOVES[move](encoder(BY_ID).fit_transform(frame, "sold")).toArrow(), expected, "sold")


@pytest.mark.parametrize("move", MOVES)
def test_rows_move_before_the_call(frame, move):
    expected = in_memory(encoder(BY_ID), "sold")
    assert same(encoder(BY_ID).fit_transform(MOVES[move](frame), "sold").toArrow(), expected, "sold")


@pytest.mark.usefixtures("groups_of_few_rows")
@pytest.mark.parametrize("make", [lambda: encoder(BY_ID), in_time], ids=["folds", "in time"])
@pytest.mark.parametrize("size", marked(["100b", "1g"], "100b"))
def test_adaptive_execution_may_cut_each_pass_anew(spark, frame, size, make):
    spark.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", size)
    spark.conf.set("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false")
    try:
        joined = frame.join(frame.groupBy("shop").count(), "shop").drop("count").select(*frame.columns)
        found = make().fit_transform(joined, "sold").toArrow()
    finally:
        spark.conf.unset("spark.sql.adaptive.advisoryPartitionSizeInBytes")
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.parallelismFirst")
    assert same(found, in_memory(make(), "sold"), "sold")


@pytest.mark.usefixtures("groups_of_few_rows")
@pytest.mark.parametrize(
    "make", [pytest.param(lambda: encoder(BY_ID), marks=pytest.mark.daily), in_time], ids=["folds", "in time"]
)
def test_killed_workers_change_nothing(frame, tmp_path, make):
    check_killed_workers(frame, tmp_path / "die", make(), in_memory(make(), "sold"))


@pytest.mark.daily
def test_a_row_never_sees_its_own_target(spark):
    table = rows()
    before = encoder(BY_ID).fit_transform(spark.createDataFrame(table), "sold").toArrow().sort_by("id")
    for row in (5, 77):
        flipped = np.where(table["id"].to_numpy() == row, 1 - table["sold"].to_numpy(), table["sold"].to_numpy())
        changed = table.set_column(table.column_names.index("sold"), "sold", pa.array(flipped))
        after = encoder(BY_ID).fit_transform(spark.createDataFrame(changed), "sold").toArrow().sort_by("id")
        names = ["customer", "color", "customer_x_color"]
        assert after.select(names).slice(row, 1).equals(before.select(names).slice(row, 1))
        assert not after.select(names).equals(before.select(names))


def test_new_rows_keep_columns_that_fit_has_not_seen(spark, frame, tmp_path):
    alone = encoder(BY_ID)
    in_memory(alone, "sold")
    encoder(BY_ID).fit(frame, "sold").save(tmp_path / "encoder")
    new = rows(seed=4)
    found = load(tmp_path / "encoder").transform(spark.createDataFrame(new)).toArrow()
    assert found.column_names[-1] == "sold"
    assert same(found, alone.transform(new.drop_columns(["sold"])), "sold")
    with pytest.raises(ValueError, match="'color'"):
        load(tmp_path / "encoder").transform(frame.drop("color"))


def test_columns_that_pass_through_keep_their_types(spark):
    given = spark.sql(
        "select id, cast(id % 2 as string) as shop, id % 3 as sold, timestamp '2026-01-01 10:00:00' as at, "
        "timestamp_ntz '2026-01-01 10:00:00' as local, cast(1.25 as decimal(9, 2)) as price, array(id, null) as ids, "
        "named_struct('a', id) as part, date '2026-01-01' as day from range(20)"
    )
    fitted = TargetEncoder(columns=["shop"], cv=BY_ID, device="cpu")
    ordered = TargetEncoder(columns=["shop"], cv=Ordered(time="id", burn_in=1), device="cpu")
    others = [name for name in given.columns if name not in ("shop", "sold")]
    expected = given.select(others)
    for encodings in (*(some.fit_transform(given, "sold") for some in (fitted, ordered)), fitted.transform(given)):
        found = encodings.select(others)
        assert found.schema == expected.schema
        assert found.orderBy("id").collect() == expected.orderBy("id").collect()


@pytest.mark.parametrize("cv", UNORDERED, ids=str)
def test_schemes_that_number_rows_say_what_to_write(frame, cv):
    with pytest.raises(ValueError, match=r'rows of Spark .* cv=KFold\(5, by="order_id"\)'):
        encoder(cv).fit_transform(frame, "sold")


def test_folds_have_no_part_in_the_encodings_of_new_rows(frame):
    alone = encoder(KFold(3))
    in_memory(alone, "sold")
    found = encoder(KFold(3)).fit(frame, "sold")
    assert all(map(np.array_equal, found.encodings_, alone.encodings_))


def test_values_that_are_drawn_anew_are_refused(frame):
    drawn = frame.selectExpr("*", "floor(rand() * 3) as drawn")
    for numbered in (drawn, frame.selectExpr("*", "monotonically_increasing_id() as number")):
        with pytest.raises(ValueError, match="localCheckpoint"):
            encoder(BY_ID).fit_transform(numbered, "sold")
    kept = drawn.localCheckpoint()
    table = kept.toArrow()
    expected = encoder("drawn").fit_transform(table.drop_columns(["sold"]), table["sold"])
    assert same(encoder("drawn").fit_transform(kept, "sold").toArrow(), expected, "sold")


# In each, rows that are equal in the columns of order may come in any order, or the clock is read.
CHOSEN = {
    "dropDuplicates": lambda frame: frame.dropDuplicates(["customer"]),
    "limit": lambda frame: frame.orderBy("day").limit(100),
    "offset": lambda frame: frame.offset(3),
    "sample or randomSplit": lambda frame: frame.randomSplit([0.5, 0.5], seed=1)[0],
    "row_number": lambda frame: over("row_number()", frame).where("made = 1"),
    "lag": lambda frame: over("lag(price)", frame),
    "sum over rows before": lambda frame: over("sum(price)", frame, "rows 2 preceding"),
    "first": lambda frame: frame.join(frame.groupBy("shop").agg({"price": "first"}), "shop"),
    "max_by": lambda frame: frame.join(frame.groupBy("shop").agg(expr("max_by(price, day)")), "shop"),
    "percentile_approx": lambda frame: frame.join(
        frame.groupBy("shop").agg(expr("percentile_approx(day, 0.5)")), "shop"
    ),
    "current_date": lambda frame: frame.where("date_add(date'2000-01-01', int(id)) < current_date()"),
    "now": lambda frame: frame.selectExpr("*", "now() as seen"),
    "limit of a query inside": lambda frame: frame.where("id in (select id from visits limit 5)"),
}
SETTLED = {
    "distinct": lambda frame: frame.distinct(),
    "dropDuplicates of all columns": lambda frame: frame.dropDuplicates(),
    "no rows": lambda frame: frame.limit(0).union(frame),
    "rank": lambda frame: over("rank()", frame),
    "sum of a range": lambda frame: over("sum(day)", frame),
    "sum of all": lambda frame: over("sum(day)", frame, "rows between unbounded preceding and unbounded following"),
    "mean": lambda frame: frame.join(frame.groupBy("shop").agg({"day": "avg"}), "shop"),
    "checkpoint": lambda frame: frame.dropDuplicates(["customer"]).localCheckpoint(),
}


def over(function, frame, rows=""):
    return frame.selectExpr("*", f"{function} over (partition by shop order by day {rows}) as made")


def expr(text):
    from pyspark.sql import functions

    return functions.expr(text)


@pytest.mark.daily
def test_rows_that_are_chosen_anew_are_refused(frame):
    frame.createOrReplaceTempView("visits")
    for name, choose in CHOSEN.items():
        for call in (encoder(BY_ID).fit_transform, DistributedEncoder(encoder(BY_ID), tables="shuffle").fit):
            with pytest.raises(ValueError, match=rf"\({name.split(' of a query')[0]}[,)].*localCheckpoint\(\)"):
                call(choose(frame), "sold")
        with pytest.raises(ValueError, match=r"persist\(\) is not enough"):
            SparkRows(choose(frame).cache()).check_repeatable()
    for choose in SETTLED.values():
        SparkRows(choose(frame)).check_repeatable()
    if hasattr(frame, "zipWithIndex"):
        with pytest.raises(ValueError, match="zipWithIndex"):
            SparkRows(frame.zipWithIndex()).check_repeatable()


@pytest.mark.daily
@pytest.mark.parametrize("cv", [KFold(3, by=["the.id", "shop "]), Ordered(time="day", burn_in=5)])
def test_names_are_no_syntax(spark, cv):
    table, make = oddly_named(cv)
    frame = spark.createDataFrame(table).repartition(2)
    alone, aside = make(), ["sold?.(y)", "we`ight"]
    expected = alone.fit_transform(table.drop_columns(aside), table["sold?.(y)"], sample_weight=table["we`ight"])
    there = [make()] if isinstance(cv, Ordered) else [make(), DistributedEncoder(make(), tables="shuffle")]
    for each in there:
        found = each.fit_transform(frame, "sold?.(y)", sample_weight="we`ight").toArrow()
        assert same(found, expected, *aside, by="the.id")
        new = each.transform(frame).toArrow()
        assert same(new, alone.transform(table.drop_columns(aside)), *aside, by="the.id")


def test_names_that_are_one_to_spark(spark, frame):
    twice = frame.withColumnRenamed("color", "SHOP")
    with pytest.raises(ValueError, match="'shop' and 'SHOP'"):
        encoder(BY_ID).fit(twice, "sold")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert "SHOP" in SparkRows(twice).schema.names
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    with pytest.raises(ValueError, match="Did you mean 'id'"):
        encoder(KFold(3, by="ID")).fit_transform(frame, "sold")
    with pytest.raises(ValueError, match="Did you mean 'sold'"):
        encoder(BY_ID).fit(frame, "SOLD")


def test_outputs_that_are_one_name_to_spark(frame):
    classes = frame.withColumn("sold", expr("element_at(array('a', 'A', 'b'), int(id % 3) + 1)"))
    for each in (encoder(BY_ID), DistributedEncoder(encoder(BY_ID), tables="shuffle")):
        with pytest.raises(ValueError, match="'customer_A' and 'customer_a', which are one name to Spark"):
            each.fit_transform(classes, "sold")


def test_vectors_are_names(frame):
    with pytest.raises(TypeError, match=r'Rows of Spark have no order that a Column .* y="\.\.\."'):
        encoder(BY_ID).fit(frame, frame["sold"])
    with pytest.raises(TypeError, match=r"no order that a list .* sample_weight"):
        encoder(BY_ID).fit(frame, "sold", sample_weight=[1.0])
    with pytest.raises(ValueError, match="'soldd'"):
        encoder(BY_ID).fit(frame, "soldd")
    with pytest.raises(ValueError, match="requires y"):
        encoder(BY_ID).fit(frame)
    with pytest.raises(ValueError, match="several columns named 'sold'"):
        encoder(BY_ID).fit(frame.select("*", "sold"), "sold")


def test_rows_are_neither_added_nor_taken_out(frame):
    fitted = encoder(BY_ID).fit(frame, "sold")
    for call in (fitted.partial_fit, fitted.forget):
        with pytest.raises(TypeError, match="does not take rows of Spark"):
            call(frame, "sold")
    with pytest.raises(ValueError, match="None of the parts has rows"):
        encoder(BY_ID).fit(frame.where("id < 0"), "sold")


def test_streams_are_only_encoded(spark, frame, tmp_path):
    path = str(tmp_path / "rows")
    frame.write.parquet(path)
    stream = spark.readStream.schema(frame.schema).parquet(path)
    for call in (encoder(BY_ID).fit, encoder(BY_ID).fit_transform):
        with pytest.raises(TypeError, match="stream of Spark, which has no end"):
            call(stream, "sold")
    fitted = encoder(BY_ID).fit(frame, "sold")
    query = fitted.transform(stream).writeStream.format("memory").queryName("encoded").trigger(availableNow=True)
    query.start().awaitTermination(60)
    assert same(spark.table("encoded").toArrow(), fitted.transform(rows().drop_columns(["sold"])), "sold")


def test_frames_are_not_among_other_tables(frame):
    with pytest.raises(TypeError, match=r"Call \.toArrow\(\) first"):
        encoder(BY_ID).fit([frame, frame], [[0], [1]])


def test_errors_of_rows_come_as_they_are(frame):
    before = encoder(BY_ID)
    with pytest.raises(ValueError, match=r"1 missing value, in row \d+ of a batch of rows"):
        before.fit(frame.selectExpr("*", "if(id = 7, null, price) as gap"), "gap")
    assert not hasattr(before, "encodings_")


@pytest.mark.daily
def test_workers_collect_no_garbage_among_modules(spark):
    def count(batches):
        import gc

        loaded = "gpu_encode.scale.engines.calls" in sys.modules
        yield from (pa.record_batch({"loaded": [loaded], "frozen": [gc.get_freeze_count()]}) for _ in batches)

    for row in spark.range(0, 8, 1, 4).mapInArrow(count, "loaded boolean, frozen long").collect():
        assert row.loaded
        assert row.frozen > 50_000


def descriptions(spark):
    """Give the descriptions of all jobs so far, the latest first."""
    context = spark.sparkContext._jsc.sc()
    context.listenerBus().waitUntilEmpty()
    jobs = context.statusStore().jobsList(None)
    found = [jobs.apply(number).description() for number in range(jobs.size())]
    return [each.get() for each in found if each.isDefined()]


@pytest.mark.daily
def test_jobs_are_described_and_the_users_description_returns(spark, frame):
    context, name = spark.sparkContext, "spark.job.description"
    for own in ("mine", None):
        context.setLocalProperty(name, own)
        before = len(descriptions(spark))
        encoder(BY_ID).fit(frame, "sold")
        with pytest.raises(ValueError, match="missing value"):
            encoder(BY_ID).fit(frame.selectExpr("*", "if(id = 7, null, price) as gap"), "gap")
        assert context.getLocalProperty(name) == own
        said = descriptions(spark)[: len(descriptions(spark)) - before]
        assert {"gpu-encode: profile", "gpu-encode: measure"} <= {*said}


def test_sums_too_large_for_the_driver_name_its_setting(spark):
    many = spark.range(40_000).selectExpr("id", "sha1(string(id)) as customer", "id % 2 as sold")
    with pytest.raises(MemoryError, match=r"spark\.driver\.maxResultSize"):
        TargetEncoder(columns=["customer"], cv=BY_ID, device="cpu").fit(many, "sold")


# A process has either sessions of Spark Connect or others.
CONNECTED = """
import sys
from pyspark.sql import SparkSession
from gpu_encode.scale.engines.spark import parallelism
from tests.scale.engines.test_spark import BY_ID, encoder, in_memory, rows, same
session = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
frame = session.createDataFrame(rows()).repartition(3)
found = encoder(BY_ID).fit_transform(frame, "sold").toArrow()
print(parallelism(session), same(found, in_memory(encoder(BY_ID), "sold"), "sold"))
"""


def test_spark_connect_takes_as_many_tasks_as_processors():
    pytest.importorskip("grpc_status", reason="pyspark[connect] brings it")
    settings = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "GPU_ENCODE_COMPILE": "never"}
    done = subprocess.run(
        [sys.executable, "-c", CONNECTED], env=os.environ | settings, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == ["2 True"], done.stderr[-4000:]


def test_the_page_runs(spark, tmp_path, monkeypatch):
    code = code_of_page()[0]
    monkeypatch.chdir(tmp_path)
    # Spark's folder is that in which Java began.
    exec(code.replace('.parquet("', f'.parquet("{tmp_path}/'), {})
    assert spark.read.parquet(f"{tmp_path}/training").columns == ["shop", "visit_id", "hour", "bought"]
    assert spark.read.parquet(f"{tmp_path}/new").count() == 1000
