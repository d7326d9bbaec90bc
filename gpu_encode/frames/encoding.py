"""Rows to codes and distinct values: per row one dictionary and one take; only distinct values are ever sorted."""

from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.types import MISSING, Array, Layout, Rows
from gpu_encode.categories import objects as python_values
from gpu_encode.categories import strings
from gpu_encode.categories import values as typed
from gpu_encode.categories.values import NOT_A_TIME, Values
from gpu_encode.categories.vocabulary import FactorizedColumn, Vocabulary
from gpu_encode.errors.tables import check_real
from gpu_encode.errors.values import broken_text, unsupported_type
from gpu_encode.frames import columns
from gpu_encode.frames.columns import Column
from gpu_encode.frames.dictionaries import Encoded, Place, encode_objects, texts_of_objects
from gpu_encode.frames.numbers import are_numbers_of, is_number, present_numbers, to_numpy
from gpu_encode.ops import Ops


def keys(column: Column, name: object, ops: Ops) -> FactorizedColumn:
    """Codes and sorted vocabulary of a column."""
    encoded = encode(column, Place(name, int), ops)
    if encoded.is_sorted:
        return FactorizedColumn(encoded.through(None, ops), Vocabulary(encoded.values), encoded.complete)
    vocabulary, places = Vocabulary.sorted_from(encoded.values)
    return FactorizedColumn(encoded.through(places, ops), vocabulary, encoded.complete)


def empty_vocabulary(column: Column, name: object, ops: Ops) -> Vocabulary | None:
    """Vocabulary of no rows of a column; None where its type does not say what kind its values are."""
    data = column.data
    if column.codes is not None:
        return None
    if isinstance(data, np.ndarray):
        # Floats may be infinite, which is refused, and objects anything.
        is_told = data.dtype.kind in "iu"
    else:
        is_told = typed.is_text(data.type) or typed.is_binary(data.type) or pa.types.is_integer(data.type)
    return keys(Column(data[:0]), name, ops).vocabulary if is_told else None


def lookup(column: Column, name: object, vocabulary: Vocabulary, ops: Ops) -> Array:
    """Position in a vocabulary of each row (int32): -1 for null, -2 where it is absent."""
    if (found := _lookup_numbers(column, name, vocabulary, ops)) is not None:
        return found
    if (found := _lookup_texts(column, vocabulary, ops)) is not None:
        return found
    encoded = encode(column, Place(name, int), ops)
    return encoded.through(vocabulary.positions(encoded.values, name), ops)


def _lookup_texts(column: Column, vocabulary: Vocabulary, ops: Ops) -> Array | None:
    """Look text or bytes up without a dictionary, if both sides are of one kind and there are rows enough."""
    if column.codes is not None or vocabulary.kind not in ("text", "bytes"):
        return None
    array = _arrow_texts(column, ops)
    if array is None or vocabulary.values.array.type != strings.large(array.type):
        return None
    return vocabulary.places_of(array, ops)


def _lookup_numbers(column: Column, name: object, vocabulary: Vocabulary, ops: Ops) -> Array | None:
    """Look numbers up without a dictionary of their own, if both sides are of one type and there are rows enough."""
    if not are_numbers_of(column, vocabulary):
        return None
    present, nulls = present_numbers(column, Place(name, int))
    return _spread(ops.lookup(typed.number_storage(present, name), vocabulary.values.array), nulls)


def is_moment(column: Column) -> bool:
    """Whether a column holds dates, times or durations in a type of their own."""
    if isinstance(column.data, np.ndarray):
        return column.data.dtype.kind in "Mm"
    return bool(pa.types.is_temporal(column.data.type))


def encode(column: Column, place: Place, ops: Ops) -> Encoded:
    """Find the dictionary of a column."""
    if column.codes is not None:
        return _encode_dictionary(column, column.codes, place, ops)
    if is_number(column.data):
        return _encode_numbers(column, place, ops)
    if not isinstance(column.data, np.ndarray):
        return _encode_arrow(column.data, place, ops)
    kind = column.data.dtype.kind
    if kind in "Mm":
        moments, _ = typed.moment_storage(column.data, place.column)
        nulls = _either(moments == NOT_A_TIME, column.nulls)
        read = typed.from_numpy(column.data[:0], place.column)
        return _encode_moments(moments if nulls is None else moments[~nulls], nulls, read, ops)
    if kind in "US":
        return _encode_fixed_width(column, place, ops)
    if kind == "O":
        found = _arrow_texts(column, ops)
        return encode_objects(column, place) if found is None else _encode_arrow(found, place, ops)
    check_real(place.column, column.data)
    raise unsupported_type(place.column, str(column.data.dtype))


def _arrow_texts(column: Column, ops: Ops) -> Any:
    """Text or bytes of any library as an Arrow array, where the backend is to number them; None of anything else."""
    data = column.data
    if strings.backend(len(data), ops) is None:
        return None
    if not isinstance(data, np.ndarray):
        return data if typed.is_text(data.type) or typed.is_binary(data.type) else None
    return texts_of_objects(column) if data.dtype.kind == "O" else None


def _encode_fixed_width(column: Column, place: Place, ops: Ops) -> Encoded:
    """Find the dictionary of NumPy's text as it lies in memory, or as Arrow's."""
    if (found := strings.factorize_fixed(column.data, column.nulls, ops)) is None:
        return _encode_arrow(_arrow_text(column, place), place, ops)
    codes, distinct = found
    return Encoded(codes, typed.from_arrow(_arrow_text(Column(distinct), place)))


def _arrow_text(column: Column, place: Place) -> Any:
    """Fixed-width text of NumPy as an Arrow array."""
    try:
        return pa.array(column.data, mask=column.nulls)
    except UnicodeDecodeError:
        raise broken_text(place.column) from None


def _either(first: Array, second: Array | None) -> Array | None:
    both = first if second is None else first | second
    return both if both.any() else None


def _spread(codes: Array, nulls: Array | None) -> Array:
    """Codes of the rows that are not null, put in their rows."""
    if nulls is None:
        return codes
    spread = np.full(len(nulls), MISSING, np.int32)
    spread[~nulls] = codes
    return spread


def _encode_numbers(column: Column, place: Place, ops: Ops) -> Encoded:
    present, nulls = present_numbers(column, place)
    if present.dtype.kind == "b":
        # Without False, True is the only value and has code 0.
        seen = np.array([False, True])[[bool(len(present)) and not present.all(), bool(present.any())]]
        codes = present.astype(np.int32) - np.int32(0 if len(seen) and not seen[0] else 1)
        return Encoded(_spread(codes, nulls), Values("number", seen, "bool"), is_sorted=True)
    codes, distinct = ops.factorize(typed.number_storage(present, place.column))
    read = Values("number", distinct, typed.numpy_name(present.dtype))
    return Encoded(_spread(codes, nulls), read, is_sorted=True, complete=nulls is None)


def _encode_moments(present: Array, nulls: Array | None, read: Values, ops: Ops) -> Encoded:
    codes, distinct = ops.factorize(present)
    found = Values(read.kind, distinct, read.dtype, read.unit, read.timezone)
    return Encoded(_spread(codes, nulls), found, is_sorted=True)


def _encode_arrow(array: Any, place: Place, ops: Ops) -> Encoded:
    type_ = array.type
    if pa.types.is_null(type_):
        return Encoded(np.full(len(array), MISSING, np.int32), typed.nothing(), is_sorted=True)
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
        present, read = typed.arrow_moments(array.drop_null() if array.null_count else array)
        return _encode_moments(present, nulls, read, ops)
    if not (typed.is_text(type_) or typed.is_binary(type_) or pa.types.is_decimal(type_)):
        raise unsupported_type(place.column, str(type_))
    if not pa.types.is_decimal(type_) and (found := strings.factorize(array, ops)) is not None:
        return Encoded(found[0], typed.from_arrow(found[1]), is_sorted=True, complete=not array.null_count)
    codes, entries = columns.dictionary_parts(array.dictionary_encode())
    return Encoded(codes, typed.from_arrow(entries))


def _encode_dictionary(column: Column, codes: Array, place: Place, ops: Ops) -> Encoded:
    """Tidy the dictionary of a column that has one: unused entries are dropped, repeated ones merged."""
    counts = ops.accumulate(Rows(codes), len(column.data), None, 1, 1, Layout())
    kept = np.flatnonzero(counts[: len(column.data), 0, 0, 0])
    data, nulls = column.data, column.nulls
    if len(kept) < len(data):
        data = data[kept] if isinstance(data, np.ndarray) else data.take(pa.array(kept))
        nulls = None if nulls is None else nulls[kept]
    inner = Place(place.column, lambda index: place.row(int((codes == kept[index]).argmax())))
    entries = _as_they_are(data) or encode(Column(data, nulls), inner, ops)
    table = np.full(len(column.data) + 1, MISSING, np.int32)
    table[kept] = entries.through(None, ops)
    return Encoded(codes, entries.values, table, entries.is_sorted)


def _as_they_are(data: Any) -> Encoded | None:
    """Text that is sorted already, as categories often are; None of anything else."""
    if isinstance(data, np.ndarray) or not typed.is_text(data.type) or data.null_count:
        return None
    # The first of them tell it of most that are not.
    if not all(typed.from_arrow(part).is_sorted for part in (data[:100], data)):
        return None
    found = data.combine_chunks() if isinstance(data, pa.ChunkedArray) else data
    return Encoded(np.arange(len(data), dtype=np.int32), typed.from_arrow(found), is_sorted=True)


def plain(column: Column) -> tuple[Array, Array]:
    """Plain values of a column and which rows are null: numbers, moments as int64, everything else as objects.

    A null is NaN among floats, None among objects, and 0 elsewhere.
    """
    if column.codes is not None:
        return _plain_dictionary(column, column.codes)
    data = column.data
    if not isinstance(data, np.ndarray):
        return _plain_arrow(data)
    nulls = np.zeros(len(data), bool) if column.nulls is None else column.nulls
    kind = data.dtype.kind
    if kind in "Mm":
        moments, _ = typed.moment_storage(data, None)
        nulls = nulls | (moments == NOT_A_TIME)
        return np.where(nulls, 0, moments), nulls
    if kind == "f":
        return (np.where(nulls, np.nan, data) if nulls.any() else data), nulls | np.isnan(data)
    if kind in "biu":
        return (np.where(nulls, 0, data).astype(data.dtype) if nulls.any() else data), nulls
    objects = data.astype(object)
    nulls = nulls | np.fromiter(map(python_values.is_null, objects), bool, len(objects))
    objects[nulls] = None
    return objects, nulls


def _plain_arrow(data: Any) -> tuple[Array, Array]:
    nulls = data.is_null().to_numpy(zero_copy_only=False)
    if is_number(data) or (pa.types.is_temporal(data.type) and not pa.types.is_interval(data.type)):
        present = data.drop_null()
        found = to_numpy(present) if is_number(data) else typed.arrow_moments(present)[0]
        if nulls.any():
            spread = np.full(len(nulls), np.nan if found.dtype.kind == "f" else 0, found.dtype)
            spread[~nulls] = found
            found = spread
        return found, nulls | np.isnan(found) if found.dtype.kind == "f" else nulls
    objects = np.empty(len(data), object)
    objects[:] = data.to_pylist()
    return objects, nulls


def _plain_dictionary(column: Column, codes: Array) -> tuple[Array, Array]:
    entries, nulls = plain(Column(column.data, column.nulls))
    if not len(entries):
        found = np.full(len(codes), None, object)
        return found, np.ones(len(codes), bool)
    missing = (codes < 0) | nulls[codes]
    found = entries[codes]
    if missing.any():
        found[missing] = np.nan if found.dtype.kind == "f" else None if found.dtype.kind == "O" else 0
    return found, missing
