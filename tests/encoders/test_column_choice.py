"""Columns that are chosen by type, selector, pattern or function are encoded as if they had been listed."""

import re

import dask.dataframe as dd
import narwhals as nw
import narwhals.selectors as ncs
import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector

import gpu_encode as ge
from tests.scale.files.encoded import encode

N_ROWS = 40
NUMBERS = np.arange(N_ROWS)
X = pd.DataFrame(
    {
        "city": np.array(["Bonn", "Lima", "Oslo"], object)[NUMBERS % 3],
        "price": NUMBERS / 4,
        "size": pd.Categorical(np.array(["s", "m"])[NUMBERS % 2]),
        "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(NUMBERS % 5, "D"),
        "new": NUMBERS % 4 == 0,
        "shop": NUMBERS % 7,
    }
)
Y = NUMBERS % 5 / 4
ARROW = pa.Table.from_pandas(X, preserve_index=False)
TABLES = {
    "pandas": X,
    "polars": pl.from_pandas(X),
    "arrow": ARROW,
    "batch": ARROW.to_batches()[0],
    "narwhals": nw.from_native(X),
    "pieces": [ARROW.slice(0, 13), X[13:]],
}
TYPED = ["city", "size", "new"]
CHOICES = {
    "categorical": ("categorical", TYPED),
    "pattern": (re.compile("^s|it"), ["city", "size", "shop"]),
    "narwhals": (ncs.string() | ncs.boolean(), ["city", "new"]),
    "scikit-learn": (make_column_selector(dtype_include=["category", "bool"]), ["size", "new"]),
    "function": (lambda table: ["shop", ("city", "size")] if table.shape[1] == 6 else [], ["shop", ("city", "size")]),
}
LISTS = {
    "array": np.array(["shop", "city"]),
    "objects": np.array(["shop", "city"], object),
    "positions": np.array([5, 0]),
    "index": pd.Index(["shop", "city"]),
    "series": pl.Series(["shop", "city"]),
    "arrow": pa.array(["shop", "city"]),
}


def encoder(columns):
    return ge.TargetEncoder(columns=columns, cv=ge.KFold(3), smooth=2.0, target_type="continuous")


def assert_same(found, expected):
    found, expected = (
        nw.from_native(pa.table(table) if isinstance(table, pa.RecordBatch) else table).to_pandas()
        for table in (found, expected)
    )
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def assert_as_listed(tables, columns, listed):
    found, expected = encoder(columns), encoder(listed)
    for one, other in zip(*(made.fit_transform(tables, Y) for made in (found, expected)), strict=True):
        assert_same(one, other)
    assert found.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize(("columns", "listed"), CHOICES.values(), ids=CHOICES)
def test_choice(table, columns, listed):
    tables = table if isinstance(table, list) else [table]
    assert_as_listed(tables, columns, listed)


@pytest.mark.parametrize("table", [TABLES["polars"], ARROW, ARROW.to_batches()[0]], ids=["polars", "arrow", "batch"])
def test_selector_of_polars(table):
    assert_as_listed([table], cs.string() | cs.by_name("shop"), ["city", "shop"])
    with pytest.raises(ValueError, match=r"a selector of polars, and X is of pandas"):
        encoder(cs.string()).fit(X, Y)


@pytest.mark.parametrize("columns", LISTS.values(), ids=LISTS)
def test_lists(columns):
    assert_as_listed([X], columns, ["shop", "city"])


def test_mask():
    assert_as_listed([X], X.dtypes == np.dtype(bool), ["new"])
    with pytest.raises(ValueError, match=r"has True or False for 2 columns, but X has 6"):
        encoder(np.array([True, False])).fit(X, Y)


def test_arrays_of_objects():
    assert ge.CountEncoder(columns="categorical").fit(X.to_numpy()).get_feature_names_out().tolist() == [
        f"x{position}" for position in range(6)
    ]
    with pytest.raises(ValueError, match=r"columns='categorical' chooses none"):
        ge.CountEncoder(columns="categorical").fit(np.zeros((3, 2)))


def test_columns_with_other_roles_are_left_out():
    frame = X.assign(fold=X["city"], zip=X["city"], state=X["size"].astype(object))
    asked = {"cv": "fold", "hierarchy": {"zip": ["state"]}, "smooth": 2.0}
    chosen = ge.TargetEncoder(columns="categorical", **asked).fit(frame, Y)
    assert chosen.get_feature_names_out()[:4].tolist() == ["city", "size", "new", "zip"]
    values = ge.StatisticEncoder(["nunique"], columns=re.compile("s"), values=["shop"]).fit(X)
    assert values.get_feature_names_out()[0] == "size_shop_nunique"


@pytest.mark.parametrize(("columns", "listed"), CHOICES.values(), ids=CHOICES)
def test_states(columns, listed, tmp_path):
    chosen, expected = encoder(columns), encoder(listed)
    for rows in (slice(0, 20), slice(20, None)):
        chosen.partial_fit(X[rows], Y[rows])
        expected.partial_fit(X[rows], Y[rows])
    assert_same(chosen.transform(X), expected.transform(X))
    chosen.save(tmp_path / "model")
    loaded = ge.load(tmp_path / "model")
    assert loaded.columns in ("categorical", listed)
    assert_same(loaded.transform(X), expected.transform(X))
    assert_same(clone(chosen).fit_transform(X, Y), clone(expected).fit_transform(X, Y))


@pytest.mark.host
@pytest.mark.parametrize(("columns", "listed"), CHOICES.values(), ids=CHOICES)
def test_files_and_partitions(columns, listed, tmp_path):
    cv = ge.Ordered() if isinstance(columns, str) else ge.KFold(3)
    table = ARROW.append_column("sold", pa.array(Y))
    pq.write_table(table, tmp_path / "rows.parquet")
    made = []
    for number, names in enumerate((columns, listed)):
        encoded = tmp_path / f"{number}.parquet"
        encode(tmp_path / "rows.parquet", encoded, encoder(names).set_params(cv=cv), "sold", chunk_rows=7)
        made.append(pq.read_table(encoded))
    assert made[0].equals(made[1])
    partitions = dd.from_pandas(table.to_pandas(), npartitions=3)
    found, expected = (
        encoder(names).set_params(cv=cv).fit_transform(partitions.drop(columns="sold"), partitions["sold"]).compute()
        for names in (columns, listed)
    )
    assert_same(found, expected)


def test_functions_that_look_at_rows():
    with pytest.raises(ValueError, match=r"chooses \['size', 'new'\], but \['city'.* from X without rows"):
        encoder(lambda frame: [name for name in frame if frame[name].nunique() < 3]).fit(X, Y)


def test_pieces_that_disagree():
    pieces = [X[:20], X[20:].astype({"price": object})]
    with pytest.raises(ValueError, match=r"chooses \[0, 2, 4\] in one table and \[0, 1, 2, 4\] in another"):
        encoder("categorical").fit(pieces, [Y[:20], Y[20:]])


@pytest.mark.parametrize("columns", ["city", 3, {"city"}, {"city": 1}, np.array([["city"]])])
def test_what_names_no_columns(columns):
    with pytest.raises(ValueError, match="columns must be a list of names"):
        encoder(columns).fit(X, Y)


# Encoders that learn from all columns together, and the target of each.
TOGETHER = {
    "cluster": (ge.ClusterEncoder(n_clusters=2, cv=ge.KFold(3), target_type="continuous"), "sold"),
    "cluster by co-occurrence": (ge.ClusterEncoder(n_clusters=2, by="cooccurrence", against="city"), None),
    "cluster by statistics": (ge.ClusterEncoder(n_clusters=2, by="statistics", values=["shop"]), None),
    "spectral": (ge.SpectralEncoder(2), None),
    "co-occurrence": (ge.CooccurrenceEncoder(1), None),
    "co-occurrence with the rest": (ge.CooccurrenceEncoder(1, against="rest"), None),
}
KEYS_APART = {
    "categorical": "categorical",
    "pattern": re.compile("^s|^n|it"),
    "narwhals": ncs.string() | ncs.boolean(),
    "scikit-learn": make_column_selector(dtype_include=["category", "bool"]),
    "function": lambda table: ["new", ("size", "day")] if len(table.columns) >= 6 else [],
    "polars": cs.string() | cs.boolean(),
    "mask": np.array([False, False, True, False, True, False]),
    "array": np.array(["new", "size"]),
}


# Each choice once beside a column that is counted against, and of the others those that find columns in two ways.
BOTH = [
    (name, choice)
    for name in TOGETHER
    for choice in KEYS_APART
    if "cluster by" in name or choice in ("categorical", "function")
]


@pytest.mark.host
@pytest.mark.parametrize(("name", "choice"), BOTH)
def test_files_of_encoders_that_learn_from_all_columns(name, choice, tmp_path):
    """Files give what one table gives, and a list of the chosen names gives the same."""
    (encoder, target), columns = TOGETHER[name], KEYS_APART[choice]
    table = ARROW if target is None else ARROW.append_column("sold", pa.array(Y))
    pq.write_table(table, tmp_path / "rows.parquet")
    X, y = table.select(ARROW.column_names), None if target is None else table["sold"]
    chosen = clone(encoder).set_params(columns=columns)
    expected = clone(chosen).fit(X, y)
    encode(tmp_path / "rows.parquet", tmp_path / "encoded.parquet", chosen, target, chunk_rows=7, keep_target=False)
    encoded = pq.read_table(tmp_path / "encoded.parquet")
    assert encoded.column_names == expected.get_feature_names_out().tolist() == [*chosen.get_feature_names_out()]
    assert_same(encoded, clone(expected).fit_transform(X, y))
    assert_same(chosen.transform(X), expected.transform(X))
    names = [entry.members for entry in expected._model.selection.entries]
    listed = [tuple(X.column_names[place] for place in members) for members in names]
    listed = [key if len(key) > 1 else key[0] for key in listed]
    assert_same(encoded, clone(encoder).set_params(columns=listed).fit_transform(X, y))
    chosen.save(tmp_path / "model")
    assert_same(ge.load(tmp_path / "model").transform(X), expected.transform(X))
