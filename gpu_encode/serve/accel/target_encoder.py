"""scikit-learn's TargetEncoder: its own code checks a call, learns categories and splits rows; we compute the sums.

scikit-learn's own `fit_transform` runs, but on row numbers in place of the codes of X.  So its loop over the folds only
shows which rows are used for training and which are encoded.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.preprocessing import TargetEncoder as Theirs

from cpu_fallback.types import Array
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.serve.accel.calls import Method, NotServedError
from gpu_encode.serve.accel.encoders import Call, distinct_of, running_call
from gpu_encode.serve.accel.settings import SETTINGS
from gpu_encode.words import notices

transform_to_integers = Theirs._transform
fit_one_target = Theirs._fit_encoding_binary_or_continuous
fit_classes = Theirs._fit_encoding_multiclass
write_rows = Theirs._transform_X_ordinal
# Targets whose squares neither overflow nor vanish, since scikit-learn computes in floats.
SMALLEST, LARGEST = 1e-100, 1e100


@dataclass(eq=False)
class Training:
    """What scikit-learn's code passes to us during a call of `fit` or `fit_transform`.

    Parameters
    ----------
    categories : int array of shape (n_values, n_columns), optional
        Number of the category of each distinct value.
    is_known : bool array of shape (n_values, n_columns), optional
        Whether the value is one of the categories; other values have the code of the first category.
    y : array of shape (n_rows,) or (n_rows, n_classes), optional
        The target as numbers.
    training_rows : int array, optional
        Training rows of the current fold.
    splits : list of (training rows, encoded rows)
    means : list of float or array
        For each split, the mean target of its training rows.
    """

    categories: Array | None = None
    is_known: Array | None = None
    y: Array | None = None
    training_rows: Array | None = None
    splits: list[tuple[Array, Array]] = field(default_factory=list)
    means: list[Any] = field(default_factory=list)


def training_of() -> Training | None:
    """Give the state of the running call of `fit`, if this library serves one."""
    call = running_call()
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
        # scikit-learn asks for the splits last: even if `cv` fails, the encoder is fitted.
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
    """Raise NotServedError for targets whose mean scikit-learn rounds to less than float64."""
    name = str(getattr(y, "dtype", "")).lower()
    if any(narrow in name for narrow in ("float16", "float32", "float[", "halffloat")):
        raise NotServedError(f"a target of {name}, whose mean scikit-learn rounds to its type")


def check_smooth(smooth: Any) -> None:
    """Raise NotServedError unless smooth is a finite number."""
    if not isinstance(smooth, str) and not (np.isscalar(smooth) and np.isfinite(smooth)):
        raise NotServedError("smooth is not a finite number")


def check_numbers(y: Array) -> None:
    """Raise NotServedError for targets whose squares overflow or vanish, before scikit-learn asks for splits."""
    largest = np.abs(y).max() if y.dtype.kind == "f" else 0
    if y.dtype.kind not in "iub" and y.dtype != np.float64:
        raise NotServedError(f"a target of {y.dtype}, whose mean scikit-learn rounds to its type")
    if largest and not SMALLEST < largest < LARGEST:
        raise NotServedError("a target whose squares are no floats")


def number_rows(self: Any, X: Any, **named: Any) -> tuple[Array, Array]:
    """Remember the categories of the distinct values; give the numbers of the rows in place of the codes of X."""
    training, call = training_of(), running_call()
    if training is None or call is None or call.X is not X:
        codes, is_known = transform_to_integers(self, X, **named)
        return codes, is_known
    training.categories, training.is_known = transform_to_integers(self, X, **named)
    n_rows = distinct_of(call).n_rows
    return np.arange(n_rows).reshape(-1, 1), np.ones((n_rows, 1), bool)


def remember_target(self: Any, X_ordinal: Array, y: Array, n_categories: Array, target_mean: Any) -> Any:
    """Remember the target, which is passed first, and the training rows of each fold."""
    training = training_of()
    if training is None:
        return fit_one_target(self, X_ordinal, y, n_categories, target_mean)
    if training.y is None:
        check_numbers(y)
        training.y = y
    training.training_rows = X_ordinal[:, 0]
    return None


def remember_classes(self: Any, X_ordinal: Array, y: Array, n_categories: Array, target_mean: Any) -> Any:
    """Remember a target with a column for each class, and the training rows of each fold."""
    if training_of() is None:
        return fit_classes(self, X_ordinal, y, n_categories, target_mean)
    # scikit-learn refuses two classes as "multiclass" in this way, and its message must appear.
    y[:, len(self.classes_) - 1]
    return remember_target(self, X_ordinal, y, n_categories, target_mean)


def remember_fold(
    self: Any, X_out: Array, X_ordinal: Array, X_unknown_mask: Array, row_indices: Any, encodings: Any, target_mean: Any
) -> None:
    """Remember which rows a fold encodes, and the mean of its training rows."""
    training = training_of()
    if training is None or training.training_rows is None:
        write_rows(self, X_out, X_ordinal, X_unknown_mask, row_indices, encodings, target_mean)
        return
    training.splits.append((training.training_rows, X_ordinal[row_indices, 0]))
    training.means.append(target_mean)


def make_encoder(self: Any, training: Training, splits: Any = None) -> TargetEncoder:
    """Give an encoder of ours with the parameters of scikit-learn's encoder."""
    return TargetEncoder(
        # scikit-learn, too, treats the codes of two classes as numbers.
        target_type="multiclass" if of_classes(training) else "continuous",
        smooth="auto" if self.smooth == "auto" else float(self.smooth),
        cv=splits,
        device=SETTINGS.device,
    )


def of_classes(training: Training) -> bool:
    """Whether the target has a column for each of several classes."""
    return training.y is not None and training.y.ndim == 2 and training.y.shape[1] > 1


def target_of(training: Training) -> Array:
    """Give the target in the form that our encoder takes: numbers, or the number of each row's class."""
    y = np.asarray(training.y)
    if of_classes(training):
        classes: Array = y.argmax(axis=1)
        return classes
    return y.reshape(len(y))


def codes_of(call: Call, training: Training) -> Array:
    """Give the category of each row and column, as a table of integers."""
    distinct, categories = distinct_of(call), np.asarray(training.categories)
    codes = np.empty((distinct.n_rows, len(distinct.codes)), np.int32, order="F")
    for column, numbers in enumerate(distinct.codes):
        of_column = categories[: len(distinct.values[column]), column]
        is_same = np.array_equal(of_column, np.arange(len(of_column)))
        codes[:, column] = numbers if is_same else of_column[numbers]
    return codes


def finish(call: Call, self: Any, encoder: TargetEncoder) -> None:
    """Store what was learned in scikit-learn's attributes; a category without rows gets the mean of the target."""
    call.outcome.served_by = encoder.device_
    means = np.atleast_1d(self.target_mean_)
    self.encodings_ = []
    for number, learned in enumerate(encoder.encodings_):
        column, output = divmod(number, len(means))
        encodings = np.full(len(self.categories_[column]), means[output], np.float64)
        encodings[encoder.categories_[column]] = learned
        self.encodings_.append(encodings)


def write_unknown(call: Call, training: Training, out: Array) -> None:
    """Write the encodings that scikit-learn gives rows whose values are not among given categories.

    scikit-learn writes all such rows of the table again in each fold, so the mean of the last fold remains.
    """
    distinct, means = distinct_of(call), np.atleast_1d(training.means[-1])
    for column, numbers in enumerate(distinct.codes):
        is_known = np.asarray(training.is_known)[: len(distinct.values[column]), column]
        if not is_known.all():
            out[~is_known[numbers], column * len(means) : (column + 1) * len(means)] = means
