"""Folds that the rows at hand cannot be dealt out to."""


def nothing_to_stratify() -> ValueError:
    """Error for stratified folds without classes."""
    return ValueError("KFold(stratify=True) needs one classification target.")


def no_groups() -> ValueError:
    """Error for folds of groups without groups."""
    return ValueError(
        "GroupKFold needs groups: name their column, GroupKFold(groups='...'), or pass fit_transform(X, y, groups=...)."
    )
