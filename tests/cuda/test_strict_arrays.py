"""The code around the operations runs on CuPy's arrays and gives NumPy's bits, told without a GPU."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("cupy")

import cpu_fallback
import gpu_encode as ge
from cpu_fallback.digits import mantissas
from cpu_fallback.exact import Limbs
from cpu_fallback.types import Layout, Rows
from gpu_encode.fitting.fit import plan_rows, prepare
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.formulas import encoding_rule
from gpu_encode.ops import use_backend
from gpu_encode.schemes.plans import Plan, upload
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.training import encodings
from gpu_encode.training.tasks import EncodingTask
from tests.bits import assert_same_bits
from tests.cases import SMOOTHINGS
from tests.cuda.strict import StrictArray, StrictOps

# The arrays and the operations are stand-ins of their own.
pytestmark = pytest.mark.host

STRICT = StrictOps()
SIZE = 60
KINDS = ("binary", "continuous", "multiclass")


def some_splits() -> list[tuple[Any, Any]]:
    """Split in three, with training sets that are no unions of the test sets."""
    row = np.arange(SIZE)
    return [(row[(row % 3 != part) & (row % 7 != 0)], row[row % 3 == part]) for part in range(3)]


def some_unions() -> list[tuple[Any, Any]]:
    """Split in four; the first part sees the second and the last, and so on around."""
    row = np.arange(SIZE)
    return [(row[(row - part) % 2 == 1], row[row % 4 == part]) for part in range(4)]


SCHEMES = {
    "greedy": ge.Greedy,
    "k-fold": lambda: ge.KFold(3, random_state=4),
    "contiguous": lambda: ge.KFold(4, order="contiguous"),
    "stratified": lambda: ge.KFold(2, stratify=True),
    "blow-up": lambda: ge.KFold(3, blow_up=True),
    "groups": lambda: ge.GroupKFold(3, groups="group"),
    "time-folds": lambda: ge.TimeFolds(4, time="time", gap=1),
    "holdout": lambda: ge.Holdout(0.4),
    "given": lambda: np.arange(SIZE) * 5 % 4,
    "splits": some_splits,
    "unions": some_unions,
    "leave-one-out": ge.LeaveOneOut,
    "ordered": lambda: ge.Ordered(burn_in=3),
    "averaged": lambda: ge.Ordered(3, burn_in=0.3, random_state=1),
    "apart": lambda: ge.Ordered(2, average=False),
    "in-time": lambda: ge.Ordered(time="time"),
}
# What decides over a path of its own, beside the scheme, the smoothing and the kind of target.
CHOICES = {
    "plain": {},
    "category-mean": {"prior": "category_mean", "smooth": ge.PartialPooling()},
    "number-float32": {"prior": 0.25, "dtype": "float32", "indicators": True},
    "counted-nan": {"min_count": 3.0, "handle_missing": "nan", "handle_unknown": "nan", "indicators": True},
    "missing-prior": {"handle_missing": "prior", "handle_unknown": 7.5, "smooth": ge.JamesStein()},
    "given": {"categories": [["a", "b", "c", "never seen"]], "min_count": 2.0},
    "hierarchy": {"hierarchy": {"key": ["top", "mid"]}, "prior": "category_mean", "min_count": 2.0},
    "derived": {"hierarchy": {"key": ge.Prefixes(1)}, "handle_missing": "nan", "smooth": ge.JamesStein()},
    "drop": {"drop": "first", "smooth": ge.EmpiricalBayes("between")},
}


@dataclass
class Data:
    """Rows, targets of each kind and weights."""

    frame: pd.DataFrame
    targets: dict[str, Any]
    weight: Any


def drawn(size: int) -> Data:
    """Draw rows: few categories, one of them in one row alone, missing ones, ties in time."""
    draw = np.random.default_rng(7)
    keys = draw.choice(np.array(["a", "b", "ca", "cb", "dd", "e", None], dtype=object), size)
    keys[:2] = "only here", "b"
    row = np.arange(size)
    frame = pd.DataFrame({"key": keys, "group": row * 5 % 7, "time": row * 7 % (size // 6)})
    frame["mid"] = [None if key is None else key[:1] for key in keys]
    frame["top"] = [None if key is None else "ab"[key > "b"] for key in keys]
    numbers = draw.normal(size=size) * 10.0 ** draw.integers(-9, 9, size)
    targets = {"binary": row * 3 % 5 % 2, "continuous": numbers, "multiclass": row * 7 % 5 % 3}
    return Data(frame, targets, draw.integers(0, 5, size) / 4)


@pytest.fixture(scope="module")
def data() -> Data:
    return drawn(SIZE)


def read(data: Data, kind: str, weighted: bool, scheme: Any, **choices: Any) -> tuple[list[EncodingTask], Plan]:
    """Read rows as an encoder does, on the host."""
    encoder = ge.TargetEncoder(cv=scheme, target_type=kind, columns=["key"], **choices)
    weight = data.weight if weighted else None
    with use_backend("numpy"):
        parameters = encoder._parameters()
        context = prepare(parameters, Inputs(data.frame, data.targets[kind], weight))
        plan = plan_rows(parameters.scheme, context.rows, context.targets)
        return [task for tasks in context.tasks for task in tasks], plan


def strict(task: EncodingTask) -> EncodingTask:
    """Give the task with its rows on the other side."""
    parts = (task.rows.codes, task.rows.classes, task.rows.target, task.rows.weight)
    rows = Rows(*(part if part is None else STRICT.to_device(part) for part in parts))
    return replace(task, ops=STRICT, rows=rows)


def trained(task: EncodingTask, plan: Plan, dtype: str) -> list[Any]:
    """Training codes, indicators, what new rows see by `train` and by `sum_for_new_rows`, and their codes."""
    out = task.ops.empty((len(task.rows), task.n_outputs * encodings.n_columns(plan)), dtype, "F")
    done = encodings.train(task, plan, out, True)
    lasting = encodings.sum_for_new_rows(task, plan)
    codes = encoding_rule.table(lasting, None, task.key, task.rule, task.ops)
    flat = encodings.flatten(codes)
    found = [
        out,
        done.unseen,
        done.statistics.accumulators,
        lasting.accumulators,
        codes.values,
        codes.unseen,
        flat.values,
    ]
    assert all(isinstance(each, StrictArray) for each in found) == (task.ops is STRICT)
    kept = [each.on_host(task.ops).to_canonical() for each in (done.statistics, lasting)]
    return [*map(task.ops.to_host, found), *(each.accumulators for each in kept)]


def assert_same(data: Data, kind: str, weighted: bool, scheme: str, *, dtype: str = "float64", **choices: Any) -> None:
    """Train on both sides and compare bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        tasks, plan = read(data, kind, weighted, SCHEMES[scheme](), dtype=dtype, **choices)
        for task in tasks:
            expected, found = trained(task, plan, dtype), trained(strict(task), upload(plan, STRICT), dtype)
            for mine, theirs in zip(found, expected, strict=True):
                assert mine.dtype == theirs.dtype
                assert_same_bits(mine, theirs)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_and_smoothings(data, scheme, smoothing):
    for kind in ("binary",) if scheme == "stratified" else ("continuous", "multiclass"):
        assert_same(data, kind, False, scheme, smooth=SMOOTHINGS[smoothing])


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_choices(data, scheme, choice):
    for kind in ("binary",) if scheme == "stratified" else KINDS:
        assert_same(data, kind, True, scheme, **CHOICES[choice])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["k-fold", "leave-one-out", "ordered", "in-time"])
def test_levels_without_weights(data, scheme, kind):
    # Without weights leave-one-out of classes goes by table.
    assert_same(data, kind, False, scheme, **CHOICES["hierarchy"])


@pytest.mark.parametrize("scheme", ["leave-one-out", "averaged", "in-time"])
def test_many_rows(monkeypatch, scheme):
    # From 512 rows on, priors of orders are taken at checkpoints.
    monkeypatch.setattr(STRICT, "TILE", 500)
    assert_same(drawn(1400), "continuous", True, scheme, smooth=ge.PartialPooling(), prior="category_mean")


@pytest.mark.parametrize("missing", ["category", "prior"])
@pytest.mark.parametrize("scheme", ["k-fold", "blow-up", "leave-one-out", "averaged", "in-time"])
@pytest.mark.parametrize("hierarchy", [{}, {"hierarchy": {"key": ["top", "mid"]}}])
def test_no_categories(data, scheme, missing, hierarchy):
    empty = Data(data.frame.assign(key=None, top=None, mid=None), data.targets, data.weight)
    for kind in KINDS:
        assert_same(empty, kind, False, scheme, handle_missing=missing, smooth=ge.JamesStein(), **hierarchy)


def test_views_see_the_folds_that_the_matrix_says():
    draw = np.random.default_rng(3)
    accumulators = draw.integers(-(2**62), 2**62, (5, 6, 2, 3))
    visibility = draw.integers(0, 2, (9, 6))
    visibility[:2] = [[0] * 6, [1, 0, 1, 1, 0, 1]]
    expected = np.tensordot(accumulators, visibility, ([1], [1])).transpose(0, 3, 1, 2)
    measured = SumSpec(Layout(), True)
    np.testing.assert_array_equal(
        CategorySums(accumulators, measured).visible(cpu_fallback, visibility).accumulators, expected
    )
    there = CategorySums(STRICT.to_device(accumulators), measured).visible(STRICT, visibility)
    np.testing.assert_array_equal(there.on_host(STRICT).accumulators, expected)


def test_sums_of_parents():
    draw = np.random.default_rng(4)
    accumulators = draw.integers(-(2**63), 2**63, (9, 2, 1, 3))
    parents = np.array([2, -1, 0, 0, 2, 4, -1], np.int32)
    expected = [accumulators[:-2][parents == parent].sum(axis=0) for parent in range(5)]
    measured = SumSpec(Layout(), True)
    for ops in (cpu_fallback, STRICT):
        sums = CategorySums(ops.to_device(accumulators), measured).sum_by_parent(ops, parents, 5)
        found = sums.on_host(ops).accumulators
        np.testing.assert_array_equal(found, [*expected, *accumulators[-2:]])


def test_exact_numbers_below_the_smallest_normal_one_and_beyond_one_word():
    values = np.array([[5e-324, 3e-310, 1e-160], [1 / 3, 2.0**60 + 2**9, 1e300], [-0.1, 0.0, 7.0]])
    whole = np.array([[-(2**63), 2**62, 3]])

    def numbers(floats: Any, integers: Any) -> list[Any]:
        exact, large = Limbs.of_floats(floats), Limbs.of_integers(integers)
        parts = [exact, exact * exact, exact * large - exact, large * large, large + large]
        found = [each.rounded() for each in parts] + [each.canonical().digits for each in parts]
        return [*found, *(each.scaled().exponent for each in parts), *mantissas(integers.ravel())]

    found = numbers(STRICT.to_device(values), STRICT.to_device(whole))
    for mine, theirs in zip(found, numbers(values, whole), strict=True):
        assert_same_bits(mine.get(), theirs)


# What the stand-in is for: each of these runs on NumPy's arrays.
WRONG = {
    "host array in arithmetic": lambda a, mask: a + np.ones(3),
    "host array on the left": lambda a, mask: np.ones(3) * a,
    "host array among several": lambda a, mask: np.concatenate([a, np.ones(3)]),
    "host array in an index": lambda a, mask: a[np.array([0, 1])],
    "host mask": lambda a, mask: a[np.array([True, False, True])],
    "host array assigned": lambda a, mask: a.__setitem__(slice(None), np.ones(3)),
    "implicit transfer": lambda a, mask: np.asarray(a),
    "ufunc.at": lambda a, mask: np.add.at(a, mask, 1),
    "accumulate": lambda a, mask: np.maximum.accumulate(a),
    "a function that CuPy lacks": lambda a, mask: np.insert(a, 0, 1.0),
    "an option that CuPy lacks": lambda a, mask: np.min(a, initial=0.0),
    "where in a ufunc": lambda a, mask: np.add(a, a, where=mask),
    "a number as an index": lambda a, mask: range(a.astype(np.int64)[0]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_stand_in_refuses_what_cupy_refuses(wrong):
    array = STRICT.to_device(np.array([1.0, 2.0, 3.0]))
    with pytest.raises(TypeError):
        WRONG[wrong](array, array > 1)


def test_the_stand_in_refuses_what_cupy_does_otherwise():
    array = STRICT.to_device(np.array([1.0, 2.0, 3.0]))
    twice = STRICT.to_device(np.array([1, 1]))
    for wrong in (
        lambda: array.put(twice, array[:2]),
        lambda: array.__setitem__(twice, 0.0),
        lambda: np.zeros_like(array, shape=()),
    ):
        with pytest.raises(AssertionError):
            wrong()
