"""Folds that the rows at hand cannot be dealt out to."""


def nothing_to_stratify() -> ValueError:
    """Error for stratified folds without classes."""
    return ValueError("KFold(stratify=True) needs one classification target.")
