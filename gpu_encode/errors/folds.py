"""Folds that the rows at hand cannot be dealt out to."""

from gpu_encode.errors.rows import RowError


def too_many_folds(n_folds: int, most: int) -> ValueError:
    """Error for more folds than there is memory for."""
    return ValueError(
        f"{n_folds} folds are more than the {most} that are kept apart at once. Take fewer, or LeaveOneOut."
    )


def more_splits_than(noun: str, owner: str, n_splits: int, count: int) -> ValueError:
    """Error for more splits than there are samples or groups, in scikit-learn's words."""
    return ValueError(
        f"Cannot have number of splits n_splits={n_splits} greater than the number of {noun}: n_{noun}={count}. "
        f"Take fewer splits in {owner}, or more {noun}."
    )


def uncovered_rows() -> ValueError:
    """Error for splits whose test sets are no partition of the rows, in scikit-learn's words."""
    return ValueError(
        "Validation indices from `cv` must cover each sample index exactly once with no overlap. "
        "Pass a splitter with non-overlapping validation folds as `cv`; "
        "for rows in time order use TimeFolds or Ordered."
    )


def no_splits() -> ValueError:
    """Error for `cv` that gives no pairs of training and validation rows."""
    return ValueError("cv must give at least one split, each a pair of training rows and validation rows.")


def folds_in_pieces() -> ValueError:
    """Error for fold numbers that come as several vectors."""
    return ValueError(
        "cv holds several vectors of fold numbers. Fold numbers are one array for all rows, also where X is a list of "
        "tables: concatenate them, or name a column of X that holds them."
    )


def not_row_numbers(role: str, found: str) -> ValueError:
    """Error for rows of a split that are neither numbers nor a mask."""
    return ValueError(f"The {role} rows of a split must be integers or a mask. Got {found} values.")


def shaped_row_numbers(role: str, shape: tuple[int, ...]) -> ValueError:
    """Error for rows of a split in a table."""
    return ValueError(f"The {role} rows of a split must be a 1-D array. Got shape {shape}.")


def uneven_mask(role: str, n_entries: int, n_rows: int) -> ValueError:
    """Error for a mask of a split that is not one entry per row."""
    return ValueError(f"The {role} mask of a split has {n_entries} entries for {n_rows} rows.")


def row_out_of_range(role: str, row: int, n_rows: int) -> ValueError:
    """Error for a row of a split that X does not have."""
    return ValueError(f"The {role} rows of a split must lie in 0 .. {n_rows - 1}. Got {row}.")


def nothing_to_stratify() -> ValueError:
    """Error for stratified folds without classes."""
    return ValueError("KFold(stratify=True) needs one classification target.")


def no_groups() -> ValueError:
    """Error for folds of groups without groups."""
    return ValueError(
        "GroupKFold needs groups: name their column, GroupKFold(groups='...'), or pass fit_transform(X, y, groups=...)."
    )


def empty_part(fraction: float, n_rows: int) -> ValueError:
    """Error for a holdout of too few rows."""
    return ValueError(
        f"Holdout(fraction={fraction}) leaves one part of {n_rows} rows empty. Take more rows or another fraction."
    )


def single_fold() -> ValueError:
    """Error for fold numbers that are all the same."""
    return ValueError("The fold numbers hold a single fold, whose rows would see nothing. Give at least two folds.")


def fold_numbers_of_kind(named: str, kind: str) -> ValueError:
    """Error for fold numbers that are no numbers."""
    return ValueError(f"{named} must be integers of at least 0. Got {kind} values.")


def fractional_fold(named: str, row: int, value: object) -> RowError:
    """Error for a fold number that is no integer."""
    return RowError(f"{named} must be integers. Row ", row, f" has {value}.")


def negative_fold(named: str, row: int, value: object) -> RowError:
    """Error for a fold number below zero."""
    return RowError(f"{named} must not be negative. Row ", row, f" has {value}.")
