"""Further rows, and other encoders, that do not go with what an encoder has learned."""


def not_fitted(owner: str) -> AttributeError:
    """Error for a fitted attribute before fit."""
    return AttributeError(f"This {owner} is not fitted yet: call fit or fit_transform first.")


def other_number_of_targets(before: int, now: int) -> ValueError:
    """Error for another number of targets than in earlier calls."""
    return ValueError(f"Earlier calls had {before} targets, this one has {now}. Give the same.")


def other_target_type(before: str, now: object) -> ValueError:
    """Error for another kind of target than in earlier calls."""
    return ValueError(f"Earlier calls had target_type {before!r}, this one asks for {now!r}. Call fit to start anew.")


def fractions_for_labels(before: str) -> ValueError:
    """Error for a target of labels that turns out to be a quantity."""
    return ValueError(
        f"Earlier calls had target_type {before!r}, but y now holds fractions. "
        "Fit with target_type='continuous' from the start."
    )


def other_columns(before: object, now: object) -> ValueError:
    """Error for other columns than in earlier calls."""
    return ValueError(
        f"partial_fit was called with other columns than before: {now} after {before}. Give the same, in that order."
    )


def other_parameters(name: str, before: object, now: object) -> ValueError:
    """Error for a parameter that shapes the codes and has changed since earlier calls."""
    return ValueError(
        f"partial_fit was called with other parameters than before: {name} is now {_shown(now)} and was "
        f"{_shown(before)}. Set it back, or call fit to start anew."
    )


def _shown(value: object) -> str:
    """Represent a value in one line that does not hide the rest of a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def other_number_of_codes(expected: int, found: int) -> ValueError:
    """Error for codes to invert that are not those of this encoder, in scikit-learn's words."""
    return ValueError(
        f"Shape of the passed X data is not correct. Expected {expected} columns, got {found}. Give the encoded "
        "columns alone, in their order."
    )


def blow_up_without_folds() -> ValueError:
    """Error for a column per fold where there are no folds."""
    return ValueError("partial_fit has no folds, which blow-up columns need. Call fit or fit_transform.")


def merge_of_another_type(owner: str, other: str) -> TypeError:
    """Error for merging something else than an encoder."""
    return TypeError(f"Cannot merge {other} into {owner}. Give fitted encoders.")


def merge_of_other_parameters(name: str, mine: object, theirs: object) -> ValueError:
    """Error for merging encoders of which one has another value of a parameter."""
    return ValueError(f"Cannot merge encoders of different parameters: {name} is {mine!r} and {theirs!r}.")


def merge_of_other_columns(mine: object, theirs: object) -> ValueError:
    """Error for merging encoders of other columns."""
    return ValueError(
        f"Cannot merge encoders of different columns: {mine} and {theirs}. "
        "Fit all on the same columns, in the same order."
    )


def merge_of_other_targets() -> ValueError:
    """Error for merging encoders of other targets."""
    return ValueError("Cannot merge encoders of different targets. Fit all on the same targets, in the same order.")


def merge_of_other_target_types(mine: str, theirs: str) -> ValueError:
    """Error for merging encoders of another kind of target."""
    return ValueError(f"Targets of different kinds: {mine!r} and {theirs!r}. Give target_type at every fit.")


def merge_of_blow_up() -> ValueError:
    """Error for merging encoders whose folds differ."""
    return ValueError("Blow-up encoders cannot be merged: each fold's encoder belongs to its own rows.")
