"""Encodings in an order by pairs of floats with a bound, and by exact sums: both give the same bits."""

from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from itertools import accumulate, product

import numpy as np
import pytest

from cpu_fallback.fused_rules import (
    AS_PRIOR,
    EMPIRICAL_BAYES,
    M_ESTIMATE,
    Blend,
    FusedRule,
    RowEncodings,
    Shrinkage,
)
from cpu_fallback.row_numbers import Permutation, RowOrder, TimeOrder
from cpu_fallback.types import Layout, Rows, SumShape, carry
from gpu_encode.sums import category_sums
from tests.cases import pairs
from tests.cpu_fallback.test_estimates_by_age import DRAWS, N_CATEGORIES, draw_rows
from tests.cpu_fallback.test_estimates_by_age import RULES as RULES_BY_AGE

# Orders of the rows, random, in time, and with weights.
KINDS = ("rows", "random", "times", "weighed times")
WEIGHED = (("weighed times", 1), ("weighed times", 30))
RULES = {
    **RULES_BY_AGE,
    "least weight": FusedRule(Blend(Shrinkage(M_ESTIMATE, 3.0), 2.0, True, -7.0), True, 0.0, AS_PRIOR),
    "least weight of a blend": FusedRule(Blend(Shrinkage(EMPIRICAL_BAYES), 2.0, True, -7.0), True, 0.0, AS_PRIOR),
}
# No GPU is needed.
pytestmark = pytest.mark.host


@pytest.fixture
def ordered():
    return import_module("cpu_fallback.compiled.ordered_encodings")


@pytest.fixture
def open_rows(ordered, monkeypatch):
    """Return a list: how many first rows each call left to exact code."""
    found, encode = [], ordered.PairWalk.encode

    def watched(walk):
        found.append(encode(walk))
        return found[-1]

    monkeypatch.setattr(ordered.PairWalk, "encode", watched)
    return found


class Data:
    """Rows in an order, and the shape of their sums."""

    def __init__(self, ops, target, n_rows, kind="rows", rows_of_time=1, n_categories=N_CATEGORIES):
        random = np.random.default_rng(n_rows)
        codes, numbers, starts, ties, rows = draw_rows(random, target, n_rows, rows_of_time, n_categories)
        weight = random.random(n_rows) if kind == "weighed times" else None
        self.order = TimeOrder(rows, ties, starts)
        if kind in {"rows", "random"}:
            self.order = RowOrder() if kind == "rows" else Permutation(n_rows, 3)
        self.take(ops, Rows(codes, None, numbers, weight), n_categories)

    def take(self, ops, rows, n_categories=N_CATEGORIES):
        self.rows = rows
        layout = Layout(*category_sums.windows(ops, rows.target, rows.weight, 2, len(rows)))
        self.shape = SumShape(n_categories, 1, 1, layout)

    def encode(self, ops, rule, dtype="float64", burn_in=0):
        n_rows = len(self.rows)
        values, unseen = np.full((n_rows, 1), -1.0, dtype, order="F"), np.ones(n_rows, np.bool_)
        out = RowEncodings(values, unseen)
        found = ops.fused.ordered_encodings(self.rows, self.shape, self.order, burn_in, rule, out)
        carry(found.accumulators, self.shape.layout)
        return values.tobytes(), unseen.tobytes(), found.accumulators.tobytes(), found.lost


def assert_same(ops, ordered, monkeypatch, data, *given):
    found = data.encode(ops, *given)
    with monkeypatch.context() as patch:
        patch.setattr(ordered, "form_of", lambda *_: None)
        assert found == data.encode(ops, *given)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("target", "rule", "kind"), pairs([*DRAWS], [*RULES], [*KINDS]))
def test_encodings_are_those_of_exact_sums(compiled, ordered, monkeypatch, target, rule, kind, dtype):
    for size, rows_of_time in ((9, 1), (203, 5), (700, 1), (700, 60)):
        data = Data(compiled, target, size, kind, rows_of_time)
        assert_same(compiled, ordered, monkeypatch, data, RULES[rule], dtype, size // 20)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind", ["random", "times", "weighed times"])
def test_tiles_end_where_a_time_ends(compiled, ordered, monkeypatch, rule, kind):
    monkeypatch.setattr(import_module("cpu_fallback.compiled.ordered_pairs"), "TILE", 16)
    for rows_of_time in (1, 7, 100):
        assert_same(compiled, ordered, monkeypatch, Data(compiled, "real", 900, kind, rows_of_time), RULES[rule])


@pytest.mark.parametrize("rule", ["mean", "unseen", "blend", "least weight of a blend"])
@pytest.mark.parametrize(("kind", "rows_of_time"), [("rows", 1), ("random", 1), ("times", 1), ("times", 7), *WEIGHED])
def test_categories_are_shared_by_threads(compiled, ordered, monkeypatch, rule, kind, rows_of_time):
    threads = import_module("cpu_fallback.compiled.threads")
    monkeypatch.setattr(threads, "SMALLEST_SHARE", 1)
    monkeypatch.setattr(import_module("cpu_fallback.compiled.ordered_pairs"), "TILE", 300)
    for n_threads, n_categories in ((2, 1), (3, 7), (5, 400)):
        threads.set_threads(n_threads)
        for target in ("real", "whole"):
            data = Data(compiled, target, 900, kind, rows_of_time, n_categories)
            assert_same(compiled, ordered, monkeypatch, data, RULES[rule])
    threads.set_threads(None)


@pytest.mark.parametrize("kind", ["rows", "random", "times"])
@pytest.mark.parametrize("target", ["real", "whole", "float32"])
def test_pairs_give_the_sums_of_all_rows(compiled, ordered, monkeypatch, target, kind):
    def fails(*_):
        raise AssertionError

    monkeypatch.setattr(ordered, "accumulate", fails)
    data = Data(compiled, target, 700, kind)
    data.shape = data.shape._replace(layout=replace(data.shape.layout, square=None))
    found = data.encode(compiled, RULES["mean"])[2]
    expected = compiled.accumulate(data.rows, data.shape)
    carry(expected, data.shape.layout)
    assert found == expected.tobytes()


def test_pairs_that_lost_digits_do_not_give_the_sums_of_all_rows(compiled, open_rows):
    data = Data(compiled, "real", 300)
    data.take(compiled, Rows(data.rows.codes, None, np.resize([2.0**100, 1.0, 2.0**-100], 300)))
    data.shape = data.shape._replace(layout=replace(data.shape.layout, square=None))
    found = data.encode(compiled, RULES["given prior"])[2]
    expected = compiled.accumulate(data.rows, data.shape)
    carry(expected, data.shape.layout)
    assert found == expected.tobytes()
    assert open_rows == [0]


@pytest.mark.parametrize("numbers", [[0.0, -0.0], [1.0, -1.0], [0.5], [5e-324, 1.0], [1e16, 1.0, -1e16]], ids=str)
def test_sums_of_few_numbers(compiled, ordered, monkeypatch, numbers):
    for rule, kind in product(RULES.values(), KINDS):
        data = Data(compiled, "real", 300, kind, 3)
        data.take(compiled, Rows(data.rows.codes, None, np.resize(numbers, 300), data.rows.weight))
        assert_same(compiled, ordered, monkeypatch, data, rule)


@pytest.mark.parametrize("kind", KINDS)
def test_categories_of_one_row_or_one_for_all(compiled, ordered, monkeypatch, kind):
    for rule, codes in product(RULES.values(), (np.arange(90), np.zeros(90), np.arange(90) // 2)):
        data = Data(compiled, "real", 90, kind)
        data.take(compiled, Rows(codes.astype(np.int32), None, data.rows.target, data.rows.weight), 90)
        assert_same(compiled, ordered, monkeypatch, data, rule)


@pytest.mark.parametrize("rule", ["mean", "given prior", "unseen", "blend"])
@pytest.mark.parametrize("kind", ["random", "weighed times"])
@pytest.mark.parametrize(("rows_of_time", "n_categories"), [(1, 7), (30, 7), (1, 20_000)])
def test_next_to_no_row_of_plain_data_stays_open(
    compiled, ordered, monkeypatch, open_rows, rule, kind, rows_of_time, n_categories
):
    for target in ("real", "float32", "whole"):
        data = Data(compiled, target, 60_000, kind, rows_of_time, n_categories)
        assert_same(compiled, ordered, monkeypatch, data, RULES[rule])
    # Many categories see few short numbers, so that their variances are often ties, which exact sums settle.
    assert max(open_rows) <= 6


class Neighbours:
    """Neighbouring rows whose sums pairs may not hold: far numbers, or products of long ones."""

    def __init__(self, n_rows, weighted, spread):
        self.pairs = import_module("cpu_fallback.compiled.running_pairs")
        self.sums = import_module("cpu_fallback.compiled.neighbour_sums")
        kernels, random = import_module("cpu_fallback.compiled.border"), np.random.default_rng(n_rows)
        if spread is None:
            # Only when rows that were added up together meet others does a pair drop something.
            self.target = np.repeat([1.0, 2.0**-60, 2.0**-131], self.sums.TOGETHER)[:n_rows]
        else:
            self.target = np.ldexp(random.normal(size=n_rows), random.integers(-spread, spread, n_rows, endpoint=True))
        weight = random.random(n_rows) if weighted else np.ones(n_rows)
        self.numbers = kernels.Numbers(self.target.view(np.uint64), kernels.REAL, weight.view(np.uint64), kernels.REAL)
        around = self.pairs.WEIGHED_STEP if weighted else self.pairs.PLAIN_STEP
        self.form = self.pairs.Form(2 * around, around, weighted, True, False, RULES["blend"])
        self.centre = float(self.target[0]) if n_rows else 0.0
        exact = [(Fraction(w), Fraction(w) * Fraction(v)) for v, w in zip(self.target, weight, strict=True)]
        squares = [w * (Fraction(v) - Fraction(self.centre)) ** 2 for v, (w, _) in zip(self.target, exact, strict=True)]
        # What the rows before each row add to S, N and Q, and then what all do.
        self.exact = [
            list(accumulate(parts, initial=Fraction(0)))
            for parts in ([part for _, part in exact], [w for w, _ in exact], squares)
        ]

    def check(self, s, n, q, place):
        """Check sums, each a number, its lower number and its bound, with those of the rows before a place."""
        for (high, low, noise), exact in zip((s, n, q), self.exact, strict=True):
            # Formulas take 9/8 of a bound, for rounding.
            assert abs(exact[place] - Fraction(high) - Fraction(low)) <= Fraction(noise) * Fraction(9, 8)


SPREADS = [(False, 3), (False, 140), (True, 3), (True, 140), (False, None)]


@pytest.mark.parametrize("n_rows", [1, 2, 7, 8, 9, 1_023, 1_025, 2_055, 3_072])
@pytest.mark.parametrize(("weighted", "spread"), SPREADS)
def test_sums_of_a_piece_are_within_their_bounds(n_rows, weighted, spread):
    rows = Neighbours(n_rows, weighted, spread)
    sums, pairs, line = rows.sums, rows.pairs, np.empty(rows.pairs.LARGEST_STEP)
    assert sums.sum_piece(rows.numbers, 0, n_rows, rows.centre, rows.form, sums.room_for_piece(), line)
    n = line[pairs.N : pairs.N + 3] if weighted else [line[pairs.N], 0.0, 0.0]
    rows.check(line[:3], n, line[rows.form.around :][:3], n_rows)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("n_rows", [0, 1, 2, 31, 33, 1_024, 1_025, 2_060])
@pytest.mark.parametrize(("weighted", "spread"), SPREADS)
def test_sums_before_places_are_within_their_bounds(n_rows, weighted, spread, sign):
    rows = Neighbours(n_rows, weighted, spread)
    sums, pairs, lines = rows.sums, rows.pairs, np.zeros(2 * rows.pairs.LARGEST_STEP)
    # Each row, rows that nobody begins with, and many places at one row.
    for places in (np.arange(n_rows), np.arange(0, n_rows + 1, 7), np.repeat([0, n_rows // 2, n_rows], 1_100)):
        out, room, at = np.zeros((pairs.ALL_WIDTH, len(places) + 2)), sums.room_for_piece(), pairs.LARGEST_STEP
        lines[:] = 0.0
        assert sums.add_before_places(
            *(rows.numbers, 0, 0, n_rows, places, sign, rows.centre, rows.form, room, sums.room_for_piece()),
            *(lines, at, out.reshape(-1), 1, out.shape[1]),
        )
        signs = np.array([sign, sign, 1.0])
        assert not lines[:at].any()
        assert not out[:, [0, -1]].any()
        for number, place in enumerate(places.tolist(), 1):
            s, n, q = (out[k : k + 3, number] * signs for k in (pairs.S, pairs.N, pairs.Q))
            rows.check(s, n, q, place)
        n = lines[at + pairs.N :][:3] if weighted else np.array([lines[at + pairs.N], 0.0, 0.0])
        rows.check(lines[at:][:3] * signs, n * signs, lines[at + rows.form.around :][:3] * signs, n_rows)
