"""SpectralEncoder: encode all columns together by the leading singular vectors of their one-hot matrix."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

import numpy as np

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import UNSEEN, CodedRows, Learned, n_codes
from gpu_encode.encoders.summed import SummedEncoder
from gpu_encode.fitting.columns import Selection, select
from gpu_encode.fitting.fit import FitContext
from gpu_encode.fitting.model import Model
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.counts import Counts
from gpu_encode.methods.factors.one_hot_products import most_pairs, multiply_rows, product_of_rows, products_of_counts
from gpu_encode.methods.factors.spectra import is_decomposed_whole, leading_eigenvectors, settle_signs, weigh_columns
from gpu_encode.schemes.plans import check_random_state
from gpu_encode.sums.pairs import weights_of, with_missing
from gpu_encode.tables.frames import Frame, Pieces
from gpu_encode.words.annotations import Columns, Device, FloatType, Seed
from gpu_encode.words.errors.parameters import MOST_COLUMNS, check_count, check_number, check_option

WEIGHTINGS = (None, "eta", "mu", "tfidf")


@dataclass(frozen=True, eq=False)
class Spectrum(Learned):
    """Singular values and vectors of a one-hot matrix, and the table in which rows are looked up."""

    components: Array
    singular_values: Array
    table: Array
    indicators: bool

    def names(self, keys: Sequence[str]) -> list[str]:
        """Number the vectors; name an indicator for each key if indicators are wanted."""
        flags = [f"{key}_unseen" for key in keys] if self.indicators else []
        return [f"spectral_{number}" for number in range(len(self.singular_values))] + flags

    def encode(self, rows: CodedRows) -> Array:
        """Add up a line of the table for each key."""
        encodings = multiply_rows(rows, self.table)
        return append_indicators(encodings, rows.codes) if self.indicators else encodings

    def check(self, sizes: Sequence[int]) -> None:
        """Raise ValueError if the table does not have one line for each category."""
        columns, found = sum(sizes), self.singular_values.size
        shapes = self.components.shape, self.table.shape
        if shapes != ((found, columns), (columns, found)) or self.table.dtype != np.float64:
            raise ValueError(f"the singular vectors are of {shapes}, of {columns} categories and {found} vectors")


@dataclass(eq=False, repr=False)
class SpectralEncoder(SummedEncoder):
    """Encode all columns together by the leading singular vectors of their one-hot matrix.

    The one-hot matrix F has a row for each row of X and a column for each category of each key.  It is never built: the
    codes of the rows stand for it.  Its columns are weighted, F D, and decomposed, F D = U S V'.  Training rows and new
    rows are encoded as F D V / S, which is U for training rows.  The target is not used, so nothing can leak.

    Parameters
    ----------
    n_components : int, default=2
        Most singular vectors; there are fewer if the rank of the matrix is smaller, see `strict`.  The rank is at most
        the number of all categories, less one for each key except the first.
    columns : list, "categorical", selector, pattern or function, optional
        Names (or positions) of the columns; a tuple is a joint key, and `interactions` lists many.  Others pass
        through.  None: every column.
    weighting : {None, "eta", "mu", "tfidf"}, default=None
        Factor of a one-hot column whose rows have weight n, out of N: 1; 1 / sqrt(n), as in correspondence analysis;
        sqrt(n); or log(N / n).
    ridge : float, default=0.0
        If above 0, rows are encoded as F D V S / (S**2 + ridge), which shrinks vectors of small singular values.
    tol : float, default=1e-8
        Relative accuracy of the squared singular values, if the solver is iterative; 0 means the accuracy of the
        floats.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the starting vector of the iterative solver.
    handle_unknown : {"zero", "error"}, default="zero"
        A value that fit did not see adds nothing, or is refused.
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
    n_components_ : int
        Number of singular vectors: `n_components`, or the rank if that is smaller.
    components_ : float64 ndarray of shape (n_components_, n_categories)
        V': a line for each singular vector; its columns are the categories of all keys in turn, as in `categories_`.
    singular_values_ : float64 ndarray of shape (n_components_,)
    categories_ : list of ndarray of shape (n_categories,)
    device_ : {"cpu", "cuda"}
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had string column names.

    See Also
    --------
    CooccurrenceEncoder : Singular vectors of the counts of two keys.
    OneHotEncoder : The matrix itself.

    Notes
    -----
    *Signs.* In each line of `components_` the entry of largest size is positive; among entries within 1e-6 of it, the
    first one is.

    *What is defined.* If singular values are equal, or nearly so, only the space of their vectors is defined: another
    solver, or another order of the categories, gives other vectors of the same space.

    *Accuracy.* F'F is computed from exact counts of pairs of categories, which are the same on every backend.  If there
    are more than two pairs for each code of a row, products with F and F' are computed from the codes instead.  The
    solver is LAPACK, or ARPACK for many categories, on the host.  With device="cuda", or with a GPU and a large matrix,
    it is CuPy's, whose residuals are checked.  The relative error of singular values is about 1e-15 * (first / last) **
    2, or `tol` if that is larger.  Values and vectors may differ in their last bits between machines, and by `tol`
    between solvers.  From the same values and vectors, encodings are sums in one order, the same on every backend, and
    `fit_transform` gives the bits of `transform`.

    *Parts.* Counts of pairs can be added, so `partial_fit`, `merge`, files and Dask give the bits of one fit; counts
    are decomposed when `transform` is called or an attribute is read.  If products are computed from codes, as above or
    with more than 32 columns, there are no counts to add to, and rows in parts are refused.

    *Weights.* Rows of weight w count as w rows: U is then orthonormal under the weights.

    References
    ----------
    D'yakonov, "Solution methods for classification problems with categorical attributes", Computational Mathematics
    and Modeling 26(3), 2015, section 6.  scikit-learn's OneHotEncoder and TruncatedSVD, whose training rows are U S.

    Examples
    --------
    >>> import numpy as np
    >>> from gpu_encode import SpectralEncoder
    >>> X = np.array([["oak", "wet"], ["oak", "wet"], ["elm", "dry"], ["fir", "dry"], ["fir", "wet"]], dtype=object)
    >>> encoder = SpectralEncoder(2).fit(X)
    >>> encoder.singular_values_.round(3).tolist()
    [2.197, 1.776]
    >>> encoder.transform(X).round(3).tolist()[:3]
    [[0.597, -0.234], [0.597, -0.234], [0.071, 0.605]]
    >>> encoder.transform([["yew", "dry"]]).round(3).tolist()
    [[0.056, 0.413]]
    """

    n_components: int = 2
    _: KW_ONLY
    columns: Columns = None
    weighting: str | None = None
    ridge: float = 0.0
    tol: float = 1e-8
    random_state: Seed = 0
    handle_unknown: Literal["zero", "error"] = "zero"
    handle_missing: Literal["category", "error"] = "category"
    indicators: bool = False
    device: Device = "auto"
    dtype: FloatType = "float64"
    strict: bool = False
    _needs_target = False
    _learned = Spectrum

    @property
    def n_components_(self) -> int:
        """Number of singular vectors."""
        return len(self.singular_values_)

    @property
    def components_(self) -> Array:
        """Right singular vectors of the weighted one-hot matrix, one in each line."""
        components: Array = self._fitted().learned.components  # type: ignore[attr-defined]
        return components

    @property
    def singular_values_(self) -> Array:
        """Singular values of the weighted one-hot matrix, the largest first."""
        values: Array = self._fitted().learned.singular_values  # type: ignore[attr-defined]
        return values

    def _rows_parameters(self) -> Parameters:
        return Parameters.of(self, Counts(), as_unseen="zero", select=partial(select_all_pairs, columns=self.columns))

    def _wants_pairs(self, n_keys: int) -> bool:
        return n_keys > 1

    def _most_pairs(self, context: FitContext) -> float:
        sizes = [n_codes(key) for key in context.keys]
        whole = is_decomposed_whole(sum(sizes), int(self.n_components))
        return most_pairs(len(sizes), context.rows.n_rows, whole)

    def _check_learner(self) -> None:
        owner = type(self).__name__
        check_count(owner, "n_components", self.n_components, low=1, high=MOST_COLUMNS)
        check_option(owner, "weighting", self.weighting, WEIGHTINGS)
        check_number(owner, "ridge", self.ridge, low=0.0)
        check_option(owner, "strict", self.strict, (True, False))
        check_policies(self)

    def _learn_sums(self, model: Model, rows: CodedRows | None = None) -> Spectrum:
        sums = [
            with_missing(weights_of(of_key), key) for key, (of_key,) in zip(model.keys, model.statistics, strict=True)
        ]
        factors = weigh_columns(np.concatenate(sums), float(sums[0].sum()), self.weighting)
        products = self._multiply(model, rows, sums, factors)
        squares, vectors = leading_eigenvectors(products, self.n_components, self.tol, self.random_state, self.device)
        if len(squares) < (self.n_components if self.strict else 1):
            raise rank_too_small(self._owner, self.n_components, "the one-hot matrix", len(squares))
        vectors = vectors * settle_signs(vectors)
        values = np.sqrt(squares)
        table = factors[:, None] * vectors * (values / (squares + float(self.ridge)))
        return Spectrum(np.ascontiguousarray(vectors.T), values, np.ascontiguousarray(table), bool(self.indicators))

    def _multiply(self, model: Model, rows: CodedRows | None, sums: Sequence[Floats], factors: Array) -> Any:
        """Give the products of all one-hot columns with each other, from counts of pairs if there are few of them."""
        whole, n_keys = is_decomposed_whole(len(factors), self.n_components), len(sums)
        n_pairs, n_rows = (
            sum(len(pairs.first) for pairs in model.pairs),
            max((p.n_rows for p in model.pairs), default=0),
        )
        if n_keys == 1 or (model.pairs and n_pairs <= most_pairs(n_keys, n_rows, whole)):
            counts = {pairs.keys: pairs.counts([model.keys[key] for key in pairs.keys]) for pairs in model.pairs}
            return products_of_counts(counts, sums, factors, whole)
        if rows is None:
            raise ValueError(
                f"With rows in parts, {self._owner} counts pairs of categories, and {n_keys} columns with "
                f"{len(factors):,} categories have too many ({n_pairs:,} pairs in {n_rows:,} rows). Fit it to all rows "
                "in memory at once, or to fewer columns, or to columns of fewer values."
            )
        return product_of_rows(rows, factors)


def select_all_pairs(frame: Frame | Pieces, columns: Any) -> Selection:
    """Select the keys; each is counted with each other."""
    selection = select(frame, columns, None, ())
    return replace(selection, pairs=list(combinations(range(len(selection.entries)), 2)))


def check_policies(encoder: Any) -> None:
    """Raise ValueError for bad values of parameters that all encoders of factors share."""
    owner = type(encoder).__name__
    check_number(owner, "tol", encoder.tol, low=0.0)
    check_option(owner, "handle_unknown", encoder.handle_unknown, ("zero", "error"))
    check_option(owner, "handle_missing", encoder.handle_missing, ("category", "error"))
    check_option(owner, "indicators", encoder.indicators, (True, False))
    check_random_state(encoder.random_state)


def rank_too_small(owner: str, n_components: int, matrix: str, rank: int) -> ValueError:
    """Error if more components are wanted than a matrix has."""
    cure = f"Ask for n_components={rank} at most, or for strict=False."
    advice = cure if rank else "It is all zero: take another weighting."
    return ValueError(f"n_components={n_components} of {owner} is more than the rank of {matrix}, {rank}. {advice}")


def append_indicators(encodings: Array, codes: Sequence[Array]) -> Array:
    """Append a 0/1 column for each key, which is 1 if fit has not seen the value."""
    flags = [(of_key == UNSEEN).astype(np.float64)[:, None] for of_key in codes]
    joined: Array = np.concatenate([encodings, *flags], axis=1)
    return joined
