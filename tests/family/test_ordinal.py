"""Numbers of categories by OrdinalEncoder, compared with plain loops over exact sums."""

import datetime as dt
from fractions import Fraction
from math import nan

import numpy as np
import pandas as pd
import pytest

from cpu_fallback.row_numbers import Permutation, key_of, ranks_of
from gpu_encode import Greedy, KFold, OrdinalEncoder, TimeFolds, load
from gpu_encode.formulas.infrequent import find_infrequent
from tests.naive import quotient

N = 60
RNG = np.random.default_rng(3)
CITY = np.array([*"abcdefg", None], dtype=object)[RNG.choice(8, N, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])]
X = CITY.reshape(-1, 1)
Y = np.round(RNG.normal(size=N), 1)
# Half of the targets tie the means of two categories.
Y[CITY == "b"], Y[CITY == "d"] = 0.5, 0.5
WEIGHTS = RNG.integers(0, 4, N) / 4


def sums_of(rows, weights, target):
    """Exact weight and total of each category, in the order of their values; missing ones apart."""
    codes = {}
    for row in rows:
        n, s = codes.get(CITY[row], (Fraction(0), Fraction(0)))
        w = Fraction(float(weights[row]))
        codes[CITY[row]] = (n + w, s + w * Fraction(float(target[row])))
    return {key: codes[key] for key in sorted(k for k, (n, _) in codes.items() if k is not None and n > 0)}


def definition(order, sums, total_weight, min_frequency=None, max_categories=None):
    """Give the code of each category, in plain loops."""
    rare = find_infrequent(np.array([float(n) for n, _ in sums.values()]), total_weight, min_frequency, max_categories)
    groups = [[key] for key, few in zip(sums, rare, strict=True) if not few]
    pooled = [key for key, few in zip(sums, rare, strict=True) if few]
    groups += [pooled] if pooled else []
    keys = []
    for place, group in enumerate(groups):
        # For each category its correctly rounded weight and its mean; for several their exact sums, rounded once.
        weights = [Fraction(float(sums[key][0])) for key in group]
        means = [quotient(sums[key][1], sums[key][0]) for key in group]
        mean = quotient(sum(n * Fraction(m) for n, m in zip(weights, means, strict=True)), sum(weights))
        keys.append(
            {"value": place, "frequency": -float(sum(weights)), "target": mean if group == pooled else means[0]}[order]
        )
    order_of_groups = sorted(range(len(groups)), key=lambda place: (keys[place], place))
    return {key: order_of_groups.index(place) for place, group in enumerate(groups) for key in group}, keys


def column(encoder, *given, **named):
    return encoder.fit(X, *given, **named).transform(X)[:, 0]


@pytest.mark.parametrize("weights", [np.ones(N), WEIGHTS, np.repeat(0.1, N)], ids=["rows", "quarters", "tenths"])
@pytest.mark.parametrize("few", [{}, {"min_frequency": 4}, {"min_frequency": 0.12}, {"max_categories": 3}], ids=repr)
@pytest.mark.parametrize("order", ["value", "frequency", "target"])
def test_definition(order, few, weights):
    encoder = OrdinalEncoder(order=order, encoded_missing_value=-9, target_type="continuous", **few)
    expected, _ = definition(order, sums_of(range(N), weights, Y), float(weights.sum()), **few)
    codes = column(encoder, Y, sample_weight=weights)
    seen = weights > 0
    assert codes[seen].tolist() == [-9 if city is None else expected[city] for city in CITY[seen]]


@pytest.mark.parametrize("few", [{}, {"max_categories": 3}], ids=repr)
@pytest.mark.parametrize("weights", [np.ones(N), WEIGHTS], ids=["rows", "weights"])
def test_training_codes_by_the_target(weights, few):
    y = Y.copy()
    encoder = OrdinalEncoder(order="target", cv=KFold(7, order="interleaved"), target_type="continuous", **few)
    found = encoder.fit_transform(X, y, sample_weight=weights)[:, 0]
    for row in range(N):
        others = [other for other in range(N) if other % 7 != row % 7]
        sums = sums_of(others, weights, y)
        codes, keys = definition("target", sums, float(weights[others].sum()), **few)
        total = sum(Fraction(float(weights[i])) * Fraction(float(y[i])) for i in others)
        mean = quotient(total, sum(Fraction(float(weights[i])) for i in others))
        if CITY[row] is None:
            assert np.isnan(found[row])
        else:
            assert found[row] == codes.get(CITY[row], sum(key < mean for key in keys))


def test_what_is_unseen_stands_before_equal_means():
    encoder = OrdinalEncoder([[*"abc", "unseen"]], order="target", cv=Greedy(), target_type="continuous")
    encoder.fit([[letter] for letter in "aaccbb"], [0.25, 0.25, 0.75, 0.75, 0.5, 0.5])
    assert encoder.encodings_[0].tolist() == [0, 1, 2, 1]


def test_classes_have_orders_of_their_own():
    y = np.array(["p", "q", "r"])[RNG.integers(0, 3, N)]
    encoder = OrdinalEncoder(order="target", columns=[0]).fit(X, y)
    assert encoder.get_feature_names_out().tolist() == ["x0_p", "x0_q", "x0_r"]
    for number, label in enumerate("pqr"):
        alone = OrdinalEncoder(order="target", target_type="continuous").fit(X, (y == label).astype(float))
        np.testing.assert_array_equal(encoder.transform(X)[:, [number]], alone.transform(X))


def test_draws_are_permutations_of_the_seed_and_the_number_alone():
    encoder = OrdinalEncoder(order="random", n_draws=4, random_state=5).fit(X)
    assert encoder.get_feature_names_out().tolist() == [f"x0_draw{draw}" for draw in range(4)]
    for draw, codes in enumerate(encoder.encodings_):
        expected = ranks_of(Permutation(7, key_of(key_of(5, 5), draw + 1)), 0, 7)
        assert codes[:-1].tolist() == expected.tolist()
        assert sorted(expected) == list(range(7))
    other = OrdinalEncoder(order="random", n_draws=2, random_state=5).fit([[number] for number in range(7)])
    assert other.encodings_[1].tolist() == encoder.encodings_[1][:-1].tolist()
    seeded = OrdinalEncoder(order="random", n_draws=4, random_state=6).fit(X)
    assert not np.array_equal(seeded.encodings_, encoder.encodings_, equal_nan=True)


def test_each_column_has_draws_of_its_own():
    words = [f"{number}" for number in range(9)]
    frame = pd.DataFrame({"one": words, "two": words, "three": words})
    encoder = OrdinalEncoder(columns=["one", "three", ("one", "two")], order="random", n_draws=2, random_state=5)
    found = encoder.fit(frame).encodings_
    keys = [key_of(key_of(5, 5), draw) for draw in (1, 2)]
    keys += [key_of(key, place) for place in (1, 2) for key in keys]
    assert [codes.tolist() for codes in found] == [ranks_of(Permutation(9, key), 0, 9).tolist() for key in keys]
    assert len({tuple(codes) for codes in found}) == 6
    # A position counts only the columns that are encoded.
    alone = OrdinalEncoder(columns=["three"], order="random", random_state=5).fit(frame)
    assert alone.encodings_[0].tolist() == found[0].tolist()


@pytest.mark.host
def test_all_orders_are_drawn():
    encoder = OrdinalEncoder(order="random", n_draws=120).fit([["a"], ["b"], ["c"]])
    drawn, counts = np.unique(np.array(encoder.encodings_), axis=0, return_counts=True)
    assert len(drawn) == 6
    assert counts.min() > 10


def test_listed_categories_have_codes_without_rows():
    for order in ("value", "frequency", "random"):
        encoder = OrdinalEncoder([["c", "b", "a"]], order=order).fit([["a"], ["a"], ["b"]])
        assert sorted(encoder.transform([["a"], ["b"], ["c"]])[:, 0]) == [0, 1, 2]
    assert OrdinalEncoder([["c", "b", "a"]]).fit([["a"]]).encodings_[0].tolist() == [0, 1, 2]
    by_target = OrdinalEncoder(
        [["c", "b", "a"]], order="target", cv=2, handle_unknown="use_encoded_value", unknown_value=-4
    ).fit([["a"], ["a"], ["b"]], [0.5, 1.5, 0.25])
    assert by_target.encodings_[0].tolist() == [-4, 0, 1]


@pytest.mark.parametrize("order", ["value", "frequency", "target", "random"])
def test_every_value_that_fit_has_read_has_a_code(order):
    rows, weights = [["a"], ["b"], ["c"], ["b"], [None]], [1, 0, 1, 0, 0]
    encoder = OrdinalEncoder(order=order, encoded_missing_value=-2, cv=2, target_type="continuous")
    found = encoder.fit_transform(rows, [0.5, 1.0, 0.75, 1.0, 2.0], sample_weight=weights)
    for codes in (found, encoder.transform(rows)):
        assert not np.isnan(codes).any()
        assert codes[-1, 0] == -2
    if order != "target":
        # It comes after all others, whose codes are the same without it.
        alone = OrdinalEncoder(order=order).fit_transform([["a"], ["c"]])
        assert found[:, 0].tolist() == [alone[0, 0], 2, alone[1, 0], 2, -2]
        assert encoder.inverse_transform(found)[:4, 0].tolist() == ["a", "b", "c", "b"]


@pytest.mark.parametrize("order", ["value", "frequency", "random"])
@pytest.mark.parametrize("weights", [[3, 0, 0, 2, 1], [3, 0, 0, 2, 2]], ids=["with another", "alone"])
def test_categories_without_weight_are_infrequent_where_any_may_be(weights, order):
    rows = [[word] for word in "abcde"]
    encoder = OrdinalEncoder(order=order, min_frequency=2)
    codes = encoder.fit_transform(rows, sample_weight=weights)[:, 0]
    kept = [row for row in range(5) if weights[row]]
    alone = encoder.fit_transform([rows[row] for row in kept], sample_weight=[weights[row] for row in kept])[:, 0]
    assert codes[kept].tolist() == alone.tolist()
    assert codes[1] == codes[2] == (codes[4] if weights[4] == 1 else 3)
    encoder.fit(rows, sample_weight=weights)
    few = ["b", "c", "e"] if weights[4] == 1 else ["b", "c"]
    assert encoder.infrequent_categories_[0].tolist() == few
    back = ["infrequent_sklearn" if word in few else word for word in "abcde"]
    assert encoder.inverse_transform(codes.reshape(-1, 1))[:, 0].tolist() == back


@pytest.mark.parametrize("dtype", ["int8", "uint16", np.int32, int, "uint64", "float16", "float32", np.float64])
def test_types(dtype):
    encoder = OrdinalEncoder(dtype=dtype, encoded_missing_value=100)
    codes = encoder.fit_transform(pd.DataFrame(X, columns=["city"]))
    assert codes["city"].dtype == np.dtype(dtype)
    np.testing.assert_array_equal(codes.to_numpy(float), OrdinalEncoder(encoded_missing_value=100).fit_transform(X))


@pytest.mark.parametrize("order", ["value", "frequency", "target", "random"])
@pytest.mark.parametrize("few", [{}, {"max_categories": 3}], ids=repr)
def test_inverse(order, few):
    encoder = OrdinalEncoder(
        order=order, handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2, **few
    ).fit(X, Y)
    rare = [] if not few else encoder.infrequent_categories_[0].tolist()
    back = encoder.inverse_transform(encoder.transform(np.append(X, [["never seen"]], axis=0)))[:, 0]
    for codes, city in zip(back, [*CITY, "never seen"], strict=True):
        if city is None:
            assert np.isnan(codes)
        else:
            assert codes == {"never seen": None}.get(city, "infrequent_sklearn" if city in rare else city)


def test_inverse_of_moments_and_joint_keys():
    times = pd.to_datetime(["2020-01-01", "2021-01-01"]).astype("datetime64[ns]")
    frame = pd.DataFrame({"time": times, "word": ["a", "b"], "number": [2, 1]})
    encoder = OrdinalEncoder(columns=["time", ("word", "number")])
    back = encoder.inverse_transform(encoder.fit_transform(frame))
    assert back[:, 1].tolist() == [("a", 2), ("b", 1)]
    assert list(pd.to_datetime(back[:, 0])) == list(times)
    dates = OrdinalEncoder().fit([[dt.date(2024, 1, 2)], [dt.date(2024, 1, 1)]])
    assert dates.inverse_transform([[1]]).item() == dt.date(2024, 1, 2)


def test_no_infrequent_categories_unless_asked_for():
    assert not hasattr(OrdinalEncoder().fit(X), "infrequent_categories_")
    assert OrdinalEncoder(min_frequency=1).fit(X).infrequent_categories_ == [None]


def test_parameters_changed_after_fit_change_nothing(tmp_path):
    encoder = OrdinalEncoder(dtype="int16", encoded_missing_value=-1, max_categories=3).fit(X)
    codes, back = encoder.transform(X), encoder.inverse_transform(encoder.transform(X))
    encoder.set_params(
        dtype="float32", handle_unknown="use_encoded_value", unknown_value=-3, encoded_missing_value=-2, order="random"
    ).set_params(max_categories=None)
    encoder.save(tmp_path / "model")
    for each in (encoder, load(tmp_path / "model")):
        found = each.transform(X)
        assert found.dtype == np.int16
        np.testing.assert_array_equal(found, codes)
        # A missing value is NaN in the peer, which equals nothing.
        assert list(map(repr, each.inverse_transform(codes).ravel())) == list(map(repr, back.ravel()))
        assert each.infrequent_categories_[0] is not None
        with pytest.raises(ValueError, match="never seen"):
            each.transform([["never seen"]])


def test_codes_that_no_category_has():
    encoder = OrdinalEncoder().fit([["a"], ["b"]])
    for code in (2, -1, 0.5, nan):
        with pytest.raises(ValueError, match=r"X holds .* for column 'x0', whose codes are 0 to 1"):
            encoder.inverse_transform([[code]])


@pytest.mark.parametrize(("dtype", "largest"), [("int8", 127), ("float16", 2048)])
def test_a_type_holds_all_codes_exactly_or_none(dtype, largest):
    rows = np.arange(largest + 2).reshape(-1, 1)
    with pytest.raises(ValueError, match=f"Column 'x0' needs the code {largest + 1}, which {dtype} cannot hold"):
        OrdinalEncoder(dtype=dtype).fit_transform(rows)
    encoder = OrdinalEncoder(dtype=dtype)
    assert encoder.fit_transform(rows[:-1])[:, 0].tolist() == list(range(largest + 1))


def test_the_place_of_what_is_unseen_is_a_code():
    """Rows whose value is missing take part in the mean, which lies above those of all 128 categories here."""
    X = [[number] for number in range(128)] + [[None]]
    y = [*np.arange(128) / 128, 1000.0]
    codes = {"encoded_missing_value": -1, "order": "target", "target_type": "continuous"}
    with pytest.raises(ValueError, match="Column 'x0' needs the code 128, which int8 cannot hold"):
        OrdinalEncoder(dtype="int8", **codes).fit(X, y)
    assert OrdinalEncoder(dtype="uint8", **codes | {"encoded_missing_value": 255}).fit(X, y).encodings_[0].max() == 255


def test_rows_that_see_nothing():
    frame = pd.DataFrame({"key": ["a", "b"] * 4, "time": range(8)})
    cv = TimeFolds(4, time="time")
    y = np.arange(8) / 8
    codes = OrdinalEncoder(order="target", cv=cv).fit_transform(frame, y)
    assert np.isnan(codes["key"]).tolist() == [True] * 2 + [False] * 6
    with pytest.raises(ValueError, match="2 codes are NaN, because their rows see no other rows, and int32 has none"):
        OrdinalEncoder("auto", "int32", order="target", cv=cv).fit_transform(frame, y)
    encoder = OrdinalEncoder("auto", "int32", "use_encoded_value", -1, order="target", cv=cv)
    assert encoder.fit_transform(frame, y)["key"].tolist()[:2] == [-1, -1]


def test_a_merge_that_needs_a_code_taken_changes_nothing():
    one, other = (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=1) for _ in range(2))
    one.fit([["a"]])
    with pytest.raises(ValueError, match="unknown_value 1 is one of the values"):
        one.merge(other.fit([["b"]]))
    assert one.categories_[0].tolist() == ["a"]
