"""CooccurrenceEncoder: a category is encoded by the categories that occur with it."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Literal, Self

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.encoders.base import engine_of
from gpu_encode.encoders.codes import CodedRows, Learned, to_columns
from gpu_encode.encoders.summed import SummedEncoder
from gpu_encode.fitting.columns import map_columns
from gpu_encode.fitting.fit import prepare
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.counts import Counts
from gpu_encode.methods.factors.key_pairs import select_pairs
from gpu_encode.methods.factors.spectra import leading_singular_vectors, settle_signs, weigh_columns
from gpu_encode.methods.factors.spectral import check_policies, rank_too_small
from gpu_encode.seam import devices
from gpu_encode.tables.frames import is_collection, read, tables_of, to_host
from gpu_encode.words.annotations import Columns, Device, FloatType, Key, Seed, Table, Vector
from gpu_encode.words.errors.parameters import MOST_COLUMNS, check_count, check_option

WEIGHTINGS = (None, "eta", "mu", "log", "ppmi")
SCALES = ("unit", "sigma", "root")
# With these weightings, the matrix of keys (a, b) is the transpose of the matrix of keys (b, a).
SYMMETRIC = (None, "log", "ppmi")
REST = "rest"
# Left singular vectors, singular values and right singular vectors.
Decomposition = tuple[Array, Array, Array]


@dataclass(frozen=True, eq=False)
class Neighbours(Learned):
    """A table of encodings for each pair of keys, and the names of both.

    Parameters
    ----------
    encoded : list of int
        For each table the number of the encoded key.
    others : list of int or str
        The other key, by its number, or by its name if new rows do not have that key.
    tables : list of float64 array (categories, outputs)
    singular_values : list of float64 array (outputs,)
        Empty arrays if the tables are the counts themselves.
    indicators : bool
    """

    encoded: list[int]
    others: list[Any]
    tables: list[Array]
    singular_values: list[Array]
    indicators: bool

    def names(self, keys: Sequence[str]) -> list[str]:
        """Name the columns of a pair after both keys; name an indicator for each key if indicators are wanted."""
        others = [other if isinstance(other, str) else keys[other] for other in self.others]
        flags = [f"{key}_unseen" for key in keys] if self.indicators else []
        return [
            f"{keys[key]}_by_{other}_{number}"
            for key, other, table in zip(self.encoded, others, self.tables, strict=True)
            for number in range(table.shape[1])
        ] + flags

    def blocks(self) -> list[tuple[int, Floats]]:
        """Give a block for each pair of keys, then the indicators; a value that fit has not seen gets zeros."""
        pairs = list(zip(self.encoded, self.tables, strict=True))
        found = [(key, np.concatenate([table, np.zeros((1, table.shape[1]))])) for key, table in pairs]
        sizes = {key: len(table) for key, table in found} if self.indicators else {}
        return found + [
            (key, (np.arange(size) == size - 1)[:, None].astype(np.float64)) for key, size in sorted(sizes.items())
        ]

    def check(self, sizes: Sequence[int]) -> None:
        """Raise ValueError if a table does not have one line for each category."""
        parts = (self.encoded, self.others, self.tables, self.singular_values)
        numbers = {len(part) for part in parts}
        if len(numbers) > 1 or not self.encoded or not all(0 <= key < len(sizes) for key in self.encoded):
            raise ValueError(f"tables are of the keys {self.encoded}, of {len(sizes)} keys")
        if max(self.encoded) + 1 != len(sizes):
            raise ValueError(f"the last of {len(sizes)} keys has no table")
        keys = [other for other in self.others if not isinstance(other, str)]
        if any(type(other) is not int or not 0 <= other < len(sizes) for other in keys):
            raise ValueError(f"tables are against the keys {keys}, of {len(sizes)} keys")
        shapes = [table.shape for table in self.tables]
        lines = [shape[0] for shape in shapes if len(shape) == 2]
        if lines != [sizes[key] for key in self.encoded] or any(table.dtype != np.float64 for table in self.tables):
            raise ValueError(f"tables are of {shapes}, of {list(sizes)} categories")


@dataclass(eq=False, repr=False)
class CooccurrenceEncoder(SummedEncoder):
    """Encode categories by the categories of other columns that occur in the same rows.

    P[i, j] is the number of rows with category i of one key and category j of another key; rows without a target count,
    too.  The columns or entries of P are weighted, and P is decomposed, P = U S V'.  The encoding of category i is line
    i of U, or of U S.  So categories that occur with the same others get similar encodings.  The target is not used, so
    nothing can leak, and `fit_transform` gives the same encodings as `transform`.

    Parameters
    ----------
    n_components : int or None, default=2
        Most singular vectors for each pair of keys; there are fewer if the rank of P is smaller, see `strict`.  None:
        the weighted lines of P themselves, with a column for each category of the other key.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns to encode; a tuple is a joint key.  Others pass through.  None: every
        column.
    pairs : "all", list of tuple or tuple of two lists, default="all"
        "all": each key with each other key that has no column in common with it.  A list of pairs (key, other): the key
        is encoded by the other key; to encode both, list the pair in both directions.  ([keys], [others]): each of the
        keys with each of the others.  Keys may be joint keys.  Columns that are only used in others are read by fit
        only, and do not pass through.
    against : {None, "rest"}, default=None
        "rest": each key with all other columns of `columns`, taken as one joint key.
    weighting : {None, "eta", "mu", "log", "ppmi"}, default=None
        None: P itself.  "eta": each column is divided by the square root of its sum; "mu": it is multiplied by that
        root.  "log": log(1 + P).  "ppmi": the positive part of log(P[i, j] N / (N[i] N[j])), where N is the number of
        rows, N[i] that of rows with category i, and N[j] that of rows with category j.
    scale : {"unit", "sigma", "root"}, default="unit"
        Lines of U, of U S, or of U sqrt(S).
    tol : float, default=1e-8
        Relative accuracy of the squared singular values, if the solver is iterative; 0 means the accuracy of the
        floats.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the starting vector of the iterative solver.
    handle_unknown : {"zero", "error"}, default="zero"
        Encoding of values that fit did not see; "error" refuses them.
    handle_missing : {"category", "error"}, default="category"
        None, NaN, pandas.NA, NaT and Arrow null are the same missing value.  It is a category if fit saw one, or it is
        refused.
    indicators : bool, default=False
        Whether each key has a 0/1 column key_unseen, which is 1 if fit has not seen the value.
    device : {"auto", "cpu", "cuda"}, default="auto"
        As in `TargetEncoder`.
    dtype : {"float64", "float32"}, default="float64"
        As in `TargetEncoder`.
    strict : bool, default=False
        Whether a rank below `n_components` is an error.

    Attributes
    ----------
    n_components_ : list of int
        For each pair, in the order of the output: its number of columns.
    singular_values_ : list of float64 ndarray of shape (n_components_,)
        For each pair, in the order of the output.
    categories_ : list of ndarray of shape (n_categories,)
    device_ : {"cpu", "cuda"}
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    SpectralEncoder : One decomposition for all columns together.

    Notes
    -----
    *Counts* are exact and sparse, and the same on every backend and for any pieces or parts of the rows: `partial_fit`
    (also of rows without a target), `merge`, files and Dask give the bits of one fit.  Counts are decomposed when
    `transform` is called or an attribute is read.  Weights that are not whole numbers are added exactly, and rounded
    once.

    *Signs.* In each column of V the entry of largest size is positive; among entries within 1e-6 of it, the first one
    is.

    *What is defined.* If singular values are equal, or nearly so, only the space of their vectors is defined.

    *Accuracy.* The solver is LAPACK, or ARPACK for many categories, on the host.  With device="cuda", or with a GPU and
    a large matrix, it is CuPy's, whose residuals are checked.  The relative error of singular values is about 1e-15 *
    (first / last) ** 2, or `tol` if that is larger.  Values and vectors may differ in their last bits between machines,
    and by `tol` between solvers.  From the same values and vectors, every backend computes the same bits.

    References
    ----------
    D'yakonov, "Solution methods for classification problems with categorical attributes", Computational Mathematics
    and Modeling 26(3), 2015.  Levy and Goldberg, "Neural word embedding as implicit matrix factorization",
    2014, for "ppmi" and "root".

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import CooccurrenceEncoder
    >>> X = np.array([["oak", "wet"], ["oak", "wet"], ["elm", "dry"], ["fir", "dry"], ["fir", "wet"]], dtype=object)
    >>> encoder = CooccurrenceEncoder(None, pairs=[(0, 1)]).fit(X)
    >>> encoder.transform([["oak", "wet"], ["fir", "wet"], ["yew", "wet"]]).tolist()
    [[0.0, 2.0], [1.0, 1.0], [0.0, 0.0]]
    >>> CooccurrenceEncoder(1, scale="sigma").fit_transform(X).round(3).tolist()[:2]
    [[1.914, 2.204], [1.914, 2.204]]
    """

    n_components: int | None = 2
    _: KW_ONLY
    columns: Columns = None
    pairs: Literal["all"] | Sequence[tuple[Key, Key]] | tuple[Sequence[Key], Sequence[Key]] = "all"
    against: str | None = None
    weighting: str | None = None
    scale: Literal["unit", "sigma", "root"] = "unit"
    tol: float = 1e-8
    random_state: Seed = 0
    handle_unknown: Literal["zero", "error"] = "zero"
    handle_missing: Literal["category", "error"] = "category"
    indicators: bool = False
    device: Device = "auto"
    dtype: FloatType = "float64"
    strict: bool = False
    _needs_target = False
    _learned = Neighbours

    def fit(
        self,
        X: Table,
        y: Table | None = None,
        *,
        unlabelled: Table | None = None,
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
    ) -> Self:
        """Count the pairs of categories in all rows, and decompose the counts.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `TargetEncoder.fit`; y is not used.
        unlabelled : table, or collection of tables, optional
            More rows with the columns of X, which are counted as well, each with weight 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For bad input; the encoder is then unchanged.
        """
        if unlabelled is None:
            return super().fit(X, y, sample_weight=sample_weight, groups=groups)
        self._fit(X, y, unlabelled, sample_weight, groups)
        return self

    def fit_transform(
        self,
        X: Table,
        y: Table | None = None,
        *,
        unlabelled: Table | None = None,
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
    ) -> Any:
        """Count the pairs of categories in all rows, decompose the counts, and encode the rows of X.

        Parameters
        ----------
        X, y, unlabelled, sample_weight, groups
            As in `fit`.

        Returns
        -------
        table of shape (n_rows, n_outputs), or list of tables
            In the library of X: encodings, then columns that pass through.

        Raises
        ------
        ValueError, TypeError
            For bad input; the encoder is then unchanged.
        """
        if unlabelled is None:
            return super().fit_transform(X, y, sample_weight=sample_weight, groups=groups)
        inputs, rows = self._fit(X, y, unlabelled, sample_weight, groups)
        labelled = rows.take(slice(0, inputs.frame.n_rows))  # type: ignore[arg-type]
        with devices.explain_memory():
            encodings = self._model.learned.encode(labelled)
            return self._assemble(inputs.frame, to_columns(encodings, self._model.dtype), map_columns(inputs.frame))

    @property
    def n_components_(self) -> list[int]:
        """Number of columns of each pair."""
        return [table.shape[1] for table in self._fitted().learned.tables]  # type: ignore[attr-defined]

    @property
    def singular_values_(self) -> list[Array]:
        """Singular values of each pair's weighted counts, the largest first."""
        values: list[Array] = self._fitted().learned.singular_values  # type: ignore[attr-defined]
        return values

    def _fit(self, X: Any, y: Any, unlabelled: Any, sample_weight: Any, groups: Any) -> tuple[Inputs, CodedRows]:
        """Learn from rows; give the rows with a target unchanged, and all rows as codes of the encoded keys."""
        if engine_of(X) is not None or engine_of(unlabelled) is not None:
            raise ValueError(
                f"{self._owner} takes rows of Dask with and without a target as one table, since it does not use the "
                "target: fit(dask.dataframe.concat([X, unlabelled])), without unlabelled."
            )
        with devices.explain_memory():
            inputs = Inputs(X, y, sample_weight, groups)
            context = prepare(self._checked_parameters(), with_unlabelled(inputs, unlabelled))
            return inputs, self._fit_rows(context)

    def _rows_parameters(self) -> Parameters:
        given: dict[str, Any] = {
            "columns": self.columns,
            "pairs": self.pairs,
            "against": self.against,
            "owner": self._owner,
        }
        select = partial(select_pairs, **given)
        return Parameters.of(self, Counts(), as_unseen="zero", scale="identity", columns=None, select=select)

    def _wants_pairs(self, n_keys: int) -> bool:  # noqa: ARG002
        return True

    def _check_learner(self) -> None:
        owner = self._owner
        if self.n_components is not None:
            check_count(owner, "n_components", self.n_components, low=1, high=MOST_COLUMNS)
        check_option(owner, "against", self.against, (None, REST))
        check_option(owner, "weighting", self.weighting, WEIGHTINGS)
        check_option(owner, "scale", self.scale, SCALES)
        check_option(owner, "strict", self.strict, (True, False))
        check_policies(self)

    def _learn_sums(self, model: Model, rows: CodedRows | None = None) -> Neighbours:  # noqa: ARG002
        selection, counted = model.selection, {pairs.keys: pairs for pairs in model.pairs}
        names = [entry.name for entry in selection.entries]
        tables, values = [], []
        kept: dict[tuple[int, int], Any] = {}
        for one, other in selection.pairs:
            turned = kept.pop((other, one), None)
            if turned is None:
                counts = counted[one, other].counts((model.keys[one], model.keys[other]))
            else:
                counts = turned[0].T.tocsr()
            if turned is not None and self.weighting in SYMMETRIC:
                decomposition = turned[1] and turned[1][::-1]
            else:
                decomposition = self._decompose(counts, f"the counts of {names[one]!r} by {names[other]!r}")
            if turned is None and (other, one) in selection.pairs:
                kept[one, other] = counts, decomposition
            table, singular_values = self._make_table(counts, decomposition)
            tables.append(table)
            values.append(singular_values)
        if self.n_components is not None and not any(map(len, values)):
            raise rank_too_small(self._owner, self.n_components, "the counts of each pair", 0)
        number, rest = selection.n_encoded, self.against == REST
        others = [REST if rest else b if b < number else names[b] for _, b in selection.pairs]
        return Neighbours([a for a, _ in selection.pairs], others, tables, values, bool(self.indicators))

    def _decompose(self, counts: Any, named: str) -> Decomposition | None:
        """Give the leading singular vectors of weighted counts; None if the counts themselves are the encodings."""
        if self.n_components is None:
            return None
        matrix = weigh_counts(counts, self.weighting)
        decomposition = leading_singular_vectors(matrix, self.n_components, self.tol, self.random_state, self.device)
        if self.strict and len(decomposition[1]) < self.n_components:
            raise rank_too_small(self._owner, self.n_components, named, len(decomposition[1]))
        return decomposition

    def _make_table(self, counts: Any, decomposition: Decomposition | None) -> tuple[Array, Array]:
        """Give the encoding of each category of the first key, and the singular values."""
        if decomposition is None:
            return weigh_counts(counts, self.weighting).toarray(), np.zeros(0)
        left, values, right = decomposition
        scales = {"unit": np.ones_like(values), "sigma": values, "root": np.sqrt(values)}
        table = left * (settle_signs(right) * scales[self.scale])
        return np.ascontiguousarray(table), np.ascontiguousarray(values)


def weigh_counts(counts: Any, weighting: str | None) -> Any:
    """Weight a sparse matrix of counts by column or by entry; the result is sparse, too."""
    if weighting in ("eta", "mu"):
        weighed = counts.copy()
        factors = weigh_columns(counts.sum(axis=0), float(counts.sum()), weighting)
        weighed.data = counts.data * factors[counts.indices]
        return weighed
    entries = counts.tocoo()
    if weighting == "log":
        data = np.log1p(entries.data)
    elif weighting == "ppmi":
        expected = counts.sum(axis=1)[entries.row] * counts.sum(axis=0)[entries.col]
        data = np.maximum(np.log(entries.data * entries.data.sum() / expected), 0.0)
    else:
        return counts
    weighed = type(entries)((data, (entries.row, entries.col)), shape=entries.shape).tocsr()
    weighed.eliminate_zeros()
    return weighed


def with_unlabelled(labelled: Inputs, unlabelled: Any) -> Inputs:
    """Join rows with and without a target; if there are weights, each row without a target gets weight 1."""
    further = tables_of(unlabelled) if is_collection(unlabelled) else None
    # A list of rows is a table, too, but would be mistaken for a list of tables.
    tables = [
        read(table).native if isinstance(table, (list, tuple)) else table
        for table in [*labelled.tables, *(further or [unlabelled])]
    ]
    weight, every = labelled.weight(), Inputs(tables)
    if weight is None:
        return every
    ones = np.ones(every.frame.n_rows - labelled.frame.n_rows, np.int64)
    return Inputs(tables, None, np.concatenate([to_host(weight), ones]))
