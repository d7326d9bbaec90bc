"""Factors of tables of cells: steps compared with plain loops, factors that must be recovered, and visible rows."""

import pickle
from contextlib import nullcontext
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from cpu_fallback.row_numbers import Permutation, key_of
from cpu_fallback.types import Rows
from gpu_encode import FactorizationEncoder, KFold, LeaveOneOut, load
from gpu_encode.methods.factors.cells import Cells, Mode, predict, round_for_sums
from gpu_encode.methods.factors.descent import descend_by_loops, descend_rows, descend_together
from gpu_encode.methods.factors.iterations import Settings, choose_step, start
from gpu_encode.methods.factors.least_squares import solve
from gpu_encode.seam import ops
from tests.backends import BACKENDS, ON_CUDA, backend

# Tolerance for sums in another order, and other solvers of small systems.
CLOSE = {"rtol": 1e-9, "atol": 1e-10}
SIZES = [4, 3, 5]
PENALTIES = [0.3, 0.1, 0.7]


@pytest.fixture(autouse=True)
def computing():
    """Compute on the CUDA backend where one is asked for."""
    with ops.use_backend(ON_CUDA[0]) if ON_CUDA else nullcontext():
        yield


def draw_cells(weighted, n_columns=3, n_rows=60, seed=0):
    """Draw codes, values, weights or None, and factors; the last category of the first column has no rows."""
    random = np.random.default_rng(seed)
    sizes = SIZES[:n_columns]
    codes = [random.integers(0, size - (d == 0), n_rows).astype(np.int32) for d, size in enumerate(sizes)]
    weight = random.integers(1, 4, n_rows).astype(np.float64) if weighted else None
    factors = [random.normal(1.0, 0.3, (size, 2)) for size in sizes]
    return codes, random.normal(size=n_rows), weight, factors


def upload(given, codes, values, weight):
    """Give cells where a backend computes."""
    sizes = SIZES[: len(codes)]
    weight = None if weight is None else given.to_device(weight)
    return Cells(given, [given.to_device(column) for column in codes], sizes, given.to_device(values), weight)


def others_of(factors, codes, row, column):
    """Multiply the factors of all other columns of a row, by component."""
    held = np.ones(factors[0].shape[1])
    for d, table in enumerate(factors):
        if d != column:
            for s in range(len(held)):
                held[s] *= table[codes[d][row], s]
    return held


def error_of(factors, codes, values, row):
    """Give a row's prediction less its value."""
    predicted = 0.0
    for s in range(factors[0].shape[1]):
        term = 1.0
        for d, table in enumerate(factors):
            term *= table[codes[d][row], s]
        predicted += term
    return predicted - values[row]


def loss(factors, codes, values, weight, penalties):
    """Give the loss that descent reduces: half the squared errors and half the penalties, of every row."""
    total = 0.0
    for row in range(len(values)):
        squares = sum(
            penalty * (table[codes[d][row]] ** 2).sum()
            for d, (table, penalty) in enumerate(zip(factors, penalties, strict=True))
        )
        total += 0.5 * weight[row] * (error_of(factors, codes, values, row) ** 2 + squares)
    return total


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize(("weighted", "column"), list(product([False, True], range(3))))
def test_a_step_of_least_squares_is_a_ridge_system_for_each_category(name, weighted, column):
    codes, values, weight, factors = draw_cells(weighted)
    expected = np.zeros_like(factors[column])
    for category in range(SIZES[column]):
        left, right = np.eye(2) * 0.7, np.zeros(2)
        for row in range(len(values)):
            if codes[column][row] == category:
                held = others_of(factors, codes, row, column)
                of_row = 1.0 if weight is None else weight[row]
                left += of_row * np.outer(held, held)
                right += of_row * held * values[row]
        expected[category] = np.linalg.inv(left) @ right
    with backend(name) as given:
        mode = Mode.of(upload(given, codes, values, weight), column)
        solved = given.to_host(solve(mode, [given.to_device(table) for table in factors], 0.7))
    np.testing.assert_allclose(solved, expected, **CLOSE)


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_row_a_cell_says_what_its_rows_say(name, weighted):
    codes, values, weight, factors = draw_cells(weighted)
    of_row = np.ones(60) if weight is None else weight
    with backend(name) as given:
        rows = upload(given, codes, values, weight)
        cells, on_device = rows.join(), [given.to_device(table) for table in factors]
        steps = [[given.to_host(solve(Mode.of(each, d), on_device, 0.7)) for d in range(3)] for each in (rows, cells)]
        joined = [given.to_host(each) for each in (*cells.codes, cells.weight)]
        error = cells.mean_of_squares(on_device)
    for of_cells, of_rows in zip(steps[1], steps[0], strict=True):
        np.testing.assert_allclose(of_cells, of_rows, **CLOSE)
    totals = {}
    for *cell, w in zip(*codes, of_row, strict=True):
        totals[tuple(cell)] = totals.get(tuple(cell), 0.0) + w
    assert {tuple(cell): w for *cell, w in zip(*(each.tolist() for each in joined), strict=True)} == totals
    errors = [error_of(factors, codes, values, row) for row in range(60)]
    assert error == pytest.approx(np.dot(of_row, np.square(errors)) / of_row.sum(), rel=1e-12)


@pytest.mark.parametrize("n_columns", [2, 3])
def test_least_squares_is_the_minimum(n_columns):
    codes, values, _, factors = draw_cells(False, n_columns)
    cells = Cells(ops.load("cpu_fallback"), codes, SIZES[:n_columns], values)
    factors[1] = solve(Mode.of(cells, 1), factors, 0.5)

    def squares(table):
        tried = [table if d == 1 else factors[d] for d in range(n_columns)]
        return ((predict(tried, codes) - values) ** 2).sum() + 0.5 * (table**2).sum()

    least = squares(factors[1])
    random = np.random.default_rng(1)
    assert all(squares(factors[1] + random.normal(scale=1e-3, size=factors[1].shape)) > least for _ in range(20))


def step_of_a_row(factors, codes, values, weight, row, rate):
    """Take a step of the formula: every factor of the row changes by the others' old values."""
    old = [table.copy() for table in factors]
    error = error_of(old, codes, values, row)
    for d, table in enumerate(factors):
        held, line = others_of(old, codes, row, d), codes[d][row]
        for s in range(table.shape[1]):
            table[line, s] -= rate * weight[row] * (error * held[s] + PENALTIES[d] * old[d][line, s])


@pytest.mark.parametrize("weighted", [False, True])
def test_an_epoch_of_rows(weighted):
    codes, values, weight, factors = draw_cells(weighted)
    host = ops.load("cpu_fallback")
    orders = [Permutation(60, key_of(7, number)) for number in (4, 5)]
    cells = Cells(host, codes, SIZES, values, weight)
    made, other = (descend_rows(cells, factors, PENALTIES, 0.04, each, host) for each in orders)
    expected = [table.copy() for table in factors]
    order = host.rows_at(orders[0], 0, 60)
    assert sorted(order) == list(range(60))
    for row in order:
        step_of_a_row(expected, codes, values, np.ones(60) if weight is None else weight, row, 0.04)
    for table, wanted in zip(made, expected, strict=True):
        np.testing.assert_allclose(table, wanted, **CLOSE)
    assert not np.array_equal(made[0], other[0])


@pytest.mark.host
@pytest.mark.parametrize(("n_columns", "components"), list(product([2, 3], [1, 8])))
def test_the_kernel_has_the_bits_of_the_loops(n_columns, components):
    random = np.random.default_rng(2)
    sizes = np.array(SIZES[:n_columns])
    codes = np.stack([random.integers(0, size, 500) for size in sizes], axis=1).astype(np.int32)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    order, rows = random.permutation(500), Rows(codes, None, random.normal(size=500), random.random(500))
    lines = random.normal(1.0, 0.05, (int(sizes.sum()), components))
    by_loops, by_kernel = lines.copy(), lines.copy()
    descend_by_loops(rows, order, first, np.array(PENALTIES[:n_columns]), 0.03, by_loops)
    with backend("compiled") as compiled:
        compiled.fused.descend_rows(rows, order, first, np.array(PENALTIES[:n_columns]), 0.03, by_kernel)
    assert not np.array_equal(by_loops, lines)
    assert by_kernel.tobytes() == by_loops.tobytes()


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_is_the_sum_of_the_steps_of_rows(name, weighted):
    codes, values, weight, factors = draw_cells(weighted)
    expected = [table.copy() for table in factors]
    for row in range(60):
        stepped = [table.copy() for table in factors]
        step_of_a_row(stepped, codes, values, np.ones(60) if weight is None else weight, row, 0.01)
        for d in range(3):
            expected[d] += stepped[d] - factors[d]
    with backend(name) as given:
        cells = upload(given, codes, values, weight)
        modes = [Mode.of(cells, d) for d in range(3)]
        made = descend_together(modes, [given.to_device(table) for table in factors], PENALTIES, 0.01)
        for table, wanted in zip(made, expected, strict=True):
            np.testing.assert_allclose(given.to_host(table), wanted, **CLOSE)


@pytest.mark.host
@pytest.mark.parametrize("update", ["row", "batch"])
def test_rates_and_regularization_fall_from_iteration_to_iteration(update):
    codes, values, weight, factors = draw_cells(True)
    cells = Cells(ops.load("cpu_fallback"), codes, SIZES, values, weight)
    encoder = FactorizationEncoder(
        solver="sgd",
        update=update,
        learning_rate=0.01,
        regularization=PENALTIES,
        learning_rate_decay=0.5,
        regularization_decay=2.0,
        random_state=5,
    )
    step = choose_step(cells, encoder._settings(3))
    made, expected = list(factors), [table.copy() for table in factors]
    for number, (rate, share) in enumerate([(0.01, 1.0), (0.01 / 1.5, 1 / 3), (0.01 / 2.0, 1 / 5)]):
        made = step(made, number)
        penalties = [penalty * share for penalty in PENALTIES]
        if update == "row":
            order = Permutation(60, key_of(encoder._settings(3).seed, number + 1))
            expected = descend_rows(cells, expected, penalties, rate, order, ops.load("cpu_fallback"))
        else:
            expected = descend_together([Mode.of(cells, d) for d in range(3)], expected, penalties, rate)
        for table, wanted in zip(made, expected, strict=True):
            np.testing.assert_allclose(table, wanted, rtol=1e-14)


@pytest.mark.parametrize("penalties", [[0.0, 0.0, 0.0], PENALTIES])
def test_steps_go_down_the_gradient_regularisation_and_all(penalties):
    codes, values, weight, factors = draw_cells(True)
    cells = Cells(ops.load("cpu_fallback"), codes, SIZES, values, weight)
    made = descend_together([Mode.of(cells, d) for d in range(3)], factors, penalties, 1e-3)
    for d, table in enumerate(factors):
        for index in np.ndindex(table.shape):
            losses = []
            for change in (1e-5, -1e-5):
                moved = [other.copy() for other in factors]
                moved[d][index] += change
                losses.append(loss(moved, codes, values, weight, penalties))
            slope = (losses[0] - losses[1]) / 2e-5
            assert (table - made[d])[index] / 1e-3 == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_sums_of_rounded_numbers_have_the_same_bits_in_any_order():
    random = np.random.default_rng(3)
    numbers = random.normal(size=5000) * 10.0 ** random.integers(-8, 8, 5000)
    rounded = round_for_sums(numbers)
    sums = {float(np.cumsum(rounded[random.permutation(5000)])[-1]) for _ in range(20)}
    assert len(sums) == 1
    assert np.abs(rounded - numbers).max() <= np.abs(numbers).max() * 5000 * 2.0**-49
    assert len({float(np.cumsum(numbers[random.permutation(5000)])[-1]) for _ in range(20)}) > 1


def full_table(rank, sizes, seed=0):
    """Give every cell of a table of a rank, and its values."""
    random = np.random.default_rng(seed)
    tables = [random.uniform(0.5, 1.5, (size, rank)) for size in sizes]
    cells = np.array(list(product(*map(range, sizes))))
    return cells, predict(tables, list(cells.T))


def fits_continuous(*given, **parameters):
    """Make an encoder of a quantity."""
    return FactorizationEncoder(*given, target_type="continuous", **parameters)


@pytest.mark.parametrize(
    ("rank", "sizes"),
    [(1, (6, 5)), (1, (5, 4, 3)), *(pytest.param(2, sizes, marks=pytest.mark.long) for sizes in ((9, 8), (6, 5, 4)))],
)
def test_a_table_without_noise_is_recovered_in_cells_without_rows_too(rank, sizes):
    X, y = full_table(rank, sizes)
    hidden = np.random.default_rng(1).random(len(y)) < 0.15
    encoder = fits_continuous(rank, regularization=1e-9, max_iter=3000, tol=1e-12).fit(X[~hidden], y[~hidden])
    np.testing.assert_allclose(encoder.transform(X)[:, 0], y, rtol=1e-3)


@pytest.mark.parametrize("update", ["row", "batch"])
def test_descent_recovers_a_table_of_rank_one(update):
    X, y = full_table(1, (6, 5))
    encoder = fits_continuous(1, solver="sgd", update=update, regularization=0.0, max_iter=3000).fit(X, y)
    np.testing.assert_allclose(encoder.transform(X)[:, 0], y, rtol=1e-4)


def rows_of(n_rows=200, seed=4):
    """Draw a table of two columns and a joint key, and labels."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": random.choice([*"pqrs"], n_rows), "b": random.integers(0, 9, n_rows), "z": 1.5})
    frame.loc[::17, "a"] = None
    return frame, (random.random(n_rows) < np.where(frame["b"] % 2 == 0, 0.8, 0.2)).astype(int)


SOLVERS = [{"solver": "als"}, {"solver": "sgd"}, {"solver": "sgd", "update": "batch", "learning_rate": 0.002}]
COLUMNS = ["a", "b", ("a", "b")]


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_row_does_not_see_its_own_target(solver):
    X, y = rows_of()
    encoder = FactorizationEncoder(3, "both", columns=COLUMNS, cv=KFold(4), max_iter=4, **solver)
    before = encoder.fit_transform(X, y).to_numpy()
    changed = y.copy()
    changed[7] = 1 - changed[7]
    after = encoder.fit_transform(X, changed).to_numpy()
    assert np.array_equal(before[7], after[7])
    assert not np.array_equal(before, after)


@pytest.mark.parametrize("solver", SOLVERS)
def test_training_rows_are_encoded_by_what_their_fold_sees(solver):
    X, y = rows_of()
    folds = np.arange(len(y)) % 3
    encoder = FactorizationEncoder(2, columns=["a", "b"], max_iter=3, **solver)
    encodings = clone(encoder).set_params(
        cv=[(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(3)]
    )
    made = encodings.fit_transform(X, y)["factorization"].to_numpy()
    for fold in range(3):
        own = folds == fold
        alone = clone(encoder).fit(X[~own], y[~own]).transform(X[own])["factorization"].to_numpy()
        np.testing.assert_allclose(made[own], alone, **CLOSE)


def test_the_same_seed_gives_the_same_bits_and_another_others():
    X, y = rows_of()
    for solver in SOLVERS:
        encoder = FactorizationEncoder(3, columns=["a", "b"], max_iter=3, **solver)
        first, again = encoder.fit_transform(X, y).to_numpy(), clone(encoder).fit_transform(X, y).to_numpy()
        assert first.tobytes() == again.tobytes()
        assert first.tobytes() != encoder.set_params(random_state=1).fit_transform(X, y).to_numpy().tobytes()


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_backends_agree_on_whole_fits(name, solver):
    X, y = rows_of()
    encoder = FactorizationEncoder(3, "both", columns=COLUMNS, max_iter=20, tol=0.0, **solver)
    with ops.use_backend("numpy"):
        expected = encoder.fit_transform(X, y).to_numpy()
    with backend(name), ops.use_backend(name.split("-")[0] if name.startswith("compiled") else name):
        made = encoder.fit_transform(X, y).to_numpy()
    if solver == {"solver": "sgd"}:
        assert made.tobytes() == expected.tobytes()
    np.testing.assert_allclose(made, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_what_is_unseen_has_the_mean_of_the_lines():
    X, y = rows_of()
    encoder = FactorizationEncoder(2, "factors", columns=["a", "b"], handle_missing="mean").fit(X, y)
    new = pd.DataFrame({"a": ["never", None], "b": [77, 0], "z": 0.0})
    made = encoder.transform(new).to_numpy()
    of_a, of_b = encoder.factors_
    assert [len(of_a), len(of_b)] == [4, 9]
    np.testing.assert_allclose(made[0, :4], [*of_a.mean(axis=0), *of_b.mean(axis=0)], rtol=1e-14)
    np.testing.assert_array_equal(made[1, :2], made[0, :2])
    np.testing.assert_array_equal(made[1, 2:4], of_b[0])


def test_rows_of_missing_values_are_a_category_or_play_no_part():
    X, y = rows_of()
    present = X["a"].notna().to_numpy()
    encoder = FactorizationEncoder(2, columns=["a", "b"], handle_missing="mean")
    whole, part = clone(encoder).fit(X, y), clone(encoder).fit(X[present], y[present])
    assert all(a.tobytes() == b.tobytes() for a, b in zip(whole.factors_, part.factors_, strict=True))
    assert len(clone(encoder).set_params(handle_missing="category").fit(X, y).factors_[0]) == 5
    for policy, table in (("handle_missing", X), ("handle_unknown", X.assign(b=99))):
        with pytest.raises(ValueError, match=policy):
            clone(encoder).set_params(**{policy: "error"}).fit(X[present], y[present]).transform(table)


def test_rows_without_weight_are_as_if_absent_and_whole_weights_are_repeated_rows():
    X, y = rows_of()
    weight = np.random.default_rng(5).integers(0, 3, len(y))
    encoder = FactorizationEncoder(2, columns=["a", "b"], max_iter=5)
    weighted = clone(encoder).fit(X, y, sample_weight=weight).transform(X)["factorization"]
    repeated = np.repeat(np.arange(len(y)), weight)
    apart = clone(encoder).fit(X.iloc[repeated], y[repeated]).transform(X)["factorization"]
    np.testing.assert_allclose(weighted, apart, **CLOSE)


def test_outputs_and_their_names():
    X, y = rows_of()
    encoder = FactorizationEncoder(2, "both", columns=["a", "b"]).fit(X, y)
    names = ["factorization", "a_factor0", "a_factor1", "b_factor0", "b_factor1", "z"]
    assert encoder.get_feature_names_out().tolist() == names
    made = encoder.transform(X)
    assert list(made) == names
    products = (made["a_factor0"] * made["b_factor0"], made["a_factor1"] * made["b_factor1"])
    assert np.array_equal(made["factorization"], products[0] + products[1])
    assert encoder.set_output(transform="polars").transform(X).columns == names


def test_classes_and_targets_have_a_factorisation_each():
    X, y = rows_of()
    kinds = np.array(["x", "y", "z"])[(y + X["b"]) % 3]
    encoder = FactorizationEncoder(2, columns=["a", "b"]).fit(X, kinds)
    made = encoder.transform(X)
    assert list(made) == ["factorization_x", "factorization_y", "factorization_z", "z"]
    alone = FactorizationEncoder(2, columns=["a", "b"]).fit(X, (kinds == "y").astype(int)).transform(X)
    assert np.array_equal(made["factorization_y"], alone["factorization"])
    two = FactorizationEncoder(2, columns=["a", "b"], target_type="continuous").fit(X, np.stack([y, y**2 + 1], axis=1))
    assert list(two.transform(X)) == ["factorization_0", "factorization_1", "z"]
    assert len(two.iterations_) == 2


def test_signed_labels_are_the_same_as_a_quantity_of_them():
    X, y = rows_of()
    signed = FactorizationEncoder(2, columns=["a", "b"], signed_labels=True).fit(X, y).transform(X)
    quantity = fits_continuous(2, columns=["a", "b"]).fit(X, 2 * y - 1).transform(X)
    assert np.array_equal(signed["factorization"], quantity["factorization"])


def test_the_first_predictions_are_about_one():
    for components, n_columns in ((4, 2), (8, 3)):
        settings = Settings(
            components, "als", "row", (1.0,) * n_columns, 0.04, 0.0, 0.0, True, 1, False, 0.1, 5, 1e-4, 0
        )
        tables = start([50] * n_columns, settings)
        rows = [np.arange(50, dtype=np.int32)] * n_columns
        assert predict(tables, rows).mean() == pytest.approx(1.0, abs=0.03)
        assert tables[0].std() == pytest.approx(0.05 * components ** (-1 / n_columns), rel=0.2)


def test_early_stopping_keeps_what_predicts_rows_that_it_has_not_learned_from():
    random = np.random.default_rng(6)
    X = np.stack([random.integers(0, 40, 600), random.integers(0, 40, 600)], axis=1)
    y = random.normal(1.0, 1.0, 600)
    parameters = {"regularization": 1e-3, "max_iter": 60, "tol": 0.0}
    stopped = fits_continuous(6, early_stopping=True, n_iter_no_change=3, **parameters).fit(X, y)
    through = fits_continuous(6, **parameters).fit(X, y)
    assert stopped.n_iter_ < through.n_iter_ == 60
    until_best = clone(stopped).set_params(max_iter=stopped.n_iter_ - 3).fit(X, y)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(stopped.factors_, until_best.factors_, strict=True))
    # The rest is noise, so that every further iteration makes new rows worse.
    new = np.stack([random.integers(0, 40, 600), random.integers(0, 40, 600)], axis=1)
    assert np.mean((stopped.transform(new) - 1.0) ** 2) < np.mean((through.transform(new) - 1.0) ** 2)


def test_divergence_says_what_to_lower():
    X, y = rows_of()
    encoder = FactorizationEncoder(8, solver="sgd", columns=COLUMNS, signed_labels=True, scale_start=False)
    with pytest.raises(ValueError, match=r"diverged in iteration 1: .* Lower learning_rate \(it is 0.9\), take scale_"):
        encoder.set_params(learning_rate=0.9).fit(X, y)
    assert not hasattr(encoder, "factors_")
    encoder.set_params(learning_rate=0.001, scale_start=True).fit(X, y)


def test_a_fitted_encoder_is_saved_pickled_and_cloned(tmp_path):
    X, y = rows_of()
    encoder = FactorizationEncoder(2, "both", columns=COLUMNS, dtype="float32", early_stopping=True).fit(X, y)
    encoder.save(tmp_path / "encoder")
    for other in (load(tmp_path / "encoder"), pickle.loads(pickle.dumps(encoder))):
        assert other.get_params() == encoder.get_params()
        assert other.n_iter_ == encoder.n_iter_
        assert other.transform(X).to_numpy().tobytes() == encoder.transform(X).to_numpy().tobytes()
    assert clone(encoder).get_params() == encoder.get_params()
    assert not hasattr(clone(encoder), "factors_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components"),
        ({"output": "all"}, "output"),
        ({"solver": "lbfgs"}, "solver"),
        ({"update": "none"}, "update"),
        ({"regularization": 0.0}, "regularization"),
        ({"regularization": [1.0]}, "a list of 2"),
        ({"regularization": [1.0, None]}, "regularization"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"max_iter": 0}, "max_iter"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"tol": -1.0}, "tol"),
        ({"early_stopping": "yes"}, "early_stopping"),
        ({"signed_labels": None}, "signed_labels"),
        ({"scale_start": 2.0}, "scale_start"),
        ({"handle_unknown": "nan"}, "handle_unknown"),
        ({"handle_missing": 0.0}, "handle_missing"),
        ({"cv": LeaveOneOut()}, "schemes with folds"),
        ({"columns": ["b"]}, "two columns or more"),
    ],
)
def test_what_is_refused(parameters, message):
    X, y = rows_of()
    with pytest.raises(ValueError, match=message):
        FactorizationEncoder(**{"columns": ["a", "b"]} | parameters).fit_transform(X, y)
