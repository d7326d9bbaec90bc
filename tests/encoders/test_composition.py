"""The encoder as a part of scikit-learn: search, pipelines, column transformers, containers, routing."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupShuffleSplit, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from gpu_encode import GroupKFold, KFold, MEstimate, TargetEncoder

pytestmark = pytest.mark.host

SIZE = 120


@pytest.fixture
def many():
    """Give a frame of two texts and a number, and a quantity that hangs on the first."""
    random = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "city": random.choice(list("abcdef"), SIZE),
            "shop": random.choice([f"s{i}" for i in range(40)], SIZE),
            "size": random.normal(size=SIZE),
        }
    )
    return frame, frame["city"].map(ord).to_numpy() % 7 + random.normal(size=SIZE)


def test_grid_search_reaches_the_parameter_objects(many):
    frame, y = many
    model = make_pipeline(TargetEncoder(smooth=MEstimate(), cv=KFold()), Ridge())
    grid = {"targetencoder__smooth__m": [0.1, 1000.0], "targetencoder__cv__n_splits": [2, 7]}
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(frame[["city", "shop"]], y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_params_["targetencoder__smooth__m"] == 0.1
    best = search.best_estimator_[0]
    assert best.smooth.m == search.best_params_["targetencoder__smooth__m"]
    assert best.cv.n_splits == search.best_params_["targetencoder__cv__n_splits"]


def test_grid_search_over_the_encoder_itself_and_an_integer_cv(many):
    frame, y = many
    model = Pipeline([("encoder", TargetEncoder()), ("ridge", Ridge())])
    grid = {"encoder__cv": [2, 5], "encoder__smooth": ["auto", 5.0], "encoder__columns": [None, ["city"]]}
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(frame[["city", "shop"]].assign(shop=1), y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_pipeline_trains_on_training_codes_and_predicts_on_those_of_new_rows(many):
    frame, y = many
    model = make_pipeline(TargetEncoder(columns=["city", "shop"]), StandardScaler(), Ridge()).fit(frame, y)
    encoder = TargetEncoder(columns=["city", "shop"])
    by_hand = make_pipeline(StandardScaler(), Ridge()).fit(encoder.fit_transform(frame, y), y)
    np.testing.assert_array_equal(model.predict(frame), by_hand.predict(encoder.transform(frame)))
    assert list(model[:-1].get_feature_names_out()) == ["city", "shop", "size"]


def test_a_column_transformer(many):
    frame, y = many
    transformer = ColumnTransformer(
        [
            ("codes", TargetEncoder(), ["city", "shop"]),
            ("numbers", StandardScaler(), make_column_selector(dtype_include=float)),
        ]
    )
    codes = transformer.fit_transform(frame, y)
    expected = TargetEncoder().fit_transform(frame[["city", "shop"]], y)
    np.testing.assert_array_equal(codes[:, :2], expected)
    assert list(transformer.get_feature_names_out()) == ["codes__city", "codes__shop", "numbers__size"]
    out = transformer.set_output(transform="pandas").fit_transform(frame, y)
    assert list(out.columns) == ["codes__city", "codes__shop", "numbers__size"]
    pd.testing.assert_index_equal(out.index, frame.index)


def test_multiclass_in_a_column_transformer(many):
    frame, _ = many
    labels = np.arange(SIZE) % 3
    transformer = ColumnTransformer([("codes", TargetEncoder(), ["city"])], verbose_feature_names_out=False)
    codes = transformer.set_output(transform="pandas").fit_transform(frame, labels)
    assert list(codes.columns) == ["city_0", "city_1", "city_2"]


@pytest.mark.parametrize(("wanted", "kind"), [("default", None), ("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
@pytest.mark.parametrize("make", [lambda frame: frame, pl.from_pandas, pd.DataFrame.to_numpy])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_set_output(many, wanted, kind, make):
    frame, y = many
    X = make(frame[["city", "shop"]])
    encoder = TargetEncoder().set_output(transform=wanted)
    codes, new = encoder.fit_transform(X, y), encoder.transform(X)
    assert type(codes) is type(new) is (kind or type(X))
    with sklearn.config_context(transform_output=wanted):
        assert type(TargetEncoder().fit_transform(X, y)) is (kind or type(X))
        # What the encoder is told wins over the configuration.
        assert isinstance(TargetEncoder().set_output(transform="pandas").fit_transform(X, y), pd.DataFrame)
    np.testing.assert_array_equal(np.asarray(codes), np.asarray(TargetEncoder().fit_transform(X, y)))


@pytest.fixture
def routing():
    """Let metadata be routed."""
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_groups_and_weights_are_routed_through_a_pipeline(many):
    frame, y = many
    groups, weight = frame["shop"], np.arange(SIZE) % 4 + 1.0
    encoder = TargetEncoder(cv=GroupKFold(3)).set_fit_request(sample_weight=True, groups=True)
    model = make_pipeline(encoder, Ridge().set_fit_request(sample_weight=False))
    model.fit(frame[["city"]], y, sample_weight=weight, groups=groups)
    alone = TargetEncoder(cv=GroupKFold(3))
    codes = alone.fit_transform(frame[["city"]], y, sample_weight=weight, groups=groups)
    by_hand = Ridge().fit(codes, y)
    np.testing.assert_array_equal(model[-1].coef_, by_hand.coef_)
    np.testing.assert_array_equal(model.predict(frame[["city"]]), by_hand.predict(alone.transform(frame[["city"]])))


@pytest.mark.usefixtures("routing")
def test_groups_reach_splitter_and_encoder_in_cross_validation(many):
    frame, y = many
    encoder = TargetEncoder(cv=GroupKFold(3)).set_fit_request(groups=True)
    scores = cross_val_score(
        make_pipeline(encoder, Ridge()),
        frame[["city"]],
        y,
        cv=GroupShuffleSplit(2, random_state=0).set_split_request(groups=True),
        params={"groups": frame["shop"].to_numpy()},
        error_score="raise",
    )
    assert np.isfinite(scores).all()


@pytest.mark.usefixtures("routing")
def test_groups_that_nobody_asked_for_are_refused(many):
    frame, y = many
    model = make_pipeline(TargetEncoder(cv=GroupKFold(3)), Ridge())
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match=r"\[groups\] are passed but"):
        model.fit(frame[["city"]], y, groups=frame["shop"])


def test_a_classifier_on_labels_of_text(many):
    frame, y = many
    labels = np.where(y > np.median(y), "high", "low")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make_pipeline(TargetEncoder(), LogisticRegression()).fit(frame[["city", "shop"]], labels)
    assert set(model.predict(frame[["city", "shop"]])) <= {"high", "low"}
