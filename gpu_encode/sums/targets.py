"""Targets of a prediction: the kind of each, its classes, and the numbers that are summed."""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import in_one_piece
from cpu_fallback.types import Array, Carry, Folds, Layout, Rows, SumsByNumber, SumShape
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, device_of, host
from gpu_encode.tables.categories.vocabulary import Vocabulary
from gpu_encode.tables.frames import Incomplete, NumberedLabels, concatenate, on_host, sum_is_finite
from gpu_encode.tables.frames.columns import check_real
from gpu_encode.words.errors.parameters import check_option
from gpu_encode.words.errors.targets import (
    as_python,
    first_labels,
    incomparable_labels,
    many_columns,
    missing_targets,
    more_than_two_labels,
    no_values,
    stray_text,
    text_as_quantity,
    unknown_target_type,
    weights_all_zero,
)
from gpu_encode.words.errors.values import RowError, first_of
from gpu_encode.words.notices import warn

KINDS = ("binary", "continuous", "multiclass")
# The kind of the only target of encoders that read no target: rows are counted.
NO_TARGET = "none"
# The kind of a target that all rows of the first calls of `partial_fit` lack; later rows with a target decide the kind.
UNDECIDED = "undecided"
# The kinds of columns whose values are counted and not summed: each row has the number of a label.
LABELLED = ("text", "datetime")
# With more classes than this, numbers may be a quantity, and the memory that the classes need is checked.
MANY_CLASSES = 20
# From this number of classes on, numbers are taken for labels only if the user says so.
TOO_MANY_CLASSES = 1_000
# A number as people write it: with a currency before or behind, separators, a percent sign, a scale or a short unit.
WRITTEN_NUMBER = re.compile(
    r"""\s*+ [(+\-\u2212]? \s*+ (?: [A-Z]{0,3}[^\w\s.,+\-()] | [A-Z]{3}\b )? \s*+ [+\-\u2212]? \s*+
    (?: \d{1,3}(?:,\d\d)*(?:[.,'\u2019_\s]\d{3})+(?:[.,]\d*)? | \d+(?:[.,]\d*)? | [.,]\d+ ) (?: [eE][+\-]?\d+ )?
    \s*+ (?: [^\W\d_]{1,3} | [^\w\s] )? \)? \s*+""",
    re.VERBOSE,
)
MANY_ROWS = 100_000
FEW_ROWS = 1_000
WHOLE_LIMIT = 1 << 62
# With weights up to this one, the sum of any number of rows is still finite.
LARGEST_WEIGHT = 1e290


@dataclass(frozen=True)
class Target:
    """One target of the rows at hand.

    Parameters
    ----------
    name : str or None
        Name of the target, if y has named columns.
    kind : {"binary", "continuous", "multiclass", "none", "text", "datetime"}
    values : array
        The values, on the device of the backend.  For a continuous target: float64 or int64 numbers, (rows, terms) if
        it has several terms; on a GPU, float32 numbers stay float32.  For a target with classes: int32 class numbers.
        Without a target: zeros that take no memory.  For text and dates: int64 indices of labels, -1 for no value.
    classes : array or None
        Sorted class labels.
    present : bool array (rows,), optional
        True for rows that have a value, on the device of the backend; None: all rows have one.  Rows without a value
        hold the value of a neighbour.
    vocabulary : Vocabulary, optional
        Sorted values of a column of text or dates.
    """

    name: str | None
    kind: str
    values: Array
    classes: Array | None
    present: Array | None = None
    vocabulary: Vocabulary | None = None

    @property
    def labels(self) -> Array:
        """Class number of each row; rows without a value have the number after the last class."""
        return self.values if self.present is None else np.where(self.present, self.values, np.int32(self.n_classes))

    @property
    def is_classification(self) -> bool:
        """Whether rows are counted by class."""
        return self.classes is not None

    @property
    def n_classes(self) -> int:
        """Number of classes that are counted, at least 2 for a binary target; for a continuous one, number of terms."""
        return self.values.shape[1] if self.values.ndim > 1 else counted_classes(self.kind, self.classes)


def counted_classes(kind: str, classes: Array | None) -> int:
    """Give the number of classes counted: 1 for a continuous target, 2 for a binary one even if a label is missing."""
    if classes is None:
        return 1
    return 2 if kind == "binary" else len(classes)


def no_target(n_rows: int) -> Target:
    """Give the target of rows that are only counted."""
    return Target(None, NO_TARGET, np.broadcast_to(np.int32(0), n_rows), None)


def read(
    ops: Ops, named: Sequence[tuple[str | None, Array]], target_type: Any, more_may_come: bool = False
) -> list[Target]:
    """Make targets from the columns of y.

    Parameters
    ----------
    named : list of (name, 1-D array)
    target_type : str or list of str
        "auto" or a kind; one for all targets, or a list with one for each.
    more_may_come : bool, default=False
        Whether a target that all rows lack stays undecided; if not, it is an error.
    """
    columns, infer = [], []
    for name, values in named:
        labels = Labels.of(ops, values)
        if not more_may_come and not len(labels):
            raise no_values()
        columns.append((name, labels))
        infer.append(partial(infer_kind, labels))

    def joint() -> str | None:
        if any(labels.rows is not None for _, labels in columns):
            return None
        return str(type_of_target(on_host([(name, labels.checked) for name, labels in columns]), input_name="y"))

    kinds = kinds_of(infer, target_type, joint)
    return [
        make(name, labels, kind if len(labels) or kind == "continuous" else UNDECIDED, None)
        for (name, labels), kind in zip(columns, kinds, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Labels:
    """One column of y, numbered at most once; if rows lack a value, `values` leaves them out, `rows` has all rows."""

    ops: Ops
    values: Any
    rows: Incomplete | None = None

    @classmethod
    def of(cls, ops: Ops, values: Any) -> Self:
        """Read one column, in which rows may lack a value."""
        return cls(ops, values.values, values) if isinstance(values, Incomplete) else cls(ops, values)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def checked(self) -> Any:
        """The values, after a check that none is NaN or infinite; text is not checked."""
        if not isinstance(self.values, NumberedLabels) and self.values.dtype.kind not in "mM":
            check_numbers(self.values)
        return self.values

    def naming_rows(self) -> AbstractContextManager[None]:
        """Let an error that names a row count all rows, and not only rows with a value."""
        return nullcontext() if self.rows is None else self.rows.naming_rows()

    @cached_property
    def distinct(self) -> tuple[Array, Array]:
        """The sorted labels, on the host, and the label number of each row, on the device; after the check of NaN."""
        return distinct(self.ops, self.checked)


def kinds_of(
    infer: Sequence[Callable[[], str]], target_type: Any, joint: Callable[[], str | None] = lambda: None
) -> list[str]:
    """Give the kind of each target, as asked for or inferred; `joint` names the kind of several targets together."""
    if isinstance(target_type, (list, tuple)):
        if len(target_type) != len(infer):
            raise ValueError(
                f"target_type lists {len(target_type)} kinds for {len(infer)} targets. Give one per target."
            )
        for kind in target_type:
            check_option("TargetEncoder", "target_type", kind, ("auto", *KINDS))
        return [infer_own() if kind == "auto" else kind for kind, infer_own in zip(target_type, infer, strict=True)]
    check_option("TargetEncoder", "target_type", target_type, ("auto", *KINDS))
    if len(infer) > 1 and target_type != "continuous":
        raise _one_type_for_several(len(infer), target_type, joint() if target_type == "auto" else None)
    return [infer_own() if target_type == "auto" else target_type for infer_own in infer]


def _one_type_for_several(n_targets: int, target_type: str, inferred: str | None) -> ValueError:
    """Error for several targets without a kind for each; `inferred` is scikit-learn's word for all of them."""
    asked = "" if target_type == "auto" else f", and target_type={target_type!r} is for one"
    found = "" if inferred is None else f" Unknown label type: Target type was inferred to be {inferred!r}."
    return ValueError(
        f'y holds {n_targets} targets{asked}: pass target_type="continuous" or a list of one kind per target.{found}'
    )


def infer_kind(labels: Labels) -> str:
    """Infer the kind, as scikit-learn does; warn about a regression target that looks like classes."""
    with labels.naming_rows():
        return infer_present(labels) if len(labels) else UNDECIDED


def infer_present(labels: Labels) -> str:
    """Infer the kind from the rows that have a value."""
    values = labels.checked
    if not isinstance(values, NumberedLabels) and is_quantity(labels.ops, values):
        return "continuous"
    if not isinstance(values, np.ndarray) or (values.dtype.kind in "biu" and len(values) >= MANY_ROWS):
        # Counting numbered labels gives scikit-learn's answer in less time; its own warnings are meant for small data.
        check_many_classes(labels.distinct[0])
        return "binary" if len(labels.distinct[0]) <= 2 else "multiclass"
    if values.dtype.kind in "OUS":
        refuse_stray_text(*labels.distinct)
    kind = str(type_of_target(values, input_name="y"))
    if kind not in KINDS:
        raise unknown_target_type(kind, KINDS)
    if kind == "multiclass":
        check_many_classes(labels.distinct[0])
    return kind


def is_quantity(ops: Ops, values: Array) -> bool:
    """Tell whether numbers cannot be labels: durations, fractions, and floats beyond all integers."""
    if values.dtype.kind in "mM":
        return True
    # scikit-learn decides the same, but its cast to integers warns about large numbers.
    return values.dtype.kind == "f" and (has_fractions(ops, values) or float(np.abs(values).max()) >= 2.0**63)


def has_fractions(ops: Ops, values: Array) -> bool:
    """Tell whether some numbers are not whole; they are compared as float64, since CuPy treats small floats as zero."""
    # If there are fractions, the first rows probably have some, so the host looks at these first.
    few, others = ops.to_host(values[:FEW_ROWS]).astype(np.float64), values[FEW_ROWS:]
    if bool((few != np.floor(few)).any()):
        return True
    wide = others if isinstance(values, np.ndarray) else ops.cast(others, np.float64)
    return bool((wide != np.floor(wide)).any())


def is_number(value: Any) -> bool:
    """Tell whether a value is a number, or text that can be read as one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def refuse_stray_text(labels: Array, codes: Array) -> None:
    """Raise RowError if almost all labels are numbers, and fewer than 1 % of the rows have other labels.

    Those labels are probably numbers with typing errors; with them, every number would be a class.
    """
    strays = find_strays(labels)
    if strays.all() or not strays.any():
        return
    rows = np.flatnonzero(strays[codes])
    if 100 * len(rows) < len(codes):
        raise stray_text("y", labels[codes[rows[0]]], len(rows), int(rows[0]))


def refuse_stray_labels(labels: Array, counts: Array) -> None:
    """Raise ValueError as `refuse_stray_text` does, from the number of rows of each label."""
    strays = find_strays(labels)
    if 0 < 100 * int(counts[strays].sum()) < int(counts.sum()):
        raise stray_text("y", labels[strays][0], int(counts[strays].sum()))


def find_strays(labels: Array) -> Array:
    """Tell which labels are not numbers."""
    return np.fromiter((not is_number(label) for label in labels), bool, len(labels))


def refuse_text(values: Any) -> None:
    """Raise RowError for the first value that is not a number."""
    if isinstance(values, NumberedLabels):
        # On a device, only labels that are not numbers get codes; if none is plainly text, the error names the first.
        label = next((number for number, label in enumerate(values.labels) if not is_number(label)), 0)
        raise text_as_quantity(values.labels[label], int((values.codes == label).argmax()))
    row = next((row for row, value in enumerate(values) if not is_number(value)), 0)
    raise text_as_quantity(values[row], row)


def check_many_classes(labels: Array) -> None:
    """Warn that a quantity may have been taken for labels; raise ValueError if it would be too many classes."""
    if len(labels) <= MANY_CLASSES:
        return
    held, cure = "whole numbers", 'Pass target_type="continuous" (--target-type continuous)'
    if labels.dtype.kind not in "iuf":
        numeric = np.fromiter((WRITTEN_NUMBER.fullmatch(str(label)) is not None for label in labels), bool)
        if 2 * int(numeric.sum()) < len(labels):
            return
        held, words = f"numbers written as text, such as {as_python(labels[numeric][0])},", ""
        if not numeric.all():
            other = as_python(labels[~numeric][0])
            words = f", and read {other} as a missing value (missing_text, --missing-text),"
        cure = f'Convert y to numbers{words} and pass target_type="continuous" (--target-type continuous)'
    if len(labels) >= TOO_MANY_CLASSES:
        raise ValueError(
            f"y holds {held} and would be {len(labels)} classes, each a column of encodings for every key. {cure} if "
            'it is a quantity; target_type="multiclass" (--target-type multiclass) allows so many classes.'
        )
    warn(
        f"y holds {held} and was inferred to be multiclass with {len(labels)} classes. {cure} if it is a quantity; "
        'target_type="multiclass" (--target-type multiclass) says that they are labels.'
    )


def check_room(ops: Ops, n_classes: int, n_bytes: int) -> None:
    """Raise ValueError if the sums or encodings of many classes need more memory than is free, before allocating it.

    A GPU's allocator raises an error of its own.
    """
    if n_classes <= MANY_CLASSES or device_of(ops) != "cpu":
        return
    free = devices.available_bytes()
    if n_bytes > free:
        raise _too_many_classes(n_classes, n_bytes, free)


def _too_many_classes(n_classes: int, n_bytes: int, free: int) -> ValueError:
    """Error for classes that memory has no room for."""
    return ValueError(
        f"{many_columns(n_classes)} Sums and encodings take at least {n_bytes / 2**30:,.1f} GiB, and "
        f"{free / 2**30:,.1f} GiB of memory are free: if these are labels, encode fewer columns or rows at a time."
    )


def warn_of_rare_classes(counts: Array, n_splits: int) -> None:
    """Warn, as scikit-learn does, if a class has fewer rows than there are folds."""
    if int(counts.min()) < n_splits:
        warn(
            f"The least populated class in y has only {int(counts.min())} members, which is less than "
            f"n_splits={n_splits}."
        )


def check_numbers(values: Array) -> None:
    """Raise ValueError for NaN or infinity, with the number of such rows and the first of them."""
    check_real("y", values)
    if values.dtype.kind != "f" or sum_is_finite(values) or bool(np.isfinite(values).all()):
        return
    if (bad := np.isnan(values)).any():
        raise missing_targets("y", np.flatnonzero(bad))
    raise _infinite_target(np.flatnonzero(np.isinf(values)), len(values))


def _infinite_target(rows: NDArray[Any], n_rows: int) -> RowError:
    """Error for targets that are infinite, in scikit-learn's words."""
    what = "Input y contains infinity or a value too large for dtype('float64'): "
    return first_of(what, rows, f"of {n_rows} rows", ". Drop or fill these rows.")


def make(name: str | None, labels: Labels, kind: str, known: Array | None) -> Target:
    """Check one target against its kind and number its classes; rows without a value take a neighbour's value."""
    if labels.rows is None:
        return make_present(name, labels, kind, known)
    present = labels.ops.to_device(~labels.rows.missing)
    if not len(labels):
        zeros = labels.ops.zeros(len(present), np.dtype(np.int32 if kind in ("binary", "multiclass") else np.int64))
        return Target(name, kind, zeros, known, present)
    with labels.naming_rows():
        target = make_present(name, labels, kind, known)
    neighbours = np.maximum(np.cumsum(present) - 1, 0)
    return replace(target, values=target.values[neighbours], present=present)


def make_present(name: str | None, labels: Labels, kind: str, known: Array | None) -> Target:
    """Check the rows of one target that have a value against its kind, and number their classes."""
    ops, values = labels.ops, labels.checked
    if isinstance(values, NumberedLabels) and kind == "continuous":
        refuse_text(values)
    if kind == "continuous":
        return Target(name, kind, ops.to_device(as_numbers(ops, values)), None)
    classes, codes = labels.distinct
    codes = ops.to_device(codes)
    if known is not None:
        present, classes = classes, join_labels(known, classes)
        codes = ops.to_device(np.searchsorted(classes, present).astype(np.int32))[codes]
    if kind == "binary" and len(classes) > 2:
        raise more_than_two_labels(classes)
    return Target(name, kind, codes.astype(np.int32, copy=False), classes)


def join_labels(one: Array, other: Array) -> Array:
    """Give the sorted labels of both."""
    words = [labels.dtype.kind in "OUST" for labels in (one, other)]
    if words[0] != words[1]:
        # NumPy would silently turn the numbers into text.
        raise ValueError(
            f"y held the labels {first_labels(one)} and now holds {first_labels(other)}. Convert them to one type."
        )
    if one.dtype == other.dtype and np.array_equal(one, other):
        return one
    return np.unique(concatenate([one, other]))


def distinct(ops: Ops, values: Array) -> tuple[Array, Array]:
    """Give the sorted labels, on the host, and the label number of each row, on the device of the values."""
    if isinstance(values, NumberedLabels):
        return values.labels, values.codes
    if not isinstance(values, np.ndarray):
        codes, labels = ops.factorize(values)
        return ops.to_host(labels), codes
    if values.dtype.kind in "biuf":
        wide = {"u": np.uint64, "f": np.float64}.get(values.dtype.kind, np.int64)
        codes, labels = host(len(values)).factorize(values.astype(wide, copy=False))
        return labels.astype(values.dtype), codes
    if values.dtype.kind == "O":
        kinds = sorted({type(value).__name__ for value in values})
        try:
            labels = np.array(sorted(set(values)), dtype=object)
        except TypeError as error:
            refuse_stray_text(values, np.arange(len(values)))
            raise incomparable_labels(kinds) from error
        number = {label: i for i, label in enumerate(labels)}
        return labels, np.fromiter((number[value] for value in values), np.int64, len(values))
    labels, codes = np.unique(values, return_inverse=True)
    return labels, codes.reshape(-1)


def as_numbers(ops: Ops, values: Array) -> Array:
    """Give the numbers of a continuous target as float64 or int64; float32 numbers on a GPU stay float32."""
    if values.dtype.kind in "mM":
        return values.astype(np.int64)
    if values.dtype.kind == "b" or (values.dtype.kind in "iu" and values.dtype != np.uint64):
        return values.astype(np.int64, copy=False)
    if not isinstance(values, np.ndarray):
        return values if values.dtype == np.float32 and device_of(ops) == "cuda" else ops.cast(values, np.float64)
    try:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        refuse_text(values)
        raise
    if numbers is not values:
        # Conversion to this type may make a number infinite; numbers that were not converted are checked already.
        check_numbers(numbers)
    return numbers


def as_doubles(ops: Ops, values: Array) -> Array:
    """Give numbers of a target for arithmetic: float32 becomes float64."""
    return ops.cast(values, np.float64) if values.dtype == np.float32 else values


def check_weight(ops: Ops, weight: Array, all_rows: bool = True) -> Array:
    """Check weights, and give them as float64, or as int64 if all are whole (the same sums take fewer digits).

    They stay on their device.  With `all_rows`, some weight must be above zero.
    """
    if not isinstance(weight, np.ndarray) and weight.dtype.kind == "f":
        weight = ops.cast(weight, np.float64)
    if weight.dtype.kind not in "fiub":
        stray = next((value for value in weight if not isinstance(value, Real)), weight.dtype)
        raise ValueError(f"sample_weight must hold numbers, one per row. Got {stray!r} instead.")
    bad = ~np.isfinite(weight) if weight.dtype.kind == "f" else np.zeros_like(weight, bool)
    for wrong, word in ((bad, "NaN or infinite"), (weight < 0, "negative")):
        if wrong.any():
            rows = np.flatnonzero(wrong)
            raise _bad_weights(word, rows, weight[int(rows[0])].item())
    if all_rows and not weight.any():
        raise weights_all_zero()
    largest = weight.max() if len(weight) and weight.dtype.kind in "fu" else 0
    if weight.dtype.kind != "f":
        return weight.astype(np.int64 if largest < 1 << 63 else np.float64)
    if largest > LARGEST_WEIGHT:
        rows = np.flatnonzero(weight > LARGEST_WEIGHT)
        raise _large_weights(LARGEST_WEIGHT, rows, weight[int(rows[0])].item())
    whole = largest < WHOLE_LIMIT / max(len(weight), 1) and (np.floor(weight) == weight).all()
    return weight.astype(np.int64) if whole else weight.astype(np.float64, copy=False)


def _bad_weights(word: str, rows: NDArray[Any], first: object) -> RowError:
    """Error for weights that are not finite, or negative."""
    return first_of(
        "sample_weight holds ",
        rows,
        f"{word} weights",
        f" ({first}). Weights are finite and at least zero: drop these rows, or give them weight 0.",
    )


def _large_weights(largest: float, rows: NDArray[Any], first: object) -> RowError:
    """Error for weights whose sum might be too large for a float."""
    return first_of(
        "sample_weight holds ",
        rows,
        f"weights above {largest:g}",
        f" ({first}). The sum of such large weights may be beyond float64: divide all of them by one power of two.",
    )


def backend_for(ops: Ops, target: Array | None) -> Ops:
    """Give the backend for the rows of a target; if it has several terms, a backend that sums them one by one."""
    plain = target is None or target.ndim == 1 or isinstance(ops, Termwise)
    return ops if plain else cast(Ops, Termwise(ops))


def side_by_side(terms: Sequence[Array], ops: Ops) -> Array:
    """Join terms of equal length as columns: int64 if all are int64, else float64; each column is contiguous."""
    dtype = np.int64 if all(term.dtype == np.int64 for term in terms) else np.float64
    matrix = ops.empty((len(terms[0]), len(terms)), dtype, "F")
    for column, numbers in enumerate(terms):
        matrix[:, column] = numbers
    return matrix


class Termwise:
    """A backend for rows with several terms; it hands the terms to another backend, one after the other.

    In accumulators (categories, folds, terms, width), terms take the axis that classes have for other targets, so that
    code that adds, moves or keeps accumulators need not know about terms.  For the first term, the target itself,
    squares may be summed, too.
    """

    # Fused passes serve only rules of one sum.
    fused = None

    def __init__(self, ops: Ops) -> None:
        self._ops = ops

    def __getattr__(self, name: str) -> Any:
        # The other backend does the operations that take no rows; mypy cannot see this, so a test reads the protocol.
        return getattr(self._ops, name)

    def extents(self, target: Array | None, weight: Array | None, powers: tuple[int, ...]) -> list[tuple[int, int]]:
        """Find the binary digits that the terms have in any row; squares are those of the first term."""
        if target is None or target.ndim == 1:
            return self._ops.extents(target, weight, powers)
        extents = self._ops.extents(in_one_piece(target[:, 0]), weight, powers)
        plain = tuple(power for power in powers if power < 2)
        for column in range(1, target.shape[1]):
            of_term = dict(zip(plain, self._ops.extents(in_one_piece(target[:, column]), weight, plain), strict=True))
            pairs = zip(extents, powers, strict=True)
            extents = [join_extents(first, of_term.get(power, first)) for first, power in pairs]
        return extents

    def accumulate(self, rows: Rows, shape: SumShape, folds: Folds = None, sums: Array | None = None) -> Array:
        """Sum every term exactly, and the weights: (n_categories + 2, n_folds, terms, layout.width)."""
        if rows.target is None or rows.target.ndim == 1:
            return self._ops.accumulate(rows, shape, folds, sums)
        n_terms = rows.target.shape[1]
        accumulators = self._ops.zeros(shape._replace(n_classes=n_terms).extents, np.int64) if sums is None else sums
        for column in range(n_terms):
            of_term = columns_of(shape.layout, column)
            added = self._ops.accumulate(term(rows, column), shape._replace(n_classes=1, layout=of_term), folds)
            accumulators[:, :, column, : of_term.width] += added[:, :, 0]
        return accumulators

    def accumulate_numbers(self, rows: Rows, n_classes: int, layout: Layout) -> SumsByNumber:
        """Sum rows whose codes are any integers, in one fold."""
        codes, numbers = self._ops.factorize(rows.codes)
        accumulators = self.accumulate(rows.with_codes(codes), SumShape(len(numbers), 1, n_classes, layout))
        return SumsByNumber(accumulators, numbers, codes)

    def leave_one_out(self, accumulators: Array, rows: Rows, layout: Layout) -> Array:
        """Give the digits of the sums of each row's category without the row: (rows, terms, layout.width)."""
        others = self._ops.zeros((len(rows), accumulators.shape[1], layout.width), np.int64)
        for column in range(accumulators.shape[1]):
            of_term = columns_of(layout, column)
            whole = in_one_piece(accumulators[:, column : column + 1, : of_term.width])
            others[:, column, : of_term.width] = self._ops.leave_one_out(whole, term(rows, column), of_term)[:, 0]
        return others

    def ordered(self, rows: Rows, ties: Array | None, layout: Layout, carry: Carry) -> Array:
        """Give the digits of the sums of each row's category before the row, in order: (rows, terms, layout.width)."""
        earlier = self._ops.zeros((len(rows), carry.sums.shape[1], layout.width), np.int64)
        for column in range(carry.sums.shape[1]):
            of_term = columns_of(layout, column)
            part = slice(column, column + 1), slice(of_term.width)
            state = Carry(carry.sums[:, *part].copy(), carry.at_tie[:, *part].copy(), carry.last_tie.copy())
            earlier[:, column, : of_term.width] = self._ops.ordered(term(rows, column), ties, of_term, state)[:, 0]
            carry.sums[:, *part] = state.sums
            if carry.at_tie.size:
                carry.at_tie[:, *part] = state.at_tie
        # All terms have the same ties.
        carry.last_tie[...] = state.last_tie
        return earlier


def term(rows: Rows, column: int) -> Rows:
    """Give the rows with one of their terms as the target."""
    assert rows.target is not None
    return Rows(rows.codes, None, in_one_piece(rows.target[:, column]), rows.weight)


def columns_of(layout: Layout, column: int) -> Layout:
    """Give the layout of one term; squares come last, and only the first term has them."""
    return replace(layout, square=None) if column else layout


def join_extents(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    """Join two extents of binary digits; an empty one is (0, 0)."""
    if one == (0, 0) or other == (0, 0):
        return other if one == (0, 0) else one
    return min(one[0], other[0]), max(one[1], other[1])
