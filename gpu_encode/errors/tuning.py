"""What `tune` cannot choose for, or among."""


def no_smoothing_to_tune(encoder: object) -> TypeError:
    """Error for an encoder whose codes are not shrunk means."""
    return TypeError(
        "tune chooses the parameter `smooth` and so takes a TargetEncoder, not fitted or fitted. "
        f"Got {type(encoder).__name__} instead."
    )


def no_list_of(name: str, value: object, example: str) -> ValueError:
    """Error for a parameter that must list what is compared, and lists nothing."""
    return ValueError(f"The {name!r} parameter of tune must be a list, for example {example}. Got {value!r} instead.")


def scheme_without_held_out_rows(scheme: object) -> ValueError:
    """Error for a scheme that does not hold out whole folds."""
    name = type(scheme).__name__
    why = {
        "Greedy": "in which every row sees itself",
        "LeaveOneOut": "in which every row sees sums of its own",
        "Ordered": "in which rows see more or fewer others by their place",
    }.get(name, "in which rows see themselves")
    return ValueError(
        f"tune compares schemes by the likelihood of folds that are held out, which {name}, {why}, has not. "
        "List schemes of folds, such as KFold(10); or leave `schemes` out: an encoder of any cv then keeps it, "
        "and its smoothing is chosen by KFold(folds)."
    )


def schemes_of_other_columns() -> ValueError:
    """Error for schemes that read different columns of X, so that the columns to encode differ."""
    return ValueError(
        "The schemes listed read different columns of X, which are then not encoded, so their likelihoods are of "
        "different columns. List schemes that read the same; or tune for each alone."
    )


def splits_used_once(cv: object) -> TypeError:
    """Error for splits that are gone once they have been read."""
    return TypeError(
        f"cv gives its splits only once ({type(cv).__name__}), and the tuned encoder needs them again. Pass list(cv)."
    )


def nothing_held_out() -> ValueError:
    """Error for rows of which none has a code from other folds."""
    return ValueError(
        "No row that is held out has both a weight and a code from other folds, so there is nothing to compare. Use "
        "fewer folds, or handle_unknown='prior' and handle_missing='prior'."
    )


def tuning_of_dask() -> TypeError:
    """Error for partitions of Dask."""
    return TypeError(
        "tune reads rows in memory, not partitions of Dask. Pass a list of the partitions computed, "
        "[part.compute() for part in X.partitions], or a sample."
    )
