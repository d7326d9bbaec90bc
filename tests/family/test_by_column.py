"""Parameters by column: every key is encoded as by an encoder of its own, bit by bit.

That parts, files, clusters, libraries and backends give the same is shown for all members of the family.
"""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

import gpu_encode as ge
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
    """Give the encoder of one key alone: of every dict the value that names it, or that of `others`."""
    parameters = encoder.get_params(deep=False)
    chosen = {
        name: value.get(key, others.get(name, getattr(type(encoder)(), name)))
        for name, value in parameters.items()
        if isinstance(value, dict)
    }
    return clone(encoder).set_params(**chosen, columns=[key])


def check_keys(encoder, y, weights=None, **others):
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
@pytest.mark.parametrize(("y", "kind"), [(AMOUNT, "continuous"), (SOLD, "binary"), (KIND, "multiclass")])
def test_every_key_is_encoded_as_alone(y, kind, cv):
    check_keys(ge.TargetEncoder(columns=KEYS, smooth=SMOOTH, prior=PRIOR, cv=cv, target_type=kind), y, WEIGHTS)


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
        ({"cv": {"city": 5}}, "'cv' parameter of TargetEncoder must be one scheme for all columns"),
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
def test_later_calls_have_the_parameters_of_each_key():
    encoder = ge.TargetEncoder(columns=KEYS, smooth=SMOOTH, prior=PRIOR).partial_fit(X, SOLD)
    for changed, message in (
        ({"smooth": SMOOTH | {JOINT: 4.0}}, r"smooth is now MEstimate\(m=4.0\) and was MEstimate\(m=3.0\)"),
        ({"smooth": "auto"}, r"smooth is now EmpiricalBayes\(\) and was NoSmoothing\(\)"),
        ({"prior": {}}, "prior is now 'mean' and was"),
    ):
        with pytest.raises(ValueError, match=message):
            clone_of(encoder, changed).partial_fit(X, SOLD)


def clone_of(encoder, changed):
    """Give the same fitted encoder with other parameters."""
    return pickle.loads(pickle.dumps(encoder)).set_params(**changed)
