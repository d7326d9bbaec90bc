"""The parameters of an encoder that hashes values; it keeps nothing about rows."""

from dataclasses import dataclass

import numpy as np

from cpu_fallback.exact import Floats
from gpu_encode.formulas.statistic import Context, Statistic
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import MOST_COLUMNS, check_count, check_option

LARGEST_SEED = (1 << 32) - 1


@dataclass(eq=False, repr=False)
class Hashes(Statistic):
    """The parameters of hashing.  Hashed values do not follow from sums, so the table of encodings holds zeros.

    Parameters
    ----------
    n_components : int, default=8
    alternate_sign : bool, default=False
    per_column : bool, default=False
    seed : int, default=0
    """

    needs = Needs(sums=False)

    n_components: int = 8
    alternate_sign: bool = False
    per_column: bool = False
    seed: int = 0

    def check(self) -> None:
        """Raise ValueError for parameters out of range."""
        owner = "HashingEncoder"
        check_count(owner, "n_components", self.n_components, low=1, high=MOST_COLUMNS)
        check_option(owner, "alternate_sign", self.alternate_sign, (True, False))
        check_option(owner, "per_column", self.per_column, (True, False))
        check_count(owner, "seed", self.seed, low=0, high=LARGEST_SEED)

    def suffixes(self) -> list[str]:
        """Number the components."""
        return [f"_{component}" for component in range(self.n_components)]

    def n_outputs(self, n_targets: int) -> int:
        """Give one column, which holds zeros."""
        return 1

    def encode(self, visible: Moments, context: Context, prior: Floats) -> Floats:
        """Give zeros: rows are hashed by their values, not by a table."""
        return np.zeros_like(visible.n)
