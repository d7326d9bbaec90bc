"""Rows without a target: their categories are known, they see the same rows as others do, and no row sees them."""

import re
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold as SplitterOfAllRows
from sklearn.model_selection import StratifiedKFold

import gpu_encode as ge
from gpu_encode.schemes.folds import FOLD_COLUMN_OF_KNOWN
from tests.cases import SMOOTHINGS
from tests.family.members import AMOUNT, ROWS, same, with_holes
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore::UserWarning")]
N = 60
RNG = np.random.default_rng(3)
X = pd.DataFrame({"city": RNG.choice([*"abcd"], N), "day": np.arange(N) // 3, "fold": RNG.integers(0, 3, N)})
Y = RNG.integers(-50, 50, N).astype(float)
Y[RNG.random(N) < 0.3] = np.nan
# One category has only rows without a target; among them are the rows of the first day.
X.loc[[0, 1, 2, 33], "city"] = "new"
Y[[0, 1, 2, 33]] = np.nan
HAVE = ~np.isnan(Y)
SCHEMES = {
    "folds": "fold",
    "leave-one-out": ge.LeaveOneOut(),
    "time folds": ge.TimeFolds(4, time="day"),
    "in time": ge.Ordered(time="day"),
    "in rows": ge.Ordered(shuffle=False),
    "greedy": ge.Greedy(),
    "holdout": ge.Holdout(mask=HAVE & (np.arange(N) % 3 == 0)),
}
DAY, FOLD, ROW = X["day"].to_numpy(), X["fold"].to_numpy(), np.arange(N)
FOURTH = np.array([4 * np.flatnonzero(day == DAY)[0] // N for day in DAY])
HELD = HAVE & (ROW % 3 == 0)
# The rows that a row sees, computed without the library.
SEES = {
    "folds": lambda row: FOLD[row] != FOLD,
    "leave-one-out": lambda row: row != ROW,
    "time folds": lambda row: FOURTH[row] > FOURTH,
    "in time": lambda row: DAY[row] > DAY,
    "in rows": lambda row: row > ROW,
    "greedy": lambda _: ROW >= 0,
    "holdout": lambda row: HELD[row] != HELD,
}


def encoder(cv, **parameters):
    return ge.TargetEncoder(columns=["city"], cv=cv, **{"target_type": "continuous"} | parameters)


def of_rows_that_have_one(name):
    """Give the scheme for only the rows with a target; they see each other as among all rows."""
    return ge.Holdout(mask=HELD[HAVE]) if name == "holdout" else SCHEMES[name]


@pytest.mark.parametrize("name", SCHEMES)
def test_every_row_gets_the_mean_of_the_rows_with_a_target_that_it_sees(name):
    found = encoder(SCHEMES[name], smooth=None, prior=-1.0, missing_target="keep").fit_transform(X, Y)["city"]
    for row in range(N):
        seen = Y[SEES[name](row) & HAVE & (X["city"] == X["city"][row]).to_numpy()]
        wanted = Fraction(int(seen.sum()), len(seen)) if len(seen) else Fraction(-1)
        assert found[row] == float(wanted), row


@pytest.mark.parametrize("weights", [None, RNG.random(N)], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "time folds"])
@pytest.mark.parametrize("parameters", [{}, {"min_count": 4, "smooth": 3.0}, {"prior": "category_mean"}], ids=str)
def test_other_rows_get_the_bits_of_a_fit_without_them(name, parameters, weights):
    kept = encoder(SCHEMES[name], **parameters, missing_target="keep")
    without = encoder(of_rows_that_have_one(name), **parameters)
    found = kept.fit_transform(X, Y, sample_weight=weights)["city"][HAVE]
    own = None if weights is None else weights[HAVE]
    assert (
        found.to_numpy().tobytes()
        == without.fit_transform(X[HAVE], Y[HAVE], sample_weight=own)["city"].to_numpy().tobytes()
    )
    assert kept.transform(X[HAVE]).equals(without.transform(X[HAVE]))
    assert kept.target_mean_ == without.target_mean_
    assert [*kept.categories_[0]] == [*without.categories_[0], "new"]


@pytest.mark.parametrize("smooth", SMOOTHINGS)
def test_no_smoothing_counts_them(smooth):
    kept = encoder("fold", smooth=SMOOTHINGS[smooth], missing_target="keep")
    without = encoder("fold", smooth=SMOOTHINGS[smooth])
    found, wanted = kept.fit_transform(X, Y)["city"][HAVE], without.fit_transform(X[HAVE], Y[HAVE])["city"]
    assert found.to_numpy().tobytes() == wanted.to_numpy().tobytes()
    # A category without any known target is treated like a category that fit has not seen.
    new = pd.DataFrame({"city": ["new", "unseen"], "day": 0, "fold": 0})
    assert kept.transform(X[HAVE]).equals(without.transform(X[HAVE]))
    assert kept.transform(new)["city"].nunique(dropna=False) == 1


INTEGERS = [2**60 + 1, None, 5, None, 2**60 + 1, 5]
LABELS = ["yes", None, "no", None, "no", "yes"]
VECTORS = {
    "list": list,
    "object": lambda values: pd.Series(values, dtype=object),
    "nullable": lambda values: pd.Series(values, dtype="string" if isinstance(values[0], str) else "Int64"),
    "Arrow": pa.array,
    "polars": pl.Series,
    "pieces": lambda values: [values[:2], values[2:]],
}


@pytest.mark.parametrize("container", VECTORS)
@pytest.mark.parametrize(("values", "kind"), [(INTEGERS, "continuous"), (INTEGERS, "binary"), (LABELS, "auto")])
def test_types_stay_those_of_the_values(values, kind, container):
    cities = np.array([["a"], ["b"], ["a"], ["c"], ["c"], ["a"]], object)
    rows = [cities[:2], cities[2:]] if container == "pieces" else cities
    have = [row for row, value in enumerate(values) if value is not None]
    kept = ge.TargetEncoder(smooth=None, target_type=kind, missing_target="keep").fit(rows, VECTORS[container](values))
    without = ge.TargetEncoder(smooth=None, target_type=kind).fit(cities[have], [values[row] for row in have])
    assert kept.categories_[0].tolist() == ["a", "b", "c"]
    assert kept.encodings_[0][[0, 2]].tolist() == without.encodings_[0].tolist()
    assert kept.target_type_ == without.target_type_
    assert (kept.classes_ is None and without.classes_ is None) or kept.classes_.tolist() == without.classes_.tolist()


class ByTarget:
    """A splitter that reads y; rows without a target have a fold of their own."""

    def split(self, X, y=None, groups=None):
        folds = np.array([-1 if pd.isna(value) else len(str(value)) // 2 % 2 for value in np.asarray(y, dtype=object)])
        return [(np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)) for fold in np.unique(folds)]


@pytest.mark.parametrize("cv", [SplitterOfAllRows(3), [*SplitterOfAllRows(3).split(X)], ByTarget()], ids=[*"kly"])
@pytest.mark.parametrize("y", [Y, np.where(HAVE, np.where(Y > 0, "up", "down"), None)], ids=["quantity", "labels"])
def test_splits_of_pieces_are_those_of_one_table(y, cv):
    for scheme in (cv, {"city": cv}):
        kept = encoder(scheme, target_type="auto", missing_target="keep")
        pieces = kept.fit_transform([X[:20], X[20:]], [y[:20], y[20:]])
        assert pd.concat(pieces).equals(kept.fit_transform(X, y))


def test_a_splitter_that_fails_without_a_target_is_told_what_to_do():
    y, cv = np.where(HAVE, Y > 0, np.nan), StratifiedKFold(3)
    kept, wanted = encoder(cv, missing_target="keep"), encoder(cv).fit_transform(X[HAVE], y[HAVE])["city"]
    for rows, target, place in ((X, y, ""), ([X[:2], X[2:]], [y[:2], y[2:]], r" \(row 0 of y\[0\]\)")):
        said = rf"missing values, the first in row 0{place}, and cv=StratifiedKFold\(.* Input y contains NaN. If it"
        with pytest.raises(ValueError, match=said + "(.|\n)*" + re.escape(FOLD_COLUMN_OF_KNOWN)):
            kept.fit_transform(rows, target)
    names = {"numpy": np, "pandas": pd, "cv": cv, "X": X.copy(), "y": y}
    exec("\n".join(line[4:] for line in FOLD_COLUMN_OF_KNOWN.splitlines()), names)
    found = kept.set_params(cv="fold").fit_transform(names["X"], y)["city"]
    assert found[HAVE].to_numpy().tobytes() == wanted.to_numpy().tobytes()
    # Another failure is reported alone.
    with pytest.raises(ValueError, match="Cannot have number of splits n_splits=99") as refused:
        kept.set_params(cv=SplitterOfAllRows(99)).fit_transform(X, y)
    assert "fold" not in str(refused.value)


def test_of_several_targets_each_lacks_its_own_rows():
    other = np.where(np.arange(N) % 4 == 1, np.nan, np.arange(N) % 7)
    both = encoder("fold", missing_target="keep")
    found = both.fit_transform(X, np.column_stack([Y, other]))
    for column, y in zip(found.columns[:2], (Y, other), strict=True):
        one = encoder("fold", missing_target="keep").fit_transform(X, y)
        assert found[column].to_numpy().tobytes() == one["city"].to_numpy().tobytes()


def test_gradients_take_rows_that_have_both():
    gradients = np.column_stack([Y, np.where(np.arange(N) % 4 == 1, np.nan, 1.0)])
    have = ~np.isnan(gradients).any(axis=1)
    kept = ge.GradientEncoder(columns=["city"], missing_target="keep").fit(X, gradients)
    without = ge.GradientEncoder(columns=["city"]).fit(X[have], gradients[have])
    assert kept.transform(X).equals(without.transform(X))


def test_counts_of_rows_know_nothing_of_targets():
    counts = ge.StatisticEncoder(["count"], columns=["city"], missing_target="keep").fit(X, Y)
    rows = ge.CountEncoder(columns=["city"]).fit(X, Y)
    with_target = [int((X["city"][HAVE] == city).sum()) for city in counts.categories_[0]]
    assert counts.encodings_[0].tolist() == with_target
    assert rows.encodings_[0].tolist() == [int((X["city"] == city).sum()) for city in rows.categories_[0]]


def test_rows_come_and_go_without_a_target():
    known = encoder(3, missing_target="keep").fit(X[:40], Y[:40])
    before = known.encodings_[0].tolist()
    known.partial_fit(X[40:43], [np.nan] * 3)
    assert known.encodings_[0].tolist() == before
    known.partial_fit(X[43:], Y[43:]).forget(X[43:], Y[43:])
    assert known.transform(X).equals(encoder(3, missing_target="keep").fit(X[:40], Y[:40]).transform(X))


KINDS = np.where(HAVE, np.where(Y > 0, "up", np.where(Y < -20, "far down", "down")), None)
FIRST_WITHOUT = {
    "quantity": (ge.TargetEncoder(smooth=3.0), Y + 0.5),
    "classes": (ge.TargetEncoder(drop="first"), KINDS),
    "evidence": (ge.WeightOfEvidenceEncoder(), np.where(HAVE, Y > 0, np.nan)),
    "in order": (ge.OrdinalEncoder(order="target", target_type="binary"), np.where(HAVE, Y > 0, np.nan)),
    "medians": (ge.StatisticEncoder(["median", "skew"]), Y),
    "gradients": (ge.GradientEncoder(), np.column_stack([Y, np.abs(Y)])),
    "two": (
        ge.TargetEncoder(target_type=["continuous", "binary"]),
        np.column_stack([Y, np.where(HAVE, Y > 0, np.nan)]),
    ),
}


@pytest.mark.parametrize("name", FIRST_WITHOUT)
def test_the_first_rows_of_partial_fit_need_no_target(name, tmp_path):
    made, y = FIRST_WITHOUT[name]
    made.set_params(columns=["city"], missing_target="keep")
    rows, none = X[:3], np.full((3, *y.shape[1:]), None if y.dtype == object else np.nan)
    whole, first = clone(made).fit(pd.concat([rows, X]), np.concatenate([none, y])), clone(made).partial_fit(rows, none)
    assert first.categories_[0].tolist() == ["new"]
    first.save(tmp_path / "model")
    merged = clone(made).fit(X, y).merge(first)
    again = ge.load(tmp_path / "model").partial_fit(rows, none).partial_fit(X, y)
    for encoder in (merged, again, first.partial_fit(X, y)):
        assert encoder.transform(X).equals(whole.transform(X))
        assert encoder.target_type_ == whole.target_type_
    known = clone(made).partial_fit(rows, none)
    with pytest.raises(ValueError, match="forget was given rows"):
        known.forget(rows, y[-3:])


def test_tuning_scores_rows_that_have_one():
    choices = {"smoothings": [1.0, 10.0, "auto"]}
    kept = ge.tune(encoder("fold", missing_target="keep"), X, Y, **choices)
    without = ge.tune(encoder("fold"), X[HAVE], Y[HAVE], **choices)
    assert [score.log_likelihood for score in kept.scores] == [score.log_likelihood for score in without.scores]
    with pytest.raises(ValueError, match=r"y has \d+ missing values"):
        ge.choose_interactions(encoder("fold", missing_target="keep"), X, Y)


def test_drawn_orders_are_those_of_training():
    ordered = encoder(ge.Ordered(), missing_target="keep")
    found = ordered.fit_transform(X, Y)
    assert ordered.draw(X, Y, 0).equals(found)


def test_refusals():
    with pytest.raises(ValueError, match=r"y has \d+ missing values.*Drop or fill .*=\"keep\": most encoders then"):
        encoder(3).fit(X, Y)
    with pytest.raises(ValueError, match=r"^y holds 2 targets: pass .*=\"continuous\" or a list of .* per target.$"):
        encoder(3, target_type="auto", missing_target="keep").fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="y has no value in any row"):
        encoder(3, missing_target="keep").fit(X, np.full(N, np.nan))
    with pytest.raises(ValueError, match=r"missing_target.* 'drop'"):
        encoder(3, missing_target="drop").fit(X, Y)
    with pytest.raises(ValueError, match="in row 59"):
        encoder(3, missing_target="keep").fit(X, np.append(Y[:-1], np.inf))
    mixed = pd.Series([*Y[:-1], "maybe"], dtype=object)
    with pytest.raises(ValueError, match="'maybe' in row 59"):
        encoder(3, missing_target="keep").fit(X, mixed)


def test_rows_without_a_target_count_for_no_value_in_parts():
    def make():
        return ge.StatisticEncoder(["median", "nunique"], cv=ge.LeaveOneOut(), columns=["city"], missing_target="keep")

    y = with_holes(AMOUNT)
    parts = encoded_in_parts(make(), parts_of(ROWS, y, None, None, [1, 30, 30, 47, 83]))
    same(pd.concat(parts), make().fit_transform(ROWS, y))
