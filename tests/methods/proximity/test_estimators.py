"""The encoder and both estimators as estimators of scikit-learn, and on frames."""

import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from gpu_encode import ProximityClassifier, ProximityEncoder, ProximityRegressor, load
from tests.backends import ON_CUDA
from tests.bits import assert_same_bits
from tests.estimator_checks import unexpected
from tests.versions import as_scikit_learn_1_9

N = 12 if ON_CUDA else 60
RANDOM = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "shape": RANDOM.choice(["round", "long"], N),
        "colour": RANDOM.choice(["red", "blue", None], N),
        "price": RANDOM.integers(1, 9, N),
    }
)
LABELS = np.where((FRAME["shape"] == "round") == (FRAME["colour"] == "red"), "yes", "no")
Y = (LABELS == "yes") * 2.0 + FRAME["price"].to_numpy() / 8
FEATURES = ["shape", "colour"]


@pytest.mark.parametrize(
    "kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_a_table_gives_a_table_of_its_kind(backend, kind):
    table = kind(FRAME)
    encoder = ProximityEncoder(columns=FEATURES)
    trained, encoded = encoder.fit_transform(table, LABELS), encoder.transform(table)
    assert type(trained) is type(encoded) is type(table)
    names = trained.column_names if isinstance(trained, pa.Table) else list(trained.columns)
    assert names == encoder.get_feature_names_out().tolist() == ["proximity", "price"]
    assert np.asarray(encoded["price"]).tolist() == FRAME["price"].tolist()
    expected = ProximityEncoder(columns=FEATURES).fit(FRAME, LABELS).transform(FRAME)["proximity"]
    assert np.asarray(encoded["proximity"]).tolist() == expected.tolist()


@pytest.mark.parametrize("y", [LABELS, Y, FRAME["price"].to_numpy()], ids=["labels", "numbers", "several"])
def test_saved_and_loaded(backend, tmp_path, y):
    encoder = ProximityEncoder(columns=FEATURES, dtype="float32").set_output(transform="polars").fit(FRAME, y)
    encoder.save(tmp_path / "encoder")
    loaded = load(tmp_path / "encoder")
    assert loaded.transform(FRAME).equals(encoder.transform(FRAME))
    assert loaded.get_params() == encoder.get_params()
    assert loaded.path_ == encoder.path_
    assert loaded.subsets_ == encoder.subsets_


@pytest.mark.parametrize("estimator", [ProximityEncoder(), ProximityClassifier(), ProximityRegressor()])
def test_pickled_and_cloned(backend, estimator):
    y = Y if isinstance(estimator, ProximityRegressor) else LABELS
    fitted = clone(estimator).set_params(tol=0.5, columns=FEATURES).fit(FRAME, y)
    again, anew = pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(FRAME, y)
    name = "transform" if isinstance(estimator, ProximityEncoder) else "predict"
    for other in (again, anew):
        assert np.asarray(getattr(other, name)(FRAME)).tolist() == np.asarray(getattr(fitted, name)(FRAME)).tolist()


def test_weights_by_name_by_number_and_in_order(backend):
    by_name = {(): 1.0, "colour": 2.0, ("colour", "shape"): 0.5}
    by_number = {(): 1.0, 1: 2.0, (0, 1): 0.5}
    encodings = [
        ProximityEncoder(columns=FEATURES, weights=weights).fit(FRAME, LABELS).transform(FRAME)["proximity"].tolist()
        for weights in (by_name, by_number, [1.0, 0.0, 2.0, 0.5], np.array([1, 0, 2, 0.5]))
    ]
    assert all(each == encodings[0] for each in encodings)


def test_a_joint_key_is_one_feature(backend):
    joint = ProximityEncoder(columns=[("shape", "colour")], weights={"shape_x_colour": 1.0}).fit(FRAME, LABELS)
    pair = ProximityEncoder(columns=FEATURES, weights={("shape", "colour"): 1.0}).fit(FRAME, LABELS)
    assert joint.subsets_ == [(), ("shape_x_colour",)]
    assert joint.transform(FRAME).equals(pair.transform(FRAME))


@pytest.mark.parametrize("form", ["ratio", "difference"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(backend, form, n_classes):
    y = LABELS if n_classes == 2 else np.where(FRAME["price"] > 6, "maybe", LABELS)
    model = ProximityClassifier(form=form, columns=FEATURES).fit(FRAME, y)
    scores, votes = model.decision_function(FRAME), model.encoder_.vote(FRAME)
    assert model.classes_.tolist() == sorted(set(y))
    assert model.predict(FRAME).tolist() == model.classes_[votes.argmax(axis=1)].tolist()
    assert scores.shape == ((N,) if n_classes == 2 else (N, n_classes))
    assert hasattr(model, "predict_proba") == (form == "ratio")
    if form == "ratio":
        assert_same_bits(model.predict_proba(FRAME), votes)
        np.testing.assert_allclose(votes.sum(axis=1), 1, rtol=1e-15)
    if n_classes == 2:
        assert model.score(FRAME, y) == 1
        assert ((scores > 0) == (model.predict(FRAME) == "yes")).all()
        encoder = ProximityEncoder(form=form, columns=FEATURES).fit(FRAME, y)
        assert model.encoder_.path_ == encoder.path_
        assert_same_bits(votes[:, 1], encoder.vote(FRAME)[:, 0])


def test_a_quantity(backend):
    model = ProximityRegressor(columns=FEATURES).fit(FRAME, Y)
    assert model.predict(FRAME).dtype == np.float64
    assert model.score(FRAME, Y) > 0.8
    assert -model.encoder_.path_[-1][2] < Y.var() / 5


@pytest.mark.host
def test_in_a_pipeline_and_in_cross_validation():
    pipeline = make_pipeline(ProximityEncoder(columns=FEATURES), ProximityRegressor(columns=[0]))
    assert pipeline.set_output(transform="pandas").fit(FRAME, LABELS == "yes").predict(FRAME).shape == (N,)
    assert cross_val_score(ProximityClassifier(columns=FEATURES), FRAME, LABELS, scoring="roc_auc").mean() > 0.9


@pytest.mark.host
@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"order": 0}, LABELS, "The 'order' parameter of ProximityEncoder must be an integer of at least 1"),
        ({"form": "sum"}, LABELS, "must be one of 'ratio', 'difference'"),
        ({"tol": 0.0}, LABELS, "'tol' parameter of ProximityEncoder must be a finite number above 0"),
        ({"tol": 2.0}, LABELS, "at most 1"),
        ({"degree": -1}, LABELS, "'degree' parameter"),
        ({"degree": "auto"}, LABELS, 'must be "tune" or a number above 0'),
        ({"degree": 2, "form": "difference"}, LABELS, "has no degree"),
        ({"form": "difference"}, Y, 'take form="ratio" for a quantity'),
        ({"tuning_rows": 0}, LABELS, "'tuning_rows' parameter"),
        ({"max_rounds": 0}, LABELS, "'max_rounds' parameter"),
        ({"max_rounds": "many"}, LABELS, 'must be "auto" or a whole number above 0'),
        ({"handle_missing": "zero"}, LABELS, "must be one of 'category', 'never', 'error'"),
        ({"weights": [1.0]}, LABELS, "one number for each of the 7 subsets"),
        ({"weights": {"size": 1.0}}, LABELS, "must name subsets of up to 2 of the features"),
        ({"weights": {("shape", "shape"): 1.0}}, LABELS, "must name subsets"),
        ({"weights": {0: -1.0}}, LABELS, "must be a finite number of at least 0"),
        ({"weights": {0: np.nan}, "form": "difference"}, LABELS, "must be a finite number"),
        ({"random_state": "a"}, LABELS, "random_state must be an integer"),
        ({}, np.column_stack([Y, Y]), "target"),
        ({}, None, "requires y"),
    ],
)
def test_what_is_refused(parameters, y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ProximityEncoder(**parameters).fit(FRAME, y)


@pytest.mark.host
@pytest.mark.parametrize("estimator", [ProximityClassifier, ProximityRegressor])
def test_messages_name_the_estimator_that_was_called(estimator):
    labels = (np.arange(len(FRAME)) % 2).astype(float)
    with pytest.raises(ValueError, match=f"{estimator.__name__} takes up to 62 features"):
        estimator().fit(np.zeros((2, 63), int), [0, 1])
    with pytest.raises(ValueError, match=f"parameter of {estimator.__name__}"):
        estimator(degree=-1.0).fit(FRAME, labels)
    with pytest.raises(ValueError, match=f"{estimator.__name__} is expecting"):
        estimator().fit(FRAME.to_numpy(), labels).predict(np.zeros((2, 9), int))


@pytest.mark.host
def test_tuned_weights_are_not_left_out():
    from gpu_encode import LeaveOneOut

    with pytest.raises(ValueError, match="LeaveOneOut leaves a row out of votes, but not out of weights"):
        ProximityEncoder(cv=LeaveOneOut()).fit_transform(FRAME, LABELS)


@pytest.mark.host
def test_too_many_features_are_refused():
    with pytest.raises(ValueError, match="up to 62 features, X has 63"):
        ProximityEncoder().fit(np.zeros((2, 63), int), [0, 1])


WEIGHTS = "a row that weighs two is left out whole, of two equal ones one: tuned weights differ"


def expected_to_fail(estimator):
    return {} if isinstance(estimator, ProximityEncoder) else {"check_sample_weight_equivalence_on_dense_data": WEIGHTS}


@pytest.mark.host
@as_scikit_learn_1_9
@pytest.mark.parametrize("make", [ProximityEncoder, ProximityClassifier, ProximityRegressor])
def test_estimator_checks(make) -> None:
    """All three pass scikit-learn's checks."""
    assert unexpected(make(order=1), expected_to_fail(make(order=1))) == {}
