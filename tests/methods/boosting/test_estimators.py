"""The boosters as estimators of scikit-learn: parameters, tables, names, errors."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from gpu_encode import OrderedBoostingClassifier, OrderedBoostingRegressor

FEW = {"iterations": 4, "depth": 2, "learning_rate": 0.5, "permutations": 1, "borders": 4}
MODELS = [OrderedBoostingRegressor(**FEW), OrderedBoostingClassifier(**FEW)]


@pytest.fixture
def frame():
    random = np.random.default_rng(7)
    shops = random.choice([*"abc"], 40).astype(object)
    shops[5] = None
    return pd.DataFrame({"price": random.normal(size=40), "shop": shops, "stock": random.integers(0, 9, 40)})


@pytest.fixture
def y(frame):
    return (frame["price"] + (frame["shop"] == "a") > 0.3).to_numpy().astype(int)


@pytest.mark.parametrize("model", MODELS)
def test_scikit_learns_interface(model, frame, y):
    assert is_regressor(model) != is_classifier(model)
    assert clone(model).get_params() == model.get_params()
    assert "learning_rate=0.5" in repr(model)
    fitted = clone(model).fit(frame, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.predict(frame) == fitted.predict(frame)).all()
    assert fitted.score(frame, y) > 0.4
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["price", "shop", "stock"]
    assert len(cross_val_score(model, frame, y, cv=2)) == 2
    assert len(fitted.trees_) == 4
    assert fitted.training_predictions_.shape == (40,)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("make", [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.to_numpy(object)])
def test_tables_of_all_kinds_give_the_same(model, make, frame, y):
    expected = clone(model).fit(frame, y).predict(frame)
    table = make(frame)
    assert (clone(model).fit(table, y).predict(table) == expected).all()


def test_columns_of_categories_are_named_or_found(frame, y):
    named = OrderedBoostingRegressor(**FEW, categorical=["shop", 2]).fit(frame, y)
    assert named._features.categorical == [1, 2]
    found = OrderedBoostingRegressor(**FEW).fit(frame, y)
    assert found._features.categorical == [1]
    typed = frame.assign(stock=frame["stock"].astype("category"), price=frame["price"].astype(object))
    assert OrderedBoostingRegressor(**FEW).fit(typed, y)._features.categorical == [1, 2]
    assert OrderedBoostingRegressor(**FEW, categorical=[]).fit(frame[["price"]], y)._features.encoder is None


def test_classes_and_their_probabilities(frame, y):
    labels = np.array(["no", "yes"])[y]
    model = OrderedBoostingClassifier(**FEW).fit(frame, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    shares = model.predict_proba(frame)
    np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-model.decision_function(frame))), rtol=1e-14)
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-15)
    assert (model.predict(frame) == np.where(shares[:, 1] > 0.5, "yes", "no")).all()
    flipped = OrderedBoostingClassifier(**FEW).fit(frame, y.astype(bool)).predict(frame)
    assert (flipped == (model.predict(frame) == "yes")).all()


def test_missing_and_unseen_values_are_encoded(frame, y):
    model = OrderedBoostingRegressor(**FEW).fit(frame, y)
    new = frame[:3].assign(shop=["never seen", None, "a"], price=[np.nan, 0.0, 1.0])
    low = new.assign(price=[-1e300, 0.0, 1.0])
    assert (model.predict(new) == model.predict(low)).all()


def test_seeds(frame, y):
    def trees(random_state):
        fitted = OrderedBoostingRegressor(**FEW, random_state=random_state, subsample=0.5).fit(frame, y)
        return [tree.splits for tree in fitted.trees_], fitted.predict(frame).tolist()

    assert trees(3) == trees(3) != trees(4)
    assert trees(np.random.default_rng(1)) == trees(np.random.default_rng(1))
    assert trees(np.random.RandomState(1)) == trees(np.random.RandomState(1))
    assert trees(None) != trees(None)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"mode": "Ordered"}, "'mode' parameter of OrderedBoostingRegressor must be one of"),
        ({"iterations": 0}, "'iterations'"),
        ({"depth": 11}, "'depth'"),
        ({"learning_rate": 0.0}, "'learning_rate'"),
        ({"l2": -1.0}, "'l2'"),
        ({"permutations": 0}, "'permutations'"),
        ({"subsample": 0.0}, "'subsample'"),
        ({"subsample": 1.5}, "'subsample'"),
        ({"borders": 255}, "'borders'"),
        ({"categorical": "shop"}, "'categorical'"),
        ({"categorical": ["city"]}, "'city' is not a column"),
        ({"random_state": 1.5}, "random_state"),
    ],
)
def test_parameters_that_are_refused(parameters, message, frame, y):
    with pytest.raises(ValueError, match=message):
        OrderedBoostingRegressor(**{**FEW, **parameters}).fit(frame, y)


def test_rows_that_are_refused(frame, y):
    model = OrderedBoostingRegressor(**FEW)
    with pytest.raises(NotFittedError):
        model.predict(frame)
    with pytest.raises(ValueError, match="at least two rows"):
        model.fit(frame[:1], y[:1])
    with pytest.raises(ValueError, match=r"200 rows at most\. Got 201"):
        OrderedBoostingRegressor("exact").fit(np.zeros((201, 1)), np.zeros(201))
    with pytest.raises(ValueError, match=r"takes one target\. Got y with 2 columns"):
        model.fit(frame, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match=r"Only binary .* two classes apart\. Got y with 3 classes"):
        OrderedBoostingClassifier(**FEW).fit(frame, np.arange(40) % 3)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(frame, None)
    with pytest.raises(TypeError, match="name it in categorical"):
        OrderedBoostingRegressor(categorical=[]).fit(frame, y)
    with pytest.raises(TypeError, match="takes one table"):
        model.fit([frame[:20], frame[20:]], y)
    model.fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"shop": "city"}))
    array = frame.to_numpy(object)
    with pytest.raises(ValueError, match="2 features"):
        model.fit(array, y).predict(array[:, :2])
