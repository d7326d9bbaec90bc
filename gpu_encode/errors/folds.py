"""Folds that the rows at hand cannot be dealt out to."""

# What a column of fold numbers is made by.
FOLD_COLUMN = """
    fold = numpy.empty(len(X), int)
    for number, (_, rows) in enumerate(cv.split(X, y)):
        fold[rows] = number
    X["fold"] = fold"""


def nothing_to_stratify() -> ValueError:
    """Error for stratified folds without classes."""
    return ValueError("KFold(stratify=True) needs one classification target.")


def splits_of_all_rows(cv: object) -> ValueError:
    """Error for a splitter of scikit-learn that looks at more than the number of rows, where these come in parts."""
    return ValueError(
        f"cv={cv!r} looks at all rows at once, and these come in parts. Take KFold, GroupKFold, TimeFolds, Holdout, "
        "LeaveOneOut or Ordered of gpu_encode; or write each row's fold number into a column, beforehand, and name it, "
        f'cv="fold":{FOLD_COLUMN}'
    )
