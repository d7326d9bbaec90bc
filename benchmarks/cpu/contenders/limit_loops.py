"""Bare loops of the limit: values to numbers, by range or by hash; numbers to sums; sums to encodings of rows."""

from typing import Any

import numba
import numpy as np

compiled: Any = numba.njit(nogil=True, cache=True, boundscheck=False)
TILE = 128
FIRST_SLOTS = 1 << 12
FIRST_FACTOR, SECOND_FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
# An unsigned index is never counted from the end, which saves a test for each index.
ONE = np.uint64(1)
BYTES_OF_WORD = 8


@compiled
def find_extremes(keys, both, start, stop):
    low = high = keys[start]
    for row in range(start, stop):
        key = keys[np.uint64(row)]
        low = min(low, key)
        high = max(high, key)
    both[0], both[1] = low, high


@compiled
def number_by_first_row(keys, low, numbers, codes):
    count = 0
    for i in range(len(keys)):
        value = np.uint64(keys[i] - low)
        code = numbers[value]
        if code == 0:
            count += 1
            code = numbers[value] = count
        codes[i] = code - 1
    return count


@compiled
def mix(word):
    word = (word ^ (word >> np.uint64(32))) * FIRST_FACTOR
    return word ^ (word >> np.uint64(29))


@compiled
def hash_text(words, start, stop):
    """Hash the bytes of a text; `words` has the eight bytes from each position on."""
    mixed = np.uint64(stop - start) * SECOND_FACTOR
    position = start
    while position < stop:
        word = words[np.uint64(position)]
        size = stop - position
        if size < BYTES_OF_WORD:
            word &= (ONE << np.uint64(8 * size)) - ONE
        mixed = (mixed ^ word) * FIRST_FACTOR
        mixed ^= mixed >> np.uint64(32)
        position += BYTES_OF_WORD
    return np.int64(mix(mixed))


@compiled
def grow(slots):
    """Give a table with four times as many slots."""
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
        key, row = keys[j], np.uint64(start + j)
        slot = spread[j] & mask
        while True:
            at = np.uint64(2 * slot)
            code = slots[at + ONE]
            if code == 0:
                count += 1
                slots[at], slots[at + ONE] = key, count
                codes[row] = count - 1
                break
            if slots[at] == key:
                codes[row] = code - 1
                break
            slot = (slot + 1) & mask
    return count


@compiled
def number_text(words, offsets, codes, start, stop):
    """Number texts in the order of their first rows; give the table, too; texts are known by 64 bits only."""
    slots, count = np.zeros(2 * FIRST_SLOTS, dtype=np.int64), 0
    keys, spread = np.empty(TILE, dtype=np.int64), np.empty(TILE, dtype=np.int64)
    for first in range(start, stop, TILE):
        n = min(TILE, stop - first)
        if 2 * (count + n) > len(slots) // 2:
            slots = grow(slots)
        for j in range(n):
            row = np.uint64(first + j)
            keys[j] = hash_text(words, offsets[row], offsets[row + ONE])
            spread[j] = np.int64(mix(np.uint64(keys[j])))
        count = insert(slots, count, keys, spread, n, codes, first)
    return slots, count


@compiled
def join_tables(slots, count, others, n_others):
    """Add the keys of a second table to the first; give the first, which may have grown, and the keys' new numbers."""
    numbers = np.empty(n_others, dtype=np.int32)
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
        numbers[number - 1] = slots[2 * slot + 1] - 1
    return slots, numbers, count


@compiled
def renumber(codes, numbers, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        codes[i] = numbers[np.uint64(codes[i])]


@compiled
def add(cells, others, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        cells[i] += others[i]


@compiled
def count_rows(codes, low, cells, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        cells[np.uint64(codes[i] - low)] += 1


@compiled
def count_classes(codes, low, labels, n_folds, n_classes, cells, start, stop):
    fold = start % n_folds
    for row in range(start, stop):
        i = np.uint64(row)
        cells[np.uint64(((codes[i] - low) * n_folds + fold) * n_classes + labels[i])] += 1
        fold += 1
        if fold == n_folds:
            fold = 0


@compiled
def sum_reals(codes, low, target, n_folds, cells, start, stop):
    fold = start % n_folds
    for row in range(start, stop):
        i = np.uint64(row)
        cell = np.uint64(2 * ((codes[i] - low) * n_folds + fold))
        cells[cell] += 1.0
        cells[cell + ONE] += target[i]
        fold += 1
        if fold == n_folds:
            fold = 0


@compiled
def encode_table(cells, n_folds, width, counted, weights, smooth, table, start, stop):
    """Encode by category and fold; a cell has the counts of the classes, or a count and a sum."""
    first, others = width - len(weights), int(n_folds > 1)
    totals = np.empty(width)
    for category in range(start, stop):
        position = category * n_folds * width
        for k in range(width):
            totals[k] = 0
            for fold in range(n_folds):
                totals[k] += cells[np.uint64(position + fold * width + k)]
        for fold in range(n_folds):
            own, count = position + fold * width, smooth
            for k in range(counted):
                count += totals[k] - others * cells[np.uint64(own + k)]
            for k in range(first, width):
                total = totals[k] - others * cells[np.uint64(own + k)]
                table[category * n_folds + fold, k - first] = (total + weights[k - first]) / count


@compiled
def gather(codes, low, table, n_folds, out, start, stop):
    fold = start % n_folds
    for row in range(start, stop):
        i = np.uint64(row)
        out[i] = table[np.uint64((codes[i] - low) * n_folds + fold)]
        fold += 1
        if fold == n_folds:
            fold = 0


@compiled
def others_table(cells, smooth, prior, table, start, stop):
    """Encode each category for rows of either label, without the row itself."""
    for category in range(start, stop):
        count, sum_ = cells[2 * category] + cells[2 * category + 1], cells[2 * category + 1]
        table[2 * category] = (sum_ + smooth * prior) / (count - 1 + smooth)
        table[2 * category + 1] = (sum_ - 1 + smooth * prior) / (count - 1 + smooth)


@compiled
def gather_others(codes, low, table, labels, out, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        out[i] = table[np.uint64(2 * (codes[i] - low) + labels[i])]


@compiled
def gather_shares(codes, low, table, n_folds, out, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        encodings = table[np.uint64((codes[i] - low) * n_folds + row % n_folds)]
        for label in range(out.shape[1]):
            out[i, label] = encodings[label]


@compiled
def encode_ordered(codes, low, labels, cells, smooth, out):
    """Encode by earlier rows of the category; the prior is the mean before a rank of nine binary digits and zeros."""
    step, end, total, share = 1, 512, 0.0, smooth * np.nan
    for i in range(len(codes)):
        if i == end:
            step, end = 2 * step, 2 * end
        if i & (step - 1) == 0 and i > 0:
            share = smooth * (total / i)
        row = np.uint64(i)
        total += labels[row]
        cell = np.uint64(2 * (codes[row] - low))
        out[row] = (cells[cell + ONE] + share) / (cells[cell] + smooth)
        cells[cell] += 1
        cells[cell + ONE] += labels[row]
