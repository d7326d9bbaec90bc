"""Fit factors: from their start to the last iteration."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cpu_fallback.row_numbers import Permutation, key_of
from cpu_fallback.types import Array
from gpu_encode.methods.factors.cells import Cells, Mode
from gpu_encode.methods.factors.descent import descend_rows, descend_together
from gpu_encode.methods.factors.least_squares import measure, solve_in_turn
from gpu_encode.seam import ops

# Standard deviation of the factors at the start; their mean is 1.
SPREAD = 0.05
# A step in Python takes as long as NumPy's part of a call on this number of rows.
STEP_ROWS = 8
OWNER = "FactorizationEncoder"

Step = Callable[[Sequence[Array], int], list[Array]]


@dataclass(frozen=True)
class Settings:
    """How factors are fitted, as in the docstring of `FactorizationEncoder`."""

    n_components: int
    solver: str
    update: str
    penalties: tuple[float, ...]
    learning_rate: float
    learning_rate_decay: float
    regularization_decay: float
    scale_start: bool
    max_iter: int
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float
    seed: int

    @property
    def row_by_row(self) -> bool:
        """Whether each step uses one row, after the changes of the step before."""
        return self.solver == "sgd" and self.update == "row"

    def of_iteration(self, number: int) -> tuple[list[float], float]:
        """Give the regularization of each column and the learning rate of an iteration of "sgd"."""
        shrink = 1.0 + self.regularization_decay * number
        penalties = [penalty / shrink for penalty in self.penalties]
        return penalties, self.learning_rate / (1.0 + self.learning_rate_decay * number)


@dataclass
class Course:
    """The errors so far: the best factors, and the number of iterations since."""

    best: list[Array]
    error: float
    patience: int = 0

    def note(self, factors: list[Array], error: float, tol: float) -> None:
        """Record an iteration."""
        self.patience = 0 if error < self.error * (1.0 - tol) else self.patience + 1
        if error < self.error:
            self.best, self.error = factors, error


def fit_factors(cells: Cells, settings: Settings) -> tuple[list[Array], int]:
    """Fit factors to cells.

    Returns
    -------
    factors : list of float64 array (categories + 1, components)
        On the host.  Categories without rows, and the last line (unseen categories), have the mean of the others.
    n_iterations : int
    """
    if settings.row_by_row:
        to_host = cells.ops.to_host
        weight = None if cells.weight is None else to_host(cells.weight)
        codes = [to_host(column) for column in cells.codes]
        cells = Cells(ops.host(cells.n_rows), codes, cells.sizes, to_host(cells.values), weight)
    training, held_out = hold_out(cells, settings)
    seen = [np.bincount(codes, minlength=size) > 0 for codes, size in zip(training.codes, cells.sizes, strict=True)]
    if not settings.row_by_row:
        training, held_out = training.join(), held_out and held_out.join()
    with np.errstate(over="ignore", invalid="ignore"):
        factors, number = iterate(training, held_out, seen, settings)
    return [cells.ops.to_host(table) for table in fill(factors, seen)], number


def iterate(
    training: Cells, held_out: Cells | None, seen: Sequence[Array], settings: Settings
) -> tuple[list[Array], int]:
    """Take steps until the error no longer falls, or to the last iteration."""
    step = choose_step(training, settings)
    factors = [training.ops.to_device(table) for table in start(training.sizes, settings)]
    # Rows of the steps have no unseen categories.
    judged = training if held_out is None else held_out
    course = Course(factors, np.inf)
    for number in range(settings.max_iter):
        factors = take_step(step, factors, number)
        check_finite(factors, settings, number + 1)
        if held_out is not None:
            course.note(factors, judged.mean_of_squares(fill(factors, seen)), settings.tol)
            if course.patience >= settings.n_iter_no_change:
                return course.best, number + 1
        elif settings.solver == "als":
            course.note(factors, measure(judged, factors, settings.penalties), settings.tol)
            if course.patience:
                return factors, number + 1
    return (factors if held_out is None else course.best), settings.max_iter


def take_step(step: Step, factors: list[Array], number: int) -> list[Array]:
    """Take a step; raise ValueError if it has no solution."""
    try:
        return step(factors, number)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"{OWNER} has found ridge systems without a solution in iteration {number + 1}. Raise regularization."
        ) from None


def choose_step(cells: Cells, settings: Settings) -> Step:
    """Choose the function that makes new factors from factors and the number of the iteration."""
    if settings.row_by_row:
        # Loading the kernel takes longer than one iteration saves, but not longer than all iterations save.
        backend = ops.host(cells.n_rows * settings.max_iter * STEP_ROWS)
        orders = (Permutation(cells.n_rows, key_of(settings.seed, number + 1)) for number in range(settings.max_iter))
        return lambda factors, number: descend_rows(
            cells, factors, *settings.of_iteration(number), next(orders), backend
        )
    modes = [Mode.of(cells, number) for number in range(len(cells.codes))]
    if settings.solver == "als":
        return lambda factors, _: solve_in_turn(modes, factors, settings.penalties)
    return lambda factors, number: descend_together(modes, factors, *settings.of_iteration(number))


def start(sizes: Sequence[int], settings: Settings) -> list[Array]:
    """Draw factors around 1, or scaled so that the first predictions are about 1."""
    random, k = np.random.default_rng(settings.seed), settings.n_components
    scale = k ** (-1.0 / len(sizes)) if settings.scale_start else 1.0
    return [scale * random.normal(1.0, SPREAD, (size, k)) for size in sizes]


def hold_out(cells: Cells, settings: Settings) -> tuple[Cells, Cells | None]:
    """Split rows at random, by row number and seed, into training rows and rows that measure the error."""
    n_held = round(settings.validation_fraction * cells.n_rows) if settings.early_stopping else 0
    if not 0 < n_held < cells.n_rows:
        return cells, None
    ranks = cells.ops.ranks_of(Permutation(cells.n_rows, key_of(settings.seed, 0)), 0, cells.n_rows)
    return cells.take(ranks >= n_held), cells.take(ranks < n_held)


def fill(factors: Sequence[Array], seen: Sequence[Array]) -> list[Array]:
    """Give categories without rows, and a last line for unseen categories, the mean of the others."""
    filled = []
    for table, with_rows in zip(factors, seen, strict=True):
        present = np.where(with_rows[:, None], table, 0.0)
        mean = present.sum(axis=0) / with_rows.sum()
        filled.append(np.concatenate([np.where(with_rows[:, None], table, mean), mean[None, :]]))
    return filled


def check_finite(factors: Sequence[Array], settings: Settings, number: int) -> None:
    """Raise ValueError if factors are no longer finite."""
    if all(bool(np.isfinite(table).all()) for table in factors):
        return
    if settings.solver == "als":
        advice = f"Raise regularization (it is {settings.penalties}), or scale the target."
    else:
        start_at = "" if settings.scale_start else ", take scale_start=True"
        summed = ", which update='batch' multiplies by the rows of a category" if settings.update == "batch" else ""
        advice = (
            f"Lower learning_rate (it is {settings.learning_rate:g}{summed}){start_at}, lower regularization if it is "
            "large, scale a target that is far from 0 to 1, or take solver='als', which has no rate."
        )
    raise ValueError(f"{OWNER} diverged in iteration {number}: its factors are no longer finite. {advice}")
