"""Folds that the rows at hand cannot be dealt out to."""

from gpu_encode.errors.values import RowError


def nothing_to_stratify() -> ValueError:
    """Error for stratified folds without classes."""
    return ValueError("KFold(stratify=True) needs one classification target.")


def no_groups() -> ValueError:
    """Error for folds of groups without groups."""
    return ValueError(
        "GroupKFold needs groups: name their column, GroupKFold(groups='...'), or pass fit_transform(X, y, groups=...)."
    )


def fractional_fold(named: str, row: int, value: object) -> RowError:
    """Error for a fold number that is no integer."""
    return RowError(f"{named} must be integers. Row ", row, f" has {value}.")


def negative_fold(named: str, row: int, value: object) -> RowError:
    """Error for a fold number below zero."""
    return RowError(f"{named} must not be negative. Row ", row, f" has {value}.")
