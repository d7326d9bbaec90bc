"""Give each category its column, by the weights of all: infrequent categories share a column, some have none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import MISSING, UNKNOWN, Array, Codes
from gpu_encode.fitting.model import Model
from gpu_encode.formulas.infrequent import find_infrequent
from gpu_encode.formulas.one_hot import OneHot
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.sums.moments import Moments
from gpu_encode.tables.categories.keys import CategoryIndex, categories_as_numpy
from gpu_encode.tables.categories.objects import is_null
from gpu_encode.tables.categories.vocabulary import Vocabulary

# The column number of a row that rightly has no 1; UNKNOWN is the number for a value that is no category.
ZERO = -1
INFREQUENT = "infrequent_sklearn"


@dataclass(frozen=True, eq=False)
class KeyColumns:
    """The output columns of one key.

    Parameters
    ----------
    label : str or int
        Name in messages of the column of X; a tuple of names for a joint key.
    rows : int array (n_categories,)
        Row of each category in the table of the key's codes; the row of a missing value is last.
    values : array (n_categories,)
        The categories, in the same order.
    rare : bool array (n_categories,)
        Which categories are infrequent and share the last column.
    all_columns : int array (n_categories,)
        Column of each category, counted within the key, before any is dropped.
    dropped : int, optional
        The column that is dropped, by the same count.
    """

    label: Any
    rows: NDArray[np.int64]
    values: Array
    rare: NDArray[np.bool_]
    all_columns: NDArray[np.int64]
    dropped: int | None = None

    @property
    def full_width(self) -> int:
        """Number of columns before any is dropped."""
        return int(self.all_columns.max()) + 1 if len(self.all_columns) else 0

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.full_width - (self.dropped is not None)

    @property
    def has_rare(self) -> bool:
        """Whether there are infrequent categories."""
        return bool(self.rare.any())

    @property
    def columns(self) -> NDArray[np.int64]:
        """Column of each category, counted within the key; `ZERO` for a dropped category."""
        if self.dropped is None:
            return self.all_columns
        return np.where(self.all_columns == self.dropped, ZERO, self.all_columns - (self.all_columns > self.dropped))

    @property
    def drop_index(self) -> int | None:
        """Position of the dropped category; if infrequent categories are dropped, the position of the first one."""
        return None if self.dropped is None else int(np.flatnonzero(self.all_columns == self.dropped)[0])

    def labels(self) -> Array:
        """Give the category that each column stands for, before any is dropped."""
        if not self.has_rare:
            return self.values
        shared = np.array([INFREQUENT], dtype=object)
        return np.concatenate([self.values[~self.rare].astype(object), shared])

    def kept_labels(self) -> Array:
        """Give the category that each column stands for."""
        return self.labels() if self.dropped is None else np.delete(self.labels(), self.dropped)


@dataclass(frozen=True, eq=False)
class OneHotColumns:
    """Columns of all keys, side by side.

    Parameters
    ----------
    statistic : OneHot
        The user's rules at fit.
    drops : bool
        Whether the user asked to drop a category of any key.
    """

    by_key: list[KeyColumns]
    statistic: OneHot
    drops: bool

    @classmethod
    def of(cls, model: Model) -> "OneHotColumns":
        """Compute the columns from a model's counts; raise ValueError if the policies or `drop` do not fit these."""
        statistic = model.rules[0].statistic
        assert isinstance(statistic, OneHot)
        drops = drops_of(model)
        by_key = [
            columns_of_key(key, per_target[0], label, statistic)
            for key, per_target, label in zip(model.keys, model.statistics, labels_of(model), strict=True)
        ]
        dropped = dropped_columns(by_key, model.keys, drops)
        by_key = [replace(of_key, dropped=column) for of_key, column in zip(by_key, dropped, strict=True)]
        return cls(by_key, statistic, any(drop is not None for drop in drops))

    @property
    def starts(self) -> list[int]:
        """First column of each key, and last the number of all columns."""
        return [int(start) for start in np.cumsum([0, *(of_key.width for of_key in self.by_key)])]

    @property
    def n_columns(self) -> int:
        """Number of all columns."""
        return self.starts[-1]

    def table(self, number: int, n_categories: int, dtype: Any) -> Codes:
        """Give the column for each code, counted among all columns: `ZERO` for none, UNKNOWN for no category."""
        of_key, start = self.by_key[number], self.starts[number]
        table = np.full(n_categories + 2, UNKNOWN, dtype)
        table[of_key.rows] = np.where(of_key.columns < 0, ZERO, of_key.columns + start)
        if self.statistic.handle_missing == "zero":
            table[MISSING] = ZERO
        return table

    def column_of_unknown(self, number: int) -> int:
        """Give the column of a value that is no category; `ZERO` if it has none."""
        of_key = self.by_key[number]
        if not (self.statistic.unknown_is_infrequent and of_key.has_rare):
            return ZERO
        column = int(of_key.columns[np.flatnonzero(of_key.rare)[0]])
        return ZERO if column < 0 else column + self.starts[number]

    def names(self, inputs: list[str], combine: Callable[[str, Any], str]) -> list[str]:
        """Name all columns; `inputs` are the names of the keys."""
        return [
            combine(name, value)
            for name, of_key in zip(inputs, self.by_key, strict=True)
            for value in of_key.kept_labels()
        ]


def labels_of(model: Model) -> list[Any]:
    """Give the name of each key in messages: that of its column of X; a tuple of names for a joint key."""
    names: list[Any] = [*(model.feature_names or range(model.n_features))]
    members = [tuple(names[position] for position in spec.members) for spec in model.selection.entries]
    return [labels[0] if len(labels) == 1 else labels for labels in members]


def weights_of(statistics: CategorySums) -> tuple[Floats, float]:
    """Give the summed weight of each category, unknown and missing values last, and that of all rows."""
    backend, accumulators = host(len(statistics.accumulators)), statistics.accumulators[:, 0]
    all_rows = statistics.totals(backend).accumulators[0, 0]
    weights, total = (Moments.of(backend, sums, statistics.spec).n for sums in (accumulators, all_rows))
    return weights[:, 0], float(total[0])


def columns_of_key(key: CategoryIndex, statistics: CategorySums, label: Any, statistic: OneHot) -> KeyColumns:
    """Give each category of one key its column."""
    weights, total = weights_of(statistics)
    if statistic.handle_missing == "error" and weights[MISSING] > 0:
        raise ValueError(
            f'Column {label!r} holds missing values. Fill them, or choose handle_missing="category" or "zero".'
        )
    if key.given and statistic.handle_unknown == "error" and weights[UNKNOWN] > 0:
        raise ValueError(
            f"Found unknown categories in column {label!r} during fit. Add them to categories, or choose "
            'handle_unknown="ignore" or "infrequent_if_exist".'
        )
    values, rows = categories_as_numpy(key), np.arange(key.n_categories)
    rows = np.append(rows, len(weights) + MISSING) if key.has_missing else rows
    # Rows of weight zero do not count: a value that only they have is no category, unless the user listed it.
    counted = np.full(len(rows), True) if key.given else weights[rows] > 0
    if statistic.handle_missing != "category" and key.has_missing:
        counted[-1] = False
    rows, values = rows[counted], values[counted]
    rare = find_infrequent(weights[rows], total, statistic.min_frequency, statistic.max_categories)
    all_columns = np.where(rare, len(rare) - int(rare.sum()), np.cumsum(~rare) - 1)
    return KeyColumns(label, rows, values, rare, all_columns)


def drops_of(model: Model) -> list[Any]:
    """Give the `drop` of each key: None, the name of a rule, or a tuple of one category."""
    drops = [cast(OneHot, rule.statistic).drop for rule in model.rules]
    if not isinstance(listed := drops[0], list):
        return drops
    if len(listed) != len(model.keys):
        raise ValueError(
            f"`drop` should have length equal to the number of features ({len(model.keys)}), got {len(listed)}. "
            "Give one category per encoded column."
        )
    return [(category,) for category in listed]


def dropped_columns(by_key: list[KeyColumns], keys: list[CategoryIndex], drops: list[Any]) -> list[int | None]:
    """Find the column that each key drops."""
    columns: list[int | None] = []
    absent = []
    for of_key, key, drop in zip(by_key, keys, drops, strict=True):
        if not isinstance(drop, tuple):
            drops_first = {"first": of_key.full_width > 0, "if_binary": of_key.full_width == 2}
            columns.append(0 if drops_first.get(drop) else None)
            continue
        [value] = drop
        position = np.flatnonzero(of_key.rows == row_of(key, value))
        if not len(position):
            absent.append((of_key.label, value, other_kind(key, value)))
        elif of_key.rare[position[0]]:
            raise ValueError(
                f"Unable to drop category {value!r} from feature {of_key.label!r} because it is infrequent. Drop a "
                "frequent one, or none."
            )
        else:
            columns.append(int(of_key.all_columns[position[0]]))
    if absent:
        raise _drops_not_found(absent)
    return columns


def _drops_not_found(absent: Sequence[tuple[object, object, str | None]]) -> ValueError:
    """Error, in scikit-learn's words, for values to drop that are no categories; a value of another kind is named."""
    listed = "\n".join(
        f"Category: {value!r}, Feature: {column!r}{f', which holds {kind} values' if kind else ''}"
        for column, value, kind in absent
    )
    return ValueError(
        f"The following categories were supposed to be dropped, but were not found in the training data.\n{listed}"
    )


def row_of(key: CategoryIndex, value: Any) -> int:
    """Give the row of a value in the table of a key's codes; UNKNOWN if it is no category."""
    if key.tuples is None:
        position = position_of(key.vocabularies[0], value)
        return key.n_categories + 1 if position == MISSING else position
    if not isinstance(value, tuple) or len(value) != len(key.vocabularies):
        return UNKNOWN
    positions = [position_of(*pair) for pair in zip(key.vocabularies, value, strict=True)]
    rows = np.flatnonzero((key.tuples.members == np.array(positions)).all(axis=1))
    return int(rows[0]) if len(rows) else UNKNOWN


def position_of(vocabulary: Vocabulary, value: Any) -> int:
    """Give the index of a value in a vocabulary: MISSING for a null, UNKNOWN for a value that the vocabulary lacks."""
    if is_null(value):
        return MISSING
    wanted, _ = Vocabulary.from_values([value], None)
    if wanted.values.title != vocabulary.values.title:
        return UNKNOWN
    return int(vocabulary.positions(wanted, None)[0])


def other_kind(key: CategoryIndex, value: Any) -> str | None:
    """Name the kind of a column's values if `value` is of another kind."""
    if key.tuples is not None or is_null(value):
        return None
    held = key.vocabularies[0].values.title
    return None if Vocabulary.from_values([value], None)[0].values.title == held else held


def combiner(given: Any) -> Callable[[str, Any], str]:
    """Give the function that names an output column by its column of X and its category."""
    if not callable(given):
        return concatenated
    if not isinstance(name := given("feature", "category"), str):
        raise TypeError(
            f"When `feature_name_combiner` is a callable, it should return a Python string. Got {type(name)} instead."
        )
    return cast(Callable[[str, Any], str], given)


def concatenated(name: str, category: Any) -> str:
    """Join the name of a key and a category by "_"; the values of a joint key are first joined by "_x_"."""
    shown = "_x_".join(map(str, category)) if isinstance(category, tuple) else str(category)
    return f"{name}_{shown}"
