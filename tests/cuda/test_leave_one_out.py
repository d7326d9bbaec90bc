"""Leave-one-out by closed forms, and by exact code for undecided rows: the bits of NumPy's expressions."""

from collections import Counter
from fractions import Fraction
from importlib import import_module

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback.compiled.moments import shape_of
from cpu_fallback.fused_rules import FusedRule
from cpu_fallback.types import Layout, Rows, SumShape
from gpu_encode.fitting import fit
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.schemes.plans import LeaveOneOutPlan, upload
from gpu_encode.sums import category_sums
from gpu_encode.sums.category_sums import SumSpec
from tests.cases import pairs
from tests.cpu_fallback.test_row_encodings import RULES, SMOOTHINGS, OnlyKey

pytestmark = pytest.mark.cuda

N_CATEGORIES = 5
CLOSED = [name for name in SMOOTHINGS if name != "tiny m"]


def halves(random, size):
    """Return floats near one: means of two, four or eight of them are often exactly between two floats."""
    return 1 + random.integers(-9, 9, size) * 2.0**-53


TARGETS = {
    "real": lambda random, size: random.standard_normal(size) * 10.0 ** random.integers(-3, 4, size),
    "float32": lambda random, size: random.standard_normal(size).astype(np.float32),
    "whole": lambda random, size: random.integers(-40, 40, size),
    "large": lambda random, size: random.integers(2**53 - 5, 2**53 + 5, size),
    "halves": halves,
    "far from zero": lambda random, size: 1e9 + random.random(size),
    "zeros": lambda random, size: np.where(random.random(size) < 0.9, -0.0, random.random(size)),
    "alike": lambda random, size: np.full(size, 0.1),
    "alike but one": lambda random, size: np.where(np.arange(size) == 3, 7.0, 0.1),
    "smallest float32": lambda random, size: random.standard_normal(size).astype(np.float32) * np.float32(1e-39),
    "beyond float32": lambda random, size: random.standard_normal(size) * 1e38,
}


@pytest.fixture
def device():
    """Return the backend itself, on whose device all arrays lie."""
    return import_module("gpu_encode.cuda")


@pytest.fixture
def open_rows(monkeypatch):
    """Return a list: how many rows each call left to exact code; None for a call without closed forms."""
    module, found = import_module("gpu_encode.cuda.leave_one_out"), []
    memory, list_open_rows = import_module("gpu_encode.cuda.memory"), module.list_open_rows

    def watched(*given):
        listed, every, counters = list_open_rows(*given)
        found.append(None if every else int(memory.to_host(counters)[module.LISTED]))
        return listed, every, counters

    monkeypatch.setattr(module, "list_open_rows", watched)
    return found


class Data:
    """Return host rows of few categories; some categories have a single row."""

    def __init__(self, target, size, smoothing="m-estimate", rule="plain", weight=None):
        random = np.random.default_rng(size)
        shares = [0.05, 0.1, 0.5, 0.25, 0.08, 0.015, 0.005]
        codes = random.choice(np.arange(-2, N_CATEGORIES), size, p=shares).astype(np.int32)
        self.rows = Rows(codes, None, TARGETS[target](random, size), weight)
        self.rule = EncodingRule(SMOOTHINGS[smoothing], **RULES[rule])

    def spec(self, ops, target):
        powers = 2 if self.rule.statistic.needs.squares else 1
        return SumSpec(Layout(*category_sums.windows(ops, target, self.rows.weight, powers, len(self.rows))), False)

    def encode(self, ops, rows, out):
        """Encode rows on host or device, and return the flags of the unseen rows."""
        wide = self.rows.target.astype(np.float64) if self.rows.target.dtype == np.float32 else self.rows.target
        task = EncodingTask(ops, rows, OnlyKey(N_CATEGORIES), 1, self.spec(cpu_fallback, wide), self.rule)
        return fit.train(task, upload(LeaveOneOutPlan(), ops), out, want_unseen=True).unseen

    def expected(self, dtype):
        out = np.full((len(self.rows), 1), 9.0, dtype, order="F")
        rows = self.rows
        if rows.target.dtype == np.float32:
            rows = Rows(rows.codes, None, rows.target.astype(np.float64), rows.weight)
        return out, self.encode(cpu_fallback, rows, out)


def shifted(ops, array, by):
    """Copy an array to the device, some items after the beginning of its memory."""
    if array is None:
        return None
    memory = ops.to_device(np.concatenate([np.zeros(by, array.dtype), array]))
    return memory[by:]


def assert_same(ops, data, dtype, shifts=(0, 0, 0)):
    expected, unseen = data.expected(dtype)
    codes, target = shifted(ops, data.rows.codes, shifts[0]), shifted(ops, data.rows.target, shifts[1])
    rows = Rows(codes, None, target, shifted(ops, data.rows.weight, 0))
    memory = ops.to_device(np.full(len(expected) + shifts[2] + 2, 5.0, dtype))
    out = memory[shifts[2] : -2].reshape(-1, 1)
    found = data.encode(ops, rows, out)
    written = ops.to_host(memory)
    # Words are compared, so that NaN of different bits differ.
    assert written[shifts[2] : -2].tobytes() == expected.tobytes()
    assert (written[: shifts[2]] == 5.0).all()
    assert (written[-2:] == 5.0).all()
    assert np.array_equal(ops.to_host(found), unseen)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("target", "smoothing", "rule"), pairs(TARGETS, CLOSED, RULES))
@pytest.mark.filterwarnings("ignore:.*beyond the range of float32")
def test_encodings_are_those_of_the_definition(device, target, smoothing, rule, dtype):
    assert_same(device, Data(target, 203, smoothing, rule), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("smoothing", CLOSED)
def test_next_to_no_row_stays_open(device, open_rows, smoothing, dtype):
    for target, rule in zip(("real", "float32", "whole"), RULES, strict=True):
        assert_same(device, Data(target, 400, smoothing, rule), dtype)
        assert_same(device, Data(target, 4300, smoothing, rule), dtype)
    assert max(open_rows) <= 6


# Rows of whole tiles, of 4,096, are read as vectors where they lie on such.
@pytest.mark.parametrize("size", [28, 31, 130, 4096, 4099, 8197])
@pytest.mark.parametrize("smoothing", ["m-estimate", "bayes"])
def test_rows_anywhere_in_memory(device, smoothing, size):
    for number, dtype in enumerate(("float32", "float64", "float32", "float64")):
        shifts = number, (number + size) % 3, 3 - number
        assert_same(device, Data(["real", "float32"][size % 2], size, smoothing), dtype, shifts)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_stay_open_are_listed_wherever_they_lie(device, open_rows, dtype):
    data = Data("whole", 4300)
    # No float64 is this number.
    data.rows.target[[5, 1022, 1023, 4094, 4299]] = 2**53 + 1
    assert_same(device, data, dtype, (1, 0, 2))
    assert 5 <= open_rows[0] < 60


@pytest.mark.parametrize("word", [0, 0x3FF << 52, -1], ids=["zeros", "ones", "NaN"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore:.*beyond the range of float32")
def test_rows_read_no_word_that_is_not_written(device, monkeypatch, dtype, word):
    # The variance of all rows is beyond what lines hold, that of most categories is not, and the prior is given.
    module = import_module("gpu_encode.cuda.closed_forms")
    empty = module.empty

    def filled(shape, kind):
        room = empty(shape, kind)
        room[...] = word if kind == np.int64 else 0
        return room

    monkeypatch.setattr(module, "empty", filled)
    monkeypatch.setitem(RULES, "large", {"prior": 2.0**118, "unseen": 7.5, "missing": "nan", "min_count": 3.0})
    data = Data("real", 300, "bayes", "large")
    data.rows.target[...] = np.random.default_rng(3).standard_normal(300) * 2.0**118
    data.rows.target[data.rows.codes == 1] *= 2.0**28
    assert_same(device, data, dtype)


@pytest.mark.parametrize("smoothing", ["none", "bayes"])
def test_a_list_without_room_leaves_all_rows_to_exact_code(device, open_rows, smoothing, monkeypatch):
    module = import_module("gpu_encode.cuda.leave_one_out")
    monkeypatch.setattr(module, "ROOM_FOR_OPEN", 2)
    monkeypatch.setattr(module, "ROWS_OF_AN_OPEN", 1 << 20)
    fallbacks = import_module("gpu_encode.cuda.fallbacks")
    monkeypatch.setattr(fallbacks, "FALLBACKS", Counter())
    assert_same(device, Data("large", 60, smoothing), "float64")
    assert open_rows[0] > 2
    assert {f"leave_one_out_encodings: {fallbacks.OPEN}": 1} == fallbacks.FALLBACKS


def test_what_has_no_closed_form(device, open_rows):
    weight = np.random.default_rng(1).random(60)
    for data in (Data("real", 60, weight=weight), Data("real", 60, "tiny m"), Data("real", 13)):
        assert_same(device, data, "float64")
    assert open_rows == [None] * 3


def exact_sums(target, codes, n_lines):
    """Count, sum and sum of squares of each line, and of all rows, as fractions."""
    found = []
    for chosen in (*(codes % n_lines == line for line in range(n_lines)), np.ones(len(codes), bool)):
        numbers = [Fraction(number) for number in target[chosen].tolist()]
        found.append((len(numbers), sum(numbers, Fraction()), sum((x * x for x in numbers), Fraction())))
    return found


def lines_of(device, data, wide):
    """Return the lines that the device makes, (categories + 3, doubles), and the exact sums of their rows."""
    module, loo = import_module("gpu_encode.cuda.closed_forms"), import_module("gpu_encode.cuda.row_encodings")
    spec = data.spec(cpu_fallback, data.rows.target)
    sums = cpu_fallback.accumulate(data.rows, SumShape(N_CATEGORIES, layout=spec.layout))[:, 0]
    total, shape = sums.sum(axis=0), shape_of(spec.layout, 1)
    out = device.empty((len(data.rows), 1), "float64" if wide else "float32", "F")
    rule = FusedRule(data.rule.describe_fused(), True, 0.0, data.rule.describe_missing())
    flat = device.to_device(sums).reshape(-1), device.to_device(total).reshape(-1)
    lines = module.make_lines(module.Sums(*flat, N_CATEGORIES + 2), shape, rule, loo.destination_of(out))
    words = device.to_host(lines.words).reshape(N_CATEGORIES + 3, -1)
    return words.view(np.float64), exact_sums(data.rows.target, data.rows.codes, N_CATEGORIES + 2)


def assert_near(found, true, bound):
    """Demand that the sum of some doubles equals a number, up to a share of it."""
    assert abs(sum(map(Fraction, found)) - true) <= Fraction(bound) * abs(true)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("target", ["real", "whole", "halves", "far from zero", "alike", "zeros"])
def test_numbers_of_estimates_are_as_near_as_the_proof_has_it(device, target, wide):
    lines, sums = lines_of(device, Data(target, 120), wide)
    (_, total, _), above, m = sums[-1], sums[-1][0] - 1, Fraction(0.7)
    parts = 2 if wide else 1
    assert_near(lines[-1, :parts], above + m, 2.0**-104 if wide else 2.0**-53)
    for number, (line, (n, s, _)) in enumerate(zip(lines[:-1], sums[:-1], strict=True)):
        # Rows of unknown categories have the mean of all others.
        if n > 1 and number != N_CATEGORIES and not np.isnan(line[0]):
            assert_near(line[:parts], s * above + m * total, 2.0**-86 if wide else 2.0**-52)
            assert_near(line[parts : 2 * parts], 1 / ((n - 1 + m) * above), 20 * 2.0**-106 if wide else 1.01 * 2.0**-53)
    assert np.isnan(lines[:-1, 0]).sum() <= 2


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("target", ["real", "whole", "halves", "far from zero", "alike", "zeros"])
def test_numbers_of_blends_are_as_near_as_the_proof_has_it(device, target, wide):
    lines, sums = lines_of(device, Data(target, 120, "bayes"), wide)
    n_all, parts = sums[-1][0], 2 if wide else 1
    for number, (line, (n, s, q)) in enumerate(zip(lines, sums, strict=True)):
        if np.isnan(line[0]):
            assert n <= 1 or number == N_CATEGORIES
            continue
        assert_near(line[:parts], s, 2.0**-105 if wide else 2.0**-52)
        # An even sum is all of it.
        assert line.view(np.int64)[parts - 1] & 1 or sum(map(Fraction, line[:parts])) == s
        assert_near(line[parts : 2 * parts], Fraction(1, n - 1), 3 * 2.0**-106 if wide else 2.0**-53)
        alike = n == 2 or n * q == s * s
        spread = Fraction(n == n_all) if alike else (n - 1) * q - s * s
        assert_near(line[2 * parts : 3 * parts], spread, 2.0**-105 if wide else 2.0**-53)
        count, slope = (line[6], line[7] * s) if wide else (line[4], line[3])
        assert count == (0 if alike else n)
        assert_near([float(slope)], 0 if alike else 2 * s, 2.0**-53)
        if not wide and n < n_all:
            assert_near([line[5]], Fraction(n_all - 1) ** 2 / Fraction(n - 1) ** 3, 4 * 2.0**-53)
