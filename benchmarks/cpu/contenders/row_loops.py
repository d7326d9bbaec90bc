"""Bare float loops that encode every row by itself: keys are indices of a table, and nothing is checked."""

from typing import Any

import numba
import numpy as np

compiled: Any = numba.njit(nogil=True, cache=True, boundscheck=False, error_model="numpy")
STEPS, EIGHTHS = 4096, 8


@compiled
def estimate(n, s, q, n_all, s_all, q_all, smooth):
    """Give an m-estimate, or empirical Bayes if `smooth` is negative."""
    prior = s_all / n_all
    if smooth >= 0.0:
        return (s + smooth * prior) / (n + smooth)
    if n == 0.0:
        return prior
    mean = s / n
    variance, own = q / n - mean * mean, n * (q_all / n_all - prior * prior)
    return (own * mean + variance * prior) / (own + variance)


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
    n_all, s_all, q_all = total
    for row in range(start, stop):
        i = np.uint64(row)
        code, value = np.uint64(codes[i]), target[i]
        n, s, q = cells[code, 0] - 1.0, cells[code, 1] - value, cells[code, 2] - value * value
        out[i] = estimate(n, s, q, n_all, s_all, q_all, smooth)


@compiled
def encode_in_order(codes, target, cells, total, smooth, window, out):
    """Encode by the earlier rows; with a window above 0, by at most so many rows of any category."""
    n_all, s_all, q_all = total
    for row in range(len(codes)):
        i = np.uint64(row)
        code, value = np.uint64(codes[i]), target[i]
        if window > 0 and row > window:
            j = np.uint64(row - window - 1)
            gone, left = np.uint64(codes[j]), target[j]
            cells[gone, 0] -= 1.0
            cells[gone, 1] -= left
            cells[gone, 2] -= left * left
        out[i] = estimate(cells[code, 0], cells[code, 1], cells[code, 2], n_all, s_all, q_all, smooth)
        cells[code, 0] += 1.0
        cells[code, 1] += value
        cells[code, 2] += value * value


@compiled
def encode_with_decay(codes, target, cells, total, smooth, half_life, out):
    """Encode by the earlier rows, whose weight halves in so many rows, by steps of eighths."""
    n_all, s_all, q_all = total
    last, factors = np.zeros(len(cells), np.int64), 2.0 ** (-np.arange(STEPS) / EIGHTHS)
    for row in range(len(codes)):
        i, now = np.uint64(row), EIGHTHS * row // half_life
        code, value = np.uint64(codes[i]), target[i]
        factor, last[code] = factors[np.uint64(min(now - last[code], STEPS - 1))], now
        n, s, q = cells[code, 0] * factor, cells[code, 1] * factor, cells[code, 2] * factor
        out[i] = estimate(n, s, q, n_all, s_all, q_all, smooth)
        cells[code, 0], cells[code, 1], cells[code, 2] = n + 1.0, s + value, q + value * value
