"""Which encoder ``fit-transform`` makes, and with which parameters: by options of their own, or by ``--set``."""

import argparse
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_encode.cli.choices import (
    borders_choice,
    drop_choice,
    hierarchy_choice,
    number,
    number_or_count,
    numbers_by_column,
    option_name,
    prior_choice,
    priors_choice,
    refuse_dict,
    scheme_choice,
    scheme_words,
    smooth_choices,
    split_names,
    statistics_choice,
    target_types,
    whole_number,
    words_by_column,
)
from gpu_encode.cli.messages import UsageError, close_match, refuse

ENCODERS = {
    "target": "TargetEncoder",
    "count": "CountEncoder",
    "ordinal": "OrdinalEncoder",
    "one-hot": "OneHotEncoder",
    "hashing": "HashingEncoder",
    "weight-of-evidence": "WeightOfEvidenceEncoder",
    "statistic": "StatisticEncoder",
    "impact": "ImpactEncoder",
    "catboost": "CatBoostEncoder",
    "gradient": "GradientEncoder",
    "cluster": "ClusterEncoder",
    "spectral": "SpectralEncoder",
    "cooccurrence": "CooccurrenceEncoder",
}

# Options called as the parameter is, with dashes, and how each is read.
OPTIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("kind", "order", "statistic", "handle_missing", "missing_target", "indicators", "dtype", "device"),
        lambda x: x,
    ),
    "n_components": lambda text: whole_number(text, "--n-components"),
    "regularization": lambda words: numbers_by_column(words, "--regularization"),
    "statistics": statistics_choice,
    "values": lambda text: split_names([text]),
    "parts": lambda text: split_names([text]),
    "priors": priors_choice,
    "borders": borders_choice,
    "smooth": smooth_choices,
    "prior": prior_choice,
    "hierarchy": hierarchy_choice,
    "drop": lambda words: words,
    "min_count": lambda text: number(text, "--min-count"),
    "min_frequency": lambda text: number_or_count(text, "--min-frequency"),
    "max_categories": lambda text: whole_number(text, "--max-categories"),
    "handle_unknown": lambda text: text,
    "target_type": target_types,
}

# Parameters that decide what columns are for, or that have other names here; and what gives them.
ELSEWHERE = {
    "columns": "--columns or --interactions",
    "values": "--values",
    "hierarchy": "--hierarchy",
    "cv": "--scheme, --folds or --fold-column",
    "shuffle": "--scheme kfold --order contiguous, or --scheme ordered --no-shuffle",
    "random_state": "--seed",
    "seed": "--seed",
}


def parameters_of(encoder: str) -> dict[str, Any]:
    """Return what the constructor of an encoder takes, and the defaults.

    Examples
    --------
    >>> parameters_of("count")["kind"]
    'count'
    """
    import gpu_encode  # what mistakes in other words need not wait for

    return {
        parameter.name: parameter.default
        for parameter in inspect.signature(getattr(gpu_encode, ENCODERS[encoder])).parameters.values()
    }


def encoder_choices(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given but for the columns, with a `Choice` wherever a class is to be made."""
    takes = parameters_of(options.encoder)
    given: dict[str, Any] = {}
    for option, read in OPTIONS.items():
        if (word := getattr(options, option)) is None or (option == "order" and option not in takes):
            continue  # k-fold has an order as well
        if option not in takes:
            raise for_others(option.replace("_", "-"), option, options.encoder, takes)
        given[option] = read(word)
    if (unseen := takes.get("handle_unknown")) in ("prior", "zero") and "handle_unknown" in given:
        words = [unseen, "nan", "error"]
        given["handle_unknown"] = words_by_column(given["handle_unknown"], words, "--handle-unknown")
    if "drop" in given:
        given["drop"] = drop_choice(given["drop"], options.encoder)
    if options.encoder == "impact" and given.get("smooth", "auto") is None:
        given["smooth"] = 0.0  # there None is another smoothing
    if options.encoder == "impact" and isinstance(given.get("smooth"), dict):
        given["smooth"] = {name: 0.0 if one is None else one for name, one in given["smooth"].items()}
    given |= read_seed(options, takes) | read_scheme(options, takes) | set_choices(options, takes, given)
    if "sparse_output" in takes:
        given["sparse_output"] = False  # files have columns
    return given


def read_seed(options: argparse.Namespace, takes: Mapping[str, Any]) -> dict[str, Any]:
    """Read ``--seed``, for an encoder that takes one."""
    for name in ("random_state", "seed"):
        if name in takes:
            return {name: options.seed or 0}
    if options.seed is not None:
        raise for_others("seed", "random_state", options.encoder, takes)
    return {}


def read_scheme(options: argparse.Namespace, takes: Mapping[str, Any]) -> dict[str, Any]:
    """Read the scheme that was asked for, of an encoder that takes one."""
    words = scheme_words(options, kfold_order="order" not in takes)
    asked = [*(["scheme"] if options.scheme else []), *(["fold_column"] if options.fold_column else []), *words]
    if asked and "cv" not in takes:
        raise for_others(option_name(asked[0]), "cv", options.encoder, takes)
    if not asked and options.encoder != "target":
        return {}  # an encoder's own scheme takes the seed by itself
    return {"cv": scheme_choice(options, words, "ordered" if options.encoder == "catboost" else "kfold")}


def for_others(option: str, parameter: str, encoder: str, takes: Mapping[str, Any]) -> UsageError:
    """Return the error for an option that is for other encoders."""
    owners = [name for name in ENCODERS if parameter in parameters_of(name)]
    hint = close_match(f"--{option}", [f"--{name.replace('_', '-')}" for name in OPTIONS if name in takes])
    return UsageError(f"--{option} is for --encoder {' or '.join(owners)}, not {encoder}{hint}")


def set_choices(options: argparse.Namespace, takes: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Read every ``--set NAME=VALUE``, and refuse names that the encoder does not know or that were given already."""
    values: dict[str, Any] = {}
    owner = ENCODERS[options.encoder]
    for word in options.set:
        name, equals, value = word.partition("=")
        name = name.strip().replace("-", "_")
        if not (name and equals):
            refuse(f"--set {word!r} is not of the form NAME=VALUE, such as categories=[[1,2,3]]")
        if name not in takes:
            hint = close_match(name, takes) or f" (it has {', '.join(free(takes))})"
            refuse(f"--set {name}: {owner} has no parameter of that name{hint}")
        if name == "sparse_output":
            refuse("--set sparse_output: files have columns, so what is written is never sparse: leave it out")
        if name in ELSEWHERE:
            refuse(f"--set {name}: use {ELSEWHERE[name]} instead")
        if name in given or name in values:
            other = f"--{name.replace('_', '-')} gives it" if name in given else "it is given"
            refuse(f"--set {name}: {other} already; give it once")
        if name == "statistics":
            refuse_dict(value, "--set statistics")
        values[name] = json_or_text(value, name)
    return values


def free(takes: Mapping[str, Any]) -> list[str]:
    """Return the parameters that ``--set`` may set."""
    return [name for name in takes if name not in ELSEWHERE and name != "sparse_output"]


def json_or_text(text: str, name: str) -> Any:
    """Read a value as JSON, or as text where it is none.

    Examples
    --------
    >>> json_or_text("[0.5, null]", "priors"), json_or_text("log1p", "scale"), json_or_text("True", "per_column")
    ([0.5, None], 'log1p', True)
    """
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    try:
        return json.loads(text)
    except ValueError as error:
        if text[:1] in ("[", "{", '"'):
            refuse(f"--set {name}: {text!r} is not JSON: {error}")
        return text


def check_parameters(options: argparse.Namespace, encoder: Any) -> bool:
    """Check an encoder's parameters before any file is opened.

    Parameters
    ----------
    options : argparse.Namespace
    encoder : Encoder
        Made of them, without columns.

    Returns
    -------
    bool
        Whether it learns from a target.

    Raises
    ------
    UsageError
        If there is no target although the encoder learns from one, or a scheme although it learns nothing that a row
        must not see.
    """
    asked = encoder._parameters()
    reads_target: bool = asked.reads_target
    if reads_target and options.target is None:
        refuse(f"--encoder {options.encoder} learns from a target here: name its column with --target COL")
    if options.drop_missing_target and options.target is None:
        refuse("--drop-missing-target needs --target COL")
    words: Sequence[str] = [*scheme_words(options, kfold_order=not hasattr(encoder, "order"))]
    if not asked.trains_apart and (options.scheme not in (None, ["greedy"]) or options.fold_column or words):
        option = option_name(words[0]) if words else "scheme" if options.scheme else "fold-column"
        refuse(f"--{option} plays no part: --encoder {options.encoder} learns from no target here; leave it out")
    return reads_target
