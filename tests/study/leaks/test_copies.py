"""Copies of rows, as oversampling, bootstraps and joins make them, are told; equal rows by chance are not."""

import os
import tracemalloc
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpu_encode import Greedy, GroupKFold, KFold, LeakWarning, Ordered, TargetEncoder, interactions, leak_report
from gpu_encode.fitting.copies import share_of_copies
from tests.laws.real_tables import names_in, read_rows

pytestmark = pytest.mark.host
N_ROWS = 600
FOLDER = os.environ.get("REAL_TABLES")


def tosses(seed=0, ones=0.2):
    """Rows of values that say nothing of the target: two columns, and tosses of a coin."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"ticket": [f"t{number // 2}" for number in range(N_ROWS)], "seat": random.integers(400, size=N_ROWS)}
    )
    return X, (random.random(N_ROWS) < ones).astype(int), random


def ones_oversampled():
    X, y, random = tosses()
    ones = np.flatnonzero(y)
    return X, y, np.r_[np.arange(N_ROWS), random.choice(ones, N_ROWS - 2 * len(ones))]


def every_row_twice():
    X, y, _ = tosses(1, 0.5)
    return X, y, np.repeat(np.arange(N_ROWS), 2)


def bootstrap():
    X, y, random = tosses(2, 0.4)
    return X, y, random.integers(N_ROWS, size=N_ROWS)


def tenth_twice():
    X, y, random = tosses(3, 0.5)
    return X, y, np.r_[np.arange(N_ROWS), random.choice(N_ROWS, N_ROWS // 10, replace=False)]


def prices_twice():
    X, _, random = tosses(4)
    return X, random.gamma(2.0, size=N_ROWS), np.tile(np.arange(N_ROWS), 2)


COPIED = [ones_oversampled, every_row_twice, bootstrap, tenth_twice, prices_twice]


def made(make):
    X, y, rows = make()
    return X.iloc[rows].reset_index(drop=True), y[rows]


def warnings_of(encoder, X, y, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encoder.fit_transform(X, y, **given)
    return [str(one.message) for one in caught if issubclass(one.category, LeakWarning)]


@pytest.mark.parametrize("make", COPIED)
def test_fit_transform_warns_of_copies(make):
    X, y = made(make)
    for cv in (KFold(5), Ordered()):
        (message,) = warnings_of(TargetEncoder(cv=cv), X, y)
        assert "several times" in message
        assert "GroupKFold" in message


@pytest.mark.parametrize("make", COPIED)
def test_the_cure_keeps_copies_together(make):
    X, y = made(make)
    named = X.assign(**{f"{name} of the case": X[name] for name in X})
    assert warnings_of(TargetEncoder(cv=KFold(5, by=[*named][2:])), named, y) == []
    cases = X.groupby(["ticket", "seat"]).ngroup()
    assert warnings_of(TargetEncoder(cv=GroupKFold(5)), X, y, groups=cases.to_numpy()) == []


def test_columns_of_joint_keys_are_compared():
    X, y = made(every_row_twice)
    X["side"] = np.arange(len(X)) // 2 % 3
    for columns in ([("ticket", "seat")], ["side", ("ticket", "seat")], [*combinations(X, 2), tuple(X)]):
        (message,) = warnings_of(TargetEncoder(columns=columns), X, y)
        assert "several times" in message


def test_keys_in_turn_warn_once():
    X, y = made(every_row_twice)
    X = X.assign(**{f"side{number}": X["seat"] + number for number in range(6)})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in TargetEncoder(columns=interactions([*X])).iter_fit_transform(X, y, n_keys=9):
            pass
    assert len(caught) == 1
    assert caught[0].category is LeakWarning


@pytest.mark.parametrize("common", ["", None])
def test_most_rows_have_the_same_value(common):
    # Copies are behind all other rows.
    random, row = np.random.default_rng(9), np.arange(20_000)
    note = np.where(random.random(20_000) < 0.7, common, [f"n{number}" for number in row])
    X, y = pd.DataFrame({"note": note, "seat": random.integers(2_000, size=20_000)}), random.integers(2, size=20_000)
    rows = np.r_[row, :8_000]
    (message,) = warnings_of(TargetEncoder(), X.iloc[rows].reset_index(drop=True), y[rows])
    assert "several times" in message


@pytest.mark.parametrize("columns", [["empty", ("ticket", "seat")], ["empty", "ticket"]])
def test_a_column_without_values_is_no_copy(columns):
    X, y, _ = tosses(10, 0.5)
    X = pd.DataFrame({"empty": np.nan, "ticket": np.arange(20_000), "seat": np.arange(20_000) % 7})
    assert warnings_of(TargetEncoder(columns=columns), X, np.resize(y, 20_000)) == []


def test_a_sample_without_rows_has_no_copies():
    # Of 20,000 values that are listed, the rows have one.
    encoder = TargetEncoder(categories=[np.arange(20_000)])
    for value in (0, 3, 19_999):
        assert warnings_of(encoder, np.full((20_000, 1), value), np.arange(20_000) % 2) == []


def test_memory_does_not_grow_with_categories():
    codes = np.arange(1_000_000, dtype=np.int32) // 2
    y = np.random.default_rng(0).integers(10, size=500_000)[codes]
    tracemalloc.start()
    assert share_of_copies([codes], y) == 1.0
    assert tracemalloc.get_traced_memory()[1] < 8 * len(y)
    tracemalloc.stop()


def test_greedy_encodings_have_a_warning_of_their_own():
    (message,) = warnings_of(TargetEncoder(cv=Greedy()), *made(bootstrap))
    assert "several times" not in message


@pytest.mark.parametrize("make", [ones_oversampled, every_row_twice, prices_twice])
def test_the_report_shows_that_copies_tell_the_target(make):
    X, y = made(make)
    joint = [("ticket", "seat")]
    report = leak_report(TargetEncoder(columns=joint), X, y, n_flips=4)
    assert [column.verdict for column in report.columns][:1] == ["copies"]
    assert report.leaks
    assert "several times" in report.risks[-1]
    cases = X.groupby(["ticket", "seat"]).ngroup()
    cured = leak_report(TargetEncoder(columns=joint, cv=GroupKFold(5)), X, y, groups=cases, n_flips=4)
    assert cured.leaks == []
    assert "several times" in cured.risks[-1]


def test_a_join_multiplies_rows():
    # The item is no copy, but the columns that are encoded are.
    _, y, rows = every_row_twice()
    X = pd.DataFrame({"customer": rows, "item": np.arange(len(rows))})
    report = leak_report(TargetEncoder(columns=["customer"]), X, y[rows], n_flips=0)
    assert report.leaks == ["customer"]
    assert "'customer'" in report.risks[-1]
    assert "item" not in report.risks[-1]


@pytest.mark.parametrize("other", [[np.inf, 1.0], [[1], [2]], [1, "a"]], ids=["infinite", "lists", "mixed"])
def test_columns_that_are_no_categories_are_not_compared(other):
    X, y = made(every_row_twice)
    X["other"] = pd.Series((other * len(X))[: len(X)])
    report = leak_report(TargetEncoder(columns=["ticket", "seat"]), X, y, n_shuffles=3, n_flips=0)
    assert "several times" in report.risks[-1]


def cities():
    random = np.random.default_rng(5)
    X = pd.DataFrame({name: random.choice([*"abcdefgh"], N_ROWS) for name in ("home", "work", "shop")})
    return X, random.integers(0, 2, N_ROWS)


def answer_in_a_column():
    X, y, random = tosses(6, 0.5)
    return X.assign(seat=random.integers(40, size=N_ROWS), answer=y), y


def strong_signal():
    random = np.random.default_rng(7)
    town = random.integers(150, size=N_ROWS)
    return pd.DataFrame({"town": town}), (random.random(N_ROWS) < np.where(town % 3 == 0, 0.9, 0.2)).astype(int)


def steps_of_salary():
    random = np.random.default_rng(8)
    grade = random.integers(60, size=N_ROWS)
    X = pd.DataFrame({"grade": grade, "year": 2000 + random.integers(5, size=N_ROWS)})
    return X, grade * 100.5 + random.choice([0.0, 3.0, 6.0], N_ROWS)


@pytest.mark.parametrize("make", [tosses, cities, answer_in_a_column, strong_signal, steps_of_salary])
def test_equal_rows_by_chance_are_no_copies(make):
    X, y, *_ = make()
    assert warnings_of(TargetEncoder(), X, y) == []
    report = leak_report(TargetEncoder(), X, y, n_shuffles=3, n_flips=0)
    assert not any("several times" in risk for risk in report.risks)


def test_share_of_copies_counts_rows():
    X, y, rows = tenth_twice()
    codes = [pd.factorize(X[name])[0][rows] for name in X]
    assert share_of_copies(codes, y[rows]) == pytest.approx(120 / 660, abs=0.01)
    many = np.repeat(np.arange(50_000), 2)
    assert share_of_copies([many, many % 7], np.random.default_rng(0).integers(2, size=50_000)[many]) == 1.0


@pytest.mark.long
@pytest.mark.skipif(FOLDER is None, reason="REAL_TABLES names no folder of real tables")
def test_real_tables_have_none_but_their_bootstraps():
    folder = Path(FOLDER)
    for table in names_in(folder):
        rows = read_rows(folder, table, 3000)
        X, y = rows.frame[rows.keys].astype(str), np.asarray(rows.targets["binary"])
        assert warnings_of(TargetEncoder(), X, y) == [], table
