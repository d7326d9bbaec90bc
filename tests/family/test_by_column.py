"""Parameters by column: every key is encoded as by an encoder of its own, bit by bit.

Parts, files, clusters, libraries and backends are tested with all members of the family, elsewhere.
"""

import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gpu_encode as ge
from gpu_encode.scale.parts import Part, plan, profile
from tests.family.members import AMOUNT, JOINT, KIND, ROWS, SOLD, WEIGHTS, N, same

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
KEYS = ["city", JOINT, "zip", ("city", "rank")]
DAYS = np.random.default_rng(2).integers(0, 30, N)
X = ROWS.assign(day=DAYS)
SMOOTH = {"city": None, JOINT: 3.0, "zip": ge.JamesStein()}
PRIOR = {"zip": 0.25, ("city", "rank"): "category_mean"}
SCHEMES = {
    "folds": ge.KFold(3),
    "blow-up": ge.KFold(2, blow_up=True),
    "splits": [(np.arange(N) % 3 != fold, np.arange(N) % 3 == fold) for fold in range(3)],
    "holdout": ge.Holdout(0.4),
    "leave-one-out": ge.LeaveOneOut(),
    "ordered": ge.Ordered(2, average=False),
    "in time": ge.Ordered(time="day"),
}


def own(encoder, key, **others):
    """Give the encoder of one key alone: from every dict the key's value, or that of `others`."""
    parameters = encoder.get_params(deep=False)
    chosen = {
        name: value.get(key, others.get(name, getattr(type(encoder)(), name)))
        for name, value in parameters.items()
        if isinstance(value, dict)
    }
    return clone(encoder).set_params(**chosen, columns=[key])


def check_keys(encoder, y, weights=None, X=X, **others):
    """Compare with encoders of single keys: training rows, new rows and names."""
    trained = encoder.fit_transform(X, y, sample_weight=weights)
    first, new = 0, encoder.transform(X)
    for key in encoder.columns:
        alone = own(encoder, key, **others)
        expected = alone.fit_transform(X, y, sample_weight=weights)
        width = len(alone.get_feature_names_out()) - len(alone._model.selection.passed)
        for table, wanted in ((trained, expected), (new, alone.transform(X))):
            same(table.iloc[:, first : first + width], wanted.iloc[:, :width])
        first += width
    return trained


@pytest.mark.parametrize("cv", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize(
    ("y", "kind"),
    [
        pytest.param(AMOUNT, "continuous", marks=pytest.mark.long),
        (SOLD, "binary"),
        pytest.param(KIND, "multiclass", marks=pytest.mark.long),
    ],
)
def test_every_key_is_encoded_as_alone(y, kind, cv):
    check_keys(ge.TargetEncoder(columns=KEYS, smooth=SMOOTH, prior=PRIOR, cv=cv, target_type=kind), y, WEIGHTS)


CVS = {
    "kinds": {"city": ge.LeaveOneOut(), JOINT: ge.Ordered(time="day"), "zip": ge.Holdout(0.4)},
    "one role": {"city": ge.GroupKFold(3, groups="day"), JOINT: ge.GroupKFold(2, groups="held"), "zip": 3},
    "by age": {"city": ge.TimeFolds(3, time="day", half_life=2), JOINT: ge.TimeFolds(4, time="price"), "zip": "held"},
    "splits": {JOINT: SCHEMES["splits"], "zip": ge.KFold(2, stratify=True)},
}


@pytest.mark.parametrize("cv", CVS.values(), ids=CVS)
def test_every_key_has_its_scheme(cv):
    smooth = {"city": 3.0, "zip": ge.JamesStein()}
    rows = X.assign(price=X["price"].fillna(0.0))
    check_keys(ge.TargetEncoder(columns=KEYS, smooth=smooth, cv=cv, target_type="binary"), SOLD, WEIGHTS, X=rows)


@pytest.mark.host
def test_no_row_sees_its_own_target_under_any_of_the_schemes():
    encoder = ge.TargetEncoder(columns=KEYS, cv=CVS["kinds"], target_type="continuous")
    names, target = [*map("_x_".join, [("city",), JOINT, ("zip",), ("city", "rank")])], AMOUNT.copy()
    before = encoder.fit_transform(X, target)[names]
    target[7] += 1000.0
    after = encoder.fit_transform(X, target)[names]
    np.testing.assert_array_equal(before.iloc[7], after.iloc[7])
    assert (before != after).any().all()


@pytest.mark.host
def test_the_mean_of_the_target_is_that_of_the_most_rows_whatever_the_order_of_columns():
    halving, held = ge.TimeFolds(3, time="day", half_life=2), ge.Holdout(mask="held")
    seen = SOLD[X["held"]]
    for cv, (total, number) in (
        ({"city": halving}, (SOLD.sum(), N)),
        ({"city": halving, "zip": held}, (seen.sum(), len(seen))),
    ):
        for columns in (["city", "zip"], ["zip", "city"]):
            encoder = ge.TargetEncoder(columns=columns, cv=cv).fit(X, SOLD)
            assert encoder.target_mean_ == float(Fraction(int(total), int(number)))


@pytest.mark.host
def test_keys_that_were_given_one_object_share_a_draw():
    twins = X.assign(zip2=X["zip"], zip3=X["zip"])[["zip", "zip2", "zip3"]]
    drawn = np.random.default_rng(5)
    for shared in (3, ge.KFold(3, random_state=drawn)):
        encoder = ge.TargetEncoder(cv={"zip": shared, "zip3": shared}, random_state=np.random.default_rng(5))
        encodings = encoder.fit_transform(twins, AMOUNT)
        np.testing.assert_array_equal(encodings["zip"], encodings["zip3"])
        assert (encodings["zip"] != encodings["zip2"]).any()


@pytest.mark.host
def test_schemes_by_key_are_saved(tmp_path):
    encoder = ge.TargetEncoder(columns=KEYS, cv={**CVS["kinds"], ("city", "rank"): "held"}).fit(X, SOLD)
    encoder.save(tmp_path / "model")
    read = ge.load(tmp_path / "model")
    assert repr(read.cv) == repr(encoder.cv)
    same(read.transform(X), encoder.transform(X))
    same(read.fit_transform(X, SOLD), encoder.fit_transform(X, SOLD))


@pytest.mark.host
def test_groups_are_asked_for_where_one_scheme_takes_them():
    encoder = ge.TargetEncoder(columns=["city", "zip"], cv={"city": ge.GroupKFold(3), "zip": 4})
    assert encoder.get_metadata_routing().fit_transform.requests["groups"] is True
    named = clone(encoder).set_params(cv={"city": ge.GroupKFold(3, groups="day"), "zip": 4})
    same(encoder.fit_transform(X, SOLD, groups=DAYS), named.fit_transform(X, SOLD))


@pytest.mark.host
def test_rows_in_parts_are_refused_for_orders_alone(tmp_path):
    dd = pytest.importorskip("dask.dataframe")
    encoder = ge.TargetEncoder(columns=["city", "zip"], cv={"city": ge.Ordered(), "zip": 4})
    rows = X.assign(sold=SOLD)
    partitions = dd.from_pandas(rows, npartitions=2)
    with pytest.raises(
        ValueError, match=r"TargetEncoder with a dict as cv takes the rows of Ordered\(...\) all at once"
    ):
        encoder.fit_transform(partitions.drop(columns="sold"), partitions["sold"])
    # Files are then read as one table.
    rows.to_parquet(tmp_path / "rows.parquet")
    ge.encode_dataset(tmp_path / "rows.parquet", tmp_path / "out.parquet", encoder, target="sold")
    expected = clone(encoder).fit_transform(X, SOLD)
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "out.parquet")["city"], expected["city"])


@pytest.mark.host
def test_what_takes_one_scheme_for_all_columns_refuses_a_dict():
    encoder = ge.TargetEncoder(columns=["city", "zip"], cv={"city": ge.Ordered(), "zip": ge.Ordered()})
    with pytest.raises(ValueError, match="draw needs one random order for all columns"):
        encoder.fit(X, SOLD).draw(X, SOLD)
    with pytest.raises(ValueError, match="tune holds out the same rows for all columns, but cv of the encoder"):
        ge.tune(encoder, X, SOLD)
    with pytest.raises(ValueError, match="choose_interactions holds out the same rows"):
        ge.choose_interactions(encoder, X, SOLD)
    with pytest.raises(ValueError, match="'cv' parameter of OrdinalEncoder must be one scheme for all columns"):
        ge.OrdinalEncoder(order="target", columns=["city"], cv={"city": 3}).fit(X, SOLD)


@pytest.mark.host
def test_smoothings_that_need_other_sums_stand_side_by_side():
    smooth = {"city": ge.GLMM(), JOINT: ge.EmpiricalBayes("between"), "zip": ge.Sigmoid(5.0, 2.0)}
    for scale, y in (("identity", AMOUNT), ("logit", SOLD)):
        check_keys(ge.TargetEncoder(columns=KEYS, smooth=smooth, prior={JOINT: 0.25}, scale=scale), y)


@pytest.mark.host
@pytest.mark.parametrize(
    ("encoder", "y"),
    [
        (ge.ImpactEncoder(smooth={"city": 3.0, JOINT: ge.Sigmoid()}), AMOUNT),
        (ge.WeightOfEvidenceEncoder(regularization={"city": 0.0, JOINT: 4.0}), SOLD),
        (ge.CatBoostEncoder(weight={JOINT: 7.0}, target_type="continuous"), AMOUNT),
        (ge.CatBoostEncoder("frequency", weight={JOINT: 7.0}), None),
        (ge.CatBoostEncoder("buckets", priors={"city": [0.5], "zip": (0.0, 0.25)}, weight={JOINT: 7.0}), KIND),
    ],
    ids=lambda value: type(value).__name__,
)
def test_relatives(encoder, y):
    check_keys(encoder.set_params(columns=KEYS), y)


@pytest.mark.host
def test_columns_are_named_by_place_and_a_dict_survives_copies():
    array = X[["city", "zip"]].to_numpy(object)
    by_place = ge.TargetEncoder(smooth={1: 2.0, -2: None}, prior={0: 0.5}).fit(array, SOLD)
    by_name = ge.TargetEncoder(smooth={"zip": 2.0, "city": None}, prior={"city": 0.5}).fit(X[["city", "zip"]], SOLD)
    for one, other in zip(by_place.encodings_, by_name.encodings_, strict=True):
        np.testing.assert_array_equal(one, other)
    joint = ge.TargetEncoder(columns=KEYS, smooth=SMOOTH, prior=PRIOR)
    for copy in (clone(joint), pickle.loads(pickle.dumps(joint))):
        assert repr(copy.get_params()) == repr(joint.get_params())


@pytest.mark.host
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"smooth": {"town": 1.0, "citi": 2.0}}, "smooth: 'town' is not a column of X. X has"),
        ({"smooth": {"citi": 2.0}}, r"smooth: 'citi' is not a column of X. Did you mean 'city'\?"),
        ({"smooth": {("city", "zip"): 2.0}}, r"not among the columns to encode. Did you mean \('zip', 'city'\)\?"),
        (
            {"prior": {"rank": 0.5}},
            r"prior names 'rank', which is not among .*encode. Did you mean \('city'",
        ),
        ({"prior": {"city": "median"}}, r"\"prior\['city'\]\" parameter of TargetEncoder must be one of 'mean'"),
        (
            {"smooth": {"city": -1}},
            r"\"smooth\['city'\]\" parameter of TargetEncoder must be a finite number",
        ),
        ({"smooth": {"city": "none"}}, r"\"smooth\['city'\]\" parameter of TargetEncoder must be one of \"auto\""),
        ({"cv": {"city": 1}}, r"^cv\['city'\]: The 'n_splits' parameter of KFold"),
        ({"cv": {"city": ge.TimeFolds(time="day", half_life="-2d")}}, r"^cv\['city'\]: The 'half_life' parameter"),
        ({"cv": {JOINT: "nocol"}}, r"^cv\[\('zip', 'city'\)\]: The scheme's column 'nocol' is not a column"),
        ({"cv": {"city": [0, 1]}}, r"^cv\['city'\]: Found input .* fold numbers 2"),
        ({"cv": {"city": np.zeros((N, 2))}}, r"^cv\['city'\] should be a 1d array"),
        ({"cv": {"city": "price"}}, r"^cv\['city'\]: The fold numbers column 'price' .* row 0"),
        ({"cv": {"city": 2.5}}, r"\"cv\['city'\]\" parameter of TargetEncoder must be one of .* Greedy, KFold, "),
        ({"cv": {"city": {}}}, r"\"cv\['city'\]\" parameter of TargetEncoder must be one scheme for all columns"),
        ({"cv": {"town": 5}}, "cv: 'town' is not a column of X"),
        ({"cv": {"rank": 5}}, "cv names 'rank', which is not among the columns to encode"),
        ({"cv": {"city": ge.KFold(2, blow_up=True)}}, "must give one column for each encoding"),
        ({"cv": {"city": ge.Ordered(2, average=False)}}, "must give one column for each encoding"),
        ({"cv": {"city": ge.TimeFolds(time="zip")}}, "'zip' is used by the scheme"),
        ({"smooth": {"city": ge.GLMM()}, "cv": {"city": ge.LeaveOneOut()}}, "GLMM of TargetEncoder looks at all"),
        ({"smooth": {"city": 1.0, 0: 2.0}}, "smooth names 0 twice, once by its position"),
        ({"smooth": {"city": ge.GLMM()}, "cv": ge.LeaveOneOut()}, "GLMM of TargetEncoder looks at all categories"),
        ({"smooth": {"city": ge.GLMM()}, "prior": {"city": 0.5}}, "leave out prior=0.5"),
    ],
    ids=str,
)
def test_refusals(parameters, message):
    encoder = ge.TargetEncoder(columns=KEYS, **parameters)
    with pytest.raises(ValueError, match=message):
        encoder.fit_transform(X, SOLD)


@pytest.mark.host
@pytest.mark.parametrize("cv", ["nocol", [0, 1], "price", ge.KFold(N + 1)], ids=str)
def test_refusals_of_parts_name_the_key(cv):
    encoder, part = ge.TargetEncoder(columns=["zip", "city"], cv={"city": cv}), Part(X, SOLD)
    with pytest.raises(ValueError, match=r"^cv\['city'\]: "):
        plan(encoder, profile(encoder, part))


@pytest.mark.host
def test_later_calls_have_the_parameters_of_each_key():
    encoder = ge.TargetEncoder(columns=KEYS, smooth=SMOOTH, prior=PRIOR).partial_fit(X, SOLD)
    for changed, message in (
        ({"smooth": SMOOTH | {JOINT: 4.0}}, r"smooth is now MEstimate\(m=4.0\) and was MEstimate\(m=3.0\)"),
        ({"smooth": "auto"}, r"smooth is now EmpiricalBayes\(\) and was NoSmoothing\(\)"),
        ({"prior": {}}, "prior is now 'mean' and was"),
    ):
        with pytest.raises(ValueError, match=message):
            clone_of(encoder, changed).partial_fit(X, SOLD)


@pytest.mark.host
def test_priors_of_catboost_by_column():
    for priors, message in (
        ({"town": [0.5]}, "priors: 'town' is not a column of X"),
        ({"city": [0.5, 0.5]}, "'priors' parameter of CatBoostEncoder must be one of a list of different numbers"),
        ({"city": 0.5}, "'priors' parameter of CatBoostEncoder must be one of a list of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            ge.CatBoostEncoder(priors=priors, columns=KEYS).fit(X, SOLD)
    # Priors that no column uses need not lie on the scale.
    scaled = ge.CatBoostEncoder(priors={"city": [0.5]}, columns=["city"], scale="logit", cv=3)
    assert np.isfinite(scaled.fit_transform(X, SOLD)["city"]).all()


def clone_of(encoder, changed):
    """Give the same fitted encoder with other parameters."""
    return pickle.loads(pickle.dumps(encoder)).set_params(**changed)
