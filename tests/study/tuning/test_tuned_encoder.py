"""TunedEncoderCV is `tune`, then a fit; inside a cross-validation each fold chooses from its own rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline

from gpu_encode import CatBoostEncoder, GroupKFold, ImpactEncoder, TargetEncoder, TunedEncoderCV, skops_types, tune

RNG = np.random.default_rng(0)
N = 400
X = pd.DataFrame({"shop": RNG.integers(0, 40, N).astype(str), "city": RNG.choice(["a", "b", None], N)})
Y = (RNG.random(N) < (0.2 + 0.6 * RNG.random(40))[X["shop"].astype(int)]).astype(int)
WEIGHT = RNG.integers(1, 4, N).astype(float)
GRID = [None, 2.0, 20.0, 200.0]


@pytest.mark.parametrize(
    ("encoder", "options"),
    [
        (None, {"smoothings": GRID}),
        (TargetEncoder(columns=["shop"], cv=3), {"smoothings": GRID, "per_column": True}),
        (TargetEncoder(), {"smoothings": GRID, "schemes": [2, 8], "priors": ["mean", 0.5]}),
        (TargetEncoder(), {"smoothings": GRID, "scoring": "roc_auc"}),
        (ImpactEncoder(), {}),
        (CatBoostEncoder(), {"smoothings": [0.5, 5.0], "folds": 3}),
    ],
)
def test_it_is_tune_and_then_a_fit(encoder, options):
    expected = tune(TargetEncoder() if encoder is None else encoder, X, Y, sample_weight=WEIGHT, **options)
    for fit in ("fit", "fit_transform"):
        tuned = TunedEncoderCV(encoder, **options)
        made = getattr(tuned, fit)(X, Y, sample_weight=WEIGHT)
        assert repr(tuned.tuned_) == repr(expected)
        assert repr(tuned.encoder_) == repr(expected.encoder)
        alone = getattr(clone(expected.encoder), fit)(X, Y, sample_weight=WEIGHT)
        new = X.iloc[::7]
        if fit == "fit_transform":
            pd.testing.assert_frame_equal(made, alone, check_exact=True)
        else:
            assert made is tuned
            pd.testing.assert_frame_equal(tuned.transform(new), alone.transform(new), check_exact=True)
            assert [*tuned.get_feature_names_out()] == [*alone.get_feature_names_out()]
        assert encoder is None or not hasattr(encoder, "_model")


def test_groups_reach_the_scheme():
    groups = RNG.integers(0, 50, N)
    encoder = TargetEncoder(cv=GroupKFold(3))
    made = TunedEncoderCV(encoder, smoothings=GRID).fit_transform(X, Y, groups=groups)
    expected = tune(encoder, X, Y, smoothings=GRID, groups=groups).encoder.fit_transform(X, Y, groups=groups)
    pd.testing.assert_frame_equal(made, expected, check_exact=True)


def test_each_outer_fold_chooses_from_its_own_rows():
    pipeline = make_pipeline(TunedEncoderCV(smoothings=GRID), LogisticRegression())
    outer = KFold(3, shuffle=True, random_state=0)
    found = cross_validate(pipeline, X, Y, cv=outer, return_estimator=True, scoring="roc_auc")
    for model, (train, test), score in zip(found["estimator"], outer.split(X), found["test_score"], strict=True):
        expected = tune(TargetEncoder(), X.iloc[train], Y[train], smoothings=GRID)
        assert repr(model[0].tuned_) == repr(expected)
        codes = expected.encoder.fit_transform(X.iloc[train], Y[train])
        alone = LogisticRegression().fit(codes, Y[train])
        from sklearn.metrics import roc_auc_score

        assert score == roc_auc_score(Y[test], alone.decision_function(expected.encoder.transform(X.iloc[test])))


def test_a_search_sets_the_parameters_of_the_encoder_inside():
    search = GridSearchCV(
        make_pipeline(TunedEncoderCV(TargetEncoder(), smoothings=GRID), LogisticRegression()),
        {"tunedencodercv__encoder__cv": [2, 7], "tunedencodercv__encoder__dtype": ["float32"]},
        cv=2,
    ).fit(X, Y)
    assert search.best_estimator_[0].encoder_.cv == search.best_params_["tunedencodercv__encoder__cv"]
    assert search.best_estimator_[0].encoder_.dtype == "float32"


def test_the_kind_of_the_result_outlives_a_clone():
    tuned = clone(TunedEncoderCV(smoothings=GRID).set_output(transform="polars"))
    assert type(tuned.fit_transform(X, Y)).__module__.startswith("polars")
    assert type(tuned.transform(X)).__module__.startswith("polars")
    assert type(tuned.set_output(transform="pandas").transform(X)) is pd.DataFrame


@pytest.mark.parametrize("form", ["pickle", "skops"])
def test_a_fitted_one_is_saved_as_other_estimators_are(form):
    tuned = TunedEncoderCV(smoothings=GRID, schemes=[3]).fit(X, Y)
    if form == "pickle":
        again = pickle.loads(pickle.dumps(tuned))
    else:
        io = pytest.importorskip("skops.io")
        again = io.loads(io.dumps(tuned), trusted=skops_types())
    pd.testing.assert_frame_equal(again.transform(X), tuned.transform(X), check_exact=True)
    assert repr(again.tuned_) == repr(tuned.tuned_)


def test_a_failed_fit_leaves_the_former_one():
    tuned = TunedEncoderCV(smoothings=GRID)
    with pytest.raises(NotFittedError):
        tuned.transform(X)
    tuned.fit(X, Y)
    encoder = tuned.encoder_
    with pytest.raises(ValueError, match="scoring='roc_auc' of tune needs classes"):
        tuned.set_params(scoring="roc_auc").fit(X, Y + 0.5)
    with pytest.raises(TypeError, match="LogisticRegression"):
        tuned.set_params(scoring=None, encoder=LogisticRegression()).fit(X, Y)
    assert tuned.encoder_ is encoder
    assert tuned.set_params(encoder=None).fit(X.to_numpy(), Y).n_features_in_ == 2
    assert not hasattr(tuned, "feature_names_in_")
