"""The encoder that ``fit-transform`` makes, and its parameters."""

import argparse
import inspect
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import gpu_encode
from gpu_encode.cli.expressions import CALLED, MARKS, class_named, read
from gpu_encode.cli.messages import UsageError, close_match, refuse

# Name on the command line and class of each encoder; encoders that are missing here do not take files.
ENCODERS = {
    re.sub("(?<=[a-z])(?=[A-Z])", "-", name.removesuffix("Encoder").replace("CatBoost", "Catboost")).lower(): name
    for name in gpu_encode.__all__
    if name.endswith("Encoder") and name not in ("FactorizationEncoder", "ProximityEncoder")
}
# Schemes that a word alone does not make, and their parameter for a column.
NEED_A_COLUMN = {"GroupKFold": "groups", "TimeFolds": "time"}
# Parameters that have another option.
ELSEWHERE = {
    "columns": "use --columns or --interactions instead",
    "random_state": "use --seed instead",
    "seed": "use --seed instead",
    "sparse_output": "files have columns, so what is written is never sparse: leave it out",
}


class Given(NamedTuple):
    """A parameter with its option and its text."""

    option: str
    name: str
    text: str


def setting(word: str) -> Given:
    """Read ``NAME=EXPRESSION``."""
    name, equals, text = word.partition("=")
    if not (name.strip() and equals):
        message = f"{word!r} is not of the form NAME=EXPRESSION, such as 'categories=[[1, 2, 3]]'"
        raise argparse.ArgumentTypeError(message)
    return Given("--set", name.strip().replace("-", "_"), text.strip())


def parameters_of(encoder: str) -> dict[str, Any]:
    """Return the parameters of an encoder's constructor, with their defaults.

    Examples
    --------
    >>> parameters_of("count")["kind"]
    'count'
    """
    takes = inspect.signature(getattr(gpu_encode, ENCODERS[encoder])).parameters.values()
    return {parameter.name: parameter.default for parameter in takes}


def encoder_parameters(options: argparse.Namespace) -> dict[str, Any]:
    """Return the parameters that were given, except for the columns."""
    takes = parameters_of(options.encoder)
    given: dict[str, Any] = {}
    for one in options.given:
        if one.name in ELSEWHERE:
            refuse(f"{one.option} {one.name}: {ELSEWHERE[one.name]}")
        if one.name not in takes:
            raise for_others(one.option, one.name, options.encoder, takes)
        same = [other for other in options.given if other.name == one.name]
        if len(same) > 1:
            refuse(f"{same[1].option}: {one.name} is given already by {same[0].option}; give it once")
        scheme = class_named(one.text, "schemes") if one.name == "cv" else None
        # leak-report has an option for groups.
        if scheme in NEED_A_COLUMN and getattr(options, "groups", None) is None:
            refuse(f"--cv {one.text} needs the name of a column: --cv '{scheme}({NEED_A_COLUMN[scheme]}=\"COL\")'")
        given[one.name] = value(one, takes[one.name], options.seed)
    if options.seed is not None:
        seeded = "seed" if "seed" in takes else "random_state"
        if seeded not in takes:
            raise for_others("--seed", seeded, options.encoder, takes)
        given[seeded] = options.seed
    return given | ({"sparse_output": False} if "sparse_output" in takes else {})


def value(one: Given, default: Any, seed: int | None) -> Any:
    """Read the value of a parameter; its default shows whether it is a list."""
    if one.name in ("drop", "values") and one.text[:1] not in ("[", "{"):
        return one.text if one.name == "drop" else [one.text]  # a label or a column may have any name
    if re.search("[:=]", one.text) and not MARKS.search(one.text):
        refuse(f"{one.option}: {one.text!r} is no expression, such as '{{\"shop\": 20}}' or 'Sigmoid(k=20, f=10)'")
    said = read(one.text, one.option, seed)
    if one.name == "statistics" and isinstance(said, dict):
        refuse(f"{one.option}: a dict of keys is for Python only; use --columns, --values and --statistics")
    if isinstance(said, str) and one.name in ("cv", "smooth") and not MARKS.search(one.text):
        return named_rule(said, one, default, seed)
    return [said] if isinstance(default, tuple) and not isinstance(said, list | tuple | dict) else said


def named_rule(word: str, one: Given, default: Any, seed: int | None) -> Any:
    """Give the scheme or smoothing that a word names; other words name a column of fold numbers."""
    kind = {"cv": "schemes", "smooth": "smoothing"}[one.name]
    if (name := class_named(word, kind)) is not None:
        return read(f"{name}()", one.option, seed)
    if one.name == "smooth" and word == "none":
        return 0.0 if default is None else None  # ImpactEncoder pools by default
    if one.name == "smooth" and word != "auto":
        known = [called for called, of in CALLED.items() if of == kind]
        refuse(f"{one.option} {word!r} is unknown{close_match(word, known)} (a number, auto, none, {', '.join(known)})")
    return word


def for_others(option: str, parameter: str, encoder: str, takes: Mapping[str, Any]) -> UsageError:
    """Return the error for a parameter that this encoder does not have."""
    owners = [name for name in ENCODERS if parameter in parameters_of(name)]
    free = [name for name in takes if name not in ELSEWHERE]
    hint = close_match(parameter, free) or ("" if owners else f" (it has {', '.join(free)})")
    if not owners:
        return UsageError(f"{option} {parameter}: {ENCODERS[encoder]} has no parameter of that name{hint}")
    named = f"{option} {parameter}" if option == "--set" else option
    return UsageError(f"{named} is for --encoder {' or '.join(owners)}, not {encoder}{hint}")


def check_parameters(options: argparse.Namespace, encoder: Any) -> bool:
    """Check an encoder's parameters before any file is opened.

    Parameters
    ----------
    options : argparse.Namespace
    encoder : Encoder
        Made of these options, without columns.

    Returns
    -------
    bool
        Whether the encoder learns from a target.

    Raises
    ------
    UsageError
        If a target is missing although the encoder learns from one, or a scheme is given although the encoder learns
        nothing that a row must not see.
    """
    asked = encoder._parameters()
    reads_target: bool = asked.reads_target
    if reads_target and options.target is None:
        refuse(f"--encoder {options.encoder} learns from a target here: name its column with --target COL")
    if options.drop_missing_target and options.target is None:
        refuse("--drop-missing-target needs --target COL")
    if not asked.trains_apart and not isinstance(getattr(encoder, "cv", None), gpu_encode.Greedy):
        for one in options.given:
            if one.name == "cv":
                refuse(f"--cv has no effect: --encoder {options.encoder} learns from no target here; leave it out")
    return reads_target
