"""The statements about catstat in `docs/coming-from.md`, compared with catstat's formulas."""

import operator

import numpy as np
import pandas as pd
import pytest

from gpu_encode import (
    CountEncoder,
    LeaveOneOut,
    Ordered,
    Sigmoid,
    StatisticEncoder,
    TargetEncoder,
    WeightOfEvidenceEncoder,
)
from tests.guides import catstat_formula as theirs

RANDOM = np.random.default_rng(5)
N = 120
# Categories of many rows, and of three, two and one; "equal" has one value of the target.
KEYS = [*RANDOM.choice(list("abcd"), N - 12), *"eeeffg", *["equal"] * 6]
TARGET = [*(RANDOM.standard_normal(N - 6) ** 3 + 40.0).tolist(), *[2.5] * 6]
LABELS = [int(value > 40.0) for value in TARGET]
X = pd.DataFrame({"key": KEYS})
CATEGORIES = [*sorted(set(KEYS)), "never seen"]
NEW = pd.DataFrame({"key": CATEGORIES})
FOLDS = np.arange(N) % 3


def rows_of(key, targets, sees=None):
    """The targets of a category and of all rows, among the rows that are seen."""
    seen = [row for row in range(N) if sees is None or sees[row]]
    return [targets[row] for row in seen if KEYS[row] == key], [targets[row] for row in seen]


def near(values, expected):
    assert np.ravel(values) == pytest.approx(expected, rel=1e-11, abs=1e-13)
    assert len(set(expected)) > 2


@pytest.mark.parametrize("name", list(theirs.SHAPES))
def test_shapes(name):
    encoder = StatisticEncoder([name], undefined="prior", cv=FOLDS)
    trained = encoder.fit_transform(X, TARGET)
    near(encoder.transform(NEW), [theirs.shape_of(name, *rows_of(key, TARGET)) for key in CATEGORIES])
    expected = [
        theirs.shape_of(name, *rows_of(key, TARGET, fold != FOLDS)) for key, fold in zip(KEYS, FOLDS, strict=True)
    ]
    near(trained, expected)


@pytest.mark.parametrize("smooth", [0.0, 7.5, "auto", ("sigmoid", 20.0, 10.0)], ids=str)
@pytest.mark.parametrize("targets", [TARGET, LABELS], ids=["continuous", "binary"])
def test_means(smooth, targets):
    ours = {"smooth": Sigmoid(*smooth[1:]), "min_count": 2} if isinstance(smooth, tuple) else {"smooth": smooth}
    encoder = TargetEncoder(cv=FOLDS, target_type="continuous", **ours)
    trained = encoder.fit_transform(X, targets)
    near(encoder.transform(NEW), [theirs.mean_of(smooth, *rows_of(key, targets)) for key in CATEGORIES])
    expected = [
        theirs.mean_of(smooth, *rows_of(key, targets, fold != FOLDS)) for key, fold in zip(KEYS, FOLDS, strict=True)
    ]
    near(trained, expected)


def test_counts_and_frequencies():
    counts = [KEYS.count(key) for key in CATEGORIES]
    near(CountEncoder().fit(X).transform(NEW), counts)
    near(CountEncoder("frequency").fit(X).transform(NEW), [count / N for count in counts])


def test_evidence():
    found = WeightOfEvidenceEncoder(regularization=0.0).fit(X, LABELS).transform(NEW).to_numpy().ravel()
    expected = [theirs.evidence_of(0.0, *rows_of(key, LABELS)) for key in CATEGORIES]
    finite = np.isfinite(expected)
    near(found[finite], np.array(expected)[finite].tolist())
    assert (np.sign(found) == np.sign(expected)).all()
    assert 2 < finite.sum() < len(expected)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("scheme", "sees"), [(LeaveOneOut(), operator.ne), (Ordered(shuffle=False), operator.lt)], ids=str
)
def test_schemes_of_single_rows(scheme, sees):
    found = TargetEncoder(smooth=3.0, cv=scheme, target_type="continuous").fit_transform(X, TARGET).to_numpy().ravel()
    expected = theirs.visible_means(3.0, KEYS, TARGET, sees)
    first = isinstance(scheme, Ordered)
    assert np.isnan(found[0]) == first
    near(found[first:], expected[first:])
