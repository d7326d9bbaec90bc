"""Ordered statistics: ties in time, several permutations, rows left out, and long orders with their checkpoints."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode
from tests import naive, strategies
from tests.laws import encoding

KIND = "continuous"
SMOOTHINGS = ["auto", "between", "james-stein", "partial-pooling", "m-estimate"]


def single(size, row):
    """Return a target that is 1 in one row and 0 elsewhere."""
    target = np.zeros(size)
    target[row] = 1.0
    return target


@cache
def place_orders(columns, size, random_state):
    """Find the order behind each of several permutations, from columns that are not averaged."""
    frame = pd.DataFrame({"key": ["a"] * size})
    scheme = gpu_encode.Ordered(columns, average=False, random_state=random_state)
    codes = [encoding.fit_transform(frame, single(size, row), None, scheme, None, KIND) for row in range(size)]
    assert codes[0].shape == (size, columns)
    return [encoding.order_of(np.array(codes)[:, :, column].T > 0) for column in range(columns)]


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@encoding.examples(10)
@given(data=st.data())
def test_drawn_times_with_ties(smoothing, data):
    kind = data.draw(st.sampled_from(strategies.KINDS))
    drawn = data.draw(strategies.drawn_rows(kind, largest_size=30, nulls=True))
    times = data.draw(st.lists(st.integers(-4, 4), min_size=drawn.size, max_size=drawn.size))
    burn_in = data.draw(st.sampled_from([0, 0, 3]))
    make, formula = encoding.SMOOTHINGS[smoothing]
    stated = encoding.problems(drawn, smoothing=formula)
    expected = np.array([naive.timed_codes(problem, times, burn_in) for problem in stated]).T
    frame = pd.DataFrame({"key": drawn.keys, "time": times})
    for backend in encoding.BACKENDS:
        scheme = gpu_encode.Ordered(time="time", burn_in=burn_in)
        found = encoding.fit_transform(frame, drawn.target, drawn.weight, scheme, make(), kind, backend)
        encoding.assert_same_bits(found, expected)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("burn_in", [0, 4])
@encoding.examples(6)
@given(data=st.data())
def test_several_permutations(average, burn_in, data):
    size, count = 11, 3
    orders = place_orders(count, size, 9)
    assert len({tuple(order) for order in orders}) == count
    smoothing = data.draw(st.sampled_from(SMOOTHINGS))
    drawn = data.draw(strategies.drawn_rows(KIND, size))
    make, formula = encoding.SMOOTHINGS[smoothing]
    (problem,) = encoding.problems(drawn, smoothing=formula)
    columns = [naive.permuted_codes(problem, order, burn_in) for order in orders]
    expected = np.array([naive.averaged_codes(columns)] if average else columns).T
    frame = pd.DataFrame({"key": drawn.keys})
    for backend in encoding.BACKENDS:
        scheme = gpu_encode.Ordered(count, average=average, burn_in=burn_in, random_state=9)
        found = encoding.fit_transform(frame, drawn.target, drawn.weight, scheme, make(), KIND, backend)
        encoding.assert_same_bits(found, expected)


def long_rows(size=800):
    """Return more rows than nine bits can count, of whole numbers so that the oracle is quick."""
    generator = np.random.default_rng(17)
    keys = generator.choice(["a", "b", "c", "d", "e"], size, p=[0.4, 0.3, 0.2, 0.09, 0.01]).astype(object)
    target = generator.integers(-50, 50, size).astype(float)
    return strategies.Drawn(keys, target, None, KIND)


def long_order(size, random_state):
    """Find a long order: where one earlier target is 1, the row at place p gets 1 / p.

    The first row alone sees all others, so it gets 1 / (size - 1) as the last one does.
    """
    frame, row = pd.DataFrame({"key": ["a"] * size}), 0
    while True:
        scheme = gpu_encode.Ordered(random_state=random_state)
        codes = encoding.fit_transform(frame, single(size, row), None, scheme, None, KIND)[:, 0]
        if codes.max() == 1:
            break
        unseen = [other for other in np.flatnonzero(codes == 0).tolist() if other != row]
        ends = np.flatnonzero(codes == codes[codes > 0].min()).tolist()
        row = ends[0] if len(ends) == 1 or not unseen else unseen[0]
    places = np.rint(1 / np.where(codes > 0, codes, 1)).astype(int)
    places[row] = 0
    assert sorted(places.tolist()) == list(range(size))
    return np.argsort(places).tolist()


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_a_long_random_order_reads_the_prior_at_its_checkpoints(smoothing):
    drawn = long_rows()
    order = long_order(drawn.size, 3)
    make, formula = encoding.SMOOTHINGS[smoothing]
    (problem,) = encoding.problems(drawn, smoothing=formula)
    expected = naive.permuted_codes(problem, order)
    frame = pd.DataFrame({"key": drawn.keys})
    for backend in encoding.BACKENDS:
        scheme = gpu_encode.Ordered(random_state=3)
        found = encoding.fit_transform(frame, drawn.target, None, scheme, make(), KIND, backend)
        encoding.assert_same_bits(found[:, 0], expected)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("tie", [1, 7, 201])
def test_a_long_time_order_reads_the_prior_at_the_start_of_a_tie(smoothing, tie):
    drawn = long_rows()
    times = (np.arange(drawn.size) * 389 % drawn.size) // tie
    make, formula = encoding.SMOOTHINGS[smoothing]
    (problem,) = encoding.problems(drawn, smoothing=formula)
    expected = naive.timed_codes(problem, times.tolist())
    frame = pd.DataFrame({"key": drawn.keys, "time": times})
    for backend in encoding.BACKENDS:
        scheme = gpu_encode.Ordered(time="time")
        found = encoding.fit_transform(frame, drawn.target, None, scheme, make(), KIND, backend)
        encoding.assert_same_bits(found[:, 0], expected)


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@pytest.mark.parametrize("kind", strategies.KINDS)
def test_rows_as_they_stand_are_rows_whose_time_is_their_number(kind, smoothing):
    drawn, (make, _) = long_rows(), encoding.SMOOTHINGS[smoothing]
    target = drawn.target if kind == "continuous" else drawn.target % (2 if kind == "binary" else 3)
    frame = pd.DataFrame({"key": drawn.keys, "time": np.arange(drawn.size)})
    for burn_in in (0, 7):
        schemes = gpu_encode.Ordered(time="time", burn_in=burn_in), gpu_encode.Ordered(shuffle=False, burn_in=burn_in)
        choices = {"columns": ["key"], "indicators": True}
        for backend in encoding.BACKENDS:
            timed, standing = (
                encoding.fit_transform(frame, target, None, scheme, make(), kind, backend, **choices)
                for scheme in schemes
            )
            encoding.assert_same_bits(standing, timed)
            assert np.isnan(standing[: max(burn_in, 1), 0]).all()


def test_the_first_row_of_a_permutation_gets_the_mean_of_all_others():
    target = np.array([1.0, 2.0, 4.0, 8.0])
    keys = np.array(["a", "b", "a", "b"], dtype=object)
    first = encoding.random_order("ordered", 4)[0]
    found = encoding.training_codes(strategies.Drawn(keys, target, None, KIND), encoding.SCHEMES["ordered"](), "auto")
    assert found[first, 0] == np.delete(target, first).mean()


@pytest.mark.parametrize(
    "scheme",
    [gpu_encode.Ordered, lambda: gpu_encode.Ordered(time="time"), lambda: gpu_encode.Ordered(shuffle=False)],
)
def test_a_row_alone_gets_nan_and_one_warning(scheme):
    frame = pd.DataFrame({"key": ["a"], "time": [1]})
    encoder = gpu_encode.TargetEncoder(cv=scheme(), columns=["key"], target_type=KIND)
    with pytest.warns(UserWarning, match="NaN") as caught:
        codes = encoder.fit_transform(frame, np.array([3.0]))
    assert len(caught) == 1
    assert np.isnan(np.asarray(codes, dtype=float)[0, 0])
