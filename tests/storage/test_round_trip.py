"""A loaded encoder equals the saved one: the same bits, parameters and attributes, also after more rows."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpu_encode import GroupKFold, KFold, StatisticEncoder, TargetEncoder, load
from gpu_encode.seam.ops import use_backend
from tests.bits import assert_same_encoder
from tests.storage.altered import changed
from tests.storage.fitted import CASES, NEW, TABLE, TARGETS, Case


def as_table(encoded: Any) -> pa.Table:
    if isinstance(encoded, np.ndarray):
        return pa.table({str(i): pa.array(encoded[:, i]) for i in range(encoded.shape[1])})
    if isinstance(encoded, pd.DataFrame):
        return pa.Table.from_pandas(encoded)
    return encoded.to_arrow() if isinstance(encoded, pl.DataFrame) else encoded


def bits(encoded: Any) -> list[tuple[str, bytes]]:
    """Return names and bits of all columns, and the nulls of columns that pass through."""
    table = as_table(encoded)
    return [
        (name, column.to_numpy().tobytes() if pa.types.is_floating(column.type) else repr(column.to_pylist()).encode())
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]


def assert_same(one: Any, other: Any, case: Case) -> None:
    assert bits(one.transform(case.new)) == bits(other.transform(case.new))
    assert repr(one.get_params()) == repr(other.get_params())
    assert sorted(vars(one)) == sorted(vars(other))
    assert_same_encoder(one, other)


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_encoder_is_the_one_saved(name: str, path: Path) -> None:
    case = CASES[name]()
    encoder = case.encoder()
    encoder.save(path)
    again, content = load(path), path.read_bytes()
    assert_same(encoder, again, case)
    again.save(path)
    assert path.read_bytes() == content
    # NumPy's own pickles of big-endian arrays come back little-endian.
    if name != "labels big endian":
        for pickled in (encoder, again):
            assert_same(encoder, pickle.loads(pickle.dumps(pickled)), case)


# Sums of single folds, or of calibration rows, are not added to.
@pytest.mark.parametrize("name", [name for name in CASES if "blow_up" not in name and "Holdout" not in name])
def test_more_rows_after_loading_are_as_without(name: str, reloaded: Any) -> None:
    case = CASES[name]()
    encoder = case.encoder()
    again = reloaded(encoder)
    assert_same(reloaded(encoder.merge(case.encoder())), again.merge(case.encoder()), case)
    encoder.partial_fit(case.X, case.y)
    assert_same(encoder, again.partial_fit(case.X, case.y), case)
    assert_same(encoder, reloaded(again), case)


@pytest.mark.parametrize("asked", [True, False])
def test_files_of_earlier_releases_say_whether_there_are_indicators(asked: bool, path: Path) -> None:
    TargetEncoder(columns=["city"], indicators=asked).fit(TABLE, TARGETS["binary"]).save(path)
    encoder = load(path)
    path.write_bytes(changed(path.read_bytes(), lambda document: document["model"].update(indicators=asked)))
    again = load(path)
    assert bits(again.transform(NEW)) == bits(encoder.transform(NEW))
    assert again.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()


def test_columns_only_for_training_may_be_missing_after_loading(reloaded: Any) -> None:
    encoder = TargetEncoder(columns=["city"], cv=GroupKFold(3, groups="day")).fit(TABLE, TARGETS["binary"])
    new = NEW.drop_columns(["day"])
    assert bits(reloaded(encoder).transform(new)) == bits(encoder.transform(new))


@pytest.mark.parametrize("container", [None, "default", "pandas", "polars"])
def test_the_container_that_the_user_wants_is_kept(container: str | None, reloaded: Any) -> None:
    encoder = TargetEncoder(columns=["city"]).fit(TABLE, TARGETS["binary"]).set_output(transform=container)
    assert type(reloaded(encoder).transform(NEW)) is type(encoder.transform(NEW))


def test_the_same_encoder_gives_the_same_bytes(path: Path) -> None:
    contents = set()
    for backend in ("numpy", "compiled"):
        with use_backend(backend):
            TargetEncoder(columns=["city", ("city", "zip")]).fit(TABLE, TARGETS["binary"]).save(path)
        contents.add(path.read_bytes())
    assert len(contents) == 1


def test_the_size_grows_with_categories_and_not_with_rows(path: Path) -> None:
    sizes = []
    for times in (1, 50):
        X, y = pa.concat_tables([TABLE] * times), np.tile(TARGETS["binary"], times)
        TargetEncoder(columns=["city", ("city", "zip")], cv=KFold(3)).fit(X, y).save(path)
        sizes.append(path.stat().st_size)
    assert abs(sizes[1] - sizes[0]) < 16


def test_values_of_rows_outside_given_categories_are_kept(reloaded: Any) -> None:
    X, y = np.array([["a"], ["b"], ["a"], ["c"]]), [1.5, 2.5, 3.0, 7.0]
    encoder = StatisticEncoder(["median", "nunique"], categories=[["a"]]).fit(X, y)
    again = reloaded(encoder)
    # All rows contribute to the encoding of an unknown category.
    assert again.transform(X).tolist() == [[2.25, 2.0], [2.75, 0.0], [2.25, 2.0], [2.75, 0.0]]
    more = [each.partial_fit(X[1:2], [9.0]).transform(X).tolist() for each in (encoder, again)]
    assert more[0] == more[1] == [[2.25, 2.0], [3.0, 0.0], [2.25, 2.0], [3.0, 0.0]]
