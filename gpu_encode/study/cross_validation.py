"""Outer validation of an encoder: for each fold, encodings of training and test rows that use no test row's target."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv

from cpu_fallback.types import MISSING, UNKNOWN, Array, Codes, written
from gpu_encode.encoders.base import CategoryEncoder, Encoder, check_encoder
from gpu_encode.fitting.fit import select_columns
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.schemes import Scheme, Splits
from gpu_encode.seam import ops
from gpu_encode.seam.ops import Ops
from gpu_encode.tables import frames
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.tables.frames import Frame
from gpu_encode.tables.frames.column_choice import is_choice
from gpu_encode.words.annotations import ArrayLike, Splitter, Table, Vector

# Functions that pick some columns of a table, by the kind of the table.
PICKS: dict[str, Callable[[Any, list[int]], Any]] = {
    "numpy": lambda table, columns: table[:, columns],
    "pandas": lambda table, columns: table.iloc[:, columns],
    "polars": lambda table, columns: table[:, columns],
    "pyarrow": lambda table, columns: table.select(columns),
}
# A function of an encoder and the X and y of training rows that gives the encoder to fit to these rows.
Choose = Callable[[Encoder, Table, Table | None], Encoder]


class EncodedFold(NamedTuple):
    """One outer fold: row numbers, encodings, the encoder and targets.

    Parameters
    ----------
    train, test : int64 array
        Positions of the rows outside the fold, and of the rows of the fold.
    encoded_train, encoded_test : table
        Training encodings of the rows outside the fold, by the encoder's scheme; encodings of the fold's rows as new
        rows.
    encoder : Encoder
        Fitted to the rows outside the fold.
    y_train, y_test : array or table, or None without y
        Their targets, of the kind of y.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    encoded_train: Any
    encoded_test: Any
    encoder: Encoder
    y_train: Any
    y_test: Any


def cross_val_transform(
    encoder: Encoder,
    X: Table,
    y: Table | None = None,
    *,
    cv: int | Splitter | Iterable[tuple[ArrayLike, ArrayLike]] | None = 5,
    groups: Vector | None = None,
    sample_weight: Vector | None = None,
    choose: Choose | None = None,
) -> Iterator[EncodedFold]:
    """Encode for nested cross-validation: each outer fold is encoded by an encoder that has seen none of its rows.

    A model is trained on `encoded_train` and scored, or stopped early, on `encoded_test`: its score is then honest.
    If an encoder is fitted to all rows first, a model is scored on rows from which its encodings were learned.

    Parameters
    ----------
    encoder : Encoder
        It is not changed.
    X : table of shape (n_rows, n_columns)
        One table in memory, of any kind.
    y : array or table, optional
        As in `fit_transform`.
    cv : int, splitter, iterable of splits or None, default=5
        The outer folds, as scikit-learn's ``cross_validate`` takes them; a number gives stratified folds of a target of
        classes, and contiguous folds of any other.  The inner folds are the encoder's own `cv`.
    groups : array of shape (n_rows,), optional
        For the splitter, if it takes groups, and for the encoder, if its scheme does.
    sample_weight : array of shape (n_rows,), optional
        For the encoder.
    choose : callable, optional
        ``choose(encoder, X, y)`` gives the encoder that is fitted, from the training rows of a fold alone: for example
        ``lambda encoder, X, y: tune(encoder, X, y).encoder``, which tunes once for each outer fold.

    Returns
    -------
    iterator of EncodedFold
        One for each outer fold, made when it is asked for, with the fields ``train, test, encoded_train, encoded_test,
        encoder, y_train, y_test``.

    Raises
    ------
    TypeError
        If `encoder` is not an encoder of this library, if X is several tables or partitions of an engine, or if `cv` is
        a scheme of this library or the name of a column, which only the `cv` of the encoder takes.
    ValueError
        For bad input, for outer folds that scikit-learn refuses, and if a split both trains on a row and tests it.

    Notes
    -----
    The bits are those of ``clone(encoder).fit_transform(X[train], y[train])`` and of ``transform(X[test])`` after it,
    whatever the scheme, the target and the smoothing.

    Columns that are encoded are read and numbered once, for all outer folds, and only columns that pass through are
    copied.  Sums are made once an outer fold.  A row's inner fold, or rank, follows from its position among the
    training rows (a number of folds, `Ordered`, `Holdout`), or from the sizes of their groups or times (`GroupKFold`,
    `TimeFolds`), and so differs between outer folds.  Only folds by value, ``KFold(by=...)`` or a column of folds, are
    the same in all of them.
    Encoders that learn several columns together are fitted anew for each fold.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from gpu_encode import TargetEncoder, cross_val_transform
    >>> rng = np.random.default_rng(0)
    >>> shops, rates = rng.integers(0, 50, 2000), rng.random(50)
    >>> X, y = shops[:, None], (rng.random(2000) < rates[shops]).astype(int)
    >>> scores = []
    >>> for fold in cross_val_transform(TargetEncoder(), X, y, cv=4):
    ...     model = LogisticRegression().fit(fold.encoded_train, fold.y_train)
    ...     scores.append(model.score(fold.encoded_test, fold.y_test))
    >>> [round(score, 2) for score in scores]
    [0.69, 0.74, 0.73, 0.73]
    """
    check_encoder(encoder)
    if choose is not None and not callable(choose):
        raise TypeError(f"choose must be a function of (encoder, X, y) that gives an encoder. Got {choose!r} instead.")
    several = frames.is_collection(X) and frames.tables_of(X) is not None
    if several or frames.engine_holding(X) is not None:
        raise TypeError(
            "cross_val_transform takes one table in memory, not several tables nor those of Dask, Spark or Ray. Put "
            "the rows into one table first."
        )
    inputs = Inputs(X, y, sample_weight, groups)
    table, labels = inputs.for_splitter()
    outer = check_cv(read_outer(cv), labels, classifier=getattr(encoder, "target_type", "auto") != "continuous")
    splits = [number_rows(inputs.frame.n_rows, *split) for split in outer.split(table, labels, groups)]
    vectors = {"y": y, "sample_weight": sample_weight, "groups": groups}
    if choose is not None or not can_share(encoder, inputs):
        return encode_folds(encoder, X, vectors, splits, choose)
    inputs.warn_of_order()
    return encode_numbered(encoder, inputs, vectors, splits, number_columns(encoder, inputs))


def read_outer(cv: Any) -> Any:
    """Give the outer folds; raise an error for a scheme, a name of a column, and splits that are no pairs."""
    if isinstance(cv, (Scheme, str, Mapping)):
        raise TypeError(
            "cv of cross_val_transform are the outer folds, as scikit-learn has them: a number, a splitter such as "
            f"sklearn.model_selection.GroupKFold, or a list of splits. Got {cv!r} instead. A scheme of gpu_encode, or "
            "the name of a column of folds, is for the cv of the encoder, which makes the inner folds. Outer folds by "
            "the values of an array are GroupKFold with groups=, or PredefinedSplit."
        )
    if hasattr(cv, "split") or not isinstance(cv, Iterable):
        return cv
    splits = list(cv)
    for split in splits:
        if not hasattr(split, "__len__") or len(split) != 2:
            raise ValueError(
                f"cv must be a list of pairs: the training rows and the test rows of each fold. It holds {split!r}. "
                "Write fold numbers, one a row, as sklearn.model_selection.PredefinedSplit(numbers)."
            )
    return splits


def number_rows(n_rows: int, train: ArrayLike, test: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the numbers of training and test rows; a splitter may give masks, and negative numbers."""
    rows = np.arange(n_rows)
    trained, tested = rows[np.asarray(train)], rows[np.asarray(test)]
    is_trained = np.zeros(n_rows, bool)
    is_trained[trained] = True
    if is_trained[tested].any():
        raise ValueError(
            f"cv gives row {tested[is_trained[tested]].min()} both as a training row and as a test row of a split: its "
            "encoding would be learned from its own target, and the score would not be honest."
        )
    return trained, tested


def can_share(encoder: Encoder, inputs: Inputs) -> bool:
    """Tell whether the columns of X can be numbered beforehand: encodings follow from keys, and nobody else reads X."""
    names = "fit_transform", "_fit_encodings", "transform"
    if (
        not isinstance(encoder, CategoryEncoder)
        or is_choice(encoder.columns)
        or inputs.frame.parts[0].kind not in PICKS
    ):
        return False
    if any(getattr(type(encoder), name) is not getattr(Encoder, name) for name in names):
        return False
    return not any(isinstance(scheme, Splits) for scheme in encoder._checked_parameters().every_scheme)


def number_columns(encoder: Encoder, inputs: Inputs) -> dict[int, FactorizedColumn]:
    """Give the codes and the distinct values of the columns that are encoded, on the host, by position."""
    frame, backend = inputs.frame, ops.host(inputs.frame.n_rows)
    selection = select_columns(encoder._checked_parameters(), frame)
    numbered = {at: frame.keys(at, backend) for at in selection.needed if at not in selection.passed}
    return {at: column._replace(codes=written(column.codes)) for at, column in numbered.items()}


@dataclass(frozen=True, kw_only=True)
class NumberedRows(Frame):
    """Some rows of a table whose encoded columns have been numbered; `native` lacks these columns.

    Parameters
    ----------
    whole : Frame
        The table.
    rows : int64 array
    numbered : dict of int to FactorizedColumn
        The numbered columns of these rows, by position.
    are_new : bool
        Whether rows may have values that their vocabulary lacks, with the code UNKNOWN.
    """

    whole: Frame
    rows: NDArray[np.int64]
    numbered: Mapping[int, FactorizedColumn]
    are_new: bool

    @classmethod
    def of(
        cls, whole: Frame, rows: NDArray[np.int64], numbered: Mapping[int, FactorizedColumn], are_new: bool = False
    ) -> Self:
        """Take rows of the other columns; the values of numbered columns are only taken for messages."""
        others = [at for at in range(whole.n_columns) if at not in numbered]
        native = PICKS[whole.kind](whole.native, others)
        native = frames.take(native, rows) if others or whole.kind == "pandas" else native
        return cls(
            native,
            whole.kind,
            (len(rows), whole.n_columns),
            whole.labels,
            whole.wrap,
            whole=whole,
            rows=rows,
            numbered=numbered,
            are_new=are_new,
        )

    def native_column(self, position: int) -> Any:
        """Give a column of these rows."""
        return frames.take(self.whole.native_column(position), self.rows)

    def keys(self, position: int, ops: Ops) -> FactorizedColumn:
        """Give the codes of a column, and its vocabulary."""
        found = None if self.are_new else self.numbered.get(position)
        return super().keys(position, ops) if found is None else found._replace(codes=ops.to_device(found.codes))

    def lookup(self, position: int, vocabulary: Vocabulary, ops: Ops) -> Codes:
        """Give the codes of a column in a vocabulary."""
        found = self.numbered.get(position)
        if found is None or found.vocabulary is not vocabulary:
            return super().lookup(position, vocabulary, ops)
        return ops.to_device(found.codes)

    def numbers(self, position: int, vocabulary: Vocabulary) -> Array | None:
        """Give the whole numbers of a column; None for a numbered one, whose codes are known."""
        return None if position in self.numbered else super().numbers(position, vocabulary)

    def assemble(
        self, names: Sequence[str], arrays: Sequence[Array], passed: Sequence[int], kind: str | None = None
    ) -> Any:
        """Make a table of new columns, then unchanged columns that have not been numbered."""
        others = [at for at in range(self.n_columns) if at not in self.numbered]
        labels = None if self.labels is None else [self.labels[at] for at in others]
        rest = Frame(self.native, self.kind, (self.n_rows, len(others)), labels, self.wrap)
        return rest.assemble(names, arrays, [others.index(at) for at in passed], kind)


def encode_folds(
    encoder: Encoder,
    X: Any,
    vectors: Mapping[str, Any],
    splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    choose: Choose | None,
) -> Iterator[EncodedFold]:
    """Fit and encode, fold by fold."""
    for train, test in splits:
        rows, given = frames.take(X, train), {name: pick(vector, train) for name, vector in vectors.items()}
        fitted = clone(encoder if choose is None else choose(clone(encoder), rows, given["y"]))
        encoded = fitted.fit_transform(rows, **given)
        new = fitted.transform(frames.take(X, test))
        yield EncodedFold(train, test, encoded, new, fitted, given["y"], pick(vectors["y"], test))


def encode_numbered(
    encoder: Any,
    inputs: Inputs,
    vectors: Mapping[str, Any],
    splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    numbered: Mapping[int, FactorizedColumn],
) -> Iterator[EncodedFold]:
    """Fit and encode, fold by fold, with columns that have been numbered."""
    (whole,) = inputs.frame.parts
    for train, test in splits:
        fitted, columns = clone(encoder), {at: split_column(of, train, test) for at, of in numbered.items()}
        trained = NumberedRows.of(whole, train, {at: both[0] for at, both in columns.items()})
        tested = NumberedRows.of(whole, test, {at: both[1] for at, both in columns.items()}, are_new=True)
        given = {name: pick(vector, train) for name, vector in vectors.items()}
        encoded = fitted.fit_transform(trained, **given)
        # The names came from a table without the numbered columns.
        fitted._check_names(inputs, fitted._model.selection, reset=True)
        new = fitted.transform(tested)
        yield EncodedFold(train, test, encoded, new, fitted, given["y"], pick(vectors["y"], test))


def pick(vector: Any, rows: NDArray[np.int64]) -> Any:
    """Give some rows of a vector, if it was given."""
    return None if vector is None else frames.take(vector, rows)


def split_column(
    column: FactorizedColumn, train: NDArray[np.int64], test: NDArray[np.int64]
) -> tuple[FactorizedColumn, FactorizedColumn]:
    """Give training rows of a column, numbered as they would be without other rows, and test rows in these numbers."""
    of_train, of_test, vocabulary = column.codes[train], column.codes[test], column.vocabulary
    # MISSING, which is -1, has the last line.
    used = np.zeros(len(vocabulary) + 1, np.bool_)
    used[of_train] = True
    if not used[:MISSING].all():
        renumbered = np.where(used, np.cumsum(used) - 1, UNKNOWN).astype(np.int32)
        renumbered[MISSING] = MISSING
        of_train, of_test = renumbered[of_train], renumbered[of_test]
        vocabulary = Vocabulary(vocabulary.values.take(np.flatnonzero(used[:MISSING])))
    return FactorizedColumn(of_train, vocabulary, column.complete), FactorizedColumn(of_test, vocabulary)
