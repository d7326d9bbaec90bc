"""From the words of ``fit-transform`` to a scheme: which rows a training row may learn from."""

import argparse
from typing import Any

from gpu_encode.cli.choices import Choice, number_or_count
from gpu_encode.cli.messages import UsageError

# scheme -> class, and option -> parameter for the options that it takes
SCHEMES: dict[str, tuple[str, dict[str, str]]] = {
    "greedy": ("Greedy", {}),
    "kfold": (
        "KFold",
        {"folds": "n_splits", "order": "order", "stratify": "stratify", "blow_up": "blow_up", "seed": "random_state"},
    ),
    "holdout": ("Holdout", {"fraction": "fraction", "seed": "random_state"}),
    "loo": ("LeaveOneOut", {}),
    "ordered": (
        "Ordered",
        {
            "permutations": "n_permutations",
            "time": "time",
            "average": "average",
            "burn_in": "burn_in",
            "shuffle": "shuffle",
            "seed": "random_state",
        },
    ),
    "time": ("TimeFolds", {"folds": "n_splits", "time": "time", "gap": "gap"}),
    "group": ("GroupKFold", {"folds": "n_splits", "groups": "groups", "seed": "random_state"}),
}


def scheme_words(options: argparse.Namespace, *, kfold_order: bool = True) -> dict[str, Any]:
    """Return the options of schemes that were given.

    Parameters
    ----------
    options : argparse.Namespace
    kfold_order : bool, default=True
        Whether ``--order`` is one of them, and not the encoder's.
    """
    given = {
        "folds": options.folds, "order": options.order if kfold_order else None, "stratify": options.stratify,
        "blow_up": options.blow_up, "fraction": options.fraction, "groups": options.groups, "time": options.time,
        "gap": options.gap, "permutations": options.permutations, "average": False if options.no_average else None,
        "shuffle": False if options.no_shuffle else None,
        "burn_in": None if options.burn_in is None else number_or_count(options.burn_in, "--burn-in"),
    }  # fmt: skip
    return {option: value for option, value in given.items() if value is not None}


def scheme_choice(options: argparse.Namespace, words: dict[str, Any], usual: str = "kfold") -> Choice | str:
    """Read the scheme, and refuse options that it does not take; a str is a column of fold numbers.

    Parameters
    ----------
    options : argparse.Namespace
    words : dict of str to object
        As `scheme_words` gives them.
    usual : str, default="kfold"
        The scheme unless one is named.
    """
    given = dict(words)
    if options.fold_column is not None:
        if options.scheme or given:
            other = "scheme" if options.scheme else option_name(next(iter(given)))
            message = f"--fold-column brings the folds: leave out --{other}"
            raise UsageError(message)
        return str(options.fold_column)
    scheme = options.scheme or ("group" if "groups" in given else usual)
    class_name, takes = SCHEMES[scheme]
    for option in given:
        if option not in takes:
            schemes = " or ".join(name for name, (_, allowed) in SCHEMES.items() if option in allowed)
            message = f"--{option_name(option)} is for --scheme {schemes}, not {scheme}"
            raise UsageError(message)
    for option in {"time": ["time"], "group": ["groups"]}.get(scheme, []):
        if option not in given:
            message = f"--scheme {scheme} needs --{option} COL"
            raise UsageError(message)
    given["seed"] = options.seed or 0
    return Choice(class_name, {takes[option]: value for option, value in given.items() if option in takes})


def option_name(key: str) -> str:
    """Return the option that a key of the scheme's options is given by."""
    return f"no-{key}" if key in {"average", "shuffle"} else key.replace("_", "-")
