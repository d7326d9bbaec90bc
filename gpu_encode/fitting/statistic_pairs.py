"""Statistics asked for by pairs of a key and a column of values."""

from dataclasses import dataclass
from typing import Any, Self

from gpu_encode.errors.statistics import bad_pair, columns_beside_pairs, no_pairs
from gpu_encode.formulas.order_statistics import WITH_NUMBER
from gpu_encode.formulas.statistic_names import union_of


@dataclass(frozen=True)
class StatisticSpec:
    """Keys, columns of values and statistics; `pairs` has those of each key and column, where they differ."""

    columns: Any
    values: Any
    statistics: Any
    pairs: list[list[list[Any]]] | None = None

    @classmethod
    def of_pairs(cls, pairs: dict[Any, Any], columns: Any, values: Any) -> Self:
        """Take keys, columns of values and statistics as they come first.

        Raises
        ------
        ValueError
            If there is no pair, if a pair is none or has no list of statistics, or if columns are given as well.
        """
        for name, given in (("columns", columns), ("values", values)):
            if given is not None:
                raise columns_beside_pairs(name, given)
        if not pairs:
            raise no_pairs()
        for pair, statistics in pairs.items():
            if not isinstance(pair, tuple) or len(pair) != 2 or isinstance(pair[1], (tuple, list)):
                raise bad_pair(pair, statistics)
            # One statistic with its number, such as ("quantile", 0.5), is no list of two.
            alone = isinstance(statistics, tuple) and statistics[:1] in {(name,) for name in WITH_NUMBER}
            if not isinstance(statistics, (list, tuple)) or not statistics or alone:
                raise bad_pair(pair, statistics)
        keys, summed = (list(dict.fromkeys(pair[place] for pair in pairs)) for place in range(2))
        lists = [[plain_list(pairs.get((key, value), ())) for value in summed] for key in keys]
        every = union_of([own for each in lists for own in each])
        return cls(keys, summed, every, lists)


def plain_list(statistics: Any) -> list[Any]:
    """Give statistics as a list, those with a number as tuples."""
    return [tuple(each) if isinstance(each, list) else each for each in statistics]
