"""An engine in this process, which distributes the rows differently in each pass."""

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa

from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.buckets import BucketShuffle
from tests.scale.engines.rows import rows


class Dealt:
    """Rows that each pass finds in other tables, some of them empty, and in another order."""

    engine = "a test"

    def __init__(self, table, passes):
        self.schema, self._table, self._passes = table.schema, table, passes

    def check_repeatable(self):
        """Do nothing: the rows are the same in every pass."""

    def pick(self, names):
        return Dealt(self._table.select(names), self._passes)

    def _tables(self):
        self._passes.append(self._table.column_names)
        random = np.random.default_rng(len(self._passes))
        shuffled = self._table.take(random.permutation(len(self._table)))
        borders = [0, 0, *np.sort(random.integers(0, len(shuffled) + 1, 4)).tolist(), len(shuffled)]
        return [shuffled.slice(start, stop - start) for start, stop in pairwise(borders)]

    def add_up(self, function, shared, nothing):
        sent = pickle.dumps((function, shared))
        states = [calls.add_tables(*pickle.loads(sent), [table], nothing) for table in self._tables()]
        total = calls.add_states(states, nothing)
        if isinstance(total, Exception):
            raise total
        return total

    def map(self, function, shared):
        return pa.concat_tables([function(shared, table) for table in self._tables()], promote_options="permissive")

    def deal(self, function, shared, number):
        buckets = {}
        for table in self._tables():
            for bucket, state in function(shared, table).items():
                buckets.setdefault(bucket, []).append(pickle.dumps(state))
        assert len(buckets) <= number
        return Groups(buckets)


class Groups(Dealt):
    """The states that tables gave for each bucket."""

    def __init__(self, buckets):
        self._buckets = buckets

    def _tables(self):
        return [(bucket, list(map(pickle.loads, states))) for bucket, states in self._buckets.items()]


class Shuffle(BucketShuffle):
    """Tables of categories in this engine."""

    def __init__(self, table, y=None, sample_weight=None, groups=None):
        super().__init__(dealt(table)[0], y, sample_weight, groups)

    def rows_of(self, table):
        return dealt(table)[0]

    def together(self, dealt, other):
        buckets = {bucket: list(states) for bucket, states in dealt._buckets.items()}
        for bucket, states in other._buckets.items():
            buckets.setdefault(bucket, []).extend(states)
        return Groups(buckets)

    def keep(self, lines):
        return lines


def dealt(table=None):
    """Give rows of the engine, and the list of columns that each pass reads."""
    passes = []
    return Dealt(rows() if table is None else table, passes), passes
