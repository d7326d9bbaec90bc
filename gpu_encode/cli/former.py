"""What was written for schemes and smoothings before expressions were, and what to write in its place."""

import json
import re
from collections.abc import Iterable, Sequence

from gpu_encode.cli.expressions import CALLED, NUMBER, SHORT_NAMES, class_named
from gpu_encode.cli.messages import close_match, refuse

FLAGS = ("stratify", "blow-up", "no-average", "no-shuffle")
# Options of schemes that are gone, FLAGS apart.
OPTIONS = (
    *("scheme", "fold-column", "folds", "folds-by", "fraction", "mask", "new-rows", "calibration-rows", "groups"),
    *("time", "gap", "half-life", "window", "permutations", "block", "burn-in"),
)
PARAMETERS = {"folds": "n_splits", "folds-by": "by", "permutations": "n_permutations", "seed": "random_state"}
KINDS = {"cv": "schemes", "smooth": "smoothing", "hierarchy": "hierarchy"}


def scheme(words: Iterable[tuple[str, str]], usual: str) -> str:
    """Say what ``--cv`` takes in place of former options; `usual` is the scheme where none was named.

    Examples
    --------
    >>> scheme([("groups", "region"), ("folds", "3")], "kfold")
    'GroupKFold(groups="region", n_splits=3)'
    """
    given = dict(words)
    if "fold-column" in given:
        return given["fold-column"]
    named = [text for option, text in words if option == "scheme"] or ["group" if "groups" in given else usual]
    pieces = [
        option if option in FLAGS else f"{option}={text.replace(',', '+')}"
        for option, text in given.items()
        if option != "scheme"
    ]
    if not pieces and len(named) == 1 and not re.search("[:=]", named[0]):
        return named[0]
    return expression("cv", [f"{text}{',' if ':' in text else ':'}{','.join(pieces)}".rstrip(",") for text in named])


def expression(name: str, texts: Sequence[str]) -> str:
    """Say what stands for former words of a parameter.

    Examples
    --------
    >>> expression("smooth", ["shop=20", "shop+city=sigmoid:k=20,f=10"])
    '{"shop": 20, ("shop", "city"): Sigmoid(k=20, f=10)}'
    """
    if name in ("statistics", "handle_unknown"):
        texts = [piece for text in texts for piece in text.split(",")]
    rules = {}
    for text in texts:
        by_column = re.match("(?!m=[^=]*$)[^:=]*=" if name == "smooth" else "[^:=]*=", text)
        column, equals, rest = text.partition("=") if by_column else ("", "", text)
        parts = [literal(part, quoted=True) for part in column.split("+")]
        key = f"({', '.join(parts)})" if len(parts) > 1 else parts[0]
        rules[key if equals else text] = (key if equals else "", rule(name, rest))
    if any(key for key, _ in rules.values()):
        return f"{{{', '.join(f'{key}: {said}' for key, said in rules.values())}}}"
    said = [said for _, said in rules.values()]
    return f"[{', '.join(said)}]" if name == "statistics" else said[0]


def rule(name: str, text: str) -> str:
    """Say what stands for one rule, such as ``sigmoid:k=20,f=10`` or ``prefix:4,3``."""
    head, colon, rest = ("m", ":", text[2:]) if text.startswith("m=") else text.partition(":")
    called = class_named(head, KINDS[name]) if name in KINDS else None
    pieces = [argument(piece) for piece in rest.split(",") if piece]
    if called is not None:
        return f"{called}({', '.join(pieces)})"
    if colon and name in KINDS:
        refuse(f"--{name}: {head!r} in {text!r} is unknown{close_match(head, (*SHORT_NAMES, *CALLED))}")
    if colon:
        return f"({literal(head)}, {', '.join(pieces)})"
    if name == "drop" and "+" in text:
        return f"({', '.join(map(literal, text.split('+')))})"
    if name in ("hierarchy", "priors"):
        return f"[{', '.join(map(literal, text.split(',')))}]"
    return "0" if (name, text) == ("smooth", "none") else literal(text)


def argument(piece: str) -> str:
    """Say what stands for one option of a rule, such as ``folds=3``."""
    key, equals, value = piece.partition("=")
    if key in (*FLAGS, "pooled", "from_end"):
        return f"{key.removeprefix('no-').replace('-', '_')}={not key.startswith('no-')}"
    if not equals:
        return literal(piece)
    name = PARAMETERS.get(key, key.replace("-", "_"))
    if name == "by":
        return f"by=[{', '.join(literal(one, quoted=True) for one in value.split('+'))}]"
    return f"{name}={literal(value, quoted=name in ('groups', 'time', 'mask'))}"


def literal(text: str, *, quoted: bool = False) -> str:
    """Write a number as it stands, and text in quotes."""
    return text if not quoted and NUMBER.fullmatch(text) else json.dumps(text, ensure_ascii=False)
