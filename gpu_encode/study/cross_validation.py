"""Outer validation of an encoder: for each fold, encodings of training and test rows that use no test row's target."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import check_cv

from cpu_fallback.types import MISSING, written
from gpu_encode.encoders.base import CategoryEncoder, Encoder, check_encoder
from gpu_encode.fitting.fit import prepare, select_columns
from gpu_encode.fitting.inputs import Inputs
from gpu_encode.schemes import Scheme
from gpu_encode.seam import devices, ops
from gpu_encode.tables import frames
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.words.annotations import ArrayLike, Splitter, Table, Vector

# A function of an encoder and the X and y of training rows that gives the encoder to fit to these rows.
Choose = Callable[[Encoder, Table, Table | None], Encoder]


class EncodedFold(NamedTuple):
    """One outer fold: row numbers, encodings, and the encoder.

    Parameters
    ----------
    train, test : int64 array
        Rows outside the fold, and rows of the fold.
    encoded_train, encoded_test : table
        Training encodings of the rows outside the fold, by the encoder's scheme; encodings of the fold's rows as new
        rows.
    encoder : Encoder
        Fitted to the rows outside the fold.
    """

    train: NDArray[np.int64]
    test: NDArray[np.int64]
    encoded_train: Any
    encoded_test: Any
    encoder: Encoder


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
        One for each outer fold, made when it is asked for: ``train, test, encoded_train, encoded_test, encoder``.

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

    Columns that are encoded are read and numbered once, for all outer folds.  Sums are made once an outer fold: a row's
    inner fold, or rank, follows from its position among the training rows, which differs between outer folds.
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
    ...     model = LogisticRegression().fit(fold.encoded_train, y[fold.train])
    ...     scores.append(model.score(fold.encoded_test, y[fold.test]))
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
    numbered = number_columns(encoder, inputs) if choose is None and can_share(encoder) else {}
    vectors = {"y": y, "sample_weight": sample_weight, "groups": groups}
    return encode_folds(encoder, X, vectors, splits, numbered, choose)


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
    if len(both := np.intersect1d(trained, tested)):
        raise ValueError(
            f"cv gives row {both[0]} both as a training row and as a test row of a split: its encoding would be "
            "learned from its own target, and the score would not be honest."
        )
    return trained, tested


def can_share(encoder: Encoder) -> bool:
    """Whether training encodings follow from single keys, whose columns may then be numbered beforehand."""
    methods = type(encoder).fit_transform, type(encoder)._fit_encodings
    return isinstance(encoder, CategoryEncoder) and methods == (Encoder.fit_transform, Encoder._fit_encodings)


def number_columns(encoder: Encoder, inputs: Inputs) -> dict[int, FactorizedColumn]:
    """Give the codes and the distinct values of the columns that are encoded, on the host, by position."""
    parameters, frame = encoder._checked_parameters(), inputs.frame
    backend = ops.resolve(frame.n_rows, inputs.device(parameters.device))
    columns = {}
    for position in select_columns(parameters, frame).needed:
        column = frame.keys(position, backend)
        columns[position] = column._replace(codes=backend.to_host(written(column.codes)))
    return columns


def encode_folds(
    encoder: Encoder,
    X: Any,
    vectors: Mapping[str, Any],
    splits: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    numbered: Mapping[int, FactorizedColumn],
    choose: Choose | None,
) -> Iterator[EncodedFold]:
    """Fit and encode, fold by fold."""
    for train, test in splits:
        given = {name: None if vector is None else frames.take(vector, train) for name, vector in vectors.items()}
        rows = frames.take(X, train)
        fitted = clone(encoder if choose is None else choose(clone(encoder), rows, given["y"]))
        if numbered:
            with devices.explain_memory():
                inputs, parameters = Inputs(rows, **given), fitted._checked_parameters()
                backend = ops.resolve(len(train), inputs.device(parameters.device))
                inputs.numbered = {("keys", at): rows_of(of, train, backend) for at, of in numbered.items()}
                context = prepare(parameters, inputs)
                encoded = fitted._assemble(context.rows.frame, fitted._fit_encodings(context), context.columns)
        else:
            encoded = fitted.fit_transform(rows, **given)
        yield EncodedFold(train, test, encoded, fitted.transform(frames.take(X, test)), fitted)


def rows_of(column: FactorizedColumn, numbers: NDArray[np.int64], backend: ops.Ops) -> FactorizedColumn:
    """Give some rows of a column, numbered as they would be without the other rows."""
    codes = column.codes[numbers]
    used = np.bincount(codes[codes != MISSING], minlength=len(column.vocabulary)) > 0
    if used.all():
        return FactorizedColumn(backend.to_device(codes), column.vocabulary, column.complete)
    renumbered = np.append(np.cumsum(used) - 1, MISSING).astype(np.int32)
    values = column.vocabulary.values.take(np.flatnonzero(used))
    return FactorizedColumn(backend.to_device(renumbered[codes]), Vocabulary(values), column.complete)
