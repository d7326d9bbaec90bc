"""scikit-learn's TargetEncoder: its own code checks a call, learns categories and splits the rows; we do the sums.

`fit_transform` of scikit-learn runs as it is, over no columns of its own: what it would take for the codes of X are the
numbers of the rows, so that its loop over the folds only tells which rows are trained on and which encoded.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.preprocessing import TargetEncoder as Theirs

from cpu_fallback.types import Array
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.serve.accel.calls import Method, NotServedError
from gpu_encode.serve.accel.encoders import CALL, Call, distinct_of
from gpu_encode.serve.accel.settings import SETTINGS
from gpu_encode.words import notices

transform_to_integers = Theirs._transform
fit_one_target = Theirs._fit_encoding_binary_or_continuous
fit_classes = Theirs._fit_encoding_multiclass
write_rows = Theirs._transform_X_ordinal
# Targets whose squares neither overflow nor vanish; scikit-learn's numbers are of floats alone.
SMALLEST, LARGEST = 1e-100, 1e100


@dataclass(eq=False)
class Training:
    """What scikit-learn's code tells of a call of `fit` or `fit_transform` while it runs.

    Parameters
    ----------
    categories : int array of shape (n_values, n_columns), optional
        Number of the category of each distinct value.
    is_known : bool array of shape (n_values, n_columns), optional
        Whether the value is one of the categories; others have the number of the first.
    y : array of shape (n_rows,) or (n_rows, n_classes), optional
        The target as numbers.
    training_rows : int array, optional
        Rows that the fold at hand is trained on.
    splits : list of (training rows, encoded rows)
    means : list of float or array
        Mean of the target of the training rows, of each split.
    """

    categories: Array | None = None
    is_known: Array | None = None
    y: Array | None = None
    training_rows: Array | None = None
    splits: list[tuple[Array, Array]] = field(default_factory=list)
    means: list[Any] = field(default_factory=list)


def training_of() -> Training | None:
    """Give what is known of the call of `fit` that runs, if this library serves one."""
    call = CALL.get()
    return None if call is None else call.training


def fit(call: Call, theirs: Method, self: Any, X: Any, y: Any) -> Any:
    """Serve `fit`."""
    training = call.training = Training()
    check_target(y)
    check_smooth(self.smooth)
    theirs(self, X, y)
    learn(call, training, self)
    return self


def fit_transform(call: Call, theirs: Method, self: Any, X: Any, y: Any, **params: Any) -> Array:
    """Serve `fit_transform`."""
    training = call.training = Training()
    check_target(y)
    check_smooth(self.smooth)
    try:
        theirs(self, X, y, **params)
    except Exception:
        # scikit-learn asks for splits last: an encoder whose `cv` fails is fitted.
        if training.y is not None:
            learn(call, training, self)
        raise
    encoder = make_encoder(self, training, training.splits)
    with notices.kept():
        out = np.ascontiguousarray(encoder.fit_transform(codes_of(call, training), target_of(training)))
    finish(call, self, encoder)
    write_unknown(call, training, out)
    return out


def learn(call: Call, training: Training, self: Any) -> None:
    """Learn the encodings of new rows."""
    encoder = make_encoder(self, training)
    with notices.kept():
        encoder.fit(codes_of(call, training), target_of(training))
    finish(call, self, encoder)


def check_target(y: Any) -> None:
    """Leave targets to scikit-learn whose mean it rounds to less than float64."""
    name = str(getattr(y, "dtype", "")).lower()
    if any(narrow in name for narrow in ("float16", "float32", "float[", "halffloat")):
        raise NotServedError(f"a target of {name}, whose mean scikit-learn rounds to its type")


def check_smooth(smooth: Any) -> None:
    """Leave an infinite weight of the mean to scikit-learn, as what is no number."""
    if not isinstance(smooth, str) and not (np.isscalar(smooth) and np.isfinite(smooth)):
        raise NotServedError("smooth is not a finite number")


def check_numbers(y: Array) -> None:
    """Leave targets to scikit-learn whose squares are no floats, before it has asked for splits."""
    largest = np.abs(y).max() if y.dtype.kind == "f" else 0
    if y.dtype.kind not in "iub" and y.dtype != np.float64:
        raise NotServedError(f"a target of {y.dtype}, whose mean scikit-learn rounds to its type")
    if largest and not SMALLEST < largest < LARGEST:
        raise NotServedError("a target whose squares are no floats")


def number_rows(self: Any, X: Any, **named: Any) -> tuple[Array, Array]:
    """Remember the categories of distinct values; give the numbers of the rows as if they were the codes of X."""
    training, call = training_of(), CALL.get()
    if training is None or call is None or call.X is not X:
        codes, is_known = transform_to_integers(self, X, **named)
        return codes, is_known
    training.categories, training.is_known = transform_to_integers(self, X, **named)
    n_rows = distinct_of(call).n_rows
    return np.arange(n_rows).reshape(-1, 1), np.ones((n_rows, 1), bool)


def remember_target(self: Any, X_ordinal: Array, y: Array, n_categories: Array, target_mean: Any) -> Any:
    """Remember the target, which is handed over first, and the training rows of each fold."""
    training = training_of()
    if training is None:
        return fit_one_target(self, X_ordinal, y, n_categories, target_mean)
    if training.y is None:
        check_numbers(y)
        training.y = y
    training.training_rows = X_ordinal[:, 0]
    return None


def remember_classes(self: Any, X_ordinal: Array, y: Array, n_categories: Array, target_mean: Any) -> Any:
    """Do the same of a target with a column for each class."""
    if training_of() is None:
        return fit_classes(self, X_ordinal, y, n_categories, target_mean)
    # scikit-learn refuses two classes as "multiclass" in this way, and its message shall be ours.
    y[:, len(self.classes_) - 1]
    return remember_target(self, X_ordinal, y, n_categories, target_mean)


def remember_fold(
    self: Any, X_out: Array, X_ordinal: Array, X_unknown_mask: Array, row_indices: Any, encodings: Any, target_mean: Any
) -> None:
    """Remember which rows a fold encodes, and the mean of the rows that it is trained on."""
    training = training_of()
    if training is None or training.training_rows is None:
        write_rows(self, X_out, X_ordinal, X_unknown_mask, row_indices, encodings, target_mean)
        return
    training.splits.append((training.training_rows, X_ordinal[row_indices, 0]))
    training.means.append(target_mean)


def make_encoder(self: Any, training: Training, splits: Any = None) -> TargetEncoder:
    """Give an encoder of ours with the parameters of scikit-learn's."""
    return TargetEncoder(
        # scikit-learn, too, takes the codes of two classes for numbers.
        target_type="multiclass" if of_classes(training) else "continuous",
        smooth="auto" if self.smooth == "auto" else float(self.smooth),
        cv=splits,
        device=SETTINGS.device,
    )


def of_classes(training: Training) -> bool:
    """Whether the target has a column for each of several classes."""
    return training.y is not None and training.y.ndim == 2 and training.y.shape[1] > 1


def target_of(training: Training) -> Array:
    """Give the target as our encoder takes it: numbers, or the number of each row's class."""
    y = np.asarray(training.y)
    if of_classes(training):
        classes: Array = y.argmax(axis=1)
        return classes
    return y.reshape(len(y))


def codes_of(call: Call, training: Training) -> Array:
    """Give the category of each row and column, as a table of whole numbers."""
    distinct, categories = distinct_of(call), np.asarray(training.categories)
    codes = np.empty((distinct.n_rows, len(distinct.codes)), np.int32, order="F")
    for column, numbers in enumerate(distinct.codes):
        of_column = categories[: len(distinct.values[column]), column]
        is_same = np.array_equal(of_column, np.arange(len(of_column)))
        codes[:, column] = numbers if is_same else of_column[numbers]
    return codes


def finish(call: Call, self: Any, encoder: TargetEncoder) -> None:
    """Write what was learned where scikit-learn keeps it; a category of no row has the mean of the target."""
    call.outcome.served_by = encoder.device_
    means = np.atleast_1d(self.target_mean_)
    self.encodings_ = []
    for number, learned in enumerate(encoder.encodings_):
        column, output = divmod(number, len(means))
        encodings = np.full(len(self.categories_[column]), means[output], np.float64)
        encodings[encoder.categories_[column]] = learned
        self.encodings_.append(encodings)


def write_unknown(call: Call, training: Training, out: Array) -> None:
    """Write what scikit-learn writes to rows of values that are not among given categories.

    It writes such rows of the whole table in each fold, so that the mean of the last one stays.
    """
    distinct, means = distinct_of(call), np.atleast_1d(training.means[-1])
    for column, numbers in enumerate(distinct.codes):
        is_known = np.asarray(training.is_known)[: len(distinct.values[column]), column]
        if not is_known.all():
            out[~is_known[numbers], column * len(means) : (column + 1) * len(means)] = means
