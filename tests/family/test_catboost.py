"""CatBoost's statistics against their formulas in plain Python, by every scheme, and targets cut at borders."""

import math
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpu_encode import (
    CatBoostEncoder,
    Greedy,
    KFold,
    LeaveOneOut,
    MEstimate,
    Ordered,
    TargetEncoder,
    encode_dataset,
    load,
    ops,
)
from gpu_encode.ops import use_backend
from gpu_encode.parts import Part, survey
from tests.backends import ON_CUDA
from tests.family.members import AMOUNT, KIND, ROWS, SOLD, WEIGHTS, N, same
from tests.laws import encoding
from tests.parts.in_parts import encoded_in_parts, parts_of
from tests.parts.test_orders import encoded

pytestmark = pytest.mark.filterwarnings("ignore:Greedy")
CITIES = ROWS["city"].fillna("missing").rename("city")
X = CITIES.to_frame()
Y = np.round(AMOUNT * 64) / 64
BORDERS = [-1.5, 0.25, 40.0]
PRIORS = [0.0, 0.5, 1.0]
FRACTIONS = np.round(np.abs(np.random.default_rng(1).normal(size=N)) * 8) / 8
ALL_WEIGHTS = {"unweighted": None, "whole": WEIGHTS, "fractions": FRACTIONS}


def permuted_place(row):
    """Place of each row in the random order of Ordered(): how many rows it sees, found by a code that counts them."""
    return int(PLACES[row])


def places():
    """Count the rows before each one, by an independent encoder of the same scheme."""
    one = pd.DataFrame({"only": ["a"] * N})
    seen = TargetEncoder(cv=Ordered(), smooth=MEstimate(1.0), prior=0.0, target_type="continuous")
    codes = np.asarray(seen.fit_transform(one, np.ones(N)), dtype=np.float64)[:, 0]
    # n ones and one zero have the mean n / (n + 1).
    return np.round(codes / (1.0 - codes)).astype(int)


PLACES = places()
SCHEMES = {
    "folds": (lambda: KFold(3, order="interleaved"), lambda row, other: row % 3 != other % 3),
    "leave-one-out": (LeaveOneOut, lambda row, other: row != other),
    "ordered": (Ordered, lambda row, other: permuted_place(other) < permuted_place(row)),
    "ordered, in rows": (lambda: Ordered(shuffle=False), lambda row, other: other < row),
    "greedy": (Greedy, lambda row, other: True),
}


def bucket(value):
    """Give the number of borders that a value is above."""
    return sum(1 for border in BORDERS if value > border)


# What each row adds to S, one function a column.
ADDENDS = {
    "mean": [lambda row: Fraction(float(Y[row]))],
    "mean of buckets": [lambda row: Fraction(bucket(Y[row]) / len(BORDERS))],
    "borders": [lambda row, border=border: Fraction(int(Y[row] > border)) for border in BORDERS],
    "buckets": [lambda row, number=number: Fraction(int(bucket(Y[row]) == number)) for number in range(4)],
    "borders of labels": [lambda row, label=label: Fraction(int(KIND[row] > label)) for label in "xy"],
    "buckets of labels": [lambda row, label=label: Fraction(int(KIND[row] == label)) for label in "xyz"],
    "mean of labels": [lambda row, label=label: Fraction(int(KIND[row] == label)) for label in "xyz"],
    "borders of two labels": [lambda row: Fraction(int(SOLD[row] > 0))],
}
PARAMETERS = {
    "mean": ({"target_type": "continuous"}, Y),
    "mean of buckets": ({"borders": BORDERS}, Y),
    "borders": ({"statistic": "borders", "borders": BORDERS}, Y),
    "buckets": ({"statistic": "buckets", "borders": np.array(BORDERS)}, Y),
    "borders of labels": ({"statistic": "borders"}, KIND),
    "buckets of labels": ({"statistic": "buckets"}, KIND),
    "mean of labels": ({}, KIND),
    "borders of two labels": ({"statistic": "borders"}, SOLD),
}


def stated(name, visible, key, weight, a=1.0):
    """Codes of a category by the formula: S and n are exact and then rounded, each step after that is one operation."""
    members = [row for row in visible if CITIES[row] == key]
    n = float(sum((Fraction(weight[row]) for row in members), Fraction(0)))
    found = []
    for addend in ADDENDS[name]:
        s = float(sum((Fraction(weight[row]) * addend(row) for row in members), Fraction(0)))
        found += [prior if n == 0 else (s + a * prior) / (n + a) for prior in PRIORS]
    return found


@pytest.mark.parametrize("weights", ALL_WEIGHTS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PARAMETERS)
def test_training_codes(name, scheme, weights):
    (parameters, y), (make, sees), weight = PARAMETERS[name], SCHEMES[scheme], ALL_WEIGHTS[weights]
    encoder = CatBoostEncoder(cv=make(), priors=PRIORS, weight=2.5, **parameters)
    found = np.asarray(encoder.fit_transform(X, y, sample_weight=weight))
    each = np.ones(N) if weight is None else weight
    for row in range(N):
        visible = [other for other in range(N) if sees(row, other)]
        encoding.assert_same_bits(found[row], stated(name, visible, CITIES[row], each.tolist(), 2.5))


@pytest.mark.parametrize("name", PARAMETERS)
def test_new_rows(name):
    parameters, y = PARAMETERS[name]
    encoder = CatBoostEncoder(**parameters).fit(X, y, sample_weight=FRACTIONS)
    found = encoder.transform(pd.DataFrame({"city": [*CITIES, "never seen"]})).to_numpy()
    for row in range(N):
        encoding.assert_same_bits(found[row], stated(name, range(N), CITIES[row], FRACTIONS.tolist()))
    encoding.assert_same_bits(found[N], PRIORS * len(ADDENDS[name]))


def test_the_default_is_catboosts_order():
    found, expected, in_order = (
        CatBoostEncoder(target_type="continuous", **scheme).fit_transform(X, Y).to_numpy()
        for scheme in ({"random_state": 3}, {"cv": Ordered(random_state=3)}, {"shuffle": False})
    )
    assert found.tobytes() == expected.tobytes()
    assert in_order[0].tolist() == [0.0, 0.5, 1.0]


def counts_of(visible, weight):
    """Weight of every visible category."""
    found = {}
    for row in visible:
        found[CITIES[row]] = found.get(CITIES[row], 0.0) + weight[row]
    return found


@pytest.mark.parametrize("weights", ALL_WEIGHTS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("statistic", ["counter", "frequency"])
def test_counts(statistic, scheme, weights):
    (make, sees), weight = SCHEMES[scheme], ALL_WEIGHTS[weights]
    encoder = CatBoostEncoder(statistic, PRIORS, 2.0, cv=make())
    if statistic == "counter" and "folds" not in scheme and scheme != "greedy":
        with pytest.raises(ValueError, match="CountRatios of CatBoostEncoder looks at all categories at once"):
            encoder.fit_transform(X)
        return
    found = np.asarray(encoder.fit_transform(X, sample_weight=weight))
    each = (np.ones(N) if weight is None else weight).tolist()
    for row in range(N):
        counts = counts_of([other for other in range(N) if sees(row, other)], each)
        whole = max(counts.values(), default=0.0) if statistic == "counter" else sum(counts.values())
        n = counts.get(CITIES[row], 0.0)
        expected = [(n + 2.0 * prior) / (whole + 2.0) for prior in PRIORS]
        # So few rows come before any row that no checkpoint is stale.
        assert found[row].tolist() == expected


def test_counts_of_all_rows_by_default():
    encoder = CatBoostEncoder("counter", [0.0, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = encoder.fit_transform([["a"], ["a"], ["a"], ["b"]], ["y", "is", "not", None])
    assert codes.tolist() == [[3 / 4, 1.0]] * 3 + [[1 / 4, 2 / 4]]
    assert encoder.transform([["a"], ["never seen"]]).tolist() == [[3 / 4, 1.0], [0.0, 1 / 4]]
    assert CatBoostEncoder("frequency", [1.0]).fit([["a"], ["b"], ["b"]]).transform([["b"], ["c"]]).tolist() == [
        [3 / 4],
        [1 / 4],
    ]
    given = CatBoostEncoder("counter", [0.0], 0.0, categories=[["a", "b"]], handle_missing="prior")
    # Neither a value that is none of the categories, nor a missing one, is the most frequent category.
    assert given.fit_transform([["a"], ["a"], ["b"], *[["c"]] * 3, *[[None]] * 4])[:3].tolist() == [[1.0], [1.0], [0.5]]
    rare = CatBoostEncoder("counter", [0.0], 0.0, min_count=9, handle_missing="nan").fit([["a"], [None]])
    encoding.assert_same_bits(rare.transform([["a"], ["c"], [None]]), [[0.0], [0.0], [math.nan]])


def test_category_encoders_numbers():
    # (sum + prior * a) / (count + a) with the mean of y as prior: category_encoders' CatBoostEncoder(a=1), new rows.
    y = [1, 0, 1, 1, 0]
    encoder = CatBoostEncoder(priors=[0.6]).fit([["a"], ["a"], ["a"], ["b"], ["b"]], y)
    assert encoder.transform([["a"], ["b"], ["c"]])[:, 0].tolist() == [(2 + 0.6) / 4, (1 + 0.6) / 3, 0.6]


@pytest.mark.parametrize(
    ("statistic", "y", "borders", "expected"),
    [
        ("borders", Y, BORDERS, ["city_above_-1.5", "city_above_0.25", "city_above_40.0"]),
        ("buckets", Y, [0.5], ["city_to_0.5", "city_to_inf"]),
        ("borders", KIND, None, ["city_above_x", "city_above_y"]),
        ("buckets", KIND, None, ["city_x", "city_y", "city_z"]),
        ("buckets", SOLD, None, ["city"]),
        ("mean", Y, BORDERS, ["city"]),
    ],
)
def test_names(statistic, y, borders, expected):
    one = CatBoostEncoder(statistic, [0.5], borders=borders).fit(X, y)
    assert one.get_feature_names_out().tolist() == expected
    two = CatBoostEncoder(statistic, [0, 2.5], borders=borders).fit(X, y)
    assert two.get_feature_names_out().tolist() == [f"{name}_prior_{p}" for name in expected for p in ("0", "2.5")]


def quantile_border(values, weights, number, of):
    """Smallest value that number / of of the weight does not exceed, below the largest value."""
    rows = sorted(zip(values, map(Fraction, weights), strict=True))
    whole = sum(weight for _, weight in rows)
    border = next(
        value
        for place, (value, _) in enumerate(rows)
        if sum(weight for _, weight in rows[: place + 1]) * of >= whole * number
    )
    return min(border, max(value for value, weight in rows if weight and value < rows[-1][0]))


@pytest.mark.parametrize("weights", ALL_WEIGHTS)
@pytest.mark.parametrize("number", [1, 3, 7])
def test_borders_at_quantiles(number, weights):
    weight = np.ones(N) if weights == "unweighted" else ALL_WEIGHTS[weights]
    borders = [quantile_border(Y.tolist(), weight.tolist(), each, number + 1) for each in range(1, number + 1)]
    borders = sorted(set(borders))
    for statistic in ("borders", "buckets", "mean"):
        found, expected = (
            CatBoostEncoder(statistic, cv=KFold(2), borders=each).fit_transform(X, Y, sample_weight=weight)
            for each in (number, borders)
        )
        pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_no_border_is_the_largest_value():
    encoder = CatBoostEncoder("borders", [0.0], 0.0, borders=4).fit([["a"]] * 5, [0, 1, 1, 1, 1])
    assert encoder.get_feature_names_out().tolist() == ["x0_above_0.0"]
    assert encoder.encodings_[0].tolist() == [0.8]
    with pytest.raises(ValueError, match="CatBoostEncoder finds no border in y, whose rows all hold 2"):
        CatBoostEncoder("borders", borders=1).fit([["a"]] * 3, [2.0, 2.0, 5.0], sample_weight=[1, 1, 0])


def test_fractions_of_sums_beyond_floats_have_means():
    encoder = CatBoostEncoder(priors=[0.0], target_type="continuous").fit([["a"]] * 3, [1.5e308] * 3)
    assert encoder.encodings_[0].tolist() == [0.75 * 1.5e308]


@pytest.mark.parametrize("y", [Y, Y > 0.3, np.round(Y).astype(np.int64), Y.astype(np.float32), Y.tolist()])
def test_numbers_of_every_type_are_cut(y):
    values = np.asarray(y, dtype=np.float64)
    encoder = CatBoostEncoder("borders", [0.0], 0.0, borders=[0.0, 2.0]).fit([["a"]] * N, y)
    assert [codes.item() for codes in encoder.encodings_] == [np.sum(values > border) / N for border in (0.0, 2.0)]


@pytest.mark.parametrize(
    "cv", [KFold(3), KFold(3, stratify=True), LeaveOneOut(), Ordered(), Ordered(shuffle=False)], ids=str
)
@pytest.mark.parametrize("statistic", ["borders", "buckets", "mean"])
@pytest.mark.parametrize("y", [Y, np.array([int(value) if row < 50 else value for row, value in enumerate(Y)])])
def test_parts_pieces_files_and_clusters(statistic, cv, y, tmp_path):
    if statistic == "mean" and getattr(cv, "stratify", False):
        pytest.skip("a quantity has no classes to stratify by")
    make = partial(CatBoostEncoder, statistic, borders=BORDERS, cv=cv, columns=["city"])
    expected = make().fit_transform(ROWS, y)
    pieces = make().fit_transform([ROWS[:1], ROWS[1:60], ROWS[60:]], [y[:1], y[1:60], y[60:]])
    same(pd.concat(pieces), expected)
    parts, one = parts_of(ROWS, y, None, None, [1, 30, 30, 47, 83]), make()
    in_parts = encoded(one, parts, 3, "side by side") if isinstance(cv, Ordered) else encoded_in_parts(one, parts)
    same(pd.concat(in_parts), expected)
    if ON_CUDA:
        return  # files and tasks know nothing of the backend
    pyarrow.parquet.write_table(pa.Table.from_pandas(ROWS.assign(y=y)), tmp_path / "rows.parquet", row_group_size=17)
    encode_dataset(tmp_path / "rows.parquet", tmp_path / "codes.parquet", make(), target="y", keep_target=False)
    same(pyarrow.parquet.read_table(tmp_path / "codes.parquet").to_pandas(), expected)
    dd = pytest.importorskip("dask.dataframe")
    lazy = make().fit_transform(
        dd.from_pandas(ROWS, npartitions=4), dd.from_pandas(pd.Series(y, name="y"), npartitions=4)
    )
    same(lazy.compute(scheduler="synchronous"), expected)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PARAMETERS)
def test_backends(name, scheme):
    if ON_CUDA:
        pytest.skip("the backend is the CUDA one already")
    (parameters, y), found = PARAMETERS[name], []
    for backend in ("numpy", "compiled"):
        with use_backend(backend):
            encoder = CatBoostEncoder(cv=SCHEMES[scheme][0](), **parameters)
            found.append(encoder.fit_transform(ROWS[["zip", "city"]], y, sample_weight=FRACTIONS).to_numpy())
    assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.skipif(not ON_CUDA, reason="arrays of a device need one")
@pytest.mark.parametrize("borders", [BORDERS, 3], ids=["given", "quantiles"])
@pytest.mark.parametrize("statistic", ["borders", "buckets", "mean"])
@pytest.mark.parametrize("y", [Y, Y.astype(np.float32), np.round(Y).astype(np.int64)])
def test_targets_on_a_device(statistic, borders, y):
    device, keys = ops.resolve(N), ROWS[["zip"]].to_numpy()
    encoder = CatBoostEncoder(statistic, borders=borders)
    expected = encoder.fit_transform(keys, y, sample_weight=FRACTIONS)
    found = encoder.fit_transform(*map(device.to_device, (keys, y)), sample_weight=device.to_device(FRACTIONS))
    assert device.to_host(found).tobytes() == expected.tobytes()


def test_numbers_of_borders_need_all_rows():
    encoder = CatBoostEncoder("borders", borders=2, columns=["city"])
    message = "borders=2 of CatBoostEncoder are quantiles of all rows"
    with pytest.raises(ValueError, match=message):
        survey(encoder, Part(ROWS, Y))
    encoder.partial_fit(ROWS, Y)
    expected = encoder.transform(ROWS)
    with pytest.raises(ValueError, match=message):
        encoder.partial_fit(ROWS, Y)
    with pytest.raises(ValueError, match=message):
        encoder.merge(CatBoostEncoder("borders", borders=2, columns=["city"]).fit(ROWS, Y))
    pd.testing.assert_frame_equal(encoder.transform(ROWS), expected)
    pieces = CatBoostEncoder("borders", borders=2, columns=["city"]).fit([ROWS[:9], ROWS[9:]], [Y[:9], Y[9:]])
    pd.testing.assert_frame_equal(pieces.transform(ROWS), expected)


def test_saved_with_borders(tmp_path):
    for statistic in ("borders", "buckets", "mean"):
        encoder = CatBoostEncoder(statistic, borders=2).fit(X, Y)
        encoder.save(tmp_path / "encoder")
        pd.testing.assert_frame_equal(load(tmp_path / "encoder").transform(X), encoder.transform(X))


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"statistic": "median"}, Y, "'statistic' parameter of CatBoostEncoder must be one of 'mean', 'borders'"),
        ({"priors": 0.5}, Y, "'priors' parameter of CatBoostEncoder must be one of a list of numbers"),
        ({"priors": []}, Y, "'priors' parameter of CatBoostEncoder must be one of a list of numbers"),
        ({"priors": ["mean"]}, Y, "'priors' parameter of CatBoostEncoder must be a finite number"),
        ({"priors": [1, 1.0]}, Y, "a list of different numbers"),
        ({"weight": -1}, Y, "'weight' parameter of CatBoostEncoder must be a finite number of at least 0"),
        ({"statistic": "borders"}, Y, "statistic='borders' of CatBoostEncoder counts labels, but y is continuous"),
        ({"statistic": "buckets"}, Y, "Give borders, numbers at which y is cut"),
        ({"borders": []}, Y, "'borders' parameter of CatBoostEncoder must be None, a number of borders from 1 to 255"),
        ({"borders": 0}, Y, "'borders' parameter .* Got 0 instead"),
        ({"borders": 256}, Y, "'borders' parameter .* Got 256 instead"),
        ({"borders": True}, Y, "'borders' parameter .* Got True instead"),
        ({"borders": [1.0, 1.0]}, Y, "in rising order"),
        ({"borders": [0.0, math.inf]}, Y, "a list of finite numbers"),
        ({"borders": ["low"]}, Y, "a list of finite numbers"),
        ({"borders": [0.0], "target_type": "binary"}, Y, "target_type='binary'. Pass target_type=\"auto\""),
        ({"borders": [0.0]}, KIND, "borders of CatBoostEncoder cut numbers, but y holds"),
        ({"borders": [0.0]}, np.where(Y > 9, np.inf, Y), "Input y contains infinity"),
        ({"borders": [0.0]}, np.column_stack([Y, Y]), "borders of CatBoostEncoder cut one target, but y holds 2"),
        ({"statistic": "counter", "borders": [0.0]}, Y, "statistic='counter' of CatBoostEncoder reads no target"),
    ],
)
def test_refusals(parameters, y, message):
    with pytest.raises(ValueError, match=message):
        CatBoostEncoder(**parameters).fit(X, y)


# Codes of training rows are not those of new rows, on purpose.
OUT_OF_FOLD = dict.fromkeys(
    ("check_transformer_general", "check_transformer_data_not_an_array"), "training codes are those of rows before"
)


@parametrize_with_checks(
    [CatBoostEncoder(), CatBoostEncoder("counter")],
    expected_failed_checks=lambda encoder: OUT_OF_FOLD if encoder.statistic == "mean" else {},
)
def test_estimator_checks(estimator, check) -> None:
    """scikit-learn's checks pass."""
    check(estimator)
