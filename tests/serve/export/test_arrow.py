"""Tables of Arrow encode rows with the bits of their encoder, and have the documented columns."""

import pickle
from collections import defaultdict
from pathlib import PurePosixPath

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import gpu_encode as ge
from gpu_encode.serve.export import from_arrow, to_arrow
from tests.family.members import MEMBERS, ROWS
from tests.storage.fitted import OPTIONS, VALUES

pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

NEW = ROWS.assign(
    city=ROWS["city"].where(np.arange(len(ROWS)) % 9 != 3, "never"),
    zip=ROWS["zip"].where(np.arange(len(ROWS)) % 8 != 5, 77_777),
)
TREES = {
    "columns": {"columns": ["zip"], "hierarchy": {"zip": ["city", "held"]}},
    "columns, missing is no category": {
        "columns": ["city"],
        "hierarchy": {"city": ["held", "rank"]},
        "handle_missing": "nan",
    },
    "columns, unknown refused": {"columns": ["zip"], "hierarchy": {"zip": ["city"]}, "handle_unknown": "error"},
    "joint key": {
        "columns": [("zip", "rank"), "city"],
        "hierarchy": {("zip", "rank"): ["city"]},
        "indicators": ["missing", "unseen"],
    },
    "bits": {"columns": ["zip"], "hierarchy": {"zip": ge.Bits(30, 28, width=32)}, "indicators": True},
    "parts": {"columns": ["city"], "hierarchy": {"city": ge.Parts("t")}},
}


def encoded(encoder, rows):
    """Give the encodings of rows by column, or that the rows are refused."""
    try:
        table = encoder.transform(rows)
    except ValueError:
        return "refused"
    if isinstance(table, np.ndarray):
        table = pd.DataFrame(table)
    frame = table.to_pandas() if hasattr(table, "to_pandas") else table
    return {name: (str(frame[name].dtype), values_of(frame[name])) for name in frame.columns}


def values_of(column):
    """Give the values of a column for a comparison: any two NaN are equal, and a zero has its sign."""
    return [float.hex(value) if isinstance(value, float) else repr(value) for value in column.tolist()]


def sent(tables, form, folder):
    """Write tables, and read them again."""
    if form == "nothing":
        return tables
    write, read = {
        "parquet": (pq.write_table, pq.read_table),
        "feather": (pa.feather.write_feather, pa.feather.read_table),
    }[form]
    for number, table in enumerate(tables.values()):
        write(table, folder / f"{number}.{form}")
    return [read(path) for path in sorted(folder.iterdir(), reverse=True)]


def shuffled(tables):
    """Give tables whose rows are in another order."""
    draw = np.random.default_rng(3)
    return [table.take(draw.permutation(len(table))) for table in tables.values()]


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_of_the_family(name):
    make, y = MEMBERS[name]
    encoder = make().fit(ROWS, y)
    if not encoder._model.by_key:
        with pytest.raises(TypeError, match="cannot be exported"):
            to_arrow(encoder)
        return
    again = from_arrow(shuffled(to_arrow(encoder)))
    for rows in (ROWS, NEW):
        assert encoded(again, rows) == encoded(encoder, rows)
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


@pytest.mark.parametrize("form", ["nothing", "parquet", "feather"])
@pytest.mark.parametrize("tree", TREES)
def test_hierarchies_through_files(tree, form, tmp_path):
    encoder = ge.TargetEncoder(smooth=2.0, target_type="continuous", **TREES[tree]).fit(ROWS, ROWS["rank"])
    again = from_arrow(sent(to_arrow(encoder), form, tmp_path))
    for rows in (ROWS, NEW):
        assert encoded(again, rows) == encoded(encoder, rows)


@pytest.mark.parametrize("case", [*VALUES, *OPTIONS])
def test_every_kind_of_value_and_option(case, tmp_path):
    made = (VALUES | OPTIONS)[case]()
    encoder = made.encoder()
    again = from_arrow(sent(to_arrow(encoder), "parquet", tmp_path))
    assert encoded(again, made.new) == encoded(encoder, made.new)


def test_rows_and_pickles_and_other_frames():
    encoder = ge.TargetEncoder(columns=["city", ("zip", "city")], indicators=True).fit(ROWS, ROWS["held"])
    again = pickle.loads(pickle.dumps(from_arrow(to_arrow(encoder))))
    rows = NEW.astype(object).where(NEW.notna(), None).to_dict("records")
    assert again.row_encoder()(rows) == encoder.row_encoder()(rows)
    for kind in (pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.to_numpy(object)):
        assert encoded(again, kind(NEW)) == encoded(encoder, kind(NEW))


def test_text_and_dates_as_encodings(tmp_path):
    X = pd.DataFrame(
        {
            "shop": ["a", "a", "b", "b", "b", None],
            "word": ["x", "y", "y", None, "y", "z"],
            "day": pd.to_datetime(["2024-02-29", "2024-03-01", None, "2023-01-01", "2023-01-02", "2020-02-02"]),
        }
    )
    encoder = ge.StatisticEncoder({"shop": {"word": ["mode", "count"], "day": ["min", "max"]}}, dtype="float32").fit(X)
    again = from_arrow(sent(to_arrow(encoder), "parquet", tmp_path))
    new = pd.DataFrame({"shop": ["b", "never", None, "a"]})
    assert encoded(again, new) == encoded(encoder, new)


def test_the_tables_are_as_documented():
    target = (ROWS["rank"] % 3).to_numpy()
    encoder = ge.TargetEncoder(columns=["city"], hierarchy={"city": "held"}, smooth=2.0, target_type="continuous")
    tables = to_arrow(encoder.fit(ROWS, target))
    assert list(tables) == ["city", "city.level1"]
    rows = defaultdict(list)
    cities = ROWS["city"].astype(object).where(ROWS["city"].notna(), None)
    for held, city, value in zip(ROWS["held"].tolist(), cities, target.tolist(), strict=True):
        rows[held, city].append(value)
        rows[held,].append(value)
    measured = ["city_level", "city_count", "city_mean", "city_encoding"]
    assert tables["city"].column_names == ["held", "city", *measured]
    assert tables["city.level1"].column_names == ["held", *measured]
    found = 0
    for table in tables.values():
        for row in table.to_pylist():
            own = rows.get(tuple(row[name] for name in ("held", "city") if name in row), [])
            assert row["city_count"] == len(own)
            if own:
                assert row["city_mean"] == sum(own) / len(own)
                found += 1
    assert found == len(rows)


def test_counts_and_means_of_classes():
    encoder = ge.TargetEncoder(columns=["zip"], cv=ge.KFold(3)).fit(ROWS, ["x", "y", "z"] * (len(ROWS) // 3))
    (table,) = to_arrow(encoder).values()
    means = [f"zip_mean_{label}" for label in "xyz"]
    assert table.column_names == [
        "zip",
        "zip_level",
        "zip_count",
        *means,
        *(f"zip_{label}_encoding" for label in "xyz"),
    ]
    expected = ROWS.assign(y=["x", "y", "z"] * (len(ROWS) // 3)).groupby("zip")["y"]
    assert table["zip_count"].to_pylist() == expected.size().tolist()
    for label, mean in zip("xyz", means, strict=True):
        assert table[mean].to_pylist() == expected.apply(lambda one, label=label: (one == label).mean()).tolist()


def test_a_join_is_enough():
    encoder = ge.TargetEncoder(columns=["city", ("zip", "city")], smooth=1.0).fit(ROWS, ROWS["held"])
    joined = pl.from_pandas(NEW[["city", "zip"]])
    for name, table in to_arrow(encoder).items():
        keys = [column for column in ("zip", "city") if column in table.column_names]
        joined = joined.join(
            pl.from_arrow(table.select([*keys, f"{name}_encoding"])), on=keys, how="left", nulls_equal=True
        )
    expected = encoder.transform(NEW)
    known = joined["zip_x_city_encoding"].is_not_null().to_numpy()
    assert 0 < known.sum() < len(NEW)
    assert (
        joined["zip_x_city_encoding"].to_numpy()[known].tobytes() == expected["zip_x_city"][known].to_numpy().tobytes()
    )


def test_categories_that_arrow_has_no_type_for():
    X = pd.DataFrame({"span": pd.interval_range(0, 4)})
    with pytest.raises(TypeError, match="interval"):
        to_arrow(ge.CountEncoder().fit(X))


TABLES = to_arrow(ge.TargetEncoder(columns=["city", "zip"]).fit(ROWS, ROWS["held"]))


def test_what_tables_cannot_do():
    encoder = from_arrow(TABLES)
    for refused in (
        lambda: encoder.fit(ROWS, ROWS["held"]),
        lambda: encoder.fit_transform(ROWS, ROWS["held"]),
        lambda: encoder.partial_fit(ROWS, ROWS["held"]),
        lambda: encoder.forget(ROWS, ROWS["held"]),
        lambda: encoder.merge(encoder),
        lambda: to_arrow(encoder),
    ):
        with pytest.raises(TypeError, match="holds encodings, and not the sums"):
            refused()
    with pytest.raises(TypeError, match="cannot be saved"):
        encoder.save("never")


def altered(table, **told):
    """Give a table with other rules."""
    rules = table.schema.metadata[b"gpu_encode"].decode()
    for before, after in told.values():
        assert before in rules
        rules = rules.replace(before, after)
    return table.replace_schema_metadata({b"gpu_encode": rules.encode()})


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ([], "all tables of one encoder"),
        ([TABLES["city"]], "all tables of one encoder"),
        ([TABLES["city"], TABLES["city"], TABLES["zip"]], "all tables of one encoder"),
        ([TABLES["city"], altered(TABLES["zip"], name=("TargetEncoder", "Other"))], "all tables of one encoder"),
        ([TABLES["city"], TABLES["zip"].replace_schema_metadata()], "schema's metadata hold 'gpu_encode'"),
        ([pl.from_arrow(TABLES["city"])], "Got a DataFrame without it"),
        ("tables/city.arrow", "Got a str without it. Read files with pyarrow"),
        (PurePosixPath("tables"), "Got a PurePosixPath without it. Read files with pyarrow"),
        (TABLES["city"], "from_arrow takes all tables of one encoder"),
        ([altered(TABLES["city"], version=('"version": 1', '"version": 9'))], "newer gpu-encode .version 9"),
        ([altered(TABLES["city"], rules=("{", "["))], "do not fit their own rules"),
        ([TABLES["city"], pa.concat_tables([TABLES["zip"], TABLES["zip"].slice(0, 1)])], "holds a category twice"),
        ([TABLES["city"], TABLES["zip"].drop_columns("zip_encoding")], "do not fit their own rules"),
        ([TABLES["city"], TABLES["zip"].drop_columns("zip")], "do not fit their own rules"),
    ],
)
def test_tables_that_are_none(tables, message):
    with pytest.raises(ValueError, match=message):
        from_arrow(tables)


def test_names_that_clash():
    X = pd.DataFrame({"a": ["x", "y"], "a_count": ["p", "q"]})
    encoder = ge.TargetEncoder(columns=["a"], hierarchy={"a": "a_count"}, smooth=1.0).fit(X, [0, 1])
    with pytest.raises(ValueError, match="Two output columns would be called 'a_count'"):
        to_arrow(encoder)
