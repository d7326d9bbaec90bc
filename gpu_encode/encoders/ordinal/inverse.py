"""Find the values for which the codes of a fitted OrdinalEncoder stand."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats
from cpu_fallback.types import Array
from gpu_encode.fitting.model import Model
from gpu_encode.formulas.encoding_rule import EncodingRule, EncodingTable, SeenSums
from gpu_encode.formulas.ranks import Ranks, not_held
from gpu_encode.seam.ops import host
from gpu_encode.sums.category_sums import CategorySums
from gpu_encode.tables.categories.keys import CategoryIndex


@dataclass(frozen=True, eq=False)
class OrdinalInverse:
    """Encodings of one key, as new rows get them, and the value for which each encoding stands.

    Parameters
    ----------
    codes : float64 array (n_categories,)
        Codes of the first output.
    taking_part : bool array (n_categories,)
        Categories that have a rank.
    rare : bool array (n_categories,)
        Infrequent categories.
    n_codes : int
        Number of codes of categories: 0 to n_codes - 1.
    n_columns : int
        Number of columns of the output.
    beyond : float64 array
        Codes that the output's type does not hold.
    """

    key: CategoryIndex
    statistic: Ranks
    codes: Floats
    taking_part: NDArray[np.bool_]
    rare: NDArray[np.bool_]
    n_codes: int
    n_columns: int
    beyond: Floats

    @classmethod
    def of(
        cls, key: CategoryIndex, statistics: CategorySums, rule: EncodingRule, tables: list[EncodingTable]
    ) -> "OrdinalInverse":
        """Compute the encodings of a key from its sums; with blow-up columns, of the first fold's encoder."""
        statistic, number = rule.statistic, key.n_categories
        assert isinstance(statistic, Ranks)
        seen = SeenSums(statistics, None, rule, host(statistics.accumulators.size))
        weights, total = seen.moments().n[:, 0, 0], float(seen.total().n[0, 0])
        part = statistic.take_part(weights[:number] > 0)
        rare = np.zeros(number, np.bool_)
        group, rare[part] = statistic.group_infrequent(weights[:number][part], total)
        columns = sum(table.values.shape[1] * table.values.shape[2] for table in tables)
        n_codes = int(group.max(initial=-1)) + 1
        if statistic.ranks_weightless:
            left = ~part
            n_codes += int((left.any() and not rare.any()) if statistic.pools else left.sum())
            rare |= left & statistic.pools
            part = part | left
        codes = tables[0].values[:number, 0, 0]
        # After the categories come unknown values, then missing ones.
        used = [table.values[: number + 1 + key.has_missing].ravel() for table in tables]
        beyond = not_held(np.concatenate(used), np.dtype(statistic.dtype))
        return cls(key, statistic, codes, part, rare, n_codes, columns, beyond)

    @property
    def name(self) -> str:
        """Name of the output."""
        return self.key.entry.name

    def values_of(self, labels: Floats, words: Array, dtype: Any) -> Array:
        """Give the values for which encodings stand, as `dtype`; `words` are the categories, the missing value last."""
        values, left = np.empty(len(labels), dtype), np.ones(len(labels), np.bool_)
        if values.dtype == object and words.dtype.kind in "mM":
            # In an array of objects, nanoseconds would become plain integers.
            timestamps = np.empty(len(words), object)
            timestamps[:] = list(words)
            words = timestamps
        special: list[tuple[float, Any]] = []
        if self.key.has_missing:
            special.append((self.statistic.missing, words[-1]))
        if self.statistic.unknown is not None:
            special.append((self.statistic.unknown, None))
        if self.rare.any():
            special.append((self.codes[self.rare][0], "infrequent_sklearn"))
        for code, value in special:
            here = left & (np.isnan(labels) if np.isnan(code) else labels == code)
            values[here] = value
            left &= ~here
        kept = np.flatnonzero(self.taking_part)
        category_of = np.full(self.n_codes, -1, np.int64)
        category_of[self.codes[kept].astype(np.int64)] = kept
        # This is true for infinity and NaN, too.
        wrong = left & ~((labels >= 0) & (labels < self.n_codes) & (labels == np.floor(labels)))
        if wrong.any():
            raise ValueError(
                f"X holds {labels[wrong][0]} for column {self.name!r}, whose codes are 0 to {self.n_codes - 1}. Give "
                "codes as transform gives them."
            )
        values[left] = words[category_of[labels[left].astype(np.int64)]]
        return values


def inverses_of(model: Model) -> list[OrdinalInverse]:
    """Give the inverse for every key, by its first target."""
    return [
        OrdinalInverse.of(key, statistics[0], rule, tables)
        for key, statistics, rule, tables in zip(model.keys, model.statistics, model.rules, model.tables, strict=True)
    ]
