"""What `tune` cannot choose for, or among."""


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


def splits_used_once(cv: object) -> TypeError:
    """Error for splits that are gone once they have been read."""
    return TypeError(
        f"cv gives its splits only once ({type(cv).__name__}), and the tuned encoder needs them again. Pass list(cv)."
    )
