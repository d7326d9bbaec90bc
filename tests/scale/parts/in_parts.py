"""Encode rows part by part, by the steps that every engine takes."""

import itertools
import pickle
import random
from functools import reduce

from gpu_encode.scale.parts import Part, PartialSums, Profile, encode, fit, measure, plan, profile


def parts_of(X, y, sample_weight=None, groups=None, cuts=()):
    """Cut a frame, and all vectors of its rows, into parts."""
    edges = [0, *cuts, len(X)]

    def piece(rows, start, stop):
        return None if rows is None else rows.iloc[start:stop] if hasattr(rows, "iloc") else rows[start:stop]

    return [
        Part(*(piece(rows, *edge) for rows in (X, y, sample_weight, groups)), first_row=edge[0], name=f"part {number}")
        for number, edge in enumerate(itertools.pairwise(edges))
    ]


def through_pickle(value):
    return pickle.loads(pickle.dumps(value))


def in_any_order(values, neutral, seed):
    """Add up in an order and in a tree that the seed chooses."""
    values, draw = list(values), random.Random(seed)
    while len(values) > 1:
        one, other = (values.pop(draw.randrange(len(values))) for _ in range(2))
        values.append(through_pickle(one) + through_pickle(other))
    return reduce(lambda one, other: one + other, values, neutral)


def fitted_in_parts(encoder, parts, seed=0):
    """Profile, plan, measure and fit; every result is pickled on its way."""
    counted = in_any_order([profile(encoder, part) for part in parts], Profile(), seed)
    encoding_plan = through_pickle(plan(encoder, counted))
    sums = in_any_order([measure(encoding_plan, part) for part in parts], PartialSums(), seed + 1)
    return through_pickle(fit(encoder, encoding_plan, sums))


def encoded_in_parts(encoder, parts, seed=0):
    """Give the training encodings, a table per part."""
    tables = fitted_in_parts(encoder, parts, seed)
    return [encode(tables, part) for part in parts]
