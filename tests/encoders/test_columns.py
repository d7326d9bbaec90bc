"""Which columns come out, in which order, under which names, of which types."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpu_encode import Bits, GroupKFold, KFold, Ordered, Parts, TargetEncoder, TimeFolds, interactions


def quantity(**parameters):
    return TargetEncoder(target_type="continuous", **parameters)


CHOICES = {
    "everything": ({}, ["city", "zip", "day", "shop"]),
    "a list": ({"columns": ["zip", "city"]}, ["zip", "city", "day", "shop"]),
    "positions": ({"columns": [3, -4]}, ["shop", "city", "zip", "day"]),
    "names and positions": ({"columns": ["shop", 1]}, ["shop", "zip", "city", "day"]),
    "a joint key": ({"columns": ["city", ("city", "zip")]}, ["city", "city_x_zip", "day", "shop"]),
    "a joint key alone": ({"columns": [("zip", "city")]}, ["zip_x_city", "day", "shop"]),
    "both orders of a joint key": (
        {"columns": [("zip", "city"), ("city", "zip")]},
        ["zip_x_city", "city_x_zip", "day", "shop"],
    ),
    "a joint key of positions": ({"columns": [(0, "shop")]}, ["city_x_shop", "zip", "day"]),
    "interactions": (
        {"columns": interactions(["city", "zip", "shop"], order=3)},
        ["city", "zip", "shop", "city_x_zip", "city_x_shop", "zip_x_shop", "city_x_zip_x_shop", "day"],
    ),
    "a hierarchy uses its levels up": ({"columns": ["zip"], "hierarchy": {"zip": ["city"]}}, ["zip", "day", "shop"]),
    "everything but the levels": ({"hierarchy": {"zip": ["city", "shop"]}}, ["zip", "day"]),
    "a level listed as well": (
        {"columns": ["zip", "city"], "hierarchy": {"zip": ["city"]}},
        ["zip", "city", "day", "shop"],
    ),
    "a hierarchy of a joint key": (
        {"columns": [("zip", "shop")], "hierarchy": {("zip", "shop"): ["city"]}},
        ["zip_x_shop", "day"],
    ),
    "parts": ({"columns": ["city"], "hierarchy": {"city": Parts("-")}}, ["city", "zip", "day", "shop"]),
    "groups are dropped": ({"cv": GroupKFold(2, groups="shop")}, ["city", "zip", "day"]),
    "groups pass": ({"cv": GroupKFold(2, groups="shop"), "columns": ["city"]}, ["city", "zip", "day", "shop"]),
    "times are dropped": ({"cv": Ordered(time="day", burn_in=1)}, ["city", "zip", "shop"]),
    "folds are dropped": ({"cv": "zip"}, ["city", "day", "shop"]),
    "folds pass": ({"cv": "zip", "columns": ["shop"]}, ["shop", "city", "zip", "day"]),
    "a level that a scheme reads": (
        {"cv": GroupKFold(2, groups="shop"), "columns": ["zip"], "hierarchy": {"zip": ["shop"]}},
        ["zip", "city", "day"],
    ),
    "indicators": (
        {"columns": ["zip", ("city", "shop")], "indicators": True},
        ["zip", "city_x_shop", "zip_unseen", "city_x_shop_unseen", "day"],
    ),
    "blow-up": (
        {"columns": ["city"], "cv": KFold(3, blow_up=True), "indicators": True},
        ["city_fold0", "city_fold1", "city_fold2", "city_unseen", "zip", "day", "shop"],
    ),
    "permutations": (
        {"columns": ["city"], "cv": Ordered(2, average=False)},
        ["city_perm0", "city_perm1", "zip", "day", "shop"],
    ),
    "averaged permutations": ({"columns": ["city"], "cv": Ordered(2)}, ["city", "zip", "day", "shop"]),
}


@pytest.mark.host
@pytest.mark.parametrize(("parameters", "names"), CHOICES.values(), ids=CHOICES.keys())
def test_names(frame, y, parameters, names):
    encoder = quantity(**parameters)
    for codes in (encoder.fit_transform(frame, y), encoder.transform(frame), encoder.fit(frame, y).transform(frame)):
        assert list(codes.columns) == names
        assert list(encoder.get_feature_names_out()) == names
    assert list(encoder.get_feature_names_out(list(frame.columns))) == names
    for library in ("pandas", "polars"):
        codes = quantity(**parameters).set_output(transform=library).fit_transform(frame, y)
        assert list(codes.columns) == names


TARGETS = {
    "multiclass": ({}, lambda y: np.arange(12) % 3, ["city_0", "city_1", "city_2", "city_unseen"]),
    "multiclass of text": ({}, lambda y: list("xyzxyzxyzxyz"), ["city_x", "city_y", "city_z", "city_unseen"]),
    "first class dropped": ({"drop": "first"}, lambda y: np.arange(12) % 3, ["city_1", "city_2", "city_unseen"]),
    "binary, first class dropped": ({"drop": "first"}, lambda y: np.arange(12) % 2, ["city", "city_unseen"]),
    "one target in a column": ({}, lambda y: y.reshape(-1, 1), ["city", "city_unseen"]),
    "several targets": (
        {"target_type": "continuous"},
        lambda y: np.column_stack([y, y]),
        ["city_0", "city_1", "city_unseen"],
    ),
    "several targets with names": (
        {"target_type": ["continuous", "multiclass", "binary"]},
        lambda y: pd.DataFrame({"money": y, "kind": np.arange(12) % 3, "sold": y > 1}),
        ["city_money", "city_kind_0", "city_kind_1", "city_kind_2", "city_sold", "city_unseen"],
    ),
    "multiclass in folds": (
        {"cv": KFold(2, blow_up=True)},
        lambda y: np.arange(12) % 3,
        ["city_0_fold0", "city_0_fold1", "city_1_fold0", "city_1_fold1", "city_2_fold0", "city_2_fold1", "city_unseen"],
    ),
    "targets in permutations": (
        {"cv": Ordered(2, average=False), "target_type": "continuous"},
        lambda y: np.column_stack([y, y]),
        ["city_0_perm0", "city_0_perm1", "city_1_perm0", "city_1_perm1", "city_unseen"],
    ),
}


@pytest.mark.host
@pytest.mark.parametrize(("parameters", "make", "names"), TARGETS.values(), ids=TARGETS.keys())
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_names_of_targets_and_classes(frame, y, parameters, make, names):
    encoder = TargetEncoder(columns=["city"], indicators=True, **parameters)
    names = [*names, "zip", "day", "shop"]
    assert list(encoder.fit_transform(frame, make(y)).columns) == names
    assert list(encoder.transform(frame).columns) == names
    assert list(encoder.get_feature_names_out()) == names
    assert list(encoder.fit(frame, make(y)).get_feature_names_out()) == names


def test_passed_columns_are_untouched(frame, y):
    frame = frame.assign(
        flag=pd.array([True, None, False] * 4, dtype="boolean"),
        kind=pd.Categorical(list("xyz") * 4, categories=list("zyxw"), ordered=True),
        thing=[object()] * 12,
    ).set_index(np.arange(12) * 10 + 3)
    encoder = quantity(columns=["city"])
    for codes in (encoder.fit_transform(frame, y), encoder.transform(frame)):
        pd.testing.assert_frame_equal(codes.drop(columns="city"), frame.drop(columns="city"), check_exact=True)
        assert codes["city"].dtype == np.float64
        assert codes.index is frame.index or codes.index.equals(frame.index)


def test_encoded_columns_do_not_depend_on_the_others(frame, y):
    alone = quantity().fit_transform(frame[["city"]], y)
    listed = quantity(columns=["zip", ("city", "zip"), "city"], indicators=True).fit_transform(frame, y)
    pd.testing.assert_frame_equal(listed[["city"]], alone, check_exact=True)


def test_a_joint_key_equals_a_column_of_pairs(frame, y):
    pairs = frame.assign(pair=[f"{city}/{code}" for city, code in zip(frame["city"], frame["zip"], strict=True)])
    joint = quantity(columns=[("city", "zip")]).fit_transform(frame, y)["city_x_zip"]
    assert joint.tolist() == quantity(columns=["pair"]).fit_transform(pairs, y)["pair"].tolist()


def test_interactions():
    assert interactions(["a", "b"]) == ["a", "b", ("a", "b")]
    assert interactions(["a", "b", "c"], order=1) == ["a", "b", "c"]
    assert interactions(iter(["a", "b", "c"]), order=3)[-1] == ("a", "b", "c")
    with pytest.raises(ValueError, match=r"interactions needs a list of column names. Got the text 'abc'"):
        interactions("abc")
    with pytest.raises(ValueError, match=r"'order' parameter of interactions must be an integer of at least 1. Got 0"):
        interactions(["a"], order=0)


def test_listed_columns_are_found_by_name(frame, y):
    encoder = quantity(columns=["city", "zip"]).fit(frame, y)
    expected = encoder.transform(frame)
    shuffled = frame.assign(more=1.0)[["more", "shop", "zip", "day", "city"]]
    pd.testing.assert_frame_equal(encoder.transform(shuffled), expected, check_exact=True)


def test_extra_columns_are_refused_where_every_column_is_encoded(frame, y):
    encoder = quantity().fit(frame, y)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- more"):
        encoder.transform(frame.assign(more=1.0))


@pytest.mark.host
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("columns", [None, ["city"]])
@pytest.mark.parametrize(
    ("cv", "absent"),
    [(GroupKFold(2, groups="shop"), "shop"), (TimeFolds(3, time="day"), "day"), ("zip", "zip")],
    ids=["groups", "time", "folds"],
)
@pytest.mark.filterwarnings("ignore:.* rows see no rows at all")
def test_columns_of_the_scheme_are_needed_in_training_only(frame, y, cv, absent, columns, output):
    encoder = quantity(cv=cv, columns=columns).set_output(transform=output)
    encoder.fit_transform(frame, y)
    whole = encoder.transform(frame)
    less = encoder.transform(frame.drop(columns=absent))
    expected = [name for name in encoder.get_feature_names_out() if name != absent]
    assert list(less.columns) == expected
    assert less.equals(whole[expected])


def test_columns_of_the_scheme_may_be_absent_from_arrays(y):
    X = np.column_stack([np.arange(12) % 3, np.arange(12), np.arange(12) % 2])
    encoder = quantity(cv=Ordered(time=1, burn_in=1)).fit(X, y)
    np.testing.assert_array_equal(encoder.transform(X), encoder.transform(X[:, [0, 2]]))
    with pytest.raises(ValueError, match="X has 1 features"):
        encoder.transform(X[:, [0]])


def test_a_level_that_a_scheme_reads_is_needed_by_new_rows_too(frame, y):
    encoder = quantity(cv=GroupKFold(2, groups="shop"), columns=["zip"], hierarchy={"zip": ["shop"]}).fit(frame, y)
    with pytest.raises(ValueError, match="The fitted column 'shop' is not a column of X"):
        encoder.transform(frame.drop(columns="shop"))


CLASHES = [
    ({"columns": ["city"], "indicators": True}, "city_unseen", ("fit", "fit_transform", "partial_fit")),
    ({"columns": ["city", ("city", "zip")]}, "city_x_zip", ("fit", "fit_transform", "partial_fit")),
    ({"columns": ["city"], "cv": KFold(2, blow_up=True)}, "city_fold1", ("fit", "fit_transform")),
]


@pytest.mark.host
@pytest.mark.parametrize(
    ("parameters", "name", "method"), [(*clash, method) for *clash, methods in CLASHES for method in methods]
)
def test_names_that_clash_are_refused(frame, y, parameters, name, method):
    with pytest.raises(ValueError, match=f"Two output columns would be called '{name}'. Rename the input column"):
        getattr(quantity(**parameters), method)(frame.assign(**{name: 1}), y)


@pytest.mark.parametrize("dtype", ["float32", np.float32, np.dtype("float32")])
def test_float32_is_float64_rounded_once(frame, y, dtype):
    columns = ["city", ("city", "zip")]
    wide, narrow = quantity(columns=columns), quantity(columns=columns, dtype=dtype, indicators=True)
    names = ["city", "city_x_zip"]
    for codes, rounded in (
        (wide.fit_transform(frame, y), narrow.fit_transform(frame, y)),
        (wide.transform(frame), narrow.transform(frame)),
    ):
        pd.testing.assert_frame_equal(codes[names].astype("float32"), rounded[names], check_exact=True)
        assert (rounded.dtypes[["city", "city_unseen"]] == np.float32).all()


def test_arrays_have_positions_for_names(y):
    X = np.column_stack([np.arange(12) % 3, np.arange(12), np.arange(12) % 2])
    encoder = quantity(columns=[2, (0, 2)])
    codes = encoder.fit_transform(X, y)
    assert isinstance(codes, np.ndarray)
    assert codes.shape == (12, 3)
    np.testing.assert_array_equal(codes[:, 2], X[:, 1])
    assert list(encoder.get_feature_names_out()) == ["x2", "x0_x_x2", "x1"]
    assert list(encoder.get_feature_names_out(["a", "b", "c"])) == ["c", "a_x_c", "b"]
    assert list(encoder.set_output(transform="pandas").transform(X).columns) == ["x2", "x0_x_x2", "x1"]


def test_integers_are_positions_even_where_names_are_integers(y):
    X = pd.DataFrame({1: list("ab") * 6, 0: list("xyz") * 4})
    codes = quantity(columns=[0]).fit_transform(X, y)
    assert codes.iloc[:, 0].tolist() == quantity().fit_transform(X[[1]], y).iloc[:, 0].tolist()


def test_a_frame_of_another_library_passes_its_own_columns(frame, y):
    encoder = quantity(columns=["city"]).fit(frame, y)
    rows = pl.from_pandas(frame)
    codes = encoder.transform(rows)
    assert codes.columns == ["city", "zip", "day", "shop"]
    assert codes[:, 1:].equals(rows[:, 1:])


def test_bits_of_whole_floats_and_of_values_that_do_not_fit():
    ips = [1 << 24, 2 << 24, (1 << 24) + 1, None]
    encoder = TargetEncoder(hierarchy={"ip": Bits(8)}).fit(pl.DataFrame({"ip": ips}), [0.0, 1.0, 0.5, 0.2])
    new = pl.DataFrame({"ip": [(1 << 24) + 7, None, -1, 2**40]})
    found = encoder.transform(new)["ip"].to_list()
    assert found == encoder.transform(new.to_pandas())["ip"].tolist()
    assert found[0] != encoder.target_mean_
    assert found[2:] == [encoder.target_mean_] * 2
