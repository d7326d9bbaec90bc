"""A fitted encoder as tables and rules, which every export writes in its own language.

The encoding of a row for a key is decided in this order:

1. a row that lacks the value of a single column gets `missing`; so does a row that lacks a value of a joint key, if a
   missing value is not a category;
2. a row whose values are a row of `levels[0]`, the categories, gets the encoding in that row;
3. in a hierarchy, a row whose values of the levels above are a row of `levels[1]`, the nearest level, gets the encoding
   in that row, and so on to the top;
4. all other rows get `unknown`.
"""

import inspect
import re
from collections.abc import Sequence
from reprlib import Repr
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils.validation import check_is_fitted

from cpu_fallback.exact import Floats
from cpu_fallback.types import MISSING, UNKNOWN, Array
from gpu_encode.encoders.base import Encoder, check_encoder, check_unique, names_at_fit
from gpu_encode.encoders.one_hot.row_encoder import columns_by_code
from gpu_encode.encoders.one_hot.rows import OneHotModel
from gpu_encode.encoders.row_encoder import Answers, answers_of, order_of
from gpu_encode.fitting.model import Model, weights_of
from gpu_encode.serve.export import messages
from gpu_encode.serve.export.hashed import hash_values
from gpu_encode.tables.categories.hierarchy import Derived
from gpu_encode.tables.categories.keys import CategoryIndex
from gpu_encode.tables.frames.labels import in_arrow
from gpu_encode.words.errors.parameters import check_number
from gpu_encode.words.terminal import printable

# The answer for a row and key: its encodings, then its indicators; None if a policy refuses the row.
Answer = tuple[Any, ...] | None


class LevelTable(NamedTuple):
    """Categories of one level of a key, with the answers for their rows.

    Parameters
    ----------
    values : pyarrow.Table
        A row for each category and a column for each column of the level, in the type of the categories; null is a
        missing value.
    present, lacking : list of tuple, or None
        For each category, the answer for a row that has all values of the key, and for a row that lacks some of them;
        only indicators differ.
    weights : float64 array
        For each category, the weight of its training rows; without weights, their number.
    numbers : int64 array
        Numbers of these categories among the model's categories of this level.
    """

    values: Any
    present: list[Answer]
    lacking: list[Answer]
    weights: Floats
    numbers: Array

    def take(self, rows: Array) -> "LevelTable":
        """Select categories, in the given order."""
        present, lacking = ([answers[row] for row in rows] for answers in (self.present, self.lacking))
        values = self.values.take(pa.array(rows))
        return LevelTable(values, present, lacking, self.weights[rows], self.numbers[rows])


class KeyTable(NamedTuple):
    """The answers of one key.

    Parameters
    ----------
    columns : list of str
        Columns that are read; those of the levels above come first.
    n_above : int
        Number of columns of levels above: a row lacks a value if it lacks one of the other columns.
    rule : Derived, optional
        The rule that makes the levels above from the value; the tables of these levels then have one column of labels.
    missing_is_category : bool
    levels : list of LevelTable
        The categories, then the levels above them, the nearest first.
    unknown, missing : pair of tuple, or None
        The answers for rows without a known category, and for rows with a missing value: each for rows that have all
        values of the key, and for rows that lack some.
    missing_weight : float
        Weight of the training rows with the answer `missing`.
    width : int, optional
        Number of columns of zeros and ones.  A row's answer is then the number of its column with the one, or -1 if it
        has none.
    """

    columns: list[str]
    n_above: int
    rule: Derived | None
    missing_is_category: bool
    levels: list[LevelTable]
    unknown: tuple[Answer, Answer]
    missing: Answer
    missing_weight: float
    width: int | None = None


class EncoderTables(NamedTuple):
    """A fitted encoder: its keys, its outputs, and the columns that pass through.

    Parameters
    ----------
    keys : list of KeyTable
    names : list of str
        Names of all outputs, those of passed columns last.
    order : list of int
        For each output that does not pass through, its position among the answers of all keys, laid side by side.
    passed : list of str
        Columns that pass through.
    dtype : numpy.dtype
        Type of numeric outputs.
    """

    keys: list[KeyTable]
    names: list[str]
    order: list[int]
    passed: list[str]
    dtype: np.dtype[Any]


def tables_of(encoder: Encoder) -> EncoderTables:
    """Give a fitted encoder as tables and rules.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder.

    Raises
    ------
    TypeError
        If it is not an encoder, or its encodings do not depend on single keys.
    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from gpu_encode import TargetEncoder
    >>> tables = tables_of(TargetEncoder(smooth=0.0).fit([["a"], ["b"]], [0, 1]))
    >>> tables.names, tables.keys[0].unknown, tables.keys[0].levels[0].present
    (['x0'], ((0.5,), (0.5,)), [(0.0,), (1.0,)])
    >>> tables.keys[0].levels[0].values["x0"].to_pylist()
    ['a', 'b']
    """
    check_encoder(encoder)
    check_is_fitted(encoder, "_model")
    model = encoder._model
    if not model.statistics:
        raise messages.tables_cannot_learn()
    dtype, numbers = encoder._output_type, range(len(model.keys))
    names = [str(name) for name in encoder.get_feature_names_out()]
    if isinstance(model, OneHotModel):
        check_unique(names)
        keys = [one_hot_table(model, number) for number in numbers]
        order = list(range(len(names) - len(model.selection.passed)))
    else:
        answers = answers_of(model, dtype)
        if answers is None:
            # Other models hold more than encodings of categories, or hash values.
            raise _no_tables(type(encoder).__name__)
        keys = [key_table(model, number, answers[number]) for number in numbers]
        order = order_of(model)
    labels = names_at_fit(model)
    return EncoderTables(keys, names, order, [labels[position] for position in model.selection.passed], dtype)


def _no_tables(owner: str) -> TypeError:
    """Error for an encoder whose encodings do not depend on single keys."""
    return TypeError(
        f"{owner} cannot be exported: its encodings do not follow from the categories of single keys alone, as those "
        "of TargetEncoder, CatBoostEncoder, ImpactEncoder, WeightOfEvidenceEncoder, StatisticEncoder (but for "
        "seconds_since_last), GradientEncoder, CountEncoder, OrdinalEncoder, OneHotEncoder, ClusterEncoder, "
        "CooccurrenceEncoder and FactorizationEncoder(output='factors') do. Save it with save(), "
        "and encode the rows with gpu_encode."
    )


def tables_to_leave(encoder: Encoder, min_count: float, hash_key: bytes | None) -> EncoderTables:
    """Give what an export may reveal of a fitted encoder: all but rare categories, and hashes if a key is given.

    Parameters
    ----------
    encoder : Encoder
        A fitted encoder.
    min_count : float
        As in `without_rare`.
    hash_key : bytes, optional
        If given, values are exported as `hash_values`.

    Raises
    ------
    TypeError
        If its encodings do not depend on single keys, or the key is not of type bytes.
    ValueError
        If the key is too short, if the levels of a hierarchy are computed from the values that it would hide, or if
        names of outputs are made from these values.
    """
    tables = without_rare(tables_of(encoder), min_count)
    return tables if hash_key is None else tables._replace(keys=[hidden(key, hash_key) for key in tables.keys])


def facts_to_leave(encoder: Encoder, min_count: float, hash_key: bytes | None) -> dict[str, dict[str, Any]]:
    """Give what an export tells of an encoder beside its tables: its ``origin`` and its ``parameters``.

    An export that hides values tells no fingerprint of them, and no parameters.
    """
    origin = encoder.origin_
    if min_count or hash_key:
        return {"origin": {name: value for name, value in origin.items() if name != "learned"}}
    return {"origin": origin, "parameters": write_parameters(encoder)}


def write_parameters(encoder: Encoder) -> dict[str, str]:
    """Write the parameters that are not the default ones, as in Python.

    The columns are left out, since an export tells them, and so is a list of categories.
    """
    short, told = Repr(), {}
    short.maxdict, short.maxstring, short.maxother = 20, 100, 300
    given = encoder.get_params(deep=False)
    for name, parameter in inspect.signature(type(encoder)).parameters.items():
        text, default = short.repr(given.get(name)), short.repr(parameter.default)
        if name in given and name not in ("columns", "categories") and text != default:
            # An object without a text of its own would give the address of its memory.
            told[name] = printable(" ".join(re.sub(" at 0x[0-9a-fA-F]+", "", text).split()))
    return told


def hidden(key: KeyTable, hash_key: bytes) -> KeyTable:
    """Replace all values of a key by hashes, and sort by hash, since the order of values would reveal their ranks."""
    if key.rule is not None:
        raise ValueError(
            f"hash_key hides the values of {key.columns[0]!r}, from which {key.rule!r} has to read the levels of its "
            "hierarchy. Write the levels into columns, and fit with these."
        )
    if key.width is not None:
        raise ValueError("hash_key hides values, and columns are named after them here: save() the encoder instead.")
    levels = []
    for level in key.levels:
        names = level.values.column_names
        hashes = [pa.array(hash_values(column, hash_key), pa.large_string()) for column in level.values.columns]
        values = pa.table(dict(zip(names, hashes, strict=True)))
        order = pc.sort_indices(values, [(name, "ascending") for name in names]).to_numpy().astype(np.int64)
        levels.append(level._replace(values=values).take(order))
    return key._replace(levels=levels)


def without_rare(tables: EncoderTables, min_count: float) -> EncoderTables:
    """Leave out rare categories: their rows get the answer of the level above, or that of unknown values.

    Parameters
    ----------
    tables : EncoderTables
    min_count : float
        The least weight with which a category, a level above or a missing value stays.

    Examples
    --------
    >>> from gpu_encode import CountEncoder
    >>> tables = tables_of(CountEncoder().fit([["oak"], ["oak"], ["customer 4711"]]))
    >>> without_rare(tables, 2).keys[0].levels[0].values["x0"].to_pylist()
    ['oak']
    """
    check_number("an export", "min_count", min_count, low=0.0)
    if min_count > 0 and any(key.width is not None for key in tables.keys):
        raise ValueError("min_count leaves out categories, which are names of columns here. Fit with min_frequency.")
    return tables._replace(keys=[without_rare_levels(key, min_count) for key in tables.keys])


def without_rare_levels(key: KeyTable, min_count: float) -> KeyTable:
    """Give a key without its rare categories."""
    levels = [some_rows(level, level.weights >= min_count) for level in key.levels]
    # A missing value that is not a category has the answer of the policy, which reveals nothing about its rows.
    is_rare = key.missing_is_category and key.missing_weight < min_count
    return key._replace(levels=levels, missing=key.unknown[1] if is_rare else key.missing)


def without_refused(key: KeyTable) -> KeyTable:
    """Give a key without the categories that a policy refuses, since unknown values are refused as well."""
    return key._replace(levels=[some_rows(level, [one is not None for one in level.present]) for level in key.levels])


def some_rows(level: LevelTable, are_kept: Any) -> LevelTable:
    """Select some rows of a level."""
    return level if np.all(are_kept) else level.take(np.flatnonzero(are_kept))


def key_table(model: Model, number: int, answers: Answers) -> KeyTable:
    """Make the table of one key."""
    key, labels, (present, lacking) = model.keys[number], names_at_fit(model), answers
    columns = [labels[position] for position in key.entry.columns]
    weights = weights_of(model, number)
    return KeyTable(
        columns,
        len(key.entry.above),
        key.entry.rule,
        model.rules[number].missing == "category",
        level_tables(key, columns, answers, weights),
        (present[UNKNOWN], lacking[UNKNOWN]),
        lacking[MISSING],
        float(weights[MISSING]),
    )


def one_hot_table(model: OneHotModel, number: int) -> KeyTable:
    """Make the table of one key whose answers are numbers of columns of zeros and ones."""
    columns = model.columns
    ones = columns_by_code(columns, model, number, columns.statistic.handle_unknown == "error")
    start, stop = columns.starts[number : number + 2]
    answers = [None if one is None else (one - start if one >= 0 else -1,) for one in ones]
    return key_table(model, number, (answers, answers))._replace(width=stop - start)


def level_tables(key: CategoryIndex, columns: Sequence[str], answers: Answers, weights: Floats) -> list[LevelTable]:
    """Make the tables of a key's categories, then of its levels above, the nearest first."""
    parts = [(0, category_values(key, columns), weights[: key.n_categories])]
    for depth, (start, level) in enumerate(zip(key.starts[1:], key.levels, strict=False)):
        if level.labels is not None:
            values = {columns[0]: in_arrow(level.labels, columns[0])}
        else:
            values = ancestor_values(key, columns[: depth + 1], level.of_leaf, level.n)
        below = level.of_leaf >= 0
        total = np.bincount(level.of_leaf[below], weights[: key.n_categories][below], level.n).astype(np.float64)
        parts.insert(1, (start, pa.table(values), total))
    present, lacking = answers
    return [
        LevelTable(
            values,
            present[start : start + len(values)],
            lacking[start : start + len(values)],
            total,
            np.arange(len(values)),
        )
        for start, values, total in parts
    ]


def category_values(key: CategoryIndex, columns: Sequence[str]) -> Any:
    """Give the values of a key's categories, one row for each."""
    arrays = [in_arrow(vocabulary, column) for vocabulary, column in zip(key.vocabularies, columns, strict=True)]
    if key.tuples is None:
        return pa.table(dict(zip(columns, arrays, strict=True)))
    members = key.tuples.members.T
    return pa.table({column: taken(*given) for column, *given in zip(columns, arrays, members, strict=True)})


def ancestor_values(key: CategoryIndex, columns: Sequence[str], of_leaf: Any, n: int) -> dict[str, Any]:
    """Give the values of the categories of a level above; its columns are the first columns of the key."""
    if len(columns) == 1:
        # All values of the column, even if no category has them; a missing value comes last.
        return {columns[0]: taken(in_arrow(key.vocabularies[0], columns[0]), np.array([*range(n - 1), MISSING]))}
    assert key.tuples is not None
    leaf = np.zeros(n, np.int64)
    leaf[of_leaf] = np.arange(len(of_leaf))
    codes = key.tuples.members[leaf]
    arrays = [in_arrow(vocabulary, column) for vocabulary, column in zip(key.vocabularies, columns, strict=False)]
    return {column: taken(arrays[number], codes[:, number]) for number, column in enumerate(columns)}


def taken(values: Any, codes: Any) -> Any:
    """Give the values of some codes; null for a missing value."""
    return values.take(pa.array(np.maximum(codes, 0).astype(np.int64), mask=codes < 0))
