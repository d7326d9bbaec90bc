"""Targets and weights that cannot be summed."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from gpu_encode.words.errors.values import RowError, first_of


def no_target(owner: str) -> ValueError:
    """Error for a call without y, in scikit-learn's words."""
    return ValueError(f"{owner} requires y to be passed, but the target y is None.")


# What to do about rows without a target.
DROP_OR_KEEP = (
    '. Drop or fill these rows first, or pass missing_target="keep": most encoders then encode them, and learn nothing '
    "of them but their categories."
)


def missing_targets(role: str, rows: NDArray[Any], advice: str = DROP_OR_KEEP) -> RowError:
    """Error for nulls where every row needs a value."""
    if len(rows) == 1:
        return RowError(f"{role} has 1 missing value, in row ", int(rows[0]), advice)
    return first_of(f"{role} has ", rows, "missing values", advice)


def no_values() -> ValueError:
    """Error for a target that no row has."""
    return ValueError("y has no value in any row, so that there is nothing to learn. Give rows that have a target.")


def check_dropped(owner: str, label: object, classes: Sequence[NDArray[Any] | None]) -> None:
    """Raise ValueError unless each target that has classes has one of this label, and some other one."""
    every: list[list[Any]] = [labels.tolist() for labels in classes if labels is not None]
    if not every or any(label not in labels for labels in every):
        absent: list[Any] = next((labels for labels in every if label not in labels), [])
        shown = f"y holds {', '.join(map(repr, absent[:10]))}" if absent else "y is a quantity"
        raise ValueError(
            f"drop={_shown_one(label)} of {owner} is no class: {shown}. Give None, 'first' or the label of a class."
        )
    if any(len(labels) == 1 for labels in every):
        raise ValueError(f"drop={_shown_one(label)} leaves no column: y holds one class only. Choose drop=None.")


def timestamps_as_target() -> TypeError:
    """Error for dates or times given as a target."""
    return TypeError("y holds dates or times, which have no mean. Convert them to numbers, such as days since a date.")


def infinite_target(rows: NDArray[Any], n_rows: int) -> RowError:
    """Error for targets that are infinite, in scikit-learn's words."""
    what = "Input y contains infinity or a value too large for dtype('float64'): "
    return first_of(what, rows, f"of {n_rows} rows", ". Drop or fill these rows.")


def text_as_quantity(text: object, row: int) -> RowError:
    """Error for a continuous target that holds something else than numbers."""
    return RowError(
        f"A continuous target needs numbers in y, but it holds {_shown_one(text)} in row ",
        row,
        ". Convert y, or choose an encoder, or a target_type, that takes labels.",
    )


def _shown_one(value: object) -> str:
    """Show a value as Python's own."""
    return repr(str(value) if isinstance(value, str) else value)


def stray_text(name: str, text: object, n_rows: int, row: int | None = None) -> ValueError:
    """Error for a target of numbers as text, of which few rows hold no number."""
    before = f"{name} holds numbers in all but {n_rows} of its rows, and there text, such as {_shown_one(text)}"
    advice = (
        ". Mend these rows, or read their text as a missing value (missing_text, --missing-text); if y holds labels, "
        'say so by target_type="multiclass" (--target-type multiclass).'
    )
    return ValueError(before + advice) if row is None else RowError(f"{before}, in row ", row, advice)


def too_many_classes(n_classes: int, n_bytes: int, free: int) -> ValueError:
    """Error for classes that memory has no room for."""
    return ValueError(
        f"{many_columns(n_classes)} Sums and encodings take at least {n_bytes / 2**30:,.1f} GiB, and "
        f"{free / 2**30:,.1f} GiB of memory are free: if these are labels, encode fewer columns or rows at a time."
    )


def many_columns(n_classes: int) -> str:
    """Say what many classes lead to."""
    return (
        f"y has {n_classes} classes, each a column of encodings for every key. "
        'Pass target_type="continuous" (--target-type continuous) if it is a quantity.'
    )


def one_type_for_several(n_targets: int, target_type: str, inferred: str | None) -> ValueError:
    """Error for several targets of which not every one has its kind said; `inferred` is scikit-learn's word for all."""
    asked = "" if target_type == "auto" else f", and target_type={target_type!r} is for one"
    found = "" if inferred is None else f" Unknown label type: Target type was inferred to be {inferred!r}."
    return ValueError(
        f'y holds {n_targets} targets{asked}: pass target_type="continuous" or a list of one kind per target.{found}'
    )


def unknown_target_type(found: str, kinds: Sequence[str]) -> ValueError:
    """Error for a target of no kind that can be encoded."""
    return ValueError(
        f"Unknown label type: Target type was inferred to be {found!r}. Only {tuple(kinds)} are supported. Convert y "
        "to numbers, or to labels of one type."
    )


def more_than_two_labels(labels: NDArray[Any]) -> ValueError:
    """Error for a binary target of three labels or more."""
    return ValueError(
        f'target_type="binary" needs at most 2 distinct labels in y. Got {len(labels)}: {_shown(labels)}. '
        'Pass target_type="multiclass" for labels, "continuous" for a quantity.'
    )


def more_than_two_labels_now(labels: NDArray[Any]) -> ValueError:
    """Error for a binary target that further rows give a third label."""
    return ValueError(
        f"The binary target now has {len(labels)} labels: {_shown(labels)}. "
        'Fit with target_type="multiclass" from the start.'
    )


def labels_of_another_type(before: NDArray[Any], now: NDArray[Any]) -> ValueError:
    """Error for numbers after text, or text after numbers."""
    return ValueError(f"y held the labels {_shown(before)} and now holds {_shown(now)}. Convert them to one type.")


def incomparable_labels(types: Sequence[str]) -> TypeError:
    """Error for labels that cannot be sorted."""
    return TypeError(f"y mixes labels that cannot be compared: {', '.join(types)}. Convert them to one type.")


def _shown(labels: NDArray[Any]) -> str:
    return ", ".join(repr(label) for label in labels[:5].tolist()) + (", ..." if len(labels) > 5 else "")


def bad_weights(word: str, rows: NDArray[Any], first: object) -> RowError:
    """Error for weights that are not finite, or negative."""
    return first_of(
        "sample_weight holds ",
        rows,
        f"{word} weights",
        f" ({first}). Weights are finite and at least zero: drop these rows, or give them weight 0.",
    )


def large_weights(largest: float, rows: NDArray[Any], first: object) -> RowError:
    """Error for weights whose sum might be no float."""
    return first_of(
        "sample_weight holds ",
        rows,
        f"weights above {largest:g}",
        f" ({first}). The sum of so large ones may be beyond float64: divide all of them by one power of two.",
    )


def weights_all_zero() -> ValueError:
    """Error for weights that leave no row, in scikit-learn's words."""
    return ValueError(
        "Sample weights must contain at least one non-zero number: all of them are zero. "
        "Leave sample_weight out to weigh all rows alike."
    )


def not_gradients_and_hessians(n_targets: int) -> ValueError:
    """Error for a target of other columns than two."""
    return ValueError(
        f"GradientEncoder needs y of two columns, the gradient and the hessian of each row's loss, but y has "
        f"{n_targets}. Pass np.column_stack([gradient, hessian]), or a frame of both; the hessian of squared error is "
        "1."
    )


def negative_hessian(row: int, found: object) -> RowError:
    """Error for a loss that bends down."""
    return RowError(
        f"Hessians (the second column of GradientEncoder's y) must be at least 0. Got {found!r} in row ",
        row,
        ". Are gradients and hessians swapped?",
    )
