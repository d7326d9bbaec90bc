"""Errors for targets and weights that cannot be summed."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from gpu_encode.words.errors.values import RowError, first_of


def no_target(owner: str) -> ValueError:
    """Error for a call without y, in scikit-learn's words."""
    return ValueError(f"{owner} requires y to be passed, but the target y is None.")


# Advice for rows without a target.
DROP_OR_KEEP = (
    '. Drop or fill these rows first, or pass missing_target="keep": most encoders then encode them, and learn nothing '
    "of them but their categories."
)


def missing_targets(role: str, rows: NDArray[Any], advice: str = DROP_OR_KEEP) -> RowError:
    """Error for nulls in a vector in which every row needs a value."""
    if len(rows) == 1:
        return RowError(f"{role} has 1 missing value, in row ", int(rows[0]), advice)
    return first_of(f"{role} has ", rows, "missing values", advice)


def no_values() -> ValueError:
    """Error for a target that no row has."""
    return ValueError("y has no value in any row, so that there is nothing to learn. Give rows that have a target.")


def timestamps_as_target() -> TypeError:
    """Error for dates or times given as a target."""
    return TypeError("y holds dates or times, which have no mean. Convert them to numbers, such as days since a date.")


def text_as_quantity(text: object, row: int) -> RowError:
    """Error for a continuous target with values that are not numbers."""
    return RowError(
        f"A continuous target needs numbers in y, but it holds {as_python(text)} in row ",
        row,
        ". Convert y, or choose an encoder, or a target_type, that takes labels.",
    )


def as_python(value: object) -> str:
    """Show a value as Python writes it."""
    return repr(str(value) if isinstance(value, str) else value)


def stray_text(name: str, text: object, n_rows: int, row: int | None = None) -> ValueError:
    """Error for a target of numbers written as text, if a few rows hold other text."""
    before = f"{name} holds numbers in all but {n_rows} of its rows, which hold text, such as {as_python(text)}"
    advice = (
        ". Correct these rows, or read their text as a missing value (missing_text, --missing-text); if y holds "
        'labels, say so by target_type="multiclass" (--target-type multiclass).'
    )
    return ValueError(before + advice) if row is None else RowError(f"{before}, in row ", row, advice)


def many_columns(n_classes: int) -> str:
    """Say that many classes make many columns."""
    return (
        f"y has {n_classes} classes, each a column of encodings for every key. "
        'Pass target_type="continuous" (--target-type continuous) if it is a quantity.'
    )


def unknown_target_type(found: str, kinds: Sequence[str]) -> ValueError:
    """Error for a target of a kind that cannot be encoded."""
    return ValueError(
        f"Unknown label type: Target type was inferred to be {found!r}. Only {tuple(kinds)} are supported. Convert y "
        "to numbers, or to labels of one type."
    )


def more_than_two_labels(labels: NDArray[Any]) -> ValueError:
    """Error for a binary target of three labels or more."""
    return ValueError(
        f'target_type="binary" needs at most 2 distinct labels in y. Got {len(labels)}: {first_labels(labels)}. '
        'Pass target_type="multiclass" for labels, "continuous" for a quantity.'
    )


def incomparable_labels(types: Sequence[str]) -> TypeError:
    """Error for labels that cannot be sorted."""
    return TypeError(f"y mixes labels that cannot be compared: {', '.join(types)}. Convert them to one type.")


def first_labels(labels: NDArray[Any]) -> str:
    """Show the first five labels."""
    return ", ".join(repr(label) for label in labels[:5].tolist()) + (", ..." if len(labels) > 5 else "")


def weights_all_zero() -> ValueError:
    """Error for weights that leave no row, in scikit-learn's words."""
    return ValueError(
        "Sample weights must contain at least one non-zero number: all of them are zero. "
        "Leave sample_weight out to weigh all rows alike."
    )


def nothing_to_stratify() -> ValueError:
    """Error for stratified folds without classes."""
    return ValueError("KFold(stratify=True) needs one classification target.")


def merge_of_other_targets() -> ValueError:
    """Error for merging encoders of other targets."""
    return ValueError("Cannot merge encoders of different targets. Fit all on the same targets, in the same order.")
