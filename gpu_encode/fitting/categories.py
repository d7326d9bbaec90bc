"""The codes of training rows, column by column: of categories, and of the values that a scheme reads."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import UNKNOWN, Array, UnwrittenCodes, written
from gpu_encode.fitting.columns import ColumnMap, locate, map_columns
from gpu_encode.fitting.inputs import SummedColumn
from gpu_encode.fitting.model import refuse_missing
from gpu_encode.fitting.parameters import Parameters
from gpu_encode.formulas.encoding_rule import EncodingRule
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.schemes.plans import ValueFolds
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, device_of
from gpu_encode.sums import category_sums
from gpu_encode.sums.category_sums import CategorySums, SumSpec
from gpu_encode.sums.targets import MANY_CLASSES, backend_for
from gpu_encode.tables import frames
from gpu_encode.tables.categories.keys import CategoryIndex, KeySpec
from gpu_encode.tables.categories.values import Values, number_storage
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.tables.frames import Frame, Pieces, with_piece
from gpu_encode.words.errors.tables import inconsistent_lengths, rows_have_changed
from gpu_encode.words.errors.values import RowError, missing_values, unknown_categories

# Dates, weeks, ordinal days, and times of a day.  Months end at 12, so that days that stand before them are seen.
DATE = r"-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01])([T ][0-2]\d(:[0-5]\d(:[0-6]\d([.,]\d+)?)?)?Z?)?)?"
ISO_8601 = re.compile(rf"\d{{4}}({DATE}|-W[0-5]\d(-[1-7])?|-[0-3]\d\d)?", re.ASCII)


@dataclass(frozen=True, eq=False)
class RowCategories:
    """Categories of one key, and which of them each training row has.

    Parameters
    ----------
    key : CategoryIndex
    found : int32 array (rows,) or UnwrittenCodes
        Without rows where `sums` are all that is asked for.
    sums : CategorySums, optional
        Sums that were found together with the categories.
    """

    key: CategoryIndex
    found: Array
    sums: CategorySums | None = None

    @property
    def codes(self) -> Array:
        """Category of each row, as an array."""
        return written(self.found)


def read_categories(
    parameters: Parameters,
    entries: Sequence[KeySpec],
    rules: Sequence[EncodingRule],
    columns: ColumnMap,
    ops: Ops,
    sums_alone: bool,
    summed: Sequence[SummedColumn],
    specs: Sequence[SumSpec],
) -> list[RowCategories]:
    """Find the categories of every key, or take those that the user gave.

    Parameters
    ----------
    parameters : Parameters
    entries : list of KeySpec
    rules : list of EncodingRule
        One an entry: what becomes of missing values, and of those that are not given.
    columns : ColumnMap
    ops : Ops
    sums_alone : bool
        Whether sums over all rows are all that is asked for, and no row's category.
    summed : list of SummedColumn
    specs : list of SumSpec

    Raises
    ------
    ValueError, TypeError
        For values that cannot be categories, or that the policies refuse.
    """
    statistic = parameters.statistic
    # On a GPU, which keeps the codes unwritten, they may be asked for as well.
    of_all = sums_alone or (device_of(ops) == "cuda" and parameters.leaves_one_out)
    in_one_pass = of_all and sums_find_categories(statistic, summed)
    by_type = sums_alone and not statistic.needs.sums and parameters.missing != "error"
    no_sums = None if statistic.needs.sums else CategorySums.of_nothing()
    columns = columns.remember(entries)
    read = []
    for entry, given, rule in zip(entries, given_categories(parameters.categories, entries), rules, strict=True):
        categories, missing = None, rule.missing
        if given is not None:
            categories = RowCategories(*CategoryIndex.fit_given(entry, given, columns, ops, missing == "category"))
            if rule.refuses_unknown:
                refuse_unknown(categories.codes, entry.name, columns.frame)
        elif in_one_pass:
            categories = sum_whole_numbers(entry, columns, ops, summed[0], specs[0])
        elif by_type and (key := CategoryIndex.by_type(entry, columns)) is not None:
            categories = RowCategories(key, np.zeros(0, np.int32), no_sums)
        if categories is None and device_of(ops) == "cuda":
            categories = index_whole_numbers(entry, columns, ops, no_sums)
        if categories is None:
            key, codes = CategoryIndex.fit(entry, columns, ops, missing == "category", columns.joined)
            categories = RowCategories(key, codes, no_sums)
        # A hierarchy whose rule does not fit the values is refused here, before anything is kept.
        _ = categories.key.levels
        if missing == "error" and not isinstance(categories.found, UnwrittenCodes):
            refuse_missing(categories.codes, missing, repr(entry.name), columns.frame)
        read.append(categories)
    return read


def sums_find_categories(statistic: Statistic, summed: Sequence[SummedColumn]) -> bool:
    """Whether categories may be found together with the sums over all rows, by which they are then encoded."""
    # The values of a distribution are found by the codes of rows.
    one_sum = len(summed) == 1 and not statistic.of_target(0).needs.distribution
    # Of many classes the number of categories has to be known first: sums may not fit.
    return statistic.needs.sums and one_sum and summed[0].target.n_classes <= MANY_CLASSES


def look_up_categories(
    parameters: Parameters, keys: Sequence[CategoryIndex], columns: ColumnMap, ops: Ops
) -> list[RowCategories]:
    """Look up each row's category of every key, where all rows have decided what categories there are."""
    return [RowCategories(key, look_up_known(key, columns, ops, parameters.missing)) for key in keys]


def look_up_known(key: CategoryIndex, columns: ColumnMap, ops: Ops, missing: str) -> Array:
    """Look up the category of rows whose categories are all known."""
    codes = key.lookup(columns, ops, missing == "category")
    if not key.given and len(codes) and int(codes.min()) == UNKNOWN:
        raise rows_have_changed(f"{key.entry.name!r} has values")
    return codes


def given_categories(categories: Any, entries: Sequence[KeySpec]) -> list[Any]:
    """Categories that the user gave for each key, or None."""
    if isinstance(categories, str):
        return [None] * len(entries)
    names = [given for given in categories if isinstance(given, str) and given != "auto"]
    meant = f" If these are columns, pass columns={names!r}." if names else ""
    if len(categories) != len(entries):
        raise ValueError(
            "Shape mismatch: if categories is an array, it has to be of shape (n_features,). categories has "
            f"{len(categories)} lists for {len(entries)} columns. Give one per column.{meant}"
        )
    per_entry: list[Any] = []
    for given, entry in zip(categories, entries, strict=True):
        if given is None or (isinstance(given, str) and given == "auto"):
            per_entry.append(None)
            continue
        if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
            raise ValueError(
                f"categories of {entry.name!r} must be a list of values or 'auto'. Got {given!r} instead.{meant}"
            )
        if len(entry.columns) > 1 or entry.rule is not None:
            raise ValueError(
                f"categories of {entry.name!r} cannot be given: it is a joint key or has a hierarchy. Put 'auto' in "
                "its place."
            )
        per_entry.append(given)
    return per_entry


def refuse_unknown(codes: Array, name: str, frame: Frame | Pieces) -> None:
    """Raise ValueError for training rows outside of given categories."""
    if bool((codes == UNKNOWN).any()):
        advice = '. Add them to categories (None for missing values), or choose another handle_unknown than "error".'
        raise with_piece(frame, unknown_categories(f"{name!r} during fit", np.flatnonzero(codes == UNKNOWN), advice))


def sum_whole_numbers(
    entry: KeySpec, columns: ColumnMap, ops: Ops, summed: SummedColumn, spec: SumSpec
) -> RowCategories | None:
    """Find the categories of a column of whole numbers, and their sums, in one pass; None for any other column.

    A null would be a category, or an error: columns with any are left to codes.
    """
    whole_numbers = read_whole_numbers(entry, columns, ops)
    if whole_numbers is None or category_sums.outgrow_digits(spec.layout, columns.n_rows):
        return None
    numbers, dtype = whole_numbers
    rows = summed.rows(numbers)
    backend = backend_for(ops, rows.target)
    accumulators, distinct, codes = backend.accumulate_numbers(rows, summed.target.n_classes, spec.layout)
    codes = np.zeros(0, np.int32) if codes is None else codes
    return RowCategories(key_of(entry, distinct, dtype, ops), codes, CategorySums(accumulators, spec, len(numbers)))


def index_whole_numbers(
    entry: KeySpec, columns: ColumnMap, ops: Ops, no_sums: CategorySums | None
) -> RowCategories | None:
    """Find the categories of a column of whole numbers on a GPU, where codes may stay unwritten; None for any other."""
    if columns.repeated.intersection(entry.columns):
        return None
    whole_numbers = read_whole_numbers(entry, columns, ops)
    if whole_numbers is None:
        return None
    numbers, dtype = whole_numbers
    codes, distinct = devices.cuda().index_numbers(numbers)
    return RowCategories(key_of(entry, distinct, dtype, ops), codes, no_sums)


def read_whole_numbers(entry: KeySpec, columns: ColumnMap, ops: Ops) -> tuple[Array, str] | None:
    """Give the numbers of a column of whole numbers, where `ops` computes, and the name of their type."""
    found = columns.whole_numbers(entry.columns[0]) if len(entry.columns) == 1 else None
    if found is None or isinstance(found[0], np.ndarray) != (device_of(ops) == "cpu"):
        return None
    return found


def key_of(entry: KeySpec, distinct: Array, dtype: str, ops: Ops) -> CategoryIndex:
    """Make the key whose categories are some sorted distinct numbers."""
    return CategoryIndex(
        entry, [Vocabulary(Values("number", number_storage(ops.to_host(distinct), entry.name), dtype))]
    )


def column_keys(frame: Frame | Pieces, column: Any, role: str, backend: Ops) -> FactorizedColumn:
    """Codes and vocabulary of the values that a scheme reads: a column of X by name or position, or an array."""
    if column is None:
        raise ValueError(
            "GroupKFold needs groups: name their column, GroupKFold(groups='...'), or pass fit_transform(X, y, "
            "groups=...)."
        )
    if isinstance(column, ValueFolds):
        return number_folds(frame, column, backend)
    source: Frame | Pieces
    if isinstance(column, (Frame, Pieces)):
        source, position, named = column, 0, f"The array given as {role}"
        if source.n_rows != frame.n_rows:
            raise inconsistent_lengths(role, [frame.n_rows, source.n_rows])
    elif isinstance(column, np.integer) or (isinstance(column, Hashable) and not hasattr(column, "__array__")):
        source, position, named = frame, locate(frame, column, f"The {role} column"), f"The {role} column {column!r}"
    else:
        source, position = frames.read_grouping(column, role, frame.n_rows), 0
        named = f"The array given as {role}"
    keys = source.keys(position, backend)
    if len(keys.codes) and int(keys.codes.min()) < 0:
        raise with_piece(source, missing_values(named, np.flatnonzero(keys.codes < 0), ". Fill or drop them."))
    if role == "fold numbers":
        check_fold_numbers(keys, named, source, backend)
    elif role == "mask":
        check_mask(keys, named, source, backend)
    elif role == "time" and keys.vocabulary.kind == "text":
        check_times(keys, named, source, backend)
    return keys


def number_folds(frame: Frame | Pieces, folds: ValueFolds, backend: Ops) -> FactorizedColumn:
    """Give the fold of each row by its values; a fold that no row has is among the values, too."""
    positions = tuple(locate(frame, column, "The by column") for column in folds.columns)
    key, codes = CategoryIndex.fit(KeySpec("by", positions), map_columns(frame), backend, missing_is_category=True)
    of_rows: Array = backend.to_device(folds.of_categories(key))[codes]
    return FactorizedColumn(of_rows, Vocabulary(Values("number", np.arange(folds.n_splits), "int64")), True)


def check_times(keys: FactorizedColumn, named: str, source: Frame | Pieces, backend: Ops) -> None:
    """Raise ValueError unless all texts are times as ISO 8601 writes them, in one form: only these sort as times do."""
    texts = keys.vocabulary.to_numpy()
    forms = [re.sub("[0-9]", "0", str(text)) for text in texts]
    is_iso = np.array([ISO_8601.fullmatch(str(text)) is not None for text in texts], dtype=bool)
    wrong = np.array([form != forms[0] for form in forms], dtype=bool) | ~is_iso
    if wrong.any():
        row, place = find_first(wrong, keys, backend)
        raise with_piece(
            source,
            RowError(
                f"{named} is text, which sorts as times do only where all are written one way, as ISO 8601 has it "
                "(2024-01-31, 2024-01-31T23:59:59). Row ",
                row,
                f" has {texts[place]!r}. Parse it first: "
                "pandas.to_datetime(column, format=...), or str.to_datetime(...) of polars.",
            ),
        )


def check_mask(keys: FactorizedColumn, named: str, source: Frame | Pieces, backend: Ops) -> None:
    """Raise ValueError unless all values are booleans, or 0 and 1, naming the first row of a wrong one."""
    values = keys.vocabulary.to_numpy().tolist()
    wrong = np.array([value not in (0, 1) for value in values], dtype=bool)
    if wrong.any():
        row, place = find_first(wrong, keys, backend)
        law = "must be of booleans, or 0 and 1"
        raise with_piece(source, RowError(f"{named} {law}. Row ", row, f" has {values[place]!r}."))


def check_fold_numbers(keys: FactorizedColumn, named: str, source: Frame | Pieces, backend: Ops) -> None:
    """Raise ValueError unless all values are integers of at least zero, naming the first row of a wrong one."""
    values = keys.vocabulary.to_numpy()
    if keys.vocabulary.kind == "text":
        raise with_piece(source, RowError(f"{named} must be integers. Row ", 0, f" has {values[int(keys.codes[0])]}."))
    if keys.vocabulary.kind != "number":
        raise ValueError(f"{named} must be integers of at least 0. Got {keys.vocabulary.kind} values.")
    for wrong, law in ((values != values // 1, "must be integers"), (values < 0, "must not be negative")):
        if wrong.any():
            row, place = find_first(wrong, keys, backend)
            raise with_piece(source, RowError(f"{named} {law}. Row ", row, f" has {values[place]}."))


def find_first(wrong: NDArray[np.bool_], keys: FactorizedColumn, backend: Ops) -> tuple[int, int]:
    """Give the first row whose value is wrong, and the place of that value."""
    row = int(backend.to_device(wrong)[keys.codes].argmax())
    return row, int(keys.codes[row])
