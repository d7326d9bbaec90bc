"""Bare float loops that encode every row by itself: keys are indices of a table, and nothing is checked."""

from typing import Any

import numba
import numpy as np

compiled: Any = numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")
STEPS, EIGHTHS = 4096, 8


@compiled
def estimate(n, s, variance, total, smooth):
    """Give an m-estimate, or empirical Bayes if `smooth` is negative."""
    prior = total[1] / total[0]
    if smooth >= 0.0:
        return (s + smooth * prior) / (n + smooth)
    if n == 0.0:
        return prior
    own = n * total[2]
    return (own * (s / n) + variance * prior) / (own + variance)


@compiled
def spread(n, s, q):
    return q / n - (s / n) * (s / n)


@compiled
def sum_rows(codes, target, cells, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        code, value = np.uint64(codes[i]), target[i]
        cells[code, 0] += 1.0
        cells[code, 1] += value
        cells[code, 2] += value * value


@compiled
def encode_others(codes, target, cells, total, smooth, out, start, stop):
    for row in range(start, stop):
        i = np.uint64(row)
        code, value = np.uint64(codes[i]), target[i]
        n, s, q = cells[code, 0] - 1.0, cells[code, 1] - value, cells[code, 2] - value * value
        out[i] = estimate(n, s, spread(n, s, q), total, smooth)


@compiled
def encode_in_order(codes, target, cells, total, smooth, window, out):
    """Encode by the earlier rows; with a window above 0, by at most so many rows of any category."""
    for row in range(len(codes)):
        i = np.uint64(row)
        code, value = np.uint64(codes[i]), target[i]
        if window > 0 and row > window:
            j = np.uint64(row - window - 1)
            gone, left = np.uint64(codes[j]), target[j]
            cells[gone, 0] -= 1.0
            cells[gone, 1] -= left
            cells[gone, 2] -= left * left
        n, s, q = cells[code, 0], cells[code, 1], cells[code, 2]
        out[i] = estimate(n, s, spread(n, s, q), total, smooth)
        cells[code, 0] += 1.0
        cells[code, 1] += value
        cells[code, 2] += value * value


@compiled
def encode_with_decay(codes, target, cells, total, smooth, half_life, out):
    """Encode by the earlier rows, whose weight halves in so many rows, by steps of eighths."""
    last, factors = np.zeros(len(cells), np.int64), 2.0 ** (-np.arange(STEPS) / EIGHTHS)
    for row in range(len(codes)):
        i, now = np.uint64(row), EIGHTHS * row // half_life
        code, value = np.uint64(codes[i]), target[i]
        factor, last[code] = factors[np.uint64(min(now - last[code], STEPS - 1))], now
        # A mean and squares around it: of old rows, differences of sums would keep no digits.
        n, mean, squares = cells[code, 0] * factor, cells[code, 1], cells[code, 2] * factor
        out[i] = estimate(n, n * mean, squares / n, total, smooth)
        apart = value - mean
        cells[code, 0], cells[code, 1] = n + 1.0, mean + apart / (n + 1.0)
        cells[code, 2] = squares + apart * apart * (n / (n + 1.0))
