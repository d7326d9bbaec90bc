"""The rank of a category among all others, in one of several orders."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers, Limbs, quotient
from cpu_fallback.row_numbers import Permutation, key_of, ranks_of
from gpu_encode.formulas.infrequent import check_rule, find_infrequent
from gpu_encode.formulas.statistic import Statistic
from gpu_encode.sums.moments import Moments, Needs
from gpu_encode.words.errors.parameters import MOST_COLUMNS, bad_option, check_count, check_option

if TYPE_CHECKING:
    from gpu_encode.seam.ops import Ops

ORDERS = ("value", "frequency", "target", "random")
# Schemes have other purposes, so random orders and folds with the same seed are independent.
PURPOSE = 5
NAN = float("nan")


@dataclass(eq=False, repr=False)
class Ranks(Statistic):
    """Rank of a category among the categories with visible rows, or among all categories that were listed.

    Infrequent categories count as one category.  In the order "value" this category is the last; in the other orders it
    has the summed weight and the pooled mean of the infrequent categories.

    Parameters
    ----------
    order : {"value", "frequency", "target", "random"}, default="value"
        "value": the order of the vocabulary.  "frequency": the largest weight first.  "target": rising mean of the
        target.  "random": a random order.  Equal categories are in the order of the vocabulary.
    n_draws : int, default=1
        Number of columns, each with another random order.
    seed : int, default=0
    unknown : float, optional
        Rank of a category that no visible row has.  None: such categories come after all others, and share one rank if
        there may be infrequent ones; by the target, they get the rank that the mean of all visible rows would have.
    missing : float, default=nan
        Rank of missing values.
    max_categories : int, optional
        As in `gpu_encode.formulas.infrequent`.
    listed : bool, default=False
        Whether categories without rows have a rank, too; in the order "target", they never have a rank of their own.
    dtype : str, default="float64"
        Type of the output, of floats or integers.
    place : int, default=0
        Number of the column among the encoded columns: each column has random orders of its own.
    """

    needs = Needs(table=True)
    asked_by = "order"

    order: str = "value"
    n_draws: int = 1
    seed: int = 0
    unknown: float | None = None
    missing: float = NAN
    min_frequency: Any = None
    max_categories: int | None = None
    listed: bool = False
    dtype: str = "float64"
    place: int = 0

    def check(self) -> None:
        """Raise ValueError for an unknown order, a type that does not hold numbers, and numbers out of range."""
        owner = "OrdinalEncoder"
        check_option(owner, "order", self.order, ORDERS)
        check_dtype(self.dtype)
        check_count(owner, "n_draws", self.n_draws, low=1, high=MOST_COLUMNS)
        if self.n_draws > 1 and self.order != "random":
            raise ValueError(
                f"order={self.order!r} gives the same codes in each of n_draws={self.n_draws} draws. Choose "
                "order='random'."
            )
        check_count(owner, "random_state", self.seed, low=0)
        check_rule(owner, self.min_frequency, self.max_categories)

    def of_key(self, number: int) -> "Ranks":
        """Give the ranks of one column; all but random ones are the same for every column."""
        return Ranks(**self.get_params(deep=False) | {"place": number}) if self.order == "random" else self

    def suffixes(self) -> list[str]:
        """Number the draws, if there are several."""
        return [f"_draw{draw}" for draw in range(self.n_draws)] if self.n_draws > 1 else [""]

    def n_outputs(self, n_targets: int) -> int:
        """Count the columns: one for each target or class if the order follows from these, else one for each draw."""
        return n_targets if self.order == "target" else self.n_draws

    def encode_table(
        self, ops: "Ops", visible: Moments, counted: NDArray[np.bool_], total: Moments, of_classes: bool
    ) -> tuple[Floats, Floats]:
        """Rank the categories that take part, and give the rank of all others (rows, views, outputs)."""
        n, mean, present = map(ops.to_host, (visible.n[..., 0], visible.mean, counted[..., 0]))
        total_n, total_mean = ops.to_host(total.n[..., 0]), ops.to_host(total.mean)
        by_target = self.order == "target"
        table = np.full((*n.shape, self.n_outputs(mean.shape[-1])), NAN if self.unknown is None else self.unknown)
        for view in range(n.shape[1]):
            is_ranked = self.take_part(present[:-2, view])
            ranked, weightless = np.flatnonzero(is_ranked), np.flatnonzero(~is_ranked)
            weights = n[ranked, view]
            group, infrequent = self.group_infrequent(weights, float(total_n[view]))
            for output in range(table.shape[2]):
                means = mean[ranked, view, output] if by_target else None
                keys = self.sort_keys(weights, means, infrequent)
                ranks = self.rank(keys, output)
                if by_target and self.unknown is None and total_n[view] > 0:
                    table[:, view, output] = np.count_nonzero(keys < total_mean[view, output])
                table[ranked, view, output] = ranks[group]
                if self.ranks_weightless:
                    table[weightless, view, output] = self.rank_behind(len(weightless), ranks, infrequent)
        # A fold may see no missing value; its rank says nothing about the target, and is the same in all folds.
        if present[-1].any() or self.unknown is None:
            table[-1] = self.missing
        encodings = ops.to_device(table)
        return encodings, encodings

    def take_part(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell which categories have a rank, from a mask of the categories with visible rows."""
        return present | (self.listed and self.order != "target")

    @property
    def pools(self) -> bool:
        """Whether there may be infrequent categories."""
        return self.min_frequency is not None or self.max_categories is not None

    @property
    def ranks_weightless(self) -> bool:
        """Whether categories without visible rows rank after all others, since they are known but have no weight."""
        return self.unknown is None and self.order != "target"

    def rank_behind(self, number: int, ranks: Integers, infrequent: NDArray[np.bool_]) -> Integers:
        """Rank categories without weight after all others, or as infrequent categories if there may be any."""
        if not self.pools:
            return len(ranks) + np.arange(number)
        # The infrequent categories are the last group.
        return np.full(number, ranks[-1] if infrequent.any() else len(ranks))

    def group_infrequent(self, weights: Floats, total: float) -> tuple[Integers, NDArray[np.bool_]]:
        """Number the categories, all infrequent ones with the last number, and tell which are infrequent.

        Parameters
        ----------
        weights : float64 array (n_categories,)
        total : float
            Weight of all rows.
        """
        infrequent = find_infrequent(weights, total, self.min_frequency, self.max_categories)
        return np.where(infrequent, np.count_nonzero(~infrequent), np.cumsum(~infrequent) - 1), infrequent

    def sort_keys(self, weights: Floats, means: Floats | None, infrequent: NDArray[np.bool_]) -> Floats:
        """Give the mean or the weight of each group; that of the infrequent group is exact and then rounded."""
        keys = weights if means is None else means
        if not infrequent.any():
            return keys
        n, every = weights[infrequent][:, None], np.ones((np.count_nonzero(infrequent), 1), np.bool_)
        weight = Limbs.sum_of(n, where=every)
        key = (
            weight.to_floats()
            if means is None
            else quotient(Limbs.sum_of(n, means[infrequent][:, None], where=every), weight)
        )
        return np.append(keys[~infrequent], key)

    def rank(self, keys: Floats, draw: int) -> Integers:
        """Rank the groups."""
        number = len(keys)
        if self.order == "value":
            return np.arange(number)
        if self.order == "random":
            key = key_of(key_of(int(self.seed), PURPOSE), draw + 1)
            order = Permutation(number, key_of(key, self.place) if self.place else key)
            return np.asarray(ranks_of(order, 0, number))
        return ranks_by_value(-keys if self.order == "frequency" else keys)


def ranks_by_value(numbers: Floats) -> Integers:
    """Rank numbers on the host by rising value; equal ones keep their order."""
    ranks = np.empty(len(numbers), np.int64)
    ranks[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
    return ranks


def check_dtype(dtype: Any) -> np.dtype[Any]:
    """Give the type of the output; raise ValueError if it holds neither floats nor integers."""
    try:
        output: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        output = np.dtype(object)
    if output.kind not in "iuf":
        raise bad_option("OrdinalEncoder", "dtype", dtype, ("a type of floats", "a type of integers"))
    return output


def not_held(encodings: Floats, dtype: np.dtype[Any]) -> Floats:
    """Give the encodings, on the host, that a type does not hold exactly; NaN is left out."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            held = encodings.astype(dtype) == encodings
    else:
        held = (encodings >= float(np.iinfo(dtype).min)) & (encodings < float(np.iinfo(dtype).max) + 1.0)
    return encodings[~(held | np.isnan(encodings))]
