"""What cannot be computed or learned: unknown statistics, columns of another kind, calls with other parameters."""

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_encode.words.errors.values import RowError

# Those that a name alone does not ask for.
_WITH_NUMBER = '("quantile", q), ("share", t)'
# What other libraries call some of them.
_ALIASES = {"variance": "var", "skewness": "skew", "average": "mean", "stdev": "std", "unique": "nunique"}
_ADVICE = "Convert the column to numbers, or leave it out of values."


def no_statistics(found: object, names: Sequence[str]) -> ValueError:
    """Error for something else than a list of statistics."""
    return ValueError(f"statistics must be a list of at least one of {_list(names)}, or functions. Got {found!r}.")


def unknown_statistic(found: object, names: Sequence[str]) -> ValueError:
    """Error for a statistic that does not exist; names those that do."""
    word = str(found)
    near = [_ALIASES[word]] if word in _ALIASES else difflib.get_close_matches(word, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return ValueError(f"statistics names {found!r}, which is none of {_list(names)}, and no function of arrays.{hint}")


def nameless_statistic(function: object) -> ValueError:
    """Error for a function, or for the name of a statistic, that names no column."""
    if not callable(function):
        return ValueError(
            f"The name of a MergeableStatistic must be a Python identifier, such as 'geometric_mean'. Got {function!r}."
        )
    return ValueError(f"statistics holds {function!r}, which has no name for its column. Define it by `def name(...)`.")


def misshapen_statistic(name: str, expected: tuple[int, ...], found: object) -> ValueError:
    """Error for a function that does not give one number for every category."""
    return ValueError(
        f"the statistic {name!r} must give an array of shape {expected}, as those that it is given have, but gave "
        f"{found}. Compute it by array expressions, such as mean / count."
    )


def term_not_finite(name: str, place: int, row: int, found: object, value: object) -> RowError:
    """Error for a term that no sum can take."""
    return RowError(
        f"terms[{place}] of the statistic {name!r} must be finite, but is {found!s} of the value {value!s} in row ",
        row,
        ". Drop such rows, or make it a number, such as np.log1p(value).",
    )


def too_little_weight(owner: str, total: float) -> ValueError:
    """Error for weights that sum to one row or less, where a sample variance takes more."""
    return ValueError(
        f"{owner} takes weights as numbers of rows, and computes sample variances, which take more than one, "
        f"but sample_weight sums to {total!r}. Multiply the weights, so that each says how many rows it stands for "
        "(weights * len(weights) / weights.sum() makes them one row each on average), or take what depends on no sum "
        "of weights, such as smooth=0."
    )


def of_dates_alone(owner: str, statistic: str, of_numbers: str | None) -> ValueError:
    """Error for a statistic of dates that is asked of numbers or labels."""
    instead = f" Take {of_numbers!r} of numbers." if of_numbers else ""
    return ValueError(
        f"{statistic!r} of {owner} is for columns of dates, named by values or in a dict of statistics.{instead}"
    )


def of_numbers_alone(owner: str, statistic: str, column: object, kind: str, known: Sequence[str]) -> ValueError:
    """Error for a statistic of numbers that is asked of a column of text or dates."""
    held = "text" if kind == "text" else "dates"
    return ValueError(
        f"values: column {column!r} holds {held}, of which {owner} has {', '.join(map(repr, known))}, and "
        f"{statistic!r} is for numbers. {_ADVICE} Of several columns each may have its own: "
        f'statistics={{"key": {{{column!r}: ["mode"], ...}}}}.'
    )


def several_kinds(column: object, one: str, other: str) -> ValueError:
    """Error for a column of values that holds one kind in some rows, and another or nothing in others."""
    held = {"continuous": "numbers, or nothing,", "text": "text", "datetime": "dates"}
    return ValueError(
        f"The column {column!r} of values holds {held[one]} in some rows and {held[other]} in others. Give it one "
        "type, in all tables."
    )


def number_for_values(owner: str, parameter: str, found: object, column: object, kind: str) -> ValueError:
    """Error for a number that would stand among text or dates."""
    held = "text" if kind == "text" else "dates"
    return ValueError(
        f"{parameter}={found!r} of {owner} is for numbers, but statistics of the column {column!r} are {held}. Leave "
        "it out, or give this column an encoder of its own."
    )


def inexact_beside_fractions(row: int, found: object) -> RowError:
    """Error for a whole number that float64 would round, where terms have fractions."""
    return RowError(
        f"'skew' and statistics with terms take whole numbers up to 2**53, but a value is {found!r} in row ",
        row,
        ". Convert the values to float64, which rounds them, or leave such statistics out.",
    )


def no_value_columns(found: object) -> ValueError:
    """Error for `values` that is no list of columns."""
    return ValueError(
        f"values must be a list of names or positions of at least one column, each once, or None. Got {found!r}."
    )


def text_as_value(column: object, found: object) -> TypeError:
    """Error for a column of values that are no numbers."""
    return TypeError(f"values: column {column!r} holds {found!r}, which is no number. {_ADVICE}")


def timestamps_as_value(column: object) -> TypeError:
    """Error for a column of dates, times or spans of time."""
    return TypeError(f"values: column {column!r} holds dates, times or spans of time. {_ADVICE}")


def _list(names: Sequence[str]) -> str:
    return ", ".join([*map(repr, names), _WITH_NUMBER])


def no_statistics_of_key(key: Any, found: object) -> ValueError:
    """Error for an entry of a dict of statistics that is no dict of lists; says how a pair of earlier times is written.

    Before, a key and a column of values were a tuple, which everywhere else is a joint key.
    """
    is_pair = isinstance(key, tuple) and len(key) == 2 and not isinstance(found, dict)
    hint = f" A tuple is a joint key: write {{{key[0]!r}: {{{key[1]!r}: [...]}}}} for a pair." if is_pair else ""
    return ValueError(
        "statistics as a dict has, for each key, a dict of a list of statistics by column of values, such as "
        f'{{"shop": {{"price": ["mean", "std"]}}, ("shop", "city"): {{"pieces": ["sum"]}}}}. Got {key!r}: {found!r}.'
        f"{hint}"
    )


def finish_of_other_sums(name: str, n_sums: int) -> ValueError:
    """Error for a last step that cannot be called with the sums there are."""
    sums = "the sum of its term" if n_sums == 1 else f"the sums of its {n_sums} terms"
    return ValueError(
        f"finish of the statistic {name!r} cannot be called with {1 + n_sums} arrays, counts and {sums}. Define it as "
        "finish(count, *sums), or with as many parameters."
    )


def target_of_another_kind(owner: str, found: str, kinds: Sequence[str]) -> ValueError:
    """Error for a kind of target that an encoder has no encodings for; worded so that scikit-learn's checks know it."""
    advice = 'Pass target_type="continuous"' if "continuous" in kinds else "Pass labels, such as y > threshold"
    return ValueError(
        f"Unknown label type: {owner} needs a {' or '.join(kinds)} target, but y is {found}. {advice}, or take "
        "TargetEncoder."
    )


def beyond_scale(owner: str, scale: object, computed: str, values: str, least: float, largest: float) -> ValueError:
    """Error for encodings that may have no place on their scale."""
    wanted = "shares between 0 and 1" if scale == "logit" else "numbers of at least 0"
    return ValueError(
        f"scale={scale!r} of {owner} is for {wanted}, but {computed} of {values} may be anything from {least:g} to "
        f'{largest:g}. Take scale="identity", leave it out, or give other values.'
    )


def no_borders(owner: str, found: object) -> ValueError:
    """Error for borders that are no rising numbers."""
    return ValueError(
        f"The 'borders' parameter of {owner} must be None, a number of borders from 1 to 255, or a list of finite "
        f"numbers in rising order. Got {found!r} instead."
    )


def text_at_borders(owner: str, found: object) -> ValueError:
    """Error for a target that is cut and holds no numbers."""
    return ValueError(f"borders of {owner} cut numbers, but y holds {found!r}. Convert y, or leave out borders.")


def other_number_of_targets(before: int, now: int) -> ValueError:
    """Error for another number of targets than in earlier calls."""
    return ValueError(f"Earlier calls had {before} targets, this one has {now}. Give the same.")


def other_columns(before: object, now: object) -> ValueError:
    """Error for other columns than in earlier calls."""
    return ValueError(
        f"partial_fit was called with other columns than before: {now} after {before}. Give the same, in that order."
    )


def other_parameters(name: str, before: object, now: object) -> ValueError:
    """Error for a parameter that shapes the encodings and has changed since earlier calls."""
    return ValueError(
        f"partial_fit was called with other parameters than before: {name} is now {_shown(now)} and was "
        f"{_shown(before)}. Set it back, or call fit to start anew."
    )


def _shown(value: object) -> str:
    """Represent a value in one line that does not hide the rest of a message."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def check_number_of_codes(expected: int, X: Any) -> None:
    """Raise ValueError, in scikit-learn's words, unless X is as wide as what is to be inverted, whatever it holds."""
    shape = np.shape(X)
    if len(shape) == 2 and shape[1] != expected:
        raise ValueError(
            f"Shape of the passed X data is not correct. Expected {expected} columns, got {shape[1]}. Give the encoded "
            "columns alone, in their order."
        )


def never_learned(key: str, category: object) -> ValueError:
    """Error for rows to forget that were never learned."""
    return ValueError(
        f"forget was given rows of {key!r} that this encoder has not learned, or not so many: those of {category!r} "
        "would leave sums that no rows have. Give rows as they were given to fit or partial_fit, each once."
    )


def never_learned_label(label: object) -> ValueError:
    """Error for rows to forget with a label that was never learned."""
    return ValueError(
        f"forget was given the label {_shown(label)}, which this encoder has not learned. Give rows as they were given "
        "to fit or partial_fit, each once."
    )


def merge_of_other_targets() -> ValueError:
    """Error for merging encoders of other targets."""
    return ValueError("Cannot merge encoders of different targets. Fit all on the same targets, in the same order.")
