"""Encodings of all categories in one pass have the bits of the array expressions that define them."""

import numpy as np
import pytest

import cpu_fallback
from cpu_fallback import compiled
from cpu_fallback.fused_rules import PopulationMoments
from cpu_fallback.types import Layout, Rows, Window
from gpu_encode.fitting.leave_one_out import table_by_cells, table_in_one_pass
from gpu_encode.fitting.tasks import EncodingTask
from gpu_encode.formulas.encoding_rule import EncodingRule, SeenSums
from gpu_encode.formulas.smoothing import EmpiricalBayes, JamesStein, MEstimate, NoSmoothing, PartialPooling, Sigmoid
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec
from gpu_encode.tables.categories.values import Values
from gpu_encode.tables.categories.vocabulary import Vocabulary
from tests.backends import on_threads

# An m of a few bits lets one division do where counts are small, one of many bits never does, and so small an m makes
# every estimate one that its digits decide.
M_ESTIMATES = [MEstimate(2.5), MEstimate(0.1), MEstimate(1e-100)]
SMOOTHINGS = [NoSmoothing(), MEstimate(0.0), *M_ESTIMATES, Sigmoid(3.0, 0.7), EmpiricalBayes()]
OPTIONS = [
    {},
    {"prior": 0.25},
    {"unseen": np.nan, "missing": "nan"},
    {"unseen": -1.0, "missing": "prior", "min_count": 4},
    {"unseen": -0.0, "min_count": 4},
]
N_FOLDS = 5
LAYOUTS = {
    "binary": (Layout(), 2, 1),
    "three classes": (Layout(), 3, 0),
    "real weights": (Layout(Window(-2, 4, False)), 3, 0),
    "whole target": (Layout(Window(), Window(), Window()), 1, 0),
    "real target": (Layout(Window(), Window(-2, 4, False), Window(-4, 7, False)), 1, 0),
}
VISIBILITIES = {
    "own": None,
    "own by a matrix": np.eye(N_FOLDS, dtype=np.int64),
    "so far": np.tril(np.ones((N_FOLDS, N_FOLDS), np.int64)),
    "others": 1 - np.eye(N_FOLDS, dtype=np.int64),
    "earlier": np.tril(np.ones((N_FOLDS, N_FOLDS), np.int64), -1),
    "all": np.ones((1, N_FOLDS), np.int64),
}


@pytest.fixture(autouse=True, params=[1, 3])
def number_of_threads(request):
    with on_threads(request.param):
        yield


def cells_of(kind, n_lines, seed, largest=6):
    """Return possible sums of rows: many empty cells, some cells with one row, and squares that fit the sums."""
    draw = np.random.default_rng(seed)
    layout, n_classes, _ = LAYOUTS[kind]
    accumulators = np.zeros((n_lines, N_FOLDS, n_classes, layout.width), np.int64)
    counts = draw.integers(0, largest, accumulators.shape[:3]) * draw.integers(0, 2, accumulators.shape[:3])
    if kind == "real weights":
        accumulators[..., 1:3] = draw.integers(0, 1 << 32, (*accumulators.shape[:3], 2)) * (counts > 0)[..., None]
        return accumulators
    accumulators[..., 0] = counts
    if kind.endswith("target"):
        values = draw.integers(-1000, 1000, accumulators.shape[:3]) * (counts > 0)
        for place, power in ((1, 1), (1 + layout.total.width, 2)):
            # Counted as so many halves or quarters, in the digit above the point where there are digits.
            shift = 0 if layout.total.whole else 2 if power == 1 else 4
            accumulators[..., place + shift] = np.where(counts > 0, values**power * counts, 0)
            if shift:
                accumulators[..., place] = (
                    draw.integers(0, 1 << 32, accumulators.shape[:3]) * (counts > 0) * (power == 1)
                )
        if not layout.total.whole:
            accumulators[..., 1 + layout.total.width + 4] += 2 * np.abs(values) * counts + counts
    return accumulators


def statistics_of(kind, accumulators):
    layout, _, first = LAYOUTS[kind]
    return CategorySums(accumulators, SumSpec(layout, not kind.endswith("target"), first))


def key_of(n_lines):
    vocabulary, _ = Vocabulary.from_unsorted(Values("number", np.arange(n_lines - 2), "int64"))
    return CategoryIndex(KeySpec("x", (0,)), [vocabulary])


def same(encodings, expected):
    assert encodings.values.shape == expected.values.shape
    np.testing.assert_array_equal(encodings.values.view(np.int64), expected.values.view(np.int64))
    np.testing.assert_array_equal(encodings.unseen, expected.unseen)


def check_one_pass(monkeypatch, seen):
    """Compare the table from one pass with that of the array expressions."""
    key = key_of(len(seen.sums.accumulators))
    encodings = seen.table(key)
    with monkeypatch.context() as patch:
        patch.setattr(SeenSums, "table_in_one_pass", lambda *_: None)
        same(encodings, seen.table(key))


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=repr)
@pytest.mark.parametrize("visibility", VISIBILITIES)
@pytest.mark.parametrize("kind", LAYOUTS)
def test_tables_are_those_of_the_array_expressions(kind, visibility, smoothing, monkeypatch):
    for seed, options in enumerate(OPTIONS):
        statistics, formula = statistics_of(kind, cells_of(kind, 40, seed)), EncodingRule(smoothing, **options)
        check_one_pass(monkeypatch, SeenSums(statistics, VISIBILITIES[visibility], formula, compiled))


@pytest.mark.parametrize("smoothing", M_ESTIMATES, ids=repr)
@pytest.mark.parametrize("largest", [1 << 22, 1 << 24, 1 << 26, 1 << 28])
@pytest.mark.parametrize("kind", ["binary", "three classes"])
def test_estimates_of_many_rows(kind, largest, smoothing, monkeypatch):
    # Products of the counts of a category and of all rows are on both sides of the largest float.
    for visibility in (VISIBILITIES["others"], None):
        statistics = statistics_of(kind, cells_of(kind, 40, 3, largest))
        check_one_pass(monkeypatch, SeenSums(statistics, visibility, EncodingRule(smoothing), compiled))


@pytest.mark.parametrize("prior", [4294967291.0, -4294967291.0, -1.0])
def test_estimates_beside_a_prior_that_no_mean_of_labels_is(prior, monkeypatch):
    # Products of these counts with m do not fit a float.
    statistics = statistics_of("binary", cells_of("binary", 200, 4, 100))
    check_one_pass(monkeypatch, SeenSums(statistics, None, EncodingRule(MEstimate(10 + 2**-20), prior=prior), compiled))


@pytest.mark.parametrize("smoothing", [*M_ESTIMATES, Sigmoid(3.0, 0.7), EmpiricalBayes()], ids=repr)
@pytest.mark.parametrize("kind", ["real weights", "real target"])
@pytest.mark.parametrize(("n_lines", "views"), [(1000, 1), (7, 120)], ids=["many lines", "many views"])
def test_blocks_end_anywhere(n_lines, views, kind, smoothing, monkeypatch):
    accumulators = np.tile(cells_of(kind, n_lines, 5), (1, views, 1, 1))
    for others in (None, 1 - np.eye(accumulators.shape[1], dtype=np.int64)):
        check_one_pass(
            monkeypatch, SeenSums(statistics_of(kind, accumulators), others, EncodingRule(smoothing), compiled)
        )


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=repr)
def test_counts_from_two_to_the_31_on_are_exact_too(smoothing, monkeypatch):
    accumulators = cells_of("binary", 12, 0, 1 << 30)
    accumulators[3] = (1 << 52) + 1
    accumulators[4, :, 0] = 1 << 31
    accumulators[5, :, 1] = (1 << 31) - 1
    accumulators[6] = 1 << 30
    statistics = statistics_of("binary", accumulators)
    check_one_pass(monkeypatch, SeenSums(statistics, VISIBILITIES["others"], EncodingRule(smoothing), compiled))


def test_the_pass_is_taken_for_the_formulas_that_it_knows(monkeypatch):
    taken = []
    pass_of = compiled.fused.encode_categories
    monkeypatch.setattr(compiled.fused, "encode_categories", lambda *given: taken.append(given) or pass_of(*given))
    others = [*map(EncodingRule, (EmpiricalBayes("between"), JamesStein(), PartialPooling()))]
    for formula in (*map(EncodingRule, SMOOTHINGS), *others, EncodingRule(MEstimate(), "category_mean")):
        SeenSums(statistics_of("binary", cells_of("binary", 9, 1)), None, formula, compiled).table(key_of(9))
    assert len(taken) == len(SMOOTHINGS)
    assert all(isinstance(given[4], PopulationMoments) for given in taken)


@pytest.mark.parametrize("visibility", VISIBILITIES)
@pytest.mark.parametrize("shape", [(9, N_FOLDS, 2, 1), (3, N_FOLDS, 1, 4), (6, N_FOLDS, 4, 3)])
def test_what_views_see(shape, visibility):
    accumulators = np.random.default_rng(0).integers(-(1 << 40), 1 << 40, shape)
    expected = cpu_fallback.visible(accumulators, VISIBILITIES[visibility])
    np.testing.assert_array_equal(compiled.visible(accumulators, VISIBILITIES[visibility]), expected)


@pytest.mark.parametrize("n_lines", [0, 1, 63, 64, 200])
def test_totals(n_lines):
    accumulators = np.random.default_rng(0).integers(-(1 << 40), 1 << 40, (n_lines, N_FOLDS, 2, 3))
    for backend in (compiled, cpu_fallback):
        np.testing.assert_array_equal(backend.totals(accumulators), accumulators.sum(axis=0))


@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=repr)
@pytest.mark.parametrize("kind", ["binary", "three classes"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_tables_by_category_and_own_class(kind, smoothing, options):
    layout, n_classes, first = LAYOUTS[kind]
    statistics = CategorySums(cells_of(kind, 40, 5)[:, :1], SumSpec(layout, True, first))
    rows = Rows(np.zeros(1, np.int32), np.zeros(1, np.int32))
    job = EncodingTask(compiled, rows, key_of(40), n_classes, statistics.spec, EncodingRule(smoothing, **options))
    encodings, expected = table_in_one_pass(job, statistics, np.float64), table_by_cells(job, statistics)
    held = statistics.accumulators[:, 0, :, 0] > 0
    np.testing.assert_array_equal(encodings.values[held].view(np.int64), expected.values[held].view(np.int64))
    np.testing.assert_array_equal(encodings.unseen[held], expected.unseen[held])
    assert not encodings.values[~held].any()  # nor NaN
