"""The path of the tuning, step by step, against plain loops; areas against all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_encode import ProximityEncoder, ops
from gpu_encode.proximity.ascent import climb
from gpu_encode.proximity.objectives import measure_area
from tests.backends import ON_CUDA
from tests.proximity import definition
from tests.strategies import examples

N = 9 if ON_CUDA else 16
SEEDS = range(1 if ON_CUDA else 3)


def draw(seed, n_classes=2):
    random = np.random.default_rng(seed)
    table = random.integers(0, 3, (N, 3))
    return table, (table[:, 0] + table[:, 1] + random.integers(0, 2, N)) % n_classes


def as_rows(table):
    return [tuple(row) for row in table.tolist()]


def check(encoder, table, y, judge, degree, least=0.0):
    numbers, path = definition.tune(as_rows(table), y, encoder.order, judge, encoder.tol, degree, least)
    n_subsets = len(encoder.weights_)
    assert encoder.path_ == path
    assert encoder.weights_.tolist() == numbers[:n_subsets]
    assert encoder.degree_ == (numbers[-1] if degree is None else degree)
    assert path, "nothing was gained"


# Steps of the degree stay whole, so that strengths are exact.
@pytest.mark.parametrize(("degree", "tol"), [(1.0, 0.25), (2.0, 0.5), (None, 1.0)])
@pytest.mark.parametrize("seed", SEEDS)
def test_shares_of_two_classes(backend, way, seed, degree, tol):
    table, y = draw(seed)
    encoder = ProximityEncoder(degree=degree or "tune", tol=tol).fit(table, y)

    def judge(weights, power):
        def score(query, X, y):
            return definition.ratio(query, X, y, weights, power, 1)

        return definition.area(definition.leave_one_out(as_rows(table), y.tolist(), score), y.tolist(), 1)

    check(encoder, table, y, judge, degree)


def test_means_of_a_quantity(backend, way):
    table, _ = draw(4)
    y = np.random.default_rng(4).integers(-9, 9, N) / 4 + table[:, 2]
    encoder = ProximityEncoder(degree=1.0, tol=0.5, target_type="continuous").fit(table, y)

    def judge(weights, power):
        def score(query, X, y):
            return definition.ratio(query, X, y, weights, power)

        return -definition.squared_error(definition.leave_one_out(as_rows(table), y.tolist(), score), y.tolist())

    check(encoder, table, y, judge, 1.0, 1e-6)


def test_several_classes_by_the_mean_of_their_areas(backend):
    table, y = draw(5, 3)
    encoder = ProximityEncoder(degree=1.0, tol=0.5).fit(table, y)

    def judge(weights, power):
        areas = []
        for label in range(3):

            def score(query, X, y, label=label):
                return definition.ratio(query, X, y, weights, power, label)

            areas.append(
                definition.area(definition.leave_one_out(as_rows(table), y.tolist(), score), y.tolist(), label)
            )
        return sum(areas) / 3

    check(encoder, table, y, judge, 1.0)


def test_differences_find_what_two_features_tell_together(backend):
    random = np.random.default_rng(6)
    table = random.integers(0, 3, (N * 4, 2))
    y = (table[:, 0] == table[:, 1]).astype(int)
    encoder = ProximityEncoder(form="difference").fit(table, y)
    assert encoder.degree_ == 1
    assert dict(zip(encoder.subsets_, encoder.weights_, strict=True))["x0", "x1"] > 0
    assert ((encoder.transform(table)[:, 0] > 0) == y).all()


def test_rows_that_are_scored_are_a_sample(backend):
    table, y = draw(7)
    whole = ProximityEncoder().fit(table, y)
    assert ProximityEncoder(tuning_rows=N).fit(table, y).path_ == whole.path_
    some = ProximityEncoder(tuning_rows=N // 2, random_state=1)
    assert some.fit(table, y).path_ == some.fit(table, y).path_
    assert some.path_ != whole.path_


def test_one_class_tunes_nothing(backend):
    encoder = ProximityEncoder(target_type="binary").fit([["a"], ["b"]], [1, 1])
    assert encoder.path_ == []


@pytest.mark.host
def test_equal_gains_keep_the_first():
    numbers, path = climb(lambda tried: (-abs(tried.sum(axis=1) - 1.5)).tolist(), np.zeros(3), 0.5)
    assert numbers.tolist() == [1.5, 0.0, 0.0]
    assert path == [[0.0, 1.0, -0.5], [0.0, 0.5, 0.0]]


@pytest.mark.host
def test_gains_that_become_less_and_less_end():
    numbers, path = climb(lambda tried: (-1 - 1 / (1 + tried[:, 0])).tolist(), np.zeros(1), 0.5, 1e-3)
    assert len(path) < 50
    assert numbers[0] > 20


@pytest.mark.host
def test_a_start_that_is_no_number_is_left():
    numbers, _ = climb(lambda tried: [np.nan if x == 0 else -x for (x,) in tried], np.zeros(1), 0.5)
    assert numbers.tolist() == [1.0]


@examples(30)
@given(data=st.data())
def test_areas_are_those_of_all_pairs(data):
    n_rows = data.draw(st.integers(1, 12))
    numbers = st.lists(st.sampled_from([0.0, -0.0, 0.25, 1 / 3, 1.0]), min_size=n_rows, max_size=n_rows)
    scores = data.draw(numbers)
    labels = data.draw(st.lists(st.integers(0, 1), min_size=n_rows, max_size=n_rows))
    weights = data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    with ops.use_backend((ON_CUDA or ("numpy",))[0]):
        backend = ops.resolve(0)
        given = (np.array(scores), np.array(labels, np.int32), np.array(weights, np.int64))
        found = measure_area(backend, *map(backend.to_device, given))
    repeated = [(score, label) for score, label, n in zip(scores, labels, weights, strict=True) for _ in range(n)]
    assert found == definition.area([score for score, _ in repeated], [label for _, label in repeated], 1)
