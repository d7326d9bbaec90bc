"""Ordered statistics: ties in time, several permutations, rows that are left out, and long orders with checkpoints."""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_encode
from gpu_encode.schemes.orders import block_of
from tests import naive, strategies
from tests.bits import assert_same_bits
from tests.cases import some_of
from tests.laws import encoding
from tests.strategies import examples

KIND = "continuous"
SMOOTHINGS = ["auto", "between", "anova-pooled", "james-stein", "partial-pooling", "m-estimate"]


@cache
def place_orders(columns, size, random_state, block=1):
    """Find the order behind each of several permutations, from columns that are not averaged."""
    frame = pd.DataFrame({"key": ["a"] * size})
    scheme = gpu_encode.Ordered(columns, average=False, random_state=random_state, block=block)
    encodings = encoding.fit_transform(frame, np.eye(size), None, scheme, None, KIND).reshape(size, size, columns)
    return [encoding.order_of(encodings[:, :, column] > 0) for column in range(columns)]


@pytest.mark.parametrize("smoothing", encoding.SMOOTHINGS)
@examples(10)
@given(data=st.data())
def test_drawn_times_with_ties(smoothing, data):
    kind = data.draw(st.sampled_from(strategies.KINDS))
    drawn = data.draw(strategies.drawn_rows(kind, largest_size=30, nulls=True))
    times = data.draw(st.lists(st.integers(-4, 4), min_size=drawn.size, max_size=drawn.size))
    burn_in = data.draw(st.sampled_from([0, 0, 3]))
    definition = encoding.DEFINITIONS[smoothing]
    stated = encoding.problems(drawn, smoothing=definition)
    expected = np.array([naive.timed_codes(problem, times, burn_in) for problem in stated]).T
    frame = pd.DataFrame({"key": drawn.keys, "time": times})
    encoding.check_encodings(expected, frame, drawn, gpu_encode.Ordered(time="time", burn_in=burn_in), smoothing)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("burn_in", [0, 4])
@examples(6)
@given(data=st.data())
def test_several_permutations(average, burn_in, data):
    size, count = 11, 3
    orders = place_orders(count, size, 9)
    assert len({tuple(order) for order in orders}) == count
    smoothing = data.draw(st.sampled_from(SMOOTHINGS))
    drawn = data.draw(strategies.drawn_rows(KIND, size))
    definition = encoding.DEFINITIONS[smoothing]
    (problem,) = encoding.problems(drawn, smoothing=definition)
    columns = [naive.permuted_codes(problem, order, burn_in) for order in orders]
    expected = np.array([naive.averaged_codes(columns)] if average else columns).T
    frame = pd.DataFrame({"key": drawn.keys})
    scheme = gpu_encode.Ordered(count, average=average, burn_in=burn_in, random_state=9)
    encoding.check_encodings(expected, frame, drawn, scheme, smoothing)


def long_rows(size=800):
    """Return more rows than nine bits can count, of whole numbers so that the oracle is quick."""
    generator = np.random.default_rng(17)
    keys = generator.choice(["a", "b", "c", "d", "e"], size, p=[0.4, 0.3, 0.2, 0.09, 0.01]).astype(object)
    target = generator.integers(-50, 50, size).astype(float)
    return strategies.Drawn(keys, target, None, KIND)


def check_long(expected_of, frame, scheme, smoothing):
    """Compare many rows with a definition of one problem."""
    drawn = long_rows()
    (problem,) = encoding.problems(drawn, smoothing=encoding.DEFINITIONS[smoothing])
    encoding.check_encodings(
        expected_of(problem), frame.assign(key=drawn.keys), drawn, scheme, smoothing, columns=["key"]
    )


@pytest.mark.parametrize(("smoothing", "block"), some_of(SMOOTHINGS, [1, 16]))
def test_a_long_random_order_reads_the_prior_at_its_checkpoints(smoothing, block):
    (order,) = place_orders(1, 800, 3, block)
    frame, scheme = pd.DataFrame(index=range(800)), gpu_encode.Ordered(random_state=3, block=block)
    check_long(lambda problem: naive.permuted_codes(problem, order), frame, scheme, smoothing)


def test_blocks_of_an_order_stay_together_and_both_they_and_their_rows_are_shuffled():
    (order,) = place_orders(1, 303, 3, 20)
    blocks = [row // 20 for row in order]
    edges = [place for place in range(303) if not place or blocks[place] != blocks[place - 1]]
    assert len(edges) == 16
    assert [blocks[edge] for edge in edges] != sorted(set(blocks))
    for begin, end in itertools.pairwise([*edges, 303]):
        rows = [int(row) for row in order[begin:end]]
        assert rows != sorted(rows)


@pytest.mark.parametrize(("share", "n_rows"), [(0.75, 5), (0.5, 7), (0.25, 11), (0.9, 10)])
def test_a_share_that_is_left_out_is_rounded_down(share, n_rows):
    frame = pd.DataFrame({"key": ["a"] * n_rows})
    scheme = gpu_encode.Ordered(shuffle=False, burn_in=share)
    encodings = encoding.fit_transform(frame, np.arange(float(n_rows)), None, scheme, None, KIND)
    left_out = int(Fraction(str(share)) * n_rows)
    assert np.flatnonzero(~np.isnan(encodings.ravel())).tolist() == list(range(left_out, n_rows))


@pytest.mark.parametrize(
    ("n_rows", "block"), [(1, 1), (999, 1), (1000, 2), (3000, 4), (254_999, 128), (255_000, 256), (10**12, 256)]
)
def test_more_rows_have_longer_blocks(n_rows, block):
    assert block_of(n_rows) == block


def test_the_number_of_rows_chooses_the_block():
    frame = pd.DataFrame({"key": ["a"] * 1200})
    given = [gpu_encode.Ordered(block="auto"), gpu_encode.Ordered(block=2), gpu_encode.Ordered()]
    auto, two, one = (encoding.fit_transform(frame, np.arange(1200.0), None, cv, None, KIND) for cv in given)
    assert_same_bits(auto, two)
    assert not np.array_equal(auto, one)


@pytest.mark.parametrize(("smoothing", "tie"), some_of(SMOOTHINGS, [1, 7, 201]))
def test_a_long_time_order_reads_the_prior_at_the_start_of_a_tie(smoothing, tie):
    times = (np.arange(800) * 389 % 800) // tie
    frame = pd.DataFrame({"time": times})
    scheme = gpu_encode.Ordered(time="time")
    check_long(lambda problem: naive.timed_codes(problem, times.tolist()), frame, scheme, smoothing)


@pytest.mark.parametrize("smoothing", ["auto", "m-estimate"])
def test_a_first_tie_that_nine_bits_cannot_count_is_all_that_the_second_tie_sees(smoothing):
    """The place before its end at which a prior would be taken lies in the tie, and no row lies before that."""
    drawn, later = long_rows(1200), np.arange(1200) * 389 % 1200 >= 601
    (problem,) = encoding.problems(drawn, smoothing=encoding.DEFINITIONS[smoothing])
    seen = tuple(np.flatnonzero(~later))
    of_keys = {path: problem.code(path, seen, seen) for path in set(problem.paths)}
    expected = [of_keys[path] if late else np.nan for path, late in zip(problem.paths, later, strict=True)]
    frame = pd.DataFrame({"key": drawn.keys, "time": later.astype(int)})
    encoding.check_encodings(expected, frame, drawn, gpu_encode.Ordered(time="time"), smoothing, columns=["key"])


@pytest.mark.parametrize(("smoothing", "kind"), some_of(encoding.SMOOTHINGS, strategies.KINDS))
def test_rows_as_they_stand_are_rows_whose_time_is_their_number(kind, smoothing):
    drawn, smooth = long_rows(), encoding.SMOOTHINGS[smoothing]
    target = drawn.target if kind == "continuous" else drawn.target % (2 if kind == "binary" else 3)
    frame = pd.DataFrame({"key": drawn.keys, "time": np.arange(drawn.size)})
    for burn_in in (0, 7):
        schemes = gpu_encode.Ordered(time="time", burn_in=burn_in), gpu_encode.Ordered(shuffle=False, burn_in=burn_in)
        choices = {"columns": ["key"], "indicators": True}
        for backend in encoding.BACKENDS:
            timed, standing = (
                encoding.fit_transform(frame, target, None, scheme, smooth, kind, backend, **choices)
                for scheme in schemes
            )
            assert_same_bits(standing, timed)
            assert np.isnan(standing[: max(burn_in, 1), 0]).all()


@pytest.mark.parametrize(
    "scheme", [gpu_encode.Ordered, lambda: gpu_encode.Ordered(time="time"), lambda: gpu_encode.Ordered(shuffle=False)]
)
def test_a_row_alone_gets_nan_and_one_warning(scheme):
    frame = pd.DataFrame({"key": ["a"], "time": [1]})
    encoder = gpu_encode.TargetEncoder(cv=scheme(), columns=["key"], target_type=KIND)
    with pytest.warns(UserWarning, match="NaN") as caught:
        encodings = encoder.fit_transform(frame, np.array([3.0]))
    assert len(caught) == 1
    assert np.isnan(np.asarray(encodings, dtype=float)[0, 0])
