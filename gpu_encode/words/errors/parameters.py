"""Parameters with unknown names, of wrong types, out of range, or that do not go together."""

import contextlib
import difflib
import inspect
import math
from functools import cache
from numbers import Integral, Real
from typing import Any, Self

from gpu_encode.words.errors.keywords import OF_COLUMNS, OPTIONS, unknown_keyword

# A scheme has a visibility matrix with a row and a column for each fold, and sums are kept for each category and fold.
MOST_FOLDS = 10_000
# Columns of an output, or orders, that a parameter may ask for whatever the rows hold: half a megabyte a row.
MOST_COLUMNS = 1 << 16


class Signature:
    """The signature of a class's constructor, which `__new__` would hide."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        """Give the signature of the owner's constructor."""
        return self.of(owner.__init__)  # type: ignore[misc]

    @staticmethod
    @cache
    def of(constructor: Any) -> inspect.Signature:
        """Give the signature of a constructor, without `self`; to find it takes a tenth of a small call."""
        if constructor is object.__init__:
            return inspect.Signature()
        whole = inspect.signature(constructor)
        _, *parameters = whole.parameters.values()
        return whole.replace(parameters=parameters)


class KnownKeywords:
    """Base of classes that, if they get an unknown parameter, name the one that was probably meant."""

    __signature__ = Signature()

    def __new__(cls, *_: Any, **named: Any) -> Self:
        """Refuse unknown parameters before the constructor does, and name the one that was probably meant."""
        for name in named.keys() - cls.__signature__.parameters.keys() if named else ():
            raise unknown_keyword(cls, name)
        return super().__new__(cls)


def check_number(
    owner: str, name: str, value: object, *, low: float, high: float = math.inf, open_low: bool = False
) -> None:
    """Raise ValueError unless `value` is a finite number in the range."""
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an int beyond all floats
            number = float(value)
    inside = low < number <= high if open_low else low <= number <= high
    if not (inside and math.isfinite(number)):
        bound = "" if low == -math.inf else f" above {low:g}" if open_low else f" of at least {low:g}"
        upper = f" and at most {high:g}" if high < math.inf else ""
        raise bad_parameter(owner, name, value, f"must be a finite number{bound}{upper}")


def check_count(
    owner: str, name: str, value: object, *, low: int, high: int | None = None, word: str | None = None
) -> None:
    """Raise ValueError unless `value` is an integer in the range, or the word."""
    if isinstance(value, str) and value == word:
        return
    wrong = not isinstance(value, Integral) or isinstance(value, bool) or value < low
    if wrong or (high is not None and value > high):  # type: ignore[operator]
        upper = "" if high is None else f" and at most {high}"
        instead = "" if word is None else f"{word!r} or "
        raise bad_parameter(owner, name, value, f"must be {instead}an integer of at least {low}{upper}")


def check_n_splits(owner: str, n_splits: object) -> None:
    """Raise ValueError unless `n_splits` is a number of folds; the error says how to name a column."""
    if isinstance(n_splits, str):
        named = f": name a column by {OF_COLUMNS[owner]}={n_splits!r}"
        raise bad_parameter(owner, "n_splits", n_splits, f"must be an integer of at least 2{named}")
    check_count(owner, "n_splits", n_splits, low=2)
    if n_splits > MOST_FOLDS:  # type: ignore[operator]
        raise too_many_folds(n_splits)


def too_many_folds(n_folds: object) -> ValueError:
    """Error for more folds than sums are kept apart for."""
    return ValueError(
        f"There are {n_folds} folds, but at most {MOST_FOLDS} can be kept apart. Take fewer folds, or LeaveOneOut."
    )


def check_option(owner: str, name: str, value: object, allowed: tuple[object, ...], *others: str) -> None:
    """Raise ValueError unless `value` is an allowed option; `others` names options that the caller checked before."""
    # True equals 1, but is not allowed where 1 is allowed.
    if (type(value), value) not in zip(map(type, allowed), allowed, strict=True):
        raise bad_option(owner, name, value, (*(repr(option) for option in allowed), *others))


def wrong_type(owner: str, name: str, value: object, kind: type) -> TypeError:
    """Error for an argument that is not of a class of this library."""
    return TypeError(f"{name} of {owner} must be of type {kind.__name__}. Got {type(value).__name__} instead.")


def bad_option(owner: str, name: str, value: object, allowed: tuple[str, ...]) -> ValueError:
    """Error for an option that does not exist; it names the options, and the one with this name in another library."""
    named = OPTIONS.get(value, ()) if isinstance(value, str) else ()
    here = [repr(option) for option in named if repr(option) in allowed]
    instead = f": what category_encoders calls {value!r} is {here[0]} here" if here else ""
    error = bad_parameter(owner, name, value, f"must be one of {', '.join(allowed)}{instead}")
    # A word may be listed in quotes of either kind, and a class with its parameters.
    words = {option.strip("'\"").partition("(")[0].casefold(): option for option in allowed}
    known = isinstance(value, str) and not here
    near = difflib.get_close_matches(value.casefold(), words, n=1) if known else []  # type: ignore[attr-defined]
    return ValueError(f"{error} Did you mean {words[near[0]]}?") if near else error


def bad_parameter(owner: str, name: str, value: object, law: str) -> ValueError:
    """Error for a parameter that breaks a law, which begins with "must"."""
    return ValueError(f"The {name!r} parameter of {owner} {law}. Got {value!r} instead.")


def scheme_without_held_out_rows(scheme: object) -> ValueError:
    """Error for a scheme that does not hold out whole folds."""
    name = type(scheme).__name__
    why = {
        "Greedy": "in which every row sees itself",
        "LeaveOneOut": "in which every row sees sums of its own",
        "Ordered": "in which rows see more or fewer others by their rank in the order",
    }.get(name, "in which rows see themselves")
    return ValueError(
        f"tune compares schemes by the likelihood of held-out folds, but {name}, {why}, has none. "
        "List schemes of folds, such as KFold(10); or leave `schemes` out: an encoder of any cv then keeps it, "
        "and its smoothing is chosen by KFold(folds)."
    )


def no_cv_by_column(what: str) -> ValueError:
    """Error for a call that scores all columns under one scheme, but was given a scheme for each column."""
    return ValueError(
        f"{what} holds out the same rows for all columns, but cv of the encoder is a dict. Give it one scheme here, "
        "and give the dict to the encoder that it returns."
    )


def no_ages(what: str, scheme: object) -> ValueError:
    """Error for a call that weighs all rows alike, but was given a scheme in which rows count by their age."""
    given = "half_life" if getattr(scheme, "window", None) is None else "window"
    again = (
        f"Weights follow from the last time of all rows: call fit on all of them again; or leave {given} out, and "
        "take old rows out by forget."
    )
    later = f"Leave {given} out here, and set cv of the encoder that comes of it."
    instead = {
        **dict.fromkeys(("partial_fit", "forget", "merge"), again),
        **dict.fromkeys(("tune", "choose_interactions"), later),
    }.get(what, f"Leave {given} out, or take an encoder that keeps sums, as TargetEncoder.")
    return ValueError(
        f"{what} takes rows of all ages alike, but {given} of {type(scheme).__name__} asks for their ages. {instead}"
    )


def nameless_statistic(function: object) -> ValueError:
    """Error for a function, or a name of a statistic, that cannot be the name of a column."""
    if not callable(function):
        return ValueError(
            f"The name of a MergeableStatistic must be a Python identifier, such as 'geometric_mean'. Got {function!r}."
        )
    return ValueError(f"statistics holds {function!r}, which has no name for its column. Define it by `def name(...)`.")
