"""Further rows, and other encoders, that do not go with what an encoder has learned."""


def other_number_of_targets(before: int, now: int) -> ValueError:
    """Error for another number of targets than in earlier calls."""
    return ValueError(f"Earlier calls had {before} targets, this one has {now}. Give the same.")


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


def merge_of_other_targets() -> ValueError:
    """Error for merging encoders of other targets."""
    return ValueError("Cannot merge encoders of different targets. Fit all on the same targets, in the same order.")
