"""FactorizationEncoder: products of factors of the categories of several columns, fitted to the target."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import UNSEEN, CodedRows, CodesEncoder, Learned
from gpu_encode.fitting.parameters import Parameters, read_scheme
from gpu_encode.formulas.counts import Counts
from gpu_encode.methods.factors.cells import Cells, predict
from gpu_encode.methods.factors.iterations import OWNER, Settings, fit_factors
from gpu_encode.schemes.folds import CrossFitting
from gpu_encode.schemes.plans import seed_of
from gpu_encode.sums.targets import Target
from gpu_encode.words.annotations import Columns, Device, FloatType, Seed, TargetType
from gpu_encode.words.errors.parameters import MOST_COLUMNS, bad_parameter, check_count, check_number, check_option

OUTPUTS = ("prediction", "factors", "both")


@dataclass(frozen=True, eq=False)
class Factors(Learned):
    """Factors of every key, for every target and class.

    Parameters
    ----------
    output : {"prediction", "factors", "both"}
    parts : list of str
        The last part of the output names, for each target and class.
    tables : list of float64 array (categories + 1, components)
        The factors of the first target and class for all keys, then those of the next; the last line is for unseen
        categories.
    iterations : list of int
        Number of iterations, for each target and class.
    """

    output: str
    parts: list[str]
    tables: list[Array]
    iterations: list[int]

    def of_parts(self) -> Iterator[tuple[str, list[Array]]]:
        """Yield for each target and class its part of the names, and the factors of every key."""
        n_keys = len(self.tables) // len(self.parts)
        for number, part in enumerate(self.parts):
            yield part, self.tables[number * n_keys : (number + 1) * n_keys]

    def names(self, keys: Sequence[str]) -> list[str]:
        """Name the prediction, then the factors of every key."""
        named = []
        for part, tables in self.of_parts():
            if self.output != "factors":
                named.append(f"factorization{part}")
            if self.output != "prediction":
                named += [f"{key}{part}_factor{number}" for key in keys for number in range(tables[0].shape[1])]
        return named

    def blocks(self) -> list[tuple[int, Floats]] | None:
        """Give the factors of each key, for each target and class, unless there are predictions."""
        if self.output != "factors":
            return None
        return [block for _, tables in self.of_parts() for block in enumerate(tables)]

    def encode(self, rows: CodedRows) -> Array:
        """Encode rows by their categories."""
        if self.output == "factors":
            return super().encode(rows)
        columns = []
        for _, tables in self.of_parts():
            on_device = [rows.ops.to_device(table) for table in tables]
            columns.append(predict(on_device, rows.codes)[:, None])
            if self.output == "both":
                columns += [table[codes] for table, codes in zip(on_device, rows.codes, strict=True)]
        return np.concatenate(columns, axis=1)

    def check(self, sizes: Sequence[int]) -> None:
        """Raise ValueError if the fields do not fit keys of these sizes."""
        if self.output not in OUTPUTS or not self.parts or len(self.tables) != len(self.parts) * len(sizes):
            raise ValueError(f"it holds {len(self.tables)} tables of factors for {len(sizes)} keys")
        if len(self.iterations) != len(self.parts):
            raise ValueError(f"it holds numbers of iterations for {len(self.iterations)} of {len(self.parts)} parts")
        for _, tables in self.of_parts():
            for table, size in zip(tables, sizes, strict=True):
                if table.dtype != np.float64 or table.ndim != 2 or table.shape != (size + 1, tables[0].shape[1]):
                    raise ValueError(f"factors of {size} categories have the shape {table.shape}")


@dataclass(eq=False, repr=False)
class FactorizationEncoder(CodesEncoder):
    """Predict the target by products of factors, a vector for each category of several columns.

    Every category of column r has a vector u(r) of k factors.  The prediction of a row is the sum over the k components
    of the product of its categories' factors.  With two columns this is matrix factorisation; with more it is the CP
    (PARAFAC) model of a tensor.  It is fitted to the cells that have rows, and also predicts pairs of categories that
    no row has. Factors are learned from the target, so a training row gets factors that were fitted to the other folds.

    Parameters
    ----------
    n_components : int, default=8
        The number k of factors.
    output : {"prediction", "factors", "both"}, default="prediction"
        The prediction, one column; the factors of the row's categories, k columns for each column of X; or both.
    solver : {"als", "sgd"}, default="als"
        "als": alternating least squares; with all other factors fixed, the factors of each category of a column solve a
        ridge system of k equations.  "sgd": gradient descent.
    cv : int, None, scheme, splitter, iterable, str or array, default=5
        Which rows a training row may see, as in `TargetEncoder`; the scheme must have folds.
    update : {"row", "batch"}, default="row"
        How "sgd" takes steps.  For a row, a step is ``u -= learning_rate * (e * h + regularization * u)``, with e the
        prediction minus the target, and h the product of the other columns' factors.  "row": one row after another, in
        a new random order in every iteration.  "batch": summed over the rows of each category; this needs a
        `learning_rate` that is smaller by about the number of these rows.
    regularization : float or list of float, optional
        One number for all columns, or one for each.  For "als" it is l in ``sum(e ** 2) + l * sum(u ** 2)``, above 0,
        in which each category counts once, whatever its number of rows; default 1.0.  For "sgd" it is the number in the
        formula above, so it counts once for each row; default 0.001.
    learning_rate : float, default=0.04
        For "sgd".
    learning_rate_decay : float, default=0.0
        For "sgd": in iteration t = 0, 1, ... the learning rate is divided by 1 + learning_rate_decay * t.
    regularization_decay : float, default=0.0
        For "sgd": the same for the regularization.
    max_iter : int, default=20
        Largest number of iterations; each is one pass over the rows for every column ("als"), or one pass ("sgd").
    early_stopping : bool, default=False
        Whether a part of the rows is held out, and the factors are kept that predict these rows best.  If False, "als"
        stops when its objective falls by less than `tol` of its value, and "sgd" runs all iterations.
    validation_fraction : float, default=0.1
        Share of the rows that is held out at random.
    n_iter_no_change : int, default=5
        Fitting stops after this number of iterations without an improvement by `tol` of the error.
    tol : float, default=0.0001
    signed_labels : bool, default=False
        Whether class labels are predicted as -1 and 1, instead of 0 and 1.
    scale_start : bool, default=True
        Whether factors start as normal numbers of mean 1 and standard deviation 0.05 times k ** (-1 / n), for n
        columns, so that the first predictions are about 1.  False omits the factor k ** (-1 / n), so that they are
        about k.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns, two or more; a tuple is a joint key.  Others pass through.  None: all
        columns.
    handle_unknown : {"mean", "error"}, default="mean"
        Values that no visible row has get the mean factors of their column, or are refused.
    handle_missing : {"category", "mean", "error"}, default="category"
        A missing value is a category, or is treated as unknown; then rows with a missing value are not used in fitting.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        As in `TargetEncoder`; every target, and every class of "multiclass", has factors of its own.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`, of the start, of the rows that are held out, and of the order of rows.

    Attributes
    ----------
    factors_ : list of float64 ndarray of shape (n_categories, n_components)
        In the order of targets and classes, then columns.
    n_iter_ : int
        Largest number of iterations that a target or class took.
    iterations_ : list of int
        Number of iterations, for each target and class.
    categories_ : list of ndarray of shape (n_categories,)
    device_ : {"cpu", "cuda"}
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    TargetEncoder : The mean of the target for each category, also of joint keys; it needs only one pass.

    Notes
    -----
    A cell with several rows counts that many times; `sample_weight` weights the errors of rows.

    Factors for new categories are not estimated, since that would need a target, which new rows do not have.  A row
    with a new category is predicted with the mean factors of that column, so all unseen categories of a column are
    treated alike.

    Fitting a fold takes as long as fitting all rows, so n folds take n + 1 fits.  Except for "sgd" with "row", rows of
    one cell are joined first.  An iteration of "als" then sums ``k * (k + 1) / 2 + k`` products for every cell and
    column, and solves a system of k equations for every category; an iteration of "sgd" computes about ``n_columns ** 2
    * k`` products for every cell, or row.

    The same seed gives the same bits on the same machine: on a CPU, for any number of threads, rows are summed in a
    fixed order; on a GPU, numbers are rounded so that the order does not matter.  "sgd" with "row" runs on the CPU in
    one thread, and gives the same bits everywhere.  "als" and "batch" compute where the rows are; backends agree to
    about 1e-9 of the largest encoding if the systems are well conditioned (`regularization` not far below the mean
    square of factors).

    Descent diverges, which is an error, if `learning_rate` is too high for the target and the start: 0.04 is too high
    with labels of -1 and 1 and ``scale_start=False``, or with a target far from 0 to 1.

    References
    ----------
    Hu, Koren and Volinsky, "Collaborative Filtering for Implicit Feedback Datasets", ICDM 2008; Kolda and Bader,
    "Tensor Decompositions and Applications", SIAM Review 51, 2009; D'yakonov, "Solution methods for classification
    problems with categorical attributes", Computational Mathematics and Modeling 26(3), 2015, whose step by rows adds
    the regularisation in place of taking it away.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import FactorizationEncoder
    >>> X = np.array([[f"a{i}", f"b{j}"] for i in range(4) for j in range(4) if (i, j) != (3, 3)])
    >>> y = np.array([(int(a[1]) + 1.0) * (int(b[1]) + 1.0) for a, b in X])
    >>> encoder = FactorizationEncoder(1, regularization=1e-6, target_type="continuous")
    >>> encoder.fit(X, y).transform([["a3", "b3"]]).round(2).tolist()
    [[16.0]]
    """

    n_components: int = 8
    output: Literal["prediction", "factors", "both"] = "prediction"
    solver: Literal["als", "sgd"] = "als"
    cv: CrossFitting = 5
    _: KW_ONLY
    update: Literal["row", "batch"] = "row"
    regularization: float | Sequence[float] | None = None
    learning_rate: float = 0.04
    learning_rate_decay: float = 0.0
    regularization_decay: float = 0.0
    max_iter: int = 20
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    tol: float = 1e-4
    signed_labels: bool = False
    scale_start: bool = True
    columns: Columns = None
    handle_unknown: Literal["mean", "error"] = "mean"
    handle_missing: Literal["category", "mean", "error"] = "category"
    target_type: TargetType | Sequence[TargetType] = "auto"
    device: Device = "auto"
    dtype: FloatType = "float64"
    shuffle: bool = True
    random_state: Seed = 0
    _learned = Factors

    @property
    def factors_(self) -> list[Array]:
        """Factors of every category, in the order of targets and classes, then columns."""
        learned: Factors = self._fitted().learned  # type: ignore[attr-defined]
        return [table[:-1] for table in learned.tables]

    @property
    def n_iter_(self) -> int:
        """Largest number of iterations that a target or class took."""
        return max(self.iterations_)

    @property
    def iterations_(self) -> list[int]:
        """Number of iterations, for each target and class."""
        learned: Factors = self._fitted().learned  # type: ignore[attr-defined]
        return learned.iterations

    def _rows_parameters(self) -> Parameters:
        scheme = read_scheme(self)
        return Parameters.of(self, Counts(), as_unseen="mean", **scheme)

    def _check_learner(self) -> None:
        check_count(OWNER, "n_components", self.n_components, low=1, high=MOST_COLUMNS)
        check_option(OWNER, "output", self.output, OUTPUTS)
        check_option(OWNER, "solver", self.solver, ("als", "sgd"))
        check_option(OWNER, "update", self.update, ("row", "batch"))
        for name in ("early_stopping", "signed_labels", "scale_start"):
            check_option(OWNER, name, getattr(self, name), (True, False))
        check_option(OWNER, "handle_unknown", self.handle_unknown, ("mean", "error"))
        check_option(OWNER, "handle_missing", self.handle_missing, ("category", "mean", "error"))
        check_number(OWNER, "learning_rate", self.learning_rate, low=0.0, open_low=True)
        for name in ("learning_rate_decay", "regularization_decay"):
            check_number(OWNER, name, getattr(self, name), low=0.0)
        check_count(OWNER, "max_iter", self.max_iter, low=1)
        check_count(OWNER, "n_iter_no_change", self.n_iter_no_change, low=1)
        check_number(OWNER, "validation_fraction", self.validation_fraction, low=0.0, high=0.9, open_low=True)
        check_number(OWNER, "tol", self.tol, low=0.0, high=0.9)
        given = self.regularization if isinstance(self.regularization, (list, tuple)) else [self.regularization]
        for penalty in given:
            if penalty is not None or len(given) > 1:
                check_number(OWNER, "regularization", penalty, low=0.0, open_low=self.solver == "als")

    def _settings(self, n_keys: int) -> Settings:
        """Give the parameters in the form that the solvers take."""
        given: Any = self.regularization
        if given is None:
            given = 1.0 if self.solver == "als" else 0.001
        penalties = list(given) if isinstance(given, (list, tuple)) else [given] * n_keys
        if len(penalties) != n_keys:
            raise bad_parameter(OWNER, "regularization", given, f"must be a number, or a list of {n_keys}, one a key")
        return Settings(
            int(self.n_components),
            self.solver,
            self.update,
            tuple(map(float, penalties)),
            float(self.learning_rate),
            float(self.learning_rate_decay),
            float(self.regularization_decay),
            bool(self.scale_start),
            int(self.max_iter),
            bool(self.early_stopping),
            float(self.validation_fraction),
            int(self.n_iter_no_change),
            float(self.tol),
            seed_of(self.random_state, "Factorization"),
        )

    def _learn(self, rows: CodedRows) -> Factors:
        if len(rows.codes) < 2:
            raise ValueError(
                f"{OWNER} needs two columns or more, and has n_features={len(rows.codes)}: with one column, nothing "
                "can be multiplied. List more `columns`, or take TargetEncoder."
            )
        settings = self._settings(len(rows.codes))
        parts, tables, iterations = [], [], []
        useful = find_useful(rows)
        if not bool(useful.any()):
            raise ValueError(f"{OWNER} finds no row with a weight and all categories, in all rows or in a fold.")
        if not bool(useful.all()):
            rows = rows.take(useful)
        weight = None if rows.weight is None else rows.weight.astype(np.float64, copy=False)
        for part, values in read_values(rows, self.signed_labels):
            factors, number = fit_factors(Cells(rows.ops, rows.codes, rows.sizes, values, weight), settings)
            parts.append(part)
            tables += factors
            iterations.append(number)
        return Factors(self.output, parts, tables, iterations)


def find_useful(rows: CodedRows) -> Array:
    """Find the rows that have weight, and a category of every key."""
    useful: Array = rows.codes[0] != UNSEEN
    for codes in rows.codes[1:]:
        useful = useful & (codes != UNSEEN)
    return useful if rows.weight is None else useful & (rows.weight != 0)


def read_values(rows: CodedRows, signed: bool) -> Iterator[tuple[str, Array]]:
    """Yield, for each target and class, its part of the output names and the numbers to predict."""
    for number, target in enumerate(rows.targets):
        named = "" if len(rows.targets) == 1 else f"_{number if target.name is None else target.name}"
        for label, values in read_classes(target):
            yield named + label, 2.0 * values - 1.0 if signed and target.is_classification else values


def read_classes(target: Target) -> Iterator[tuple[str, Array]]:
    """Yield the numbers of a target; with more than two classes, for each class whether a row belongs to it."""
    if target.kind == "multiclass" and target.classes is not None:
        for number, label in enumerate(target.classes.tolist()):
            yield f"_{label}", (target.values == number).astype(np.float64)
    else:
        yield "", target.values.astype(np.float64)
