"""From the words of ``fit-transform`` to values of parameters, checked before any file is opened."""

import argparse
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from gpu_encode.cli.messages import close_match, refuse


@dataclass(frozen=True)
class Choice:
    """A public class of gpu_encode by name, and its arguments: made only once the library is wanted.

    Examples
    --------
    >>> str(Choice("Sigmoid", {"k": 20.0}))
    'Sigmoid(k=20.0)'
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()

    def __str__(self) -> str:
        words = [repr(value) for value in self.positional] + [f"{k}={v!r}" for k, v in self.parameters.items()]
        return f"{self.name}({', '.join(words)})"

    def make(self, library: Any) -> Any:
        """Return the object, made from the public names of `library`."""
        return getattr(library, self.name)(*self.positional, **self.parameters)


# The class of a smoothing, and the parameters that it takes.
SMOOTHINGS: dict[str, tuple[str, list[str]]] = {
    "m": ("MEstimate", ["m"]),
    "sigmoid": ("Sigmoid", ["k", "f"]),
    "eb": ("EmpiricalBayes", []),
    "james-stein": ("JamesStein", []),
    "partial-pooling": ("PartialPooling", []),
    "glmm": ("GLMM", []),
}
DROP_RULES = ("first", "if_binary")
SMOOTHING_FORMS = (
    "auto, none, m=10, sigmoid:k=20,f=10, eb:total, eb:between, eb:anova,pooled, james-stein, partial-pooling, glmm"
)


def number(text: str, what: str) -> float:
    """Read a number, or say which option wanted one.

    Examples
    --------
    >>> number("0.5", "--prior")
    0.5
    """
    try:
        return float(text)
    except ValueError:
        refuse(f"{what} wants a number, not {text!r}")


def whole_number(text: str, option: str) -> int:
    """Read a whole number, or say which option wanted one.

    Examples
    --------
    >>> whole_number("8", "--n-components")
    8
    """
    if not text.isdecimal():
        refuse(f"{option} wants a whole number, not {text!r}")
    return int(text)


def number_or_count(text: str, option: str) -> float:
    """Read a number of rows (12) or a share of them (0.1).

    Examples
    --------
    >>> number_or_count("12", "--burn-in"), number_or_count("0.1", "--burn-in")
    (12, 0.1)
    """
    return int(text) if text.isdecimal() else number(text, option)


def split_names(words: Iterable[str]) -> list[str]:
    """Split lists of names at their commas.

    Examples
    --------
    >>> split_names(["a,b", "c"])
    ['a', 'b', 'c']
    """
    return [name for word in words for name in word.split(",") if name]


def statistics_choice(text: str) -> list[str | tuple[str, float]]:
    """Read ``--statistics``.

    Examples
    --------
    >>> statistics_choice("mean,quantile:0.9")
    ['mean', ('quantile', 0.9)]
    """
    refuse_dict(text, "--statistics")
    pieces = [piece.partition(":") for piece in split_names([text])]
    return [(name, number(rest, f"--statistics {name}")) if colon else name for name, colon, rest in pieces]


def refuse_dict(text: str, option: str) -> None:
    """Raise UsageError for a dict, whose joint keys no option holds."""
    if text.lstrip().startswith("{"):
        refuse(
            f"{option}: a dict by key and column of values is for Python only; use --columns, --values and --statistics"
        )


def borders_choice(text: str) -> int | list[float]:
    """Read ``--borders``: how many, or which.

    Examples
    --------
    >>> borders_choice("3"), borders_choice("2.5"), borders_choice("1,2")
    (3, [2.5], [1.0, 2.0])
    """
    return int(text) if text.isdecimal() else [number(piece, "--borders") for piece in text.split(",")]


def target_types(text: str) -> str | list[str]:
    """Read ``--target-type``: one for all targets, or one for each.

    Examples
    --------
    >>> target_types("binary,continuous")
    ['binary', 'continuous']
    """
    types = text.split(",")
    for kind in types:
        if kind not in (allowed := ["auto", "binary", "continuous", "multiclass"]):
            refuse(f"--target-type {kind!r} is unknown{close_match(kind, allowed)} (choose from {', '.join(allowed)})")
    return types[0] if len(types) == 1 else types


def smooth_choice(text: str) -> Choice | float | str | None:
    """Read one smoothing.

    Examples
    --------
    >>> print(smooth_choice("sigmoid:k=20,f=10"))
    Sigmoid(k=20.0, f=10.0)
    >>> print(smooth_choice("none"), smooth_choice("10"))
    None 10.0
    """
    if text in ("auto", "none"):
        return "auto" if text == "auto" else None
    if re.match(r"[-+.\d]", text):
        return number(text, "--smooth")
    if re.match(r"m=", text):
        return Choice("MEstimate", {"m": number(text[2:], "--smooth m")})
    name, _, rest = text.partition(":")
    if name not in SMOOTHINGS:
        hint = close_match(name, [form.partition(":")[0] for form in SMOOTHING_FORMS.split(", ")])
        refuse(f"--smooth {text!r} is unknown{hint} (choose from a number, {SMOOTHING_FORMS})")
    if name == "eb":
        tau, _, pooled = rest.removeprefix("tau=").partition(",")
        if tau not in ("", "total", "between", "anova") or pooled not in ("", "pooled"):
            refuse(f"--smooth eb wants total, between or anova, and behind it ,pooled or nothing, not {rest!r}")
        return Choice("EmpiricalBayes", {"tau": tau or "total"} | ({"pooled": True} if pooled else {}))
    class_name, allowed = SMOOTHINGS[name]
    return Choice(class_name, dict(parameter(piece, name, allowed) for piece in rest.split(",") if piece))


def parameter(piece: str, name: str, allowed: Sequence[str]) -> tuple[str, float]:
    """Read one ``k=20`` of a smoothing."""
    key, equals, value = piece.partition("=")
    if key not in allowed or not equals:
        takes = f"takes {', '.join(f'{one}=NUMBER' for one in allowed)}" if allowed else "takes no parameters"
        refuse(f"--smooth {name} {takes}, not {piece!r}")
    return key, number(value, f"--smooth {name}:{key}")


def prior_choice(words: list[str]) -> Any:
    """Read ``--prior``: one for all, or one per column.

    Examples
    --------
    >>> prior_choice(["city=0.2", "zip=mean"])
    {'city': 0.2, 'zip': 'mean'}
    """
    return by_column([word.rpartition("=") for word in words], words, one_prior, "--prior")


def numbers_by_column(words: list[str], option: str) -> Any:
    """Read a number: one for all columns, or one per column.

    Examples
    --------
    >>> numbers_by_column(["0.5"], "--regularization"), numbers_by_column(["city=2", "zip=0"], "--regularization")
    (0.5, {'city': 2.0, 'zip': 0.0})
    """
    return by_column([word.rpartition("=") for word in words], words, number, option)


def priors_choice(words: list[str]) -> Any:
    """Read ``--priors``: numbers with commas between, for all columns or per column.

    Examples
    --------
    >>> priors_choice(["0,0.5"]), priors_choice(["city=0.2", "zip=0,1"])
    ([0.0, 0.5], {'city': [0.2], 'zip': [0.0, 1.0]})
    """
    split = [word.rpartition("=") for word in words]
    return by_column(split, words, lambda text, named: [number(p, named) for p in text.split(",")], "--priors")


def one_prior(text: str, option: str = "--prior") -> str | float:
    """Read one prior.

    Examples
    --------
    >>> one_prior("category_mean")
    'category_mean'
    """
    return word_or_number(text, ["mean", "category_mean"], option)


def smooth_choices(words: list[str]) -> Any:
    """Read ``--smooth``: one for all, or one per column.

    Examples
    --------
    >>> smooth_choices(["none"]), smooth_choices(["city=2", "zip=none"])
    (None, {'city': 2.0, 'zip': None})
    """
    # A rule may hold an equals sign of its own.
    split = split_columns(words, f"m=[^=]*$|({'|'.join(SMOOTHINGS)}):")
    return by_column(split, words, lambda text, _="": smooth_choice(text), "--smooth")


def split_columns(words: Sequence[str], rule: str) -> list[tuple[str, str, str]]:
    """Split words at the equals sign behind the name of a column, but for those that begin as a rule does.

    Examples
    --------
    >>> split_columns(["loo", "time:time=day", "city=time:time=day"], "time:")
    [('', '', 'loo'), ('', '', 'time:time=day'), ('city', '=', 'time:time=day')]
    """
    return [("", "", word) if "=" not in word or re.match(rule, word) else word.partition("=") for word in words]


def by_column(split: list[tuple[str, str, str]], words: list[str], read: Callable[..., Any], option: str) -> Any:
    """Give one value for all columns, or a dict of one for each that is named.

    Examples
    --------
    >>> by_column([("city", "=", "0.2")], ["city=0.2"], number, "--prior")
    {'city': 0.2}
    """
    if all(equals for _, equals, _ in split):
        names = [name for name, _, _ in split]
        if twice := [name for number, name in enumerate(names) if name in names[:number]]:
            refuse(f"{option} gives the column {twice[0]!r} twice")
        return {name: read(value, f"{option} {name}") for name, _, value in split}
    if len(words) > 1:
        refuse(f"{option} is given once for all columns, or as COL=VALUE for each of several")
    return read(words[0], option)


def word_or_number(text: str, words: list[str], option: str) -> str | float:
    """Read one of `words`, or a number.

    Examples
    --------
    >>> word_or_number("0.5", ["prior", "nan"], "--handle-unknown")
    0.5
    """
    if text in words:
        return text
    try:
        return float(text)
    except ValueError:
        hint = close_match(text, words)
        refuse(f"{option} {text!r} is unknown{hint} (choose from {', '.join(words)} or a number)")


def words_by_column(text: str, words: list[str], option: str) -> Any:
    """Read one of `words`, or a number: one for all columns, or COL=HOW for each of some, with commas between.

    Examples
    --------
    >>> words_by_column("city=nan,zip=0.5", ["prior", "nan"], "--handle-unknown")
    {'city': 'nan', 'zip': 0.5}
    """
    pieces = text.split(",") if "=" in text else [text]
    split = [piece.rpartition("=") for piece in pieces]
    return by_column(split, pieces, lambda how, named: word_or_number(how, words, named), option)


def drop_choice(words: list[str], encoder: str) -> Any:
    """Read ``--drop``: a rule, or one-hot's category for each of several columns, or a label; values stay text.

    Examples
    --------
    >>> drop_choice(["city=Bonn", "zip=02138"], "one-hot"), drop_choice(["a=b"], "target")
    ({'city': 'Bonn', 'zip': '02138'}, 'a=b')
    """
    if encoder == "one-hot":
        return by_column([word.partition("=") for word in words], words, rule_or_category, "--drop")
    if len(words) > 1:
        refuse("--drop is given once: first, or the label of a class")
    return words[0]


def rule_or_category(text: str, option: str) -> str:
    """Read what one-hot drops of all columns, which is a rule, or of one."""
    if option == "--drop" and text not in DROP_RULES:
        refuse(
            f"--drop {text!r} is unknown{close_match(text, DROP_RULES)} (choose from first, if_binary, COL=CATEGORY)"
        )
    return text


def hierarchy_choice(words: list[str]) -> dict[str, list[str] | Choice]:
    """Read every ``--hierarchy COL=LEVELS``.

    Examples
    --------
    >>> print(hierarchy_choice(["url=parts:.,from_end"])["url"])
    Parts('.', from_end=True)
    """
    levels: dict[str, list[str] | Choice] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        if not (name and equals and rest):
            refuse(f"--hierarchy {word!r} is not of the form COL=LEVELS, such as zip=zip4,zip3 or zip=prefix:4,3")
        if name in levels:
            refuse(f"--hierarchy gives the column {name!r} twice")
        levels[name] = hierarchy_levels(rest)
    return levels


def hierarchy_levels(text: str) -> list[str] | Choice:
    """Read what stands behind ``COL=``: columns, or the rule that makes the levels."""
    rule, colon, rest = text.partition(":")
    if colon and rule in ("prefix", "bits"):
        try:
            lengths = tuple(int(piece) for piece in rest.split(","))
        except ValueError:
            refuse(f"--hierarchy {rule}: wants whole numbers such as {rule}:16,8, not {rest!r}")
        return Choice({"prefix": "Prefixes", "bits": "Bits"}[rule], positional=lengths)
    if colon and rule == "parts":
        separator = rest.removesuffix(",from_end")
        if not separator:
            refuse("--hierarchy parts: wants a separator, such as parts:. or parts:.,from_end")
        return Choice("Parts", {"from_end": True} if separator != rest else {}, (separator,))
    return text.split(",")


def make_choices(value: Any, library: Any) -> Any:
    """Return `value` with every `Choice` in it made.

    Examples
    --------
    >>> make_choices({"zip": ["zip4"]}, None)
    {'zip': ['zip4']}
    """
    make: Callable[[Any], Any] = lambda one: one.make(library) if isinstance(one, Choice) else one  # noqa: E731
    return {name: make(one) for name, one in value.items()} if isinstance(value, dict) else make(value)


SEED = {"seed": "random_state"}
# Options of schemes that are said or not; parameters that name columns, and their options.
FLAGS = ("stratify", "blow_up", "average", "shuffle")
COLUMNS_READ = {"groups": "--groups", "time": "--time", "mask": "--mask", "by": "--folds-by"}
# scheme -> class, and option -> parameter for the options that it takes
SCHEMES: dict[str, tuple[str, dict[str, str]]] = {
    "greedy": ("Greedy", {}),
    "kfold": (
        "KFold",
        {"folds": "n_splits", "folds_by": "by", **{name: name for name in ("order", "stratify", "blow_up")}, **SEED},
    ),
    "holdout": (
        "Holdout",
        {name: name for name in ("fraction", "mask", "new_rows", "calibration_rows")} | SEED,
    ),
    "loo": ("LeaveOneOut", {}),
    "ordered": (
        "Ordered",
        {
            "permutations": "n_permutations",
            **{name: name for name in ("time", "average", "burn_in", "shuffle", "block", "half_life", "window")},
            **SEED,
        },
    ),
    "time": ("TimeFolds", {"folds": "n_splits", **{name: name for name in ("time", "gap", "half_life", "window")}}),
    "group": ("GroupKFold", {"folds": "n_splits", "groups": "groups", **SEED}),
}


def scheme_words(options: argparse.Namespace, *, kfold_order: bool = True) -> dict[str, Any]:
    """Return the options of schemes that were given.

    Parameters
    ----------
    options : argparse.Namespace
    kfold_order : bool, default=True
        Whether ``--order`` is one of them, and not the encoder's.
    """
    names = ("folds", "order", "stratify", "blow_up", "fraction", "mask", "new_rows", "calibration_rows", "groups")
    more = ("time", "gap", "permutations", "average", "shuffle")
    given = {name: getattr(options, name) for name in (*names, *more) if name != "order" or kfold_order}
    given["folds_by"] = split_names(options.folds_by) or None
    given["block"] = options.block if options.block in (None, "auto") else number_or_count(options.block, "--block")
    given["burn_in"] = None if options.burn_in is None else number_or_count(options.burn_in, "--burn-in")
    for name in ("half_life", "window"):
        given[name] = number_or_text(getattr(options, name))
    return {option: value for option, value in given.items() if value is not None}


def number_or_text(text: str | None) -> float | int | str | None:
    """Read a number, whole where it is written so; anything else stays text, such as 7d."""
    for read in (int, float):
        with suppress(TypeError, ValueError):
            return read(text)  # type: ignore[arg-type]
    return text


def scheme_choice(options: argparse.Namespace, words: dict[str, Any], usual: str = "kfold") -> Any:
    """Read the scheme, one for all columns or one per column; a str is a column of fold numbers.

    Parameters
    ----------
    options : argparse.Namespace
    words : dict of str to object
        As `scheme_words` gives them.
    usual : str, default="kfold"
        The scheme unless one is named.
    """
    if options.fold_column is not None:
        if options.scheme or words:
            other = "scheme" if options.scheme else option_name(next(iter(words)))
            refuse(f"--fold-column brings the folds: leave out --{other}")
        return str(options.fold_column)
    schemes = options.scheme or ["group" if "groups" in words else usual]
    # What has a colon before the equals sign, and no scheme behind it, is a misspelt scheme with options.
    misspelt = f"[^=]*:[^=]*=(?!({'|'.join(SCHEMES)})(:|$))"
    split = split_columns(schemes, f"({'|'.join(SCHEMES)}):|{misspelt}")
    if words and any(column for column, _, _ in split):
        option = option_name(next(iter(words)))
        refuse(f"--{option} is for one scheme of all columns: say it behind that of a column, as city=kfold:folds=3")
    return by_column(split, schemes, lambda text, _: one_scheme(text, words, options.seed or 0), "--scheme")


def one_scheme(text: str, words: Mapping[str, Any], seed: int) -> Choice:
    """Read one scheme, and refuse options that it does not take.

    Examples
    --------
    >>> print(one_scheme("group:groups=region,folds=3", {}, 0))
    GroupKFold(groups='region', n_splits=3, random_state=0)
    """
    scheme, _, rest = text.partition(":")
    if scheme not in SCHEMES:
        refuse(f"--scheme {scheme!r} is unknown{close_match(scheme, SCHEMES)} (choose from {', '.join(SCHEMES)})")
    class_name, takes = SCHEMES[scheme]
    given = {**words, **dict(scheme_word(piece, scheme) for piece in rest.split(",") if piece)}
    for option in given:
        if option not in takes:
            schemes = " or ".join(name for name, (_, allowed) in SCHEMES.items() if option in allowed)
            refuse(f"--{option_name(option)} is for --scheme {schemes}, not {scheme}")
    for option in {"time": ["time"], "group": ["groups"]}.get(scheme, []):
        if option not in given:
            refuse(f"--scheme {scheme} needs --{option} COL (for one column --scheme city={scheme}:{option}=COL)")
    given.setdefault("seed", seed)
    return Choice(class_name, {takes[option]: value for option, value in given.items() if option in takes})


def scheme_word(piece: str, scheme: str) -> tuple[str, Any]:
    """Read one ``folds=3``, or ``stratify``, of a scheme.

    Examples
    --------
    >>> scheme_word("half-life=7d", "time"), scheme_word("no-shuffle", "ordered")
    (('half_life', '7d'), ('shuffle', False))
    """
    key, equals, value = piece.partition("=")
    name, takes = key.removeprefix("no-").replace("-", "_"), SCHEMES[scheme][1]
    if name not in takes or bool(equals) == (name in FLAGS):
        forms = [option_name(one) + ("" if one in FLAGS else "=...") for one in takes]
        refuse(f"--scheme {scheme} takes {', '.join(forms) or 'no options'}, not {piece!r}")
    if name in FLAGS:
        return name, not key.startswith("no-")
    if name == "folds_by":
        return name, value.split("+")
    return name, value if name in COLUMNS_READ else number_or_text(value)


def option_name(key: str) -> str:
    """Return the option that a key of the scheme's options is given by."""
    return f"no-{key}" if key in {"average", "shuffle"} else key.replace("_", "-")
