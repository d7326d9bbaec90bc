"""The encoder as a part of scikit-learn: search, pipelines, column transformers, containers, routing."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpu_encode import CountEncoder, GroupKFold, KFold, MEstimate, OneHotEncoder, StatisticEncoder, TargetEncoder

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


def test_a_pipeline_trains_on_training_encodings_and_predicts_on_those_of_new_rows(many):
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
            ("target", TargetEncoder(), ["city", "shop"]),
            ("numbers", StandardScaler(), make_column_selector(dtype_include=float)),
        ]
    )
    encodings = transformer.fit_transform(frame, y)
    expected = TargetEncoder().fit_transform(frame[["city", "shop"]], y)
    np.testing.assert_array_equal(encodings[:, :2], expected)
    assert list(transformer.get_feature_names_out()) == ["target__city", "target__shop", "numbers__size"]
    out = transformer.set_output(transform="pandas").fit_transform(frame, y)
    assert list(out.columns) == ["target__city", "target__shop", "numbers__size"]
    pd.testing.assert_index_equal(out.index, frame.index)


@pytest.mark.parametrize(("wanted", "kind"), [("default", pd.DataFrame), ("polars", pl.DataFrame)])
def test_the_configured_output(many, wanted, kind):
    frame, y = many
    with sklearn.config_context(transform_output=wanted):
        assert type(TargetEncoder().fit_transform(frame, y)) is kind
        # What the encoder is told wins over the configuration.
        assert isinstance(TargetEncoder().set_output(transform="pandas").fit_transform(frame, y), pd.DataFrame)


ARRAYS = {
    "target": TargetEncoder(columns=["city", ("city", "shop")], indicators=True),
    "target, float32": TargetEncoder(columns=["city", "shop"], dtype="float32"),
    "counts": CountEncoder(columns=["city"]),
    "ones": OneHotEncoder(columns=["shop"], sparse_output=False),
    "statistics": StatisticEncoder({"shop": {"size": ["mean"], "city": ["mode"]}}),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    "library", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_told_default_the_output_is_an_array_as_of_scikit_learn(many, library, name):
    frame, y = many
    X = library(frame[["city", "shop", "size"]])
    alone, told = clone(ARRAYS[name]), clone(ARRAYS[name]).set_output(transform="default")
    table = alone.fit_transform(X, y)
    expected = (table if isinstance(table, pd.DataFrame) else table.to_pandas()).to_numpy()
    for found in (told.fit_transform(X, y), told.transform(X), clone(told).fit(X, y).transform(X)):
        assert type(found) is np.ndarray
        assert found.shape == expected.shape
    np.testing.assert_array_equal(told.fit_transform(X, y), expected)
    assert type(alone.transform(X)) is type(X)
    assert {type(piece) for piece in told.transform([X[:3], X[3:]])} == {np.ndarray}
    assert told.get_feature_names_out().tolist() == alone.get_feature_names_out().tolist()


def test_told_default_wins_over_the_configuration_and_comes_from_a_pipeline(many):
    frame, y = many
    told = TargetEncoder().set_output(transform="default")
    with sklearn.config_context(transform_output="pandas"):
        assert type(told.fit_transform(frame, y)) is np.ndarray
    pipeline = make_pipeline(TargetEncoder(), CountEncoder()).set_output(transform="default")
    assert type(pipeline.fit_transform(frame, y)) is np.ndarray


@sklearn.config_context(enable_metadata_routing=True)
def test_groups_and_weights_are_routed_through_a_pipeline(many):
    frame, y = many
    groups, weight = frame["shop"], np.arange(SIZE) % 4 + 1.0
    encoder = TargetEncoder(cv=GroupKFold(3)).set_fit_request(sample_weight=True, groups=True)
    model = make_pipeline(encoder, Ridge().set_fit_request(sample_weight=False))
    model.fit(frame[["city"]], y, sample_weight=weight, groups=groups)
    alone = TargetEncoder(cv=GroupKFold(3))
    encodings = alone.fit_transform(frame[["city"]], y, sample_weight=weight, groups=groups)
    by_hand = Ridge().fit(encodings, y)
    np.testing.assert_array_equal(model[-1].coef_, by_hand.coef_)
    np.testing.assert_array_equal(model.predict(frame[["city"]]), by_hand.predict(alone.transform(frame[["city"]])))


@pytest.mark.parametrize("scheme", [GroupKFold(3), sklearn.model_selection.GroupKFold(3)], ids=["ours", "theirs"])
def test_groups_are_routed_to_schemes_that_ask_for_them(scheme):
    random = np.random.default_rng(0)
    X, y, groups = random.integers(0, 5, (60, 1)), random.integers(0, 2, 60), random.integers(0, 9, 60)
    encodings = TargetEncoder(cv=scheme).fit_transform(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TargetEncoder(cv=scheme), Ridge()).fit(X, y, groups=groups)
        assert model[-1].coef_.tolist() == Ridge().fit(encodings, y).coef_.tolist()
        with pytest.raises(UnsetMetadataPassedError):
            make_pipeline(TargetEncoder(cv=3), Ridge()).fit(X, y, groups=groups)
        silenced = TargetEncoder(cv=GroupKFold(3, groups=0)).set_fit_request(groups=False)
        assert silenced.get_metadata_routing().fit.requests["groups"] is False
