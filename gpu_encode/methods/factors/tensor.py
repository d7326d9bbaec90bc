"""FactorizationEncoder: products of factors of the categories of several columns, fitted to the target."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

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
from gpu_encode.words.errors.parameters import bad_parameter, check_count, check_number, check_option

OUTPUTS = ("prediction", "factors", "both")


@dataclass(frozen=True, eq=False)
class Factors(Learned):
    """Factors of every key, for every target and class.

    Parameters
    ----------
    output : {"prediction", "factors", "both"}
    parts : list of str
        What the names of the outputs of each target and class end with.
    tables : list of float64 array (categories + 1, components)
        Of the first target and class for all keys, then of the next; the last line is that of unseen categories.
    iterations : list of int
        How many there were, by target and class.
    """

    output: str
    parts: list[str]
    tables: list[Array]
    iterations: list[int]

    def of_parts(self) -> Iterator[tuple[str, list[Array]]]:
        """Give each target's and class's part of the names, and its factors of every key."""
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

    def encode(self, rows: CodedRows) -> Array:
        """Encode rows by their categories."""
        columns = []
        for _, tables in self.of_parts():
            on_device = [rows.ops.to_device(table) for table in tables]
            if self.output != "factors":
                columns.append(predict(on_device, rows.codes)[:, None])
            if self.output != "prediction":
                columns += [table[codes] for table, codes in zip(on_device, rows.codes, strict=True)]
        return np.concatenate(columns, axis=1)

    def check(self, sizes: Sequence[int]) -> None:
        """Raise ValueError where the fields do not fit keys of these sizes."""
        if self.output not in OUTPUTS or not self.parts or len(self.tables) != len(self.parts) * len(sizes):
            raise ValueError(f"it holds {len(self.tables)} tables of factors for {len(sizes)} keys")
        for _, tables in self.of_parts():
            for table, size in zip(tables, sizes, strict=True):
                if table.dtype != np.float64 or table.ndim != 2 or table.shape != (size + 1, tables[0].shape[1]):
                    raise ValueError(f"factors of {size} categories have the shape {table.shape}")


@dataclass(eq=False, repr=False)
class FactorizationEncoder(CodesEncoder):
    """Predict the target by products of factors of several columns' categories: matrix and tensor factorisation.

    Every category of column r has a line u(r) of k factors, and a row's prediction is the sum over k of the product of
    its categories' factors.  Of two columns that is the factorisation of a matrix, of more the CP (PARAFAC) model of a
    tensor, fitted to the cells that have rows: what a pair of categories has in common is said of pairs, too, that no
    row has.  Factors read the target, so training rows get those that were fitted to the other folds.

    Parameters
    ----------
    n_components : int, default=8
        k.
    output : {"prediction", "factors", "both"}, default="prediction"
        The prediction, one column; the factors of the row's category of every column, k columns each; or both.
    solver : {"als", "sgd"}, default="als"
        "als": alternating least squares; the factors of a column's categories, with all others as they are, solve a
        ridge system of k equations each.  "sgd": gradient descent.
    cv : int, None, scheme, splitter, iterable, str or array, default=5
        Who may look at whom in training, as in `TargetEncoder`: schemes with folds.
    update : {"row", "batch"}, default="row"
        Of "sgd", per row ``u -= learning_rate * (e * h + regularization * u)``, with e the prediction less the target
        and h the product of the other columns' factors: for one row after another, in a random order that is new in
        every iteration; or "batch": summed over the rows of each category, which needs a `learning_rate` that is
        smaller by about their number.
    regularization : float or list of float, optional
        For all columns, or one for each.  Of "als", the l of ``sum(e ** 2) + l * sum(u ** 2)``, above 0, where a
        category counts once whatever its rows: 1.0 unless told.  Of "sgd" it is as above, and counts once a row: 0.001
        unless told.
    learning_rate : float, default=0.04
        Of "sgd".
    max_iter : int, default=20
        Most iterations; each is a pass over the rows for every column ("als"), or one ("sgd").
    early_stopping : bool, default=False
        Whether a part of the rows is held out, and the factors are kept that predict it best.  Without it, "als" ends
        where its sum falls by less than `tol` of itself, "sgd" after all iterations.
    validation_fraction : float, default=0.1
        Share of the rows that is held out, at random.
    n_iter_no_change : int, default=5
        After how many iterations without a better error, by `tol` of it, fitting ends.
    tol : float, default=0.0001
    signed_labels : bool, default=False
        Whether the labels of classes are predicted as -1 and 1, and not as 0 and 1.
    scale_start : bool, default=True
        Factors start as normal numbers of mean 1 and standard deviation 0.05, times k ** (-1 / n) for n columns: the
        first predictions are about 1.  False leaves out the scale: they are about k.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns, two or more; a tuple is a joint key.  Others pass through.  None: every
        column.
    handle_unknown : {"mean", "error"}, default="mean"
        Values that no visible row has get the mean of the column's lines of factors, or are refused.
    handle_missing : {"category", "mean", "error"}, default="category"
        A missing value is a category, or unknown: rows with one then play no part in fitting.
    target_type : {"auto", "continuous", "binary", "multiclass"} or list, default="auto"
        As in `TargetEncoder`; every class of "multiclass", and every target, has a factorisation of its own.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    shuffle : bool, default=True
        False makes the folds of an integer `cv` contiguous.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds of an integer `cv`, of the start, of the rows that are held out and of the order of rows.

    Attributes
    ----------
    factors_ : list of float64 ndarray of shape (n_categories, n_components)
        By target and class, for each of them by column.
    n_iter_ : list of int
        Iterations, by target and class.
    categories_ : list of ndarray of shape (n_categories,)
    device_ : {"cpu", "cuda"}
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only where X had string column names.

    See Also
    --------
    TargetEncoder : The mean of the target by categories, of joint keys, too; fits in one pass.

    Notes
    -----
    A cell with several rows counts as often, and `sample_weight` weighs the errors of rows.

    New categories are not folded in: solving for their factors takes a target, which new rows have not.  A row with one
    is predicted by the mean of that column's lines, so all unseen categories of a column are one and the same.

    Fitting a fold takes as long as fitting all rows: n + 1 fits for n folds.  Rows of one cell are made one row first,
    but for "sgd" by rows.  An iteration of "als" then sums ``k * (k + 1) / 2 + k`` products for every cell and column,
    and solves a system of k equations for every category; one of "sgd" computes about ``n_columns ** 2 * k`` products
    for every cell, or row.

    The same seed gives the same bits on the same machine, on a CPU for any number of threads: sums over rows are in a
    fixed order, on a GPU of numbers so rounded that the order plays no part.  "sgd" by rows runs on the CPU, on one
    thread, and has the same bits everywhere.  "als" and "batch" compute where the rows are, and agree between backends
    to about 1e-9 of the largest encoding where the systems are well conditioned (`regularization` not far below the
    mean square of factors).

    Descent diverges where `learning_rate` is too high for the target and the start, which is an error: with labels of
    -1 and 1 and ``scale_start=False``, or a target far from 0 to 1, 0.04 is too much.

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
        """Factors of every category, by target and class, for each by column."""
        learned: Factors = self._fitted().learned  # type: ignore[attr-defined]
        return [table[:-1] for table in learned.tables]

    @property
    def n_iter_(self) -> list[int]:
        """Iterations, by target and class."""
        learned: Factors = self._fitted().learned  # type: ignore[attr-defined]
        return learned.iterations

    def _rows_parameters(self) -> Parameters:
        scheme = read_scheme(self)
        return Parameters.of(self, Counts(), as_unseen="mean", **scheme)

    def _check_learner(self) -> None:
        check_count(OWNER, "n_components", self.n_components, low=1)
        check_option(OWNER, "output", self.output, OUTPUTS)
        check_option(OWNER, "solver", self.solver, ("als", "sgd"))
        check_option(OWNER, "update", self.update, ("row", "batch"))
        for name in ("early_stopping", "signed_labels", "scale_start"):
            check_option(OWNER, name, getattr(self, name), (True, False))
        check_option(OWNER, "handle_unknown", self.handle_unknown, ("mean", "error"))
        check_option(OWNER, "handle_missing", self.handle_missing, ("category", "mean", "error"))
        check_number(OWNER, "learning_rate", self.learning_rate, low=0.0, open_low=True)
        check_count(OWNER, "max_iter", self.max_iter, low=1)
        check_count(OWNER, "n_iter_no_change", self.n_iter_no_change, low=1)
        check_number(OWNER, "validation_fraction", self.validation_fraction, low=0.0, high=0.9, open_low=True)
        check_number(OWNER, "tol", self.tol, low=0.0, high=0.9)
        given = self.regularization if isinstance(self.regularization, (list, tuple)) else [self.regularization]
        for penalty in given:
            if penalty is not None or len(given) > 1:
                check_number(OWNER, "regularization", penalty, low=0.0, open_low=self.solver == "als")

    def _settings(self, n_keys: int) -> Settings:
        """Give the parameters as the solvers take them."""
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
                f"{OWNER} needs two columns or more, and has {len(rows.codes)}: of one column nothing can be "
                "multiplied. List more `columns`, or take TargetEncoder."
            )
        settings = self._settings(len(rows.codes))
        parts, tables, iterations = [], [], []
        useful = find_useful(rows)
        if not bool(useful.any()):
            raise ValueError(f"{OWNER} finds no row, in all or in a fold, that has a weight and all its categories.")
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
    """Find the rows that have a category of every key, and a weight."""
    useful: Array = rows.codes[0] != UNSEEN
    for codes in rows.codes[1:]:
        useful = useful & (codes != UNSEEN)
    return useful if rows.weight is None else useful & (rows.weight != 0)


def read_values(rows: CodedRows, signed: bool) -> Iterator[tuple[str, Array]]:
    """Give what is predicted, of each target and class, with the part of output names that tells it apart."""
    for number, target in enumerate(rows.targets):
        named = "" if len(rows.targets) == 1 else f"_{number if target.name is None else target.name}"
        for label, values in read_classes(target):
            yield named + label, 2.0 * values - 1.0 if signed and target.is_classification else values


def read_classes(target: Target) -> Iterator[tuple[str, Array]]:
    """Give the numbers of a target: of more than two classes, whether a row is of it, class by class."""
    if target.kind == "multiclass" and target.classes is not None:
        for number, label in enumerate(target.classes.tolist()):
            yield f"_{label}", (target.values == number).astype(np.float64)
    else:
        yield "", target.values.astype(np.float64)
