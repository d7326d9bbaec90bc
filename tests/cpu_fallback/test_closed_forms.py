"""Leave-one-out by closed forms on a CPU, and by exact code for undecided rows: the bits of NumPy's expressions."""

from importlib import import_module

import numpy as np
import pytest

from cpu_fallback.types import Rows
from tests.cases import pairs
from tests.cpu_fallback.test_row_encodings import RULES, SMOOTHINGS
from tests.cuda.test_leave_one_out import CLOSED, N_CATEGORIES, TARGETS, Data, assert_same

EXTREMES = {
    "huge": lambda random, size: random.standard_normal(size) * 1e300,
    "tiny": lambda random, size: random.standard_normal(size) * 1e-300,
    "all magnitudes": lambda random, size: random.standard_normal(size) * 10.0 ** random.integers(-300, 300, size),
    "opposite": lambda random, size: np.resize([0.1, -0.1, 1e16, -1e16], size),
    "neighbours": lambda random, size: np.where(random.random(size) < 0.5, 1.0, 1 + 2.0**-52),
}
# No GPU is needed.
pytestmark = pytest.mark.host


@pytest.fixture
def module():
    return import_module("cpu_fallback.compiled.leave_one_out_encodings")


@pytest.fixture
def open_rows(module, monkeypatch):
    """Return a list: how many rows each call left to exact code."""
    found, encode = [], module.encode_by_closed_forms

    def watched(*given):
        lost, numbers = encode(*given)
        found.append(len(numbers))
        return lost, numbers

    monkeypatch.setattr(module, "encode_by_closed_forms", watched)
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("target", "smoothing", "rule"), pairs([*TARGETS, *EXTREMES], CLOSED, RULES))
@pytest.mark.filterwarnings("ignore:.*beyond the range of float32")
def test_encodings_are_those_of_the_definition(compiled, monkeypatch, target, smoothing, rule, dtype):
    for name, draw in EXTREMES.items():
        monkeypatch.setitem(TARGETS, name, draw)
    for size in (9, 203, 700):
        assert_same(compiled, Data(target, size, smoothing, rule), dtype)


@pytest.mark.parametrize("smoothing", CLOSED)
@pytest.mark.parametrize("rule", RULES)
def test_categories_of_one_row_or_one_for_all(compiled, smoothing, rule):
    data = Data("real", 90, smoothing, rule)
    for codes in (np.arange(90) % N_CATEGORIES, np.zeros(90), np.where(np.arange(90) < N_CATEGORIES, np.arange(90), 0)):
        data.rows = Rows(codes.astype(np.int32), None, data.rows.target, None)
        assert_same(compiled, data, "float64")


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_next_to_no_row_of_plain_data_stays_open(compiled, open_rows, smoothing):
    for target in ("real", "float32", "whole", "alike"):
        data = Data(target, 30_000, smoothing)
        out = np.empty((30_000, 1), order="F")
        data.encode(compiled, Rows(data.rows.codes, None, data.rows.target.astype(float), None), out)
    # Every estimate with a tiny m is left to its digits.
    assert max(open_rows) == 30_000 if smoothing == "tiny m" else sum(open_rows) < 1e-4 * 120_000


def test_a_share_whose_first_rows_stay_open_is_left_to_exact_code(compiled, module, open_rows, monkeypatch):
    monkeypatch.setattr(module, "shares", lambda size, **_: [(0, size)])
    size = 3 * module.BLOCK + 5
    data = Data("real", size, "m-estimate", "policies")
    # The rows of the first block are of a category that is too far away for a closed form.
    far = np.arange(size) < module.BLOCK
    codes = np.where(far, 0, np.maximum(data.rows.codes, 1)).astype(np.int32)
    for target, n_open in ((data.rows.target, 0), (np.where(far, 1e200, data.rows.target), size)):
        data.rows = Rows(codes, None, target, None)
        assert_same(compiled, data, "float64")
        assert open_rows[-1] == n_open


def far_category(target, codes):
    """One category is so far away that the sum of all rows has no closed form."""
    target[codes == 1] *= 2.0**300


def cancelled(target, codes):
    """The sum of all rows is next to nothing."""
    target[...] = np.resize([1.5, -1.5], len(target))
    target[-2:] = 2.0**-330, 0.0


@pytest.mark.parametrize("spoil", [far_category, cancelled])
@pytest.mark.parametrize("number", [0.0, 1.0, 3.0, np.nan], ids=["zeros", "ones", "threes", "NaN"])
def test_a_sum_of_all_rows_without_a_closed_form(compiled, module, monkeypatch, number, spoil):
    def filled(size, kind):
        # Each number of a line is another one, as after earlier calls.
        return (number * np.arange(1, size + 1) if kind is np.float64 else np.zeros(size)).astype(kind)

    monkeypatch.setattr(module, "empty", filled)
    for rule in RULES:
        for smoothing in CLOSED:
            data = Data("real", 300, smoothing, rule)
            data.rows.target[...] = np.random.default_rng(3).standard_normal(300)
            spoil(data.rows.target, data.rows.codes)
            assert_same(compiled, data, "float64")


@pytest.mark.parametrize("number", [0.0, 1.0, np.nan], ids=["zeros", "ones", "NaN"])
def test_rows_read_no_number_that_is_not_written(compiled, module, monkeypatch, number):
    monkeypatch.setattr(module, "empty", lambda size, kind: np.full(size, number if kind is np.float64 else 0, kind))
    monkeypatch.setitem(RULES, "large", {"prior": 2.0**118, "unseen": 7.5, "missing": "nan", "min_count": 3.0})
    for rule in RULES:
        for smoothing in CLOSED:
            data = Data("real", 300, smoothing, rule)
            data.rows.target[...] = np.random.default_rng(3).standard_normal(300) * 2.0**118
            data.rows.target[data.rows.codes == 1] *= 2.0**28
            assert_same(compiled, data, "float64")


def test_what_has_no_closed_form(compiled, open_rows):
    weight = np.random.default_rng(1).random(60)
    for data in (Data("real", 60, weight=weight), Data("real", 60, "tiny m"), Data("real", N_CATEGORIES)):
        assert_same(compiled, data, "float64")
    assert open_rows == [60, 60, N_CATEGORIES]
