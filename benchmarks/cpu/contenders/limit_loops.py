"""Bare loops of the limit, part two: numbers into sums, and sums into encodings of rows."""

import numpy as np

from benchmarks.cpu.contenders.limit_tables import compiled

# A place that is no signed number is never counted from the end, and that is a test less for each.
ONE, TWO = np.uint64(1), np.uint64(2)


@compiled
def total(target, found, part, start, stop):
    sum_ = 0.0
    for row in range(start, stop):
        i = np.uint64(row)
        sum_ += target[i]
    found[part] = sum_


@compiled
def total_of_cells(cells, found, part, start, stop):
    """Sum of targets, of cells that are pairs with it in the second place."""
    sum_ = 0.0
    for row in range(start, stop):
        i = np.uint64(row)
        sum_ += cells[TWO * i + ONE]
    found[part] = sum_


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
def encoding_of(cells, first, cell, n_folds, smooth, share, both):
    """Encoding of a row of one fold; cells are counts of 0 and 1 (`both` is 1), or counts and sums (0)."""
    own = np.uint64(cell)
    if n_folds == 1:
        return (cells[own + ONE] + share) / (cells[own] + both * cells[own + ONE] + smooth)
    count = sum_ = 0 * cells[own]
    for fold in range(n_folds):
        other = np.uint64(first + 2 * fold)
        count += cells[other] + both * cells[other + ONE]
        sum_ += cells[other + ONE]
    return (sum_ - cells[own + ONE] + share) / (count - cells[own] - both * cells[own + ONE] + smooth)


@compiled
def encode_table(cells, n_folds, smooth, prior, both, table, start, stop):
    for category in range(start, stop):
        first = 2 * category * n_folds
        for fold in range(n_folds):
            cell = first + 2 * fold
            table[category * n_folds + fold] = encoding_of(cells, first, cell, n_folds, smooth, smooth * prior, both)


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
def encode_rows(codes, low, cells, n_folds, smooth, prior, both, out, start, stop):
    fold = start % n_folds
    for row in range(start, stop):
        i = np.uint64(row)
        first = 2 * (codes[i] - low) * n_folds
        out[i] = encoding_of(cells, first, first + 2 * fold, n_folds, smooth, smooth * prior, both)
        fold += 1
        if fold == n_folds:
            fold = 0


@compiled
def others_table(cells, smooth, prior, table, start, stop):
    """Encodings of rows of either label, without the row itself."""
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
def encode_others(codes, low, cells, labels, smooth, prior, out, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        first = np.uint64(2 * (codes[i] - low))
        count = cells[first] + cells[first + ONE] - 1
        out[i] = (cells[first + ONE] - labels[i] + smooth * prior) / (count + smooth)


@compiled
def category_totals(cells, n_folds, n_classes, totals, found, part, start, stop):
    counts = np.zeros(n_classes, dtype=np.int64)
    for category in range(start, stop):
        for label in range(n_classes):
            sum_ = 0
            for fold in range(n_folds):
                sum_ += cells[(category * n_folds + fold) * n_classes + label]
            totals[category * n_classes + label] = sum_
            counts[label] += sum_
    found[part] = counts


@compiled
def row_shares(totals, cells, category, fold, n_folds, n_classes, weights, smooth, out):
    """Shares of all classes that a row of one fold sees."""
    first = (category * n_folds + fold) * n_classes
    count = 0
    for label in range(n_classes):
        seen = totals[category * n_classes + label] - cells[first + label]
        count += seen
        out[label] = seen + weights[label]
    factor = 1.0 / (count + smooth)
    for label in range(n_classes):
        out[label] *= factor


@compiled
def share_table(totals, cells, n_folds, n_classes, weights, smooth, table, start, stop):
    for category in range(start, stop):
        for fold in range(n_folds):
            out = table[category * n_folds + fold]
            row_shares(totals, cells, category, fold, n_folds, n_classes, weights, smooth, out)


@compiled
def gather_shares(codes, low, table, n_folds, out, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        found = table[np.uint64((codes[i] - low) * n_folds + row % n_folds)]
        for label in range(out.shape[1]):
            out[i, label] = found[label]


@compiled
def encode_shares(codes, low, totals, cells, n_folds, n_classes, weights, smooth, out, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        row_shares(totals, cells, codes[i] - low, row % n_folds, n_folds, n_classes, weights, smooth, out[i])


@compiled
def encode_ordered(codes, low, labels, cells, smooth, total, out, start, stop):
    """Earlier rows of the category; the prior is the mean of rows before a place of nine binary digits and zeros."""
    step, end = 1, 512
    while end <= start:
        step, end = 2 * step, 2 * end
    share = smooth * np.nan
    for i in range(start, stop):
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


@compiled
def ordered_sums(codes, low, labels, cells, start, stop):
    total = 0.0
    for row in range(start, stop):
        i = np.uint64(row)
        cell = np.uint64(2 * (codes[i] - low))
        cells[cell] += 1
        cells[cell + ONE] += labels[i]
        total += labels[i]
    return total
