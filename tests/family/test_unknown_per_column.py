"""``handle_unknown`` as a dict: each column is encoded as by an encoder with its own policy for all columns."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import gpu_encode as ge
from tests.family.members import AMOUNT, ROWS, SOLD, same
from tests.scale.parts.in_parts import encoded_in_parts, parts_of

pytestmark = pytest.mark.host
JOINT = ("zip", "city")
POLICIES = {"city": "nan", JOINT: -7.5}
KEYS = ["city", "zip", JOINT]
OUTPUTS = ["city", "zip", "zip_x_city"]
NEW = ROWS[:5].assign(city=["a", "never", "b", "never", None], zip=[-5, -5, 0, 1, 4])
ENCODERS = {
    "target": (ge.TargetEncoder, AMOUNT, "prior", {"cv": 3}),
    "target, ordered": (ge.TargetEncoder, AMOUNT, "prior", {"cv": ge.Ordered()}),
    "target, leave-one-out": (ge.TargetEncoder, SOLD, "prior", {"cv": ge.LeaveOneOut(), "min_count": 3}),
    "count": (ge.CountEncoder, None, "zero", {}),
    "evidence": (ge.WeightOfEvidenceEncoder, SOLD, "zero", {"cv": 3}),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_each_column_has_its_own_policy(name, tmp_path):
    kind, y, default, given = ENCODERS[name]
    encoder = kind(columns=KEYS, handle_unknown=POLICIES, **given)
    training, new = encoder.fit_transform(ROWS, y), encoder.transform(NEW)
    for key, output in zip(KEYS, OUTPUTS, strict=True):
        alone = kind(columns=KEYS, handle_unknown=POLICIES.get(key, default), **given)
        same(training[[output]], alone.fit_transform(ROWS, y)[[output]])
        same(new[[output]], alone.transform(NEW)[[output]])
    assert math.isnan(new["city"][1])
    assert new["zip_x_city"][1] == -7.5
    encoder.save(tmp_path / "model")
    for other in (ge.load(tmp_path / "model"), pickle.loads(pickle.dumps(encoder))):
        same(other.transform(NEW), new)
        assert other.get_params()["handle_unknown"] == POLICIES
    if "ordered" not in name:
        parts = encoded_in_parts(kind(columns=KEYS, handle_unknown=POLICIES, **given), parts_of(ROWS, y, cuts=[30]))
        same(pd.concat(parts), training)


def test_one_column_refuses_and_another_does_not(tmp_path):
    encoder = ge.TargetEncoder(columns=["city", "zip"], handle_unknown={"city": "error"}).fit(ROWS, SOLD)
    accepted = encoder.transform(NEW.assign(city="a"))
    encoder.save(tmp_path / "model")
    for each in (encoder, ge.load(tmp_path / "model")):
        same(each.transform(NEW.assign(city="a")), accepted)
        with pytest.raises(ValueError, match=r"unknown categories in column 'city'|'city'.*never"):
            each.transform(NEW)
    refusing = ge.TargetEncoder(
        categories=[["a"], "auto"], columns=["city", "zip"], handle_unknown={"city": "error", "zip": 0.5}
    )
    with pytest.raises(ValueError, match="'city' during fit"):
        refusing.fit(ROWS, SOLD)


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_number_of_a_column_is_given_in_every_later_call():
    encoder = ge.TargetEncoder(columns=["city"], handle_unknown={"city": 0.25}, target_type="binary")
    encoder.partial_fit(ROWS[:40], SOLD[:40]).partial_fit(ROWS[40:], SOLD[40:])
    assert encoder.transform(NEW)["city"][1] == 0.25
    with pytest.raises(ValueError, match="handle_unknown"):
        encoder.set_params(handle_unknown={"city": 0.5}).partial_fit(ROWS, SOLD)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (ge.TargetEncoder(handle_unknown={"city": "zero"}), "'handle_unknown' parameter of TargetEncoder must be one"),
        (ge.TargetEncoder(handle_unknown={"city": np.inf}), "must not be infinite"),
        (ge.TargetEncoder(columns=["zip"], handle_unknown={"city": 1}), "handle_unknown names 'city', which is not"),
        (ge.TargetEncoder(handle_unknown={"town": 1}), "handle_unknown: 'town' is not a column"),
        (ge.ClusterEncoder(2, handle_unknown={"city": "nan"}), "must be one for all columns"),
        (ge.OrdinalEncoder(handle_unknown={"city": "error"}), "'handle_unknown' parameter of OrdinalEncoder must be"),
        (ge.OneHotEncoder(handle_unknown={"city": "error"}), "'handle_unknown' parameter of OneHotEncoder must be"),
    ],
)
def test_errors(encoder, message):
    with pytest.raises(ValueError, match=message):
        encoder.fit(ROWS, SOLD)
