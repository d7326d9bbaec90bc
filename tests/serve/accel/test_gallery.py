"""The examples of encoders in scikit-learn's gallery run unchanged, and give the same numbers.

The tests run the computations of these examples without plots, on rows that are drawn as the examples draw them, or
that replace a data set that the examples load.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_validate, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, TargetEncoder

from gpu_encode.serve import accel

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore:.*unknown categories:UserWarning")]


def target_encoder_cross_val():
    """plot_target_encoder_cross_val.py: what cross fitting is for."""
    n_samples, rng = 3000, np.random.RandomState(42)
    y = rng.randn(n_samples)
    noise = 0.5 * rng.randn(n_samples)
    n_categories = 100
    bins = KBinsDiscretizer(n_categories, encode="ordinal", strategy="uniform", random_state=rng)
    informative = bins.fit_transform((y + noise).reshape(-1, 1))
    permuted = rng.permutation(n_categories)
    informative = permuted[informative.astype(np.int32)]
    shuffled = informative.copy()
    rng.shuffle(shuffled)
    near_unique = rng.choice(int(0.9 * n_samples), size=n_samples, replace=True).reshape(-1, 1)
    X = pd.DataFrame(
        np.concatenate([informative, shuffled, near_unique], axis=1), columns=["informative", "shuffled", "near_unique"]
    )
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    ridge = Ridge(alpha=1e-6, solver="lsqr", fit_intercept=False)
    model = make_pipeline(TargetEncoder(cv=KFold(5, shuffle=True, random_state=0)), ridge).fit(X_train, y_train)
    encoder = TargetEncoder(cv=KFold(5, shuffle=True, random_state=0)).fit(X_train, y_train)
    ridge.fit(encoder.transform(X_train), y_train)
    return [
        *(model.score(X_train, y_train), model.score(X_test, y_test), *model[-1].coef_),
        *(ridge.score(encoder.transform(X_test), y_test), *ridge.coef_),
    ]


def target_encoder():
    """plot_target_encoder.py: encoders beside one another, on wine reviews."""
    rng = np.random.default_rng(0)
    n_rows = 800
    names = {"country": 12, "province": 60, "region_1": 150, "variety": 80, "winery": 300}
    drawn = {name: np.minimum(rng.zipf(1.4, n_rows), number) for name, number in names.items()}
    df = pd.DataFrame({name: [f"{name} {value}" for value in values] for name, values in drawn.items()})
    df.loc[rng.random(n_rows) < 0.2, "region_1"] = np.nan
    df["points"] = rng.integers(80, 101, n_rows)
    y = df["points"] + drawn["country"] + rng.normal(size=n_rows)
    categorical = list(names)
    encoders = {
        "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        "one-hot": OneHotEncoder(handle_unknown="ignore", max_categories=20, sparse_output=False),
        "target": TargetEncoder(target_type="continuous", cv=KFold(5, shuffle=True, random_state=0)),
    }
    figures = []
    for encoder in encoders.values():
        columns = ColumnTransformer([("numbers", "passthrough", ["points"]), ("categories", encoder, categorical)])
        model = make_pipeline(columns, HistGradientBoostingRegressor(random_state=0, max_iter=20))
        scores = cross_validate(
            model, df, y, scoring="neg_root_mean_squared_error", cv=3, return_train_score=True, n_jobs=1
        )
        figures += [*scores["test_score"], *scores["train_score"]]
    return figures


@pytest.mark.parametrize(("example", "n_served"), [(target_encoder_cross_val, 5), (target_encoder, 18)])
def test_an_example_of_the_gallery(example, n_served):
    expected = example()
    accel.install(fewest_rows=0)
    figures = example()
    assert accel.report().n_served >= n_served
    assert figures == pytest.approx(expected, rel=1e-8)
