"""The columns of the output: their order, names and types."""

import ipaddress
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import Bits, GroupKFold, KFold, Ordered, Parts, TargetEncoder, TimeFolds, interactions, load
from gpu_encode.fitting import columns as fitting_columns
from tests.encoders.conftest import Y


def quantity(**parameters):
    return TargetEncoder(target_type="continuous", **parameters)


THREE, TWO = np.arange(12) % 3, np.column_stack([Y, Y])
FOLDS, ORDERS = KFold(2, blow_up=True), Ordered(2, average=False)
SHOP = GroupKFold(2, groups="shop")
# Parameters, and the columns that come out of a quantity.
OF_A_QUANTITY = {
    "everything": ({}, "city zip day shop"),
    "a list": ({"columns": ["zip", "city"]}, "zip city day shop"),
    "positions": ({"columns": [3, -4]}, "shop city zip day"),
    "names and positions": ({"columns": ["shop", 1]}, "shop zip city day"),
    "a joint key": ({"columns": ["city", ("city", "zip")]}, "city city_x_zip day shop"),
    "a joint key alone": ({"columns": [("zip", "city", "shop")]}, "zip_x_city_x_shop day"),
    "both orders of a joint key": ({"columns": [("zip", "city"), ("city", "zip")]}, "zip_x_city city_x_zip day shop"),
    "a joint key of positions": ({"columns": [(0, "shop")]}, "city_x_shop zip day"),
    "a hierarchy uses its levels up": ({"columns": ["zip"], "hierarchy": {"zip": ["city"]}}, "zip day shop"),
    "everything but the levels": ({"hierarchy": {"zip": ["city", "shop"]}}, "zip day"),
    "a level listed": ({"columns": ["zip", "city"], "hierarchy": {"zip": ["city"]}}, "zip city day shop"),
    "of a joint key": ({"columns": [("zip", "shop")], "hierarchy": {("zip", "shop"): ["city"]}}, "zip_x_shop day"),
    "parts": ({"columns": ["city"], "hierarchy": {"city": Parts("-")}}, "city zip day shop"),
    "groups are dropped": ({"cv": SHOP}, "city zip day"),
    "groups pass": ({"cv": SHOP, "columns": ["city"]}, "city zip day shop"),
    "times are dropped": ({"cv": Ordered(time="day", burn_in=1)}, "city zip shop"),
    "folds are dropped": ({"cv": "zip"}, "city day shop"),
    "folds pass": ({"cv": "zip", "columns": ["shop"]}, "shop city zip day"),
    "a level of a scheme": ({"cv": SHOP, "columns": ["zip"], "hierarchy": {"zip": ["shop"]}}, "zip city day"),
    "indicators": (
        {"columns": ["zip", ("city", "shop")], "indicators": True},
        "zip city_x_shop zip_unseen city_x_shop_unseen day",
    ),
    "blow-up": ({"columns": ["city"], "cv": FOLDS}, "city_fold0 city_fold1 zip day shop"),
    "permutations": ({"columns": ["city"], "cv": ORDERS}, "city_perm0 city_perm1 zip day shop"),
    "averaged permutations": ({"columns": ["city"], "cv": Ordered(2)}, "city zip day shop"),
}
MONEY = pd.DataFrame({"money": Y, "kind": THREE, "sold": Y > 1})
# Parameters, a target, and the columns that come out of a city with its indicator.
OF_A_CITY = {
    "classes": ({}, THREE, "city_0 city_1 city_2"),
    "classes of text": ({}, list("xyzxyzxyzxyz"), "city_x city_y city_z"),
    "first class dropped": ({"drop": "first"}, THREE, "city_1 city_2"),
    "binary, first class dropped": ({"drop": "first"}, np.arange(12) % 2, "city"),
    "several targets": ({"target_type": "continuous"}, TWO, "city_0 city_1"),
    "several targets with names": (
        {"target_type": ["continuous", "multiclass", "binary"]},
        MONEY,
        "city_money city_kind_0 city_kind_1 city_kind_2 city_sold",
    ),
    "classes in folds": (
        {"cv": FOLDS},
        THREE,
        "city_0_fold0 city_0_fold1 city_1_fold0 city_1_fold1 city_2_fold0 city_2_fold1",
    ),
    "targets in permutations": (
        {"cv": ORDERS, "target_type": "continuous"},
        TWO,
        "city_0_perm0 city_0_perm1 city_1_perm0 city_1_perm1",
    ),
}
NAMES = {name: ({"target_type": "continuous"} | given, Y, names) for name, (given, names) in OF_A_QUANTITY.items()} | {
    name: ({"columns": ["city"], "indicators": True} | given, y, f"{names} city_unseen zip day shop")
    for name, (given, y, names) in OF_A_CITY.items()
}


@pytest.mark.host
@pytest.mark.parametrize(("parameters", "y", "names"), NAMES.values(), ids=NAMES)
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_names(frame, parameters, y, names):
    encoder = TargetEncoder(**parameters)
    for table in (encoder.fit_transform(frame, y), encoder.transform(frame), encoder.fit(frame, y).transform(frame)):
        assert list(table.columns) == list(encoder.get_feature_names_out()) == names.split()
    assert list(encoder.get_feature_names_out(list(frame.columns))) == names.split()
    assert encoder.set_output(transform="polars").fit_transform(frame, y).columns == names.split()


def test_passed_columns_are_untouched(frame, y):
    frame = frame.assign(
        flag=pd.array([True, None, False] * 4, dtype="boolean"),
        kind=pd.Categorical(list("xyz") * 4, categories=list("zyxw"), ordered=True),
        thing=[object()] * 12,
    ).set_index(np.arange(12) * 10 + 3)
    encoder = quantity(columns=["city"])
    for encodings in (encoder.fit_transform(frame, y), encoder.transform(frame)):
        pd.testing.assert_frame_equal(encodings.drop(columns="city"), frame.drop(columns="city"), check_exact=True)
        assert encodings["city"].dtype == np.float64
        assert encodings.index is frame.index or encodings.index.equals(frame.index)


def test_interactions():
    assert interactions(["a", "b"]) == ["a", "b", ("a", "b")]
    assert interactions(["a", "b", "c"]) == ["a", "b", "c", ("a", "b"), ("a", "c"), ("b", "c")]
    assert interactions(["a", "b", "c"], order=1) == ["a", "b", "c"]
    assert interactions(iter(["a", "b", "c"]), order=3)[-1] == ("a", "b", "c")
    with pytest.raises(ValueError, match=r"interactions needs a list of column names. Got the text 'abc'"):
        interactions("abc")
    with pytest.raises(ValueError, match=r"'order' parameter of interactions must be an integer of at least 1. Got 0"):
        interactions(["a"], order=0)


@pytest.mark.parametrize("missing", ["category", pytest.param("prior", marks=pytest.mark.long)])
@pytest.mark.parametrize("rows", [0, 1 << 20], ids=["many rows", "few rows"])
def test_keys_that_share_columns_have_the_encodings_of_each_alone(missing, rows, monkeypatch):
    monkeypatch.setattr(fitting_columns, "FEW_ROWS", rows)
    random = np.random.default_rng(3)
    X = pd.DataFrame({name: random.choice([*"pqrs", None], 60) for name in "abcd"})
    y, new = random.normal(size=60), X.sample(30, random_state=0).replace("p", "never seen")
    # Keys begin alike, end alike, turn around, and lie in a hierarchy of the others' columns.
    keys = [*interactions([*"abcd"]), ("b", "a"), ("c", "b", "a")]
    make = partial(quantity, cv=3, handle_missing=missing)
    together = make(columns=keys, hierarchy={"d": ["a", "b"]})
    found = [together.fit_transform(X, y), together.transform(new)]
    for number, key in enumerate(keys):
        alone = make(columns=[key], hierarchy={"d": ["a", "b"]} if key == "d" else None)
        for encodings, expected in zip(found, [alone.fit_transform(X, y), alone.transform(new)], strict=True):
            np.testing.assert_array_equal(encodings.iloc[:, number], expected.iloc[:, 0])


def test_listed_columns_are_found_by_name(frame, y):
    encoder = quantity(columns=["city", "zip"]).fit(frame, y)
    expected = encoder.transform(frame)
    shuffled = frame.assign(more=1.0)[["more", "shop", "zip", "day", "city"]]
    with pytest.warns(UserWarning, match="leaves them out: 'more'"):
        found = encoder.transform(shuffled)
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.host
@pytest.mark.parametrize("output", [None, "polars"])
@pytest.mark.parametrize("columns", [None, ["city"]])
@pytest.mark.parametrize(("cv", "absent"), [(SHOP, "shop"), (TimeFolds(3, time="day"), "day"), ("zip", "zip")])
@pytest.mark.filterwarnings("ignore:.* rows see no rows at all")
def test_columns_of_the_scheme_are_needed_in_training_only(frame, y, cv, absent, columns, output):
    encoder = quantity(cv=cv, columns=columns).set_output(transform=output)
    encoder.fit_transform(frame, y)
    expected = [name for name in encoder.get_feature_names_out() if name != absent]
    encodings = encoder.transform(frame.drop(columns=absent))
    assert list(encodings.columns) == expected
    assert encodings.equals(encoder.transform(frame)[expected])


def test_columns_of_the_scheme_may_be_absent_from_arrays(y):
    X = np.column_stack([np.arange(12) % 3, np.arange(12), np.arange(12) % 2])
    encoder = quantity(cv=Ordered(time=1, burn_in=1)).fit(X, y)
    np.testing.assert_array_equal(encoder.transform(X), encoder.transform(X[:, [0, 2]]))
    with pytest.raises(ValueError, match="X has 1 features"):
        encoder.transform(X[:, [0]])


def test_a_level_that_a_scheme_reads_is_needed_by_new_rows_too(frame, y):
    encoder = quantity(cv=SHOP, columns=["zip"], hierarchy={"zip": ["shop"]}).fit(frame, y)
    with pytest.raises(ValueError, match="The fitted column 'shop' is not a column of X"):
        encoder.transform(frame.drop(columns="shop"))


CLASHES = [
    ({"columns": ["city"], "indicators": True}, "city_unseen"),
    ({"columns": ["city", ("city", "zip")]}, "city_x_zip"),
    ({"columns": ["city"], "cv": FOLDS}, "city_fold1"),
]


@pytest.mark.host
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize(("parameters", "name"), CLASHES)
def test_names_that_clash_are_refused(frame, y, parameters, name, method):
    with pytest.raises(ValueError, match=f"Two output columns would be called '{name}'. Rename the input column"):
        getattr(quantity(**parameters), method)(frame.assign(**{name: 1}), y)


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_float32_is_float64_rounded_once(frame, y, dtype):
    columns = ["city", ("city", "zip")]
    wide, narrow = quantity(columns=columns), quantity(columns=columns, dtype=dtype, indicators=True)
    names = ["city", "city_x_zip"]
    for exact, rounded in (
        (wide.fit_transform(frame, y), narrow.fit_transform(frame, y)),
        (wide.transform(frame), narrow.transform(frame)),
    ):
        pd.testing.assert_frame_equal(exact[names].astype("float32"), rounded[names], check_exact=True)
        assert (rounded.dtypes[["city", "city_unseen"]] == np.float32).all()


def test_arrays_have_positions_for_names(y):
    X = np.column_stack([np.arange(12) % 3, np.arange(12), np.arange(12) % 2])
    encoder = quantity(columns=[2, (0, 2)])
    encodings = encoder.fit_transform(X, y)
    assert isinstance(encodings, np.ndarray)
    assert encodings.shape == (12, 3)
    np.testing.assert_array_equal(encodings[:, 2], X[:, 1])
    assert list(encoder.get_feature_names_out()) == ["x2", "x0_x_x2", "x1"]
    assert list(encoder.get_feature_names_out(["a", "b", "c"])) == ["c", "a_x_c", "b"]
    assert list(encoder.set_output(transform="pandas").transform(X).columns) == ["x2", "x0_x_x2", "x1"]


def test_integers_are_positions_even_where_names_are_integers(y):
    X = pd.DataFrame({1: list("ab") * 6, 0: list("xyz") * 4})
    encodings = quantity(columns=[0]).fit_transform(X, y)
    assert encodings.iloc[:, 0].tolist() == quantity().fit_transform(X[[1]], y).iloc[:, 0].tolist()


def test_bits_of_whole_floats_and_of_values_that_do_not_fit():
    ips = [1 << 24, 2 << 24, (1 << 24) + 1, None]
    encoder = TargetEncoder(hierarchy={"ip": Bits(8)}).fit(pl.DataFrame({"ip": ips}), [0.0, 1.0, 0.5, 0.2])
    new = pl.DataFrame({"ip": [(1 << 24) + 7, None, -1, 2**40]})
    encodings = encoder.transform(new)["ip"].to_list()
    assert encodings == encoder.transform(new.to_pandas())["ip"].tolist()
    assert encodings[0] != encoder.target_mean_
    assert encodings[2:] == [encoder.target_mean_] * 2


ADDRESSES = ["2001:db8::1", "2001:DB8:0:0:5::9", "2001:db8:7::", "fe80::1", "2001:db8:7::2"]


def own_levels(address):
    """Leading 32 and 64 bits of an address, from its written groups."""
    head, _, tail = address.lower().partition("::")
    first, last = ([group for group in part.split(":") if group] for part in (head, tail))
    groups = [*first, *["0"] * (8 - len(first) - len(last)), *last]
    bits = "".join(f"{int(group, 16):016b}" for group in groups)
    return bits[:32], bits[:64]


@pytest.mark.parametrize("form", ["text", "numbers", "bytes"])
def test_bits_of_ipv6_addresses_are_the_columns_of_their_prefixes(form, tmp_path):
    y = [0.0, 1.0, 0.5, 0.25, 3.0]
    as_bytes = [ipaddress.ip_address(text).packed for text in ADDRESSES]
    as_numbers = [int(ipaddress.ip_address(text)) for text in ADDRESSES]
    given = {"text": ADDRESSES, "numbers": as_numbers, "bytes": as_bytes}[form]
    X = pd.DataFrame({"ip": np.array(given, dtype=object)})
    encoder = quantity(hierarchy={"ip": Bits(64, 32, width=128)}, smooth=1.0).fit(X, y)
    levels = [own_levels(text) for text in ADDRESSES]
    X["wide"], X["narrow"] = np.array(levels, dtype=object).T
    expected = quantity(columns=["ip"], hierarchy={"ip": ["narrow", "wide"]}, smooth=1.0).fit(X, y)
    assert encoder.transform(X[["ip"]])["ip"].tolist() == expected.transform(X)["ip"].tolist()
    encoder.save(tmp_path / "model")
    assert load(tmp_path / "model").transform(X[["ip"]])["ip"].tolist() == expected.transform(X)["ip"].tolist()


def test_addresses_that_fit_never_saw_have_the_encoding_of_their_network():
    encoder = quantity(hierarchy={"ip": Bits(24, 16)}, smooth=0.0)
    encoder.fit(pd.DataFrame({"ip": ["10.1.2.3", "10.1.2.9", "10.7.7.7"]}), [1.0, 2.0, 6.0])
    new = pd.DataFrame({"ip": ["10.1.2.77", "10.1.99.1", "10.7.0.1", "11.1.1.1", "no address"]})
    assert encoder.transform(new)["ip"].tolist() == [1.5, 1.5, 6.0, 3.0, 3.0]
