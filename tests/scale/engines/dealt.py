"""An engine in this process, that deals rows out anew in each pass."""

import pickle
from itertools import pairwise

import numpy as np
import pyarrow as pa

from gpu_encode.scale.engines import calls
from gpu_encode.scale.engines.places import PlaceShuffle
from tests.scale.engines.rows import rows


class Dealt:
    """Rows that each pass finds in other tables, of which some are empty, and in another order."""

    engine = "a test"

    def __init__(self, table, passes):
        self.schema, self._table, self._passes = table.schema, table, passes

    def check_repeatable(self):
        """They are the same."""

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
        places = {}
        for table in self._tables():
            for place, state in function(shared, table).items():
                places.setdefault(place, []).append(pickle.dumps(state))
        assert len(places) <= number
        return Groups(places)


class Groups(Dealt):
    """What tables gave for each place."""

    def __init__(self, places):
        self._places = places

    def _tables(self):
        return [(place, list(map(pickle.loads, states))) for place, states in self._places.items()]


class Shuffle(PlaceShuffle):
    """Tables of categories in this engine."""

    def __init__(self, table, y=None, sample_weight=None, groups=None):
        super().__init__(dealt(table)[0], y, sample_weight, groups)

    def rows_of(self, table):
        return dealt(table)[0]

    def together(self, dealt, other):
        places = {place: list(states) for place, states in dealt._places.items()}
        for place, states in other._places.items():
            places.setdefault(place, []).extend(states)
        return Groups(places)

    def keep(self, lines):
        return lines


def dealt(table=None):
    """Give rows of the engine, and the list of columns that each pass reads."""
    passes = []
    return Dealt(rows() if table is None else table, passes), passes
