"""Bare loops of the limit, part one: values into numbers, by range or by hash, nothing verified."""

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

compiled: Any = numba.njit(nogil=True, cache=True, boundscheck=False)
TILE = 128
FIRST_SLOTS = 1 << 12
ONE, TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
# From a slot's key to its number; a place that is no signed number is never counted from the end.
NEXT = np.uint64(1)
BYTE = ir.IntType(8)


def address(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Address of an item of an array, as one of bytes."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), BYTE.as_pointer())


@intrinsic
def prefetch(_: Any, array: Any, index: Any) -> tuple[Signature, Any]:
    """Ask for the cache line of an item."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = address(context, builder, signature.args[0], *arguments)
        whole = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [BYTE.as_pointer(), whole, whole, whole])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [BYTE.as_pointer()], kind)
        # For reading and writing, to be kept in all caches, of data.
        builder.call(hint, [place, whole(1), whole(3), whole(1)])
        return context.get_dummy_value()

    return types.void(array, index), generate


@intrinsic
def word_at(_: Any, data: Any, index: Any) -> tuple[Signature, Any]:
    """Eight bytes from an address that is no multiple of eight."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = address(context, builder, signature.args[0], *arguments)
        word = cgutils.pointer_add(builder, place, context.get_constant(types.intp, 0), ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return numba.uint64(data, index), generate


@compiled
def extremes(keys, found, part, start, stop):
    low = high = keys[start]
    for row in range(start, stop):
        key = keys[np.uint64(row)]
        low = min(low, key)
        high = max(high, key)
    found[2 * part], found[2 * part + 1] = low, high


@compiled
def mark(keys, low, seen, start, stop):
    for row in range(start, stop):
        seen[np.uint64(keys[np.uint64(row)] - low)] = 1


@compiled
def number_seen(seen, places):
    count = 0
    for value in range(len(seen)):
        places[value] = count
        count += seen[value]
    return count


@compiled
def number_by_first_row(keys, low, places, codes):
    count = 0
    for i in range(len(keys)):
        value = np.uint64(keys[i] - low)
        code = places[value]
        if code == 0:
            count += 1
            code = places[value] = count
        codes[i] = code - 1
    return count


@compiled
def mix(word):
    word = (word ^ (word >> np.uint64(32))) * ONE
    return word ^ (word >> np.uint64(29))


@compiled
def bytes_word(data, start, stop):
    word = np.uint64(0)
    for place in range(min(stop - start, 8)):
        word |= np.uint64(data[start + place]) << np.uint64(8 * place)
    return word


@compiled
def hash_of(data, start, stop):
    found = np.uint64(stop - start) * TWO
    place = start
    while place < stop:
        size = stop - place
        # The last bytes of all must not be read over.
        if place + 8 <= len(data):
            word = word_at(data, place)
            if size < 8:
                word &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
        else:
            word = bytes_word(data, place, stop)
        found = (found ^ word) * ONE
        found ^= found >> np.uint64(32)
        place += 8
    return mix(found)


@compiled
def grow(slots):
    """Four times as many slots."""
    larger = np.zeros(4 * len(slots), dtype=np.int64)
    mask = len(larger) // 2 - 1
    for old in range(len(slots) // 2):
        if slots[2 * old + 1] != 0:
            slot = np.int64(mix(np.uint64(slots[2 * old]))) & mask
            while larger[2 * slot + 1] != 0:
                slot = (slot + 1) & mask
            larger[2 * slot], larger[2 * slot + 1] = slots[2 * old], slots[2 * old + 1]
    return larger


@compiled
def insert(slots, count, keys, spread, n, codes, start):
    """Number a tile of keys; a slot holds a key and its number plus one."""
    mask = len(slots) // 2 - 1
    for j in range(n):
        prefetch(slots, 2 * (spread[j] & mask))
    for j in range(n):
        key, row = keys[j], np.uint64(start + j)
        slot = spread[j] & mask
        while True:
            at = np.uint64(2 * slot)
            code = slots[at + NEXT]
            if code == 0:
                count += 1
                slots[at], slots[at + NEXT] = key, count
                codes[row] = count - 1
                break
            if slots[at] == key:
                codes[row] = code - 1
                break
            slot = (slot + 1) & mask
    return count


@compiled
def mix_integers(keys, first, n, spread):
    for j in range(n):
        spread[j] = np.int64(mix(np.uint64(keys[np.uint64(first + j)])))


@compiled
def mix_text(offsets, data, first, n, keys, spread):
    """Make a tile of keys from texts, each known by 64 bits only."""
    for j in range(n):
        row = np.uint64(first + j)
        keys[j] = np.int64(hash_of(data, offsets[row], offsets[row + NEXT]))
        spread[j] = np.int64(mix(np.uint64(keys[j])))


@compiled
def number_integers(keys, codes, start, stop):
    """Numbers of int64 keys in the order of their first rows, and the table."""
    slots, count = np.zeros(2 * FIRST_SLOTS, dtype=np.int64), 0
    spread = np.empty(TILE, dtype=np.int64)
    for first in range(start, stop, TILE):
        n = min(TILE, stop - first)
        if 2 * (count + n) > len(slots) // 2:
            slots = grow(slots)
        mix_integers(keys, first, n, spread)
        count = insert(slots, count, keys[first : first + n], spread, n, codes, first)
    return slots, count


@compiled
def number_text(offsets, data, codes, start, stop):
    """The same of texts."""
    slots, count = np.zeros(2 * FIRST_SLOTS, dtype=np.int64), 0
    keys, spread = np.empty(TILE, dtype=np.int64), np.empty(TILE, dtype=np.int64)
    for first in range(start, stop, TILE):
        n = min(TILE, stop - first)
        if 2 * (count + n) > len(slots) // 2:
            slots = grow(slots)
        mix_text(offsets, data, first, n, keys, spread)
        count = insert(slots, count, keys, spread, n, codes, first)
    return slots, count


@compiled
def join_tables(slots, count, others, n_others):
    """Add the keys of a second table to a first; gives it, for it may have grown, and their numbers in it."""
    places = np.empty(n_others, dtype=np.int32)
    while 2 * (count + n_others) > len(slots) // 2:
        slots = grow(slots)
    mask = len(slots) // 2 - 1
    for other in range(len(others) // 2):
        number = others[2 * other + 1]
        if number == 0:
            continue
        key = others[2 * other]
        slot = np.int64(mix(np.uint64(key))) & mask
        while slots[2 * slot + 1] != 0 and slots[2 * slot] != key:
            slot = (slot + 1) & mask
        if slots[2 * slot + 1] == 0:
            count += 1
            slots[2 * slot], slots[2 * slot + 1] = key, count
        places[number - 1] = slots[2 * slot + 1] - 1
    return slots, places, count


@compiled
def renumber(codes, places, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        codes[i] = places[np.uint64(codes[i])]
