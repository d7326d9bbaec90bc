"""A column on the host becomes codes and distinct values: the distinct values are sorted, but never the rows."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cpu_fallback.types import MISSING, UNKNOWN, Array, Rows, SumShape
from gpu_encode.seam.ops import Ops, host, host_strings
from gpu_encode.tables.categories import intervals, objects, strings
from gpu_encode.tables.categories import values as typed
from gpu_encode.tables.categories.values import NOT_A_TIME, Values
from gpu_encode.tables.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.tables.frames import columns
from gpu_encode.tables.frames.columns import Column, is_number, to_numpy
from gpu_encode.words.errors.values import broken_text, infinite_value, unsupported_type

# Text objects of Python keep their hash.  By these hashes, they get codes in less time than Arrow takes to read them,
# if rows are few, or if text repeats often enough in a sample.
FEWEST_READ = 1 << 14
# Up to this number of rows, Python is done before Arrow has started.
FEW_ROWS = 1024
SAMPLED = 1024
REPEATED = 2
TEXT_OR_NULL = {str, np.str_, type(None), float}


class Origin(NamedTuple):
    """The column of values, and a function that gives the row of the value at an index: messages name both."""

    column: object
    row: Callable[[int], int]


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Distinct values of a column, a raw code for each row, and the index of each raw code among the values."""

    codes: Array
    values: Values
    table: Array | None = None  # index of each raw code, -1 at the end; None: the codes are the indices
    is_sorted: bool = False
    complete: bool = False  # whether it is known that no row is null

    def through(self, indices: Array | None, ops: Ops) -> Array:
        """Give the code of each row after the values have moved to `indices`."""
        # The last entry of the table is for null, whose code is -1.
        table = self.table if indices is None else np.append(indices, np.int32(MISSING)).astype(np.int32)
        if table is None:
            return self.codes
        if indices is not None and self.table is not None:
            table = table[self.table]
        if table[-1] == MISSING and np.array_equal(table[:-1], np.arange(len(table) - 1)):
            return self.codes
        codes = np.empty(len(self.codes), np.int32)
        ops.gather(table.reshape(-1, 1, 1), self.codes, None, codes.reshape(-1, 1))
        return codes


class Addresses:
    """Addresses of the objects of an array, for NumPy: the array's memory holds these addresses as numbers."""

    def __init__(self, data: Array) -> None:
        self.objects = data
        self.__array_interface__ = {
            "version": 3,
            "shape": data.shape,
            "strides": data.strides,
            "typestr": np.dtype(np.intp).str,
            "data": (data.ctypes.data, True),
        }


def share_objects(column: Column, ops: Ops) -> Column:
    """Make a dictionary of objects if each object occurs in several rows; other columns do not change.

    Addresses become codes in a fraction of the time that Python takes to hash the objects.
    """
    data = column.data
    if column.codes is not None or column.nulls is not None or len(data) < SAMPLED:
        return column
    if not isinstance(data, np.ndarray) or data.dtype.kind != "O":
        return column
    addresses = np.asarray(Addresses(data))
    sample = addresses[:: len(data) // SAMPLED]
    if len(ops.number_in_order(sample)[1]) * REPEATED > len(sample):
        return column
    # Objects are numbered in the order of rows: which of two equal objects is kept must not depend on addresses.
    codes, first = ops.number_in_order(addresses)
    return Column(data[first], codes=codes, all_used=True)


def keys(column: Column, name: object, ops: Ops) -> FactorizedColumn:
    """Give codes and sorted vocabulary of a column."""
    dictionary = factorize(share_objects(column, ops), Origin(name, int), ops)
    if dictionary.is_sorted:
        return FactorizedColumn(dictionary.through(None, ops), Vocabulary(dictionary.values), dictionary.complete)
    distinct, indices = dictionary.values.sort()
    return FactorizedColumn(dictionary.through(indices, ops), Vocabulary(distinct), dictionary.complete)


def empty_vocabulary(column: Column, name: object) -> Vocabulary | None:
    """Vocabulary of a column without rows; None if the column's type does not tell the kind of its values."""
    data = column.data
    if column.codes is not None:
        return None
    if isinstance(data, np.ndarray):
        # Floats may be infinite, which is refused, and objects may be anything.
        says_its_kind = data.dtype.kind in "iu"
    else:
        says_its_kind = typed.is_text(data.type) or typed.is_binary(data.type) or pa.types.is_integer(data.type)
    # Vocabularies lie on the host, on whatever device a call computes.
    return keys(Column(data[:0]), name, host(0)).vocabulary if says_its_kind else None


def lookup(column: Column, name: object, vocabulary: Vocabulary, ops: Ops) -> Array:
    """Give the index (int32) of each row's value in a vocabulary: -1 for null, -2 if it is absent."""
    column = share_objects(column, ops)
    if (codes := _lookup_numbers(column, name, vocabulary, ops)) is not None:
        return codes
    if (codes := _lookup_strings(column, vocabulary, ops)) is not None:
        return codes
    if (codes := _lookup_few_texts(column, vocabulary)) is not None:
        return codes
    if (codes := _lookup_objects(column, name, vocabulary, ops)) is not None:
        return codes
    dictionary = factorize(column, Origin(name, int), ops)
    return dictionary.through(vocabulary.positions(dictionary.values, name), ops)


def _lookup_few_texts(column: Column, vocabulary: Vocabulary) -> Array | None:
    """Look up few rows of text (not objects) among few categories by Python's hashes; None for anything else."""
    data, indices = column.data, vocabulary.index_of_text
    if column.codes is not None or column.nulls is not None or len(data) > FEW_ROWS or indices is None:
        return None
    if not (data.dtype.kind == "U" if isinstance(data, np.ndarray) else typed.is_text(data.type)):
        return None
    try:
        rows = data.tolist() if isinstance(data, np.ndarray) else data.to_pylist()
    except UnicodeDecodeError:  # Arrow arrays from files may hold text that is not UTF-8
        return None
    codes = [indices.get(row, UNKNOWN) if row is not None else MISSING for row in rows]
    # NumPy's text may hold characters that Arrow does not take as text; they are refused elsewhere.
    if UNKNOWN in codes and isinstance(data, np.ndarray) and not all(map(str.isascii, rows)):
        return None
    return np.array(codes, np.int32)


def _lookup_strings(column: Column, vocabulary: Vocabulary, ops: Ops) -> Array | None:
    """Look up text or bytes, or those of a dictionary, if both sides are of one kind and there are enough rows."""
    if vocabulary.kind not in ("text", "bytes"):
        return None
    if column.codes is not None:
        if isinstance(column.data, np.ndarray) or column.nulls is not None or len(column.data) > len(column.codes):
            return None
        indices = _lookup_strings(Column(column.data), vocabulary, ops)
        return None if indices is None else Dictionary(column.codes, typed.nothing()).through(indices, ops)
    array = _to_arrow_strings(column, ops)
    if array is None or vocabulary.values.array.type != strings.large(array.type):
        return None
    return vocabulary.indices_of(array, ops)


def _lookup_numbers(column: Column, name: object, vocabulary: Vocabulary, ops: Ops) -> Array | None:
    """Look up numbers without a dictionary of their own, if both sides are of one type."""
    if not are_numbers_of(column, vocabulary):
        return None
    present, nulls = present_numbers(column, Origin(name, int))
    codes = ops.lookup(typed.number_storage(present, name), vocabulary.values.array)
    return columns.spread(codes, nulls, MISSING)


def _lookup_objects(column: Column, name: object, vocabulary: Vocabulary, ops: Ops) -> Array | None:
    """Look up Python's text among few categories by the hashes that Python keeps; None for anything else."""
    data = column.data
    if column.codes is not None or column.nulls is not None or vocabulary.index_of_text is None:
        return None
    if not isinstance(data, np.ndarray) or data.dtype.kind != "O":
        return None
    rows = data.tolist()
    # Subclasses, and other objects, may define equality in their own way.
    if not {*map(type, rows)} <= TEXT_OR_NULL:
        return None
    codes = np.fromiter(map(vocabulary.index_of_text.get, rows, repeat(UNKNOWN)), np.int32, len(rows))
    others = np.flatnonzero(codes == UNKNOWN)
    if len(others):
        rest = factorize(Column(data[others]), Origin(name, lambda index: int(others[index])), ops)
        if rest.values.kind not in ("text", "null"):
            return None
        codes[others] = rest.through(vocabulary.positions(rest.values, name), ops)
    return codes


def factorize(column: Column, origin: Origin, ops: Ops) -> Dictionary:
    """Find the dictionary of a column."""
    if column.codes is not None:
        return _factorize_dictionary(column, column.codes, origin, ops)
    if is_number(column.data):
        return _factorize_numbers(column, origin, ops)
    if not isinstance(column.data, np.ndarray):
        return _factorize_arrow(column.data, origin, ops)
    kind = column.data.dtype.kind
    if kind in "Mm":
        ticks, _ = typed.timestamp_storage(column.data, origin.column)
        nulls = ticks == NOT_A_TIME if column.nulls is None else column.nulls | (ticks == NOT_A_TIME)
        read = typed.from_numpy(column.data[:0], origin.column)
        null = bool(nulls.any())
        return _factorize_timestamps(ticks[~nulls] if null else ticks, read, nulls if null else None, ops)
    if kind in "US":
        return _factorize_fixed_width(column, origin, ops)
    if kind == "O":
        array = _to_arrow_strings(column, ops)
        return _factorize_objects(column, origin) if array is None else _factorize_arrow(array, origin, ops)
    columns.check_real(origin.column, column.data)
    raise unsupported_type(origin.column, str(column.data.dtype))


def _to_arrow_strings(column: Column, ops: Ops) -> Any:
    """Give text or bytes of any library as an Arrow array, if the backend makes codes of them; otherwise None."""
    data = column.data
    if host_strings(len(data), ops) is None:
        return None
    if not isinstance(data, np.ndarray):
        return data if typed.is_text(data.type) or typed.is_binary(data.type) else None
    return _strings_of_objects(column) if data.dtype.kind == "O" else None


def _factorize_fixed_width(column: Column, origin: Origin, ops: Ops) -> Dictionary:
    """Find the dictionary of NumPy's text in its own memory, or of the same text in Arrow's."""
    backend = host_strings(len(column.data), ops)
    if backend is None or not column.data.itemsize:
        return _factorize_arrow(_fixed_width_to_arrow(column, origin), origin, ops)
    codes, distinct = strings.factorize_fixed(column.data, column.nulls, backend)
    return Dictionary(codes, typed.from_arrow(_fixed_width_to_arrow(Column(distinct), origin)))


def _fixed_width_to_arrow(column: Column, origin: Origin) -> Any:
    """Turn fixed-width NumPy text into an Arrow array."""
    try:
        return pa.array(column.data, mask=column.nulls)
    except UnicodeDecodeError:
        raise broken_text(origin.column) from None


def _factorize_numbers(column: Column, origin: Origin, ops: Ops) -> Dictionary:
    present, nulls = present_numbers(column, origin)
    if present.dtype.kind == "b":
        # If False does not occur, True is the only value and has code 0.
        seen = np.array([False, True])[[bool(len(present)) and not present.all(), bool(present.any())]]
        codes = present.astype(np.int32) - np.int32(0 if len(seen) and not seen[0] else 1)
        return Dictionary(columns.spread(codes, nulls, MISSING), Values("number", seen, "bool"), is_sorted=True)
    codes, distinct = ops.factorize(typed.number_storage(present, origin.column))
    read = Values("number", distinct, typed.numpy_name(present.dtype))
    return Dictionary(columns.spread(codes, nulls, MISSING), read, is_sorted=True, complete=nulls is None)


def _factorize_timestamps(present: Array, read: Values, nulls: Array | None, ops: Ops) -> Dictionary:
    codes, distinct = ops.factorize(present)
    values = Values(read.kind, distinct, read.dtype, read.unit, read.timezone)
    return Dictionary(columns.spread(codes, nulls, MISSING), values, is_sorted=True)


def _factorize_arrow(array: Any, origin: Origin, ops: Ops) -> Dictionary:
    type_ = array.type
    if pa.types.is_null(type_):
        return Dictionary(np.full(len(array), MISSING, np.int32), typed.nothing(), is_sorted=True)
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        present, nulls = columns.drop_nulls(array)
        return _factorize_timestamps(*typed.arrow_timestamps(present), nulls, ops)
    if getattr(type_, "extension_name", None) == "pandas.period":
        numbers, nulls = columns.drop_nulls(in_one_piece(array).storage)
        return _factorize_timestamps(to_numpy(numbers), Values("period", None, f"period[{type_.freq}]"), nulls, ops)
    if getattr(type_, "extension_name", None) == "pandas.interval":
        return _factorize_intervals(in_one_piece(array), ops)
    if not (typed.is_text(type_) or typed.is_binary(type_) or pa.types.is_decimal(type_)):
        raise unsupported_type(origin.column, str(type_))
    if not pa.types.is_decimal(type_) and (backend := host_strings(len(array), ops)) is not None:
        codes, distinct = strings.factorize(array, backend)
        return Dictionary(codes, typed.from_arrow(distinct), is_sorted=True, complete=not array.null_count)
    codes, entries = columns.dictionary_parts(array.dictionary_encode())
    return Dictionary(codes, typed.from_arrow(entries))


def in_one_piece(array: Any) -> Any:
    """Give an Arrow array of an extension type in one piece, if one array can hold it."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _factorize_intervals(array: Any, ops: Ops) -> Dictionary:
    """Find the dictionary of pandas' intervals by the dictionaries of their ends."""
    present, nulls = columns.drop_nulls(array.storage)
    left, right = ([part, *columns.dictionary_parts(part.dictionary_encode())] for part in present.flatten())
    codes, distinct = ops.factorize(left[1] * np.int64(len(right[2])) + right[1])
    ends = left[2].take(pa.array(distinct // len(right[2]))), right[2].take(pa.array(distinct % len(right[2])))
    texts, name = intervals.spell_arrow(*ends, array.type.closed)
    read = Values("interval", pa.array(texts, pa.large_string()), name)
    return Dictionary(columns.spread(codes, nulls, MISSING), read)


def _factorize_dictionary(column: Column, codes: Array, origin: Origin, ops: Ops) -> Dictionary:
    """Clean the dictionary of a column that has one: unused entries are dropped, repeated entries are merged."""
    kept = np.arange(len(column.data))
    if not column.all_used:
        kept = kept[ops.accumulate(Rows(codes), SumShape(len(kept)))[: len(kept), 0, 0, 0] != 0]
    data, nulls = column.data, column.nulls
    if len(kept) < len(data):
        data = data[kept] if isinstance(data, np.ndarray) else data.take(pa.array(kept))
        nulls = None if nulls is None else nulls[kept]
    inner = Origin(origin.column, lambda index: origin.row(int((codes == kept[index]).argmax())))
    entries = _sorted_strings(data) or factorize(Column(data, nulls), inner, ops)
    table = np.full(len(column.data) + 1, MISSING, np.int32)
    table[kept] = entries.through(None, ops)
    return Dictionary(codes, entries.values, table, entries.is_sorted)


def _sorted_strings(data: Any) -> Dictionary | None:
    """Give the dictionary of text that is already sorted, as categories often are; None for anything else."""
    if isinstance(data, np.ndarray) or not typed.is_text(data.type) or data.null_count:
        return None
    # For most arrays that are not sorted, the first hundred values show it.
    if not all(typed.from_arrow(part).is_sorted for part in (data[:100], data)):
        return None
    array = data.combine_chunks() if isinstance(data, pa.ChunkedArray) else data
    return Dictionary(np.arange(len(data), dtype=np.int32), typed.from_arrow(array), is_sorted=True)


def present_numbers(column: Column, origin: Origin) -> tuple[Array, Array | None]:
    """Give the numbers that are not null, and a mask of the null rows (None: no row is null); refuse infinity."""
    data, nulls = column.data, column.nulls
    if not isinstance(data, np.ndarray):
        present, nulls = columns.drop_nulls(data)
        data = to_numpy(present)
    elif nulls is not None:
        data = data[~nulls]
    # The smallest and the largest show NaN and infinity without a temporary array.
    if data.dtype.kind != "f" or not len(data) or (np.isfinite(data.min()) and np.isfinite(data.max())):
        return data, nulls
    if (infinite := np.isinf(data)).any():
        row = int(infinite.argmax())
        raise infinite_value(origin.column, origin.row(row if nulls is None else int(np.flatnonzero(~nulls)[row])))
    not_numbers = np.isnan(data)
    if nulls is None:
        return data[~not_numbers], not_numbers
    missing = nulls.copy()
    missing[~nulls] = not_numbers
    return data[~not_numbers], missing


def whole_numbers(column: Column, name: object) -> tuple[Array, str] | None:
    """Give whole numbers without nulls, as int64 or uint64, and their type's name; None for other columns."""
    data = column.data
    if column.codes is not None or column.nulls is not None:
        return None
    if not isinstance(data, np.ndarray):
        data = to_numpy(data) if pa.types.is_integer(data.type) and not data.null_count else None
    if data is None or data.dtype.kind not in "iu":
        return None
    return typed.number_storage(data, name), typed.numpy_name(data.dtype)


def are_numbers_of(column: Column, vocabulary: Vocabulary) -> bool:
    """Whether a column holds numbers of the type of a vocabulary."""
    fitted = vocabulary.values.array
    if vocabulary.kind != "number" or column.codes is not None:
        return False
    if fitted.dtype.kind not in "iuf" or not vocabulary.is_sorted or not is_number(column.data):
        return False
    given = column.data.dtype if isinstance(column.data, np.ndarray) else column.data.type.to_pandas_dtype()
    return bool(np.dtype(given).kind == fitted.dtype.kind)


def _strings_of_objects(column: Column) -> Any:
    """Give objects that are all text or null as an Arrow array; None if other objects occur, or few are distinct."""
    data = column.data
    if len(data) < FEWEST_READ:
        return None
    # A look at a sample avoids the attempt for most columns of other objects.
    sample = {value for value in data[:: max(len(data) // SAMPLED, 1)] if isinstance(value, str)}
    if len(sample) * REPEATED <= min(len(data), SAMPLED):
        return None
    # Subclasses may define equality in their own way.
    if any(type_ not in (str, np.str_) and issubclass(type_, str) for type_ in set(map(type, data))):
        return None
    try:
        array = pa.array(data, mask=column.nulls, from_pandas=True)
    except (pa.ArrowException, UnicodeEncodeError, TypeError, ValueError):
        return None
    return array if pa.types.is_string(array.type) or pa.types.is_large_string(array.type) else None


def _factorize_few_texts(column: Column, origin: Origin) -> Dictionary | None:
    """Find the dictionary of Python's text that takes few values and no null; None for anything else."""
    rows = column.data.tolist()
    if column.nulls is not None or not rows or type(rows[0]) is not str:
        return None
    try:
        distinct = set(rows)
    except TypeError:
        return None
    if len(distinct) > typed.FEW or {*map(type, distinct)} != {str}:
        return None
    # Python sorts texts by code points, which is the order of UTF-8, and takes less time than Arrow.
    kept = sorted(distinct)
    codes = np.fromiter(map(dict(zip(kept, range(len(kept)), strict=True)).__getitem__, rows), np.int32, len(rows))
    return Dictionary(codes, objects.from_objects(kept, origin.column), is_sorted=True, complete=True)


def _factorize_objects(column: Column, origin: Origin) -> Dictionary:
    """Find the dictionary of Python objects by their own equality, which is exact across types of numbers."""
    if (few := _factorize_few_texts(column, origin)) is not None:
        return few
    table: defaultdict[object, int] = defaultdict()
    table.default_factory = table.__len__
    try:
        codes = np.fromiter(map(table.__getitem__, column.data.tolist()), np.int32, len(column.data))
    except TypeError:
        unhashable = next(value for value in column.data if not _hashes(value))
        raise unsupported_type(origin.column, type(unhashable).__name__) from None
    if column.nulls is not None:
        codes[column.nulls] = MISSING
    used = np.zeros(len(table) + 1, bool)
    used[codes] = True
    kept = [key for key, seen in zip(table, used[:-1], strict=True) if seen and not objects.is_null(key)]
    indices = np.full(len(table) + 1, MISSING, np.int32)
    indices[[table[key] for key in kept]] = np.arange(len(kept), dtype=np.int32)
    values = objects.from_objects(kept, origin.column)
    if len(infinite := values.infinite()):
        raise infinite_value(origin.column, origin.row(int(np.isin(indices[codes], infinite).argmax())))
    return Dictionary(codes, values, indices)


def _hashes(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
