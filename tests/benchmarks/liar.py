"""A contender that gives wrong codes, and one that takes a known amount of memory, for `--also`."""

import numpy as np

from benchmarks.cpu.contenders.base import Contender, Prepared, expected_of


def prepared(rows):
    return Prepared(lambda: np.full(rows.n_rows, 0.3), expected_of(rows))


LIAR = Contender("liar", "library", prepared)

SCRATCH = 48 << 20


def hungry(rows):
    expected = expected_of(rows)
    codes = next(expected.columns(rows))
    kept = []

    def call():
        # In pieces that lie in the heap, below one that stays there: only the heap's owner can give them back.
        pieces = [bytearray(1 << 14) for _ in range(SCRATCH >> 14)]
        kept.append(bytearray(1 << 14))
        del pieces
        return codes.copy()

    return Prepared(call, expected)


HUNGRY = Contender("hungry", "library", hungry, compiles=True)


def counts(rows):
    return Prepared(lambda: np.ones(rows.n_rows), expected_of(rows))


LIAR_OF_COUNTS = Contender("liar of counts", "library", counts, ("count",))
