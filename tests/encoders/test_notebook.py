"""An encoder in a notebook: scikit-learn's diagram, and below it what was learned."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from gpu_encode import CountEncoder, HashingEncoder, KFold, OneHotEncoder, SpectralEncoder, TargetEncoder

pytestmark = pytest.mark.host
SIZES = {"one": 1, "few": 10, "many": 1000}


def shown(encoder):
    return encoder._repr_mimebundle_()["text/html"]


def learned(encoder):
    return shown(encoder).partition('<div class="gpu-encode">')[2]


def rows_of(page):
    lines = re.findall(r"<tr>(.*?)</tr>", page)
    return [re.findall(r"<td>(.*?)</td>", line) for line in lines if "<td>" in line]


def test_an_encoder_that_is_not_fitted_is_a_diagram_alone():
    encoder = TargetEncoder()
    without_ids = [re.sub(r"sk-[\w-]*\d+", "", page) for page in (shown(encoder), estimator_html_repr(encoder))]
    assert without_ids[0] == without_ids[1]


def test_the_largest_moves_come_first():
    X = pd.DataFrame({"shop": [str(number // 3) for number in range(120)] + [None] * 3})
    y = np.random.default_rng(0).normal(size=123)
    encoder = TargetEncoder(smooth=10.0, cv=KFold(3)).fit(X, y)
    page = learned(encoder)
    assert "scheme KFold(n_splits=3)" in page
    assert f"target mean {encoder.target_mean_:.6g}" in page
    assert f"shop: 41 categories, prior {encoder.target_mean_:.6g}" in page
    means = pd.Series(y).groupby(X["shop"].fillna("missing")).mean()
    shrunk = (3 * means + 10 * y.mean()) / 13
    expected = (shrunk - means).abs().sort_values(ascending=False).index[:20]
    rows = rows_of(page)
    assert [row[0] for row in rows] == [*expected]
    for shop, _, mean, encoding, moved in rows:
        told = [means[shop], shrunk[shop], shrunk[shop] - means[shop]]
        assert [float(one) for one in (mean, encoding, moved)] == pytest.approx(told, abs=6e-5)
    assert {row[1] for row in rows} == {"3"}
    for column in range(2, 5):
        assert len({len(row[column].partition(".")[2]) for row in rows}) == 1


def test_millions_of_rows_are_told_to_the_last_one():
    encoder = TargetEncoder(smooth=10.0).fit([["a"], ["b"], ["b"]], [0, 1, 0], sample_weight=[1234567, 2.5, 0.25])
    assert {row[0]: row[1] for row in rows_of(learned(encoder))} == {"a": "1,234,567", "b": "2.75"}


@pytest.mark.parametrize(("cv", "told"), [(5, "5 folds"), (KFold(3), "KFold(n_splits=3)")])
def test_a_number_of_folds_is_told_in_words(cv, told):
    page = learned(TargetEncoder(cv=cv).fit(np.arange(20)[:, None] % 3, np.arange(20) % 2))
    assert f"scheme {told};" in page


def test_a_move_counts_as_often_as_it_has_rows():
    shops = np.repeat([*SIZES], [*SIZES.values()])
    means = {"one": 5.0, "few": 2.0, "many": 1.0}
    y = np.repeat([*means.values()], [*SIZES.values()])
    encoder = TargetEncoder(smooth=10.0, cv=KFold(3)).fit(shops[:, None], y)
    moved = {shop: n * abs((n * means[shop] + 10 * y.mean()) / (n + 10) - means[shop]) for shop, n in SIZES.items()}
    assert [row[0] for row in rows_of(learned(encoder))] == sorted(moved, key=moved.get, reverse=True)
    assert max(moved, key=moved.get) == "few"


def test_values_are_text_and_not_marks():
    X = pd.DataFrame({"<b>shop</b>": ["<script>alert(1)</script>", "b" * 100]})
    page = learned(TargetEncoder().fit(X, [0, 1]))
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "b" * 60 not in page


@pytest.mark.parametrize(
    ("encoder", "told"),
    [
        (CountEncoder(), "city: 2 categories"),
        (OneHotEncoder(), "city: 2 categories"),
        (SpectralEncoder(n_components=1), "city: 2 categories"),
        (HashingEncoder(), "city: no categories are kept"),
    ],
)
def test_encoders_without_means_tell_their_keys(encoder, told):
    X = pd.DataFrame({"city": ["a", "b"] * 4, "day": ["x", "x", "y", "z"] * 2})
    assert told in learned(encoder.fit(X))


def test_of_many_keys_the_first_are_shown():
    X = np.arange(50).reshape(2, 25)
    page = learned(TargetEncoder().fit(X, [0, 1]))
    assert page.count("<details>") == 20
    assert "and 5 more keys" in page


def test_classes_targets_and_pipelines():
    X = pd.DataFrame({"city": ["a", "b", "c"] * 4})
    assert "multiclass" in learned(TargetEncoder().fit(X, [*"xyz"] * 4))
    assert "city: 3 categories" in learned(
        TargetEncoder(target_type="continuous").fit(X, np.arange(24.0).reshape(12, 2))
    )
    assert "TargetEncoder" in estimator_html_repr(make_pipeline(TargetEncoder()).fit(X, [0, 1, 1] * 4))
