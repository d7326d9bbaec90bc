"""NumberFiller beside loops over the rows that a row may see, in frames of each kind."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from gpu_encode import GroupKFold, KFold, NumberFiller

pytestmark = pytest.mark.host

N_FOLDS = 3
FOLDS = KFold(N_FOLDS, order="interleaved")
KINDS = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "arrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
}


def people(n_rows=90):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"town": rng.choice(list("abcdefgh"), n_rows), "day": rng.integers(3, size=n_rows)})
    table["income"] = rng.normal(size=n_rows).round(2)
    table["age"] = pd.array(rng.integers(20, 70, n_rows), dtype="Int64")
    table.loc[rng.random(n_rows) < 0.4, "income"] = None
    table.loc[rng.random(n_rows) < 0.3, "age"] = None
    return table


def to_pandas(frame):
    return frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()


def filled_by_hand(table, seen, name, by, statistic):
    """The number of a row of `table`, or the statistic of its group among the rows that it sees, or of all of these."""
    numbers = []
    for row in range(len(table)):
        number, rows = table[name].iloc[row], seen(row)
        if pd.isna(number):
            known = rows[name].notna()
            group = (rows[by] == table[by].iloc[row]).all(axis=1) if by else known
            number = rows[name][group & known if (group & known).any() else known].astype(float).agg(statistic)
        numbers.append(float(number))
    return numbers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("by", [None, ["town"], ["town", "day"]])
def test_numbers_are_those_of_the_rows_that_are_seen(kind, statistic, by):
    table, new = people(), people(40)[::-1]
    numbers = [name for name in ("day", "income", "age") if by is None or name not in by]
    filler = NumberFiller(by=by, statistic=statistic, cv=FOLDS)
    training = to_pandas(filler.fit_transform(KINDS[kind](table)))
    assert filler.columns_ == numbers
    later = to_pandas(filler.transform(KINDS[kind](new.reset_index(drop=True))))
    fold = np.arange(len(table)) % N_FOLDS
    for name in numbers:
        others = filled_by_hand(table, lambda row: table[fold != fold[row]], name, by, statistic)
        np.testing.assert_allclose(training[name], others, rtol=1e-14)
        np.testing.assert_allclose(later[name], filled_by_hand(new, lambda _: table, name, by, statistic), rtol=1e-14)
    assert [*training.columns] == [*table.columns]
    assert training["town"].tolist() == table["town"].tolist()


def test_frames_of_all_kinds_have_the_same_bits():
    wanted, *others = (
        to_pandas(NumberFiller(["income", "age"], by="town").fit_transform(make(people()))) for make in KINDS.values()
    )
    for found in others:
        assert found["income"].to_numpy(float).tobytes() == wanted["income"].to_numpy(float).tobytes()
        assert found["age"].to_numpy(float).tobytes() == wanted["age"].to_numpy(float).tobytes()


def test_nan_of_polars_is_missing():
    frame = pl.DataFrame({"g": ["a"] * 4, "x": [float("nan"), None, 3.0, 3.0]})
    filler = NumberFiller(["x"], by="g", cv=FOLDS)
    assert filler.fit_transform(frame)["x"].to_list() == [3.0] * 4


def test_an_index_stays_even_with_equal_labels():
    table = people().set_index(np.arange(90) // 2)
    found = NumberFiller(["income"], by="town", cv=FOLDS).fit_transform(table)
    assert found.index.equals(table.index)
    plain = NumberFiller(["income"], by="town", cv=FOLDS).fit_transform(people())
    assert found["income"].tolist() == plain["income"].tolist()


def test_schemes_may_read_columns():
    table = people()
    filler = NumberFiller(["income"], by="town", cv=GroupKFold(3, groups="day"))
    found = filler.fit_transform(table)["income"]
    others = filled_by_hand(table, lambda row: table[table["day"] != table["day"][row]], "income", ["town"], "mean")
    np.testing.assert_allclose(found, others, rtol=1e-14)


def test_it_is_pickled():
    filler = NumberFiller(["income"], by="town").fit(people())
    again = pickle.loads(pickle.dumps(filler))
    pd.testing.assert_frame_equal(again.transform(people()), filler.transform(people()))


@pytest.mark.parametrize(
    ("filler", "X", "error"),
    [
        (NumberFiller(), np.zeros((3, 2)), "takes frames in memory, whose columns have names. Got ndarray"),
        (NumberFiller("income"), people(), r"Write columns=\['income'\]"),
        (NumberFiller(["wage"]), people(), r"NumberFiller fills \['wage'\], and X has no such columns"),
        (NumberFiller(["income"], by="city"), people(), r"groups rows by \['city'\], and X has no such columns"),
        (NumberFiller(["income"], by=3), people(), r"'by' parameter of NumberFiller .* Got 3 instead"),
        (NumberFiller(["income"], by=[]), people(), r"'by' parameter of NumberFiller .* Got \[\] instead"),
        (NumberFiller(["income"], by="income"), people(), r"\['income'\] stands in columns and by"),
        (NumberFiller(["income", "income"]), people(), "names at least one column, each once"),
        (NumberFiller([]), people(), "names at least one column, each once"),
        (NumberFiller(by="town"), people()[["town"]], r"X has none\. It has \['town'\]"),
        (NumberFiller(["town"], by="day"), people(), r"Columns \['town'\] hold text or times"),
        (NumberFiller(["income"], statistic="mode"), people(), "'statistic' parameter of NumberFiller"),
    ],
)
def test_what_cannot_be_filled_is_refused(filler, X, error):
    with pytest.raises((TypeError, ValueError, KeyError), match=error):
        filler.fit(X)


@pytest.mark.parametrize("kind", KINDS)
def test_new_rows_need_the_columns_and_numbers_of_training(kind):
    make, table = KINDS[kind], people()[["town", "income"]]
    filler = NumberFiller(["income"], by="town", cv=FOLDS).fit(make(table))
    with pytest.raises(ValueError, match=r"fills \['income'\], and X has no such columns"):
        filler.transform(make(table[["town"]]))
    with pytest.raises(ValueError, match="'town' is not a column of X"):
        filler.transform(make(table[["income"]]))
    with pytest.raises(ValueError, match=r"Columns \['income'\] hold text or times"):
        filler.transform(make(table.assign(income="much")))
    new = pd.DataFrame({"town": ["a", "b"], "income": [None, None]})
    found = to_pandas(filler.transform(make(new)))["income"]
    wanted = filled_by_hand(new, lambda _: table, "income", ["town"], "mean")
    np.testing.assert_allclose(found.astype(float), wanted, rtol=1e-14)
