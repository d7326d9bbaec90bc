"""The place of a category among all others, in one of several orders."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.exact import Floats, Integers, Limbs, quotient
from cpu_fallback.row_numbers import Permutation, key_of, places_of
from gpu_encode.errors.parameters import bad_option, check_count, check_option
from gpu_encode.formulas.infrequent import check_rule, infrequent
from gpu_encode.formulas.statistic import Needs, Statistic
from gpu_encode.sums.moments import Moments

if TYPE_CHECKING:
    from gpu_encode.ops import Ops

ORDERS = ("value", "frequency", "target", "random")
# Beside those of the schemes: draws of one seed have nothing to do with its folds.
PURPOSE = 5
NAN = float("nan")


class Ranks(Statistic):
    """Place of a category among those with visible rows, or among all that were listed.

    Infrequent categories are one category together: the last by value, elsewhere with their summed weight and their
    pooled mean.

    Parameters
    ----------
    order : {"value", "frequency", "target", "random"}, default="value"
        As the categories stand; the heaviest first; by rising mean of the target; or drawn.  Ties as they stand.
    n_draws : int, default=1
        Columns of codes, each of another draw.
    seed : int, default=0
    unknown : float, optional
        Code of what no visible row has.  Unless given, categories without weight stand behind all others, together
        if there may be infrequent ones; by the target, where the mean of all visible rows would.
    missing : float, default=nan
        Code of missing values.
    min_frequency : int or float, optional
    max_categories : int, optional
        As in `gpu_encode.formulas.infrequent`.
    listed : bool, default=False
        Whether all categories have a place, with rows or without; by the target only those with rows have.
    dtype : str, default="float64"
        Type of the output, of floats or integers.
    place : int, default=0
        Place of the column among those that are encoded: each has draws of its own.
    """

    @property
    def needs(self) -> Needs:
        """What is asked of the sums and of the target."""
        return Needs(table=True)

    def __init__(
        self,
        order: str = "value",
        n_draws: int = 1,
        seed: int = 0,
        unknown: float | None = None,
        missing: float = NAN,
        min_frequency: Any = None,
        max_categories: int | None = None,
        listed: bool = False,
        dtype: str = "float64",
        place: int = 0,
    ) -> None:
        self.order = order
        self.n_draws = n_draws
        self.seed = seed
        self.unknown = unknown
        self.missing = missing
        self.min_frequency = min_frequency
        self.max_categories = max_categories
        self.listed = listed
        self.dtype = dtype
        self.place = place

    @property
    def asked(self) -> str:
        """What the user asked for."""
        return f"order={self.order!r}"

    def check(self) -> None:
        """Raise ValueError for an unknown order, a type that is none of numbers, and numbers out of range."""
        owner = "OrdinalEncoder"
        check_option(owner, "order", self.order, ORDERS)
        type_of_codes(self.dtype)
        check_count(owner, "n_draws", self.n_draws, low=1)
        if self.n_draws > 1 and self.order != "random":
            raise ValueError(
                f"order={self.order!r} gives the same codes in each of n_draws={self.n_draws}. Choose order='random'."
            )
        check_count(owner, "random_state", self.seed, low=0)
        check_rule(owner, self.min_frequency, self.max_categories)

    def of_entry(self, number: int) -> "Ranks":
        """Give the ranks of the column at a place, of which all but random ones know nothing."""
        return Ranks(**self.get_params(deep=False) | {"place": number}) if self.order == "random" else self

    def suffixes(self) -> list[str]:
        """Number the draws, where there are several."""
        return [f"_draw{draw}" for draw in range(self.n_draws)] if self.n_draws > 1 else [""]

    def n_outputs(self, n_targets: int) -> int:
        """One column a target or class, or one a draw."""
        return n_targets if self.order == "target" else self.n_draws

    def table(
        self,
        ops: "Ops",
        seen: Moments,
        counted: NDArray[np.bool_],
        total: Moments,
        of_classes: bool,  # noqa: ARG002
    ) -> tuple[Floats, Floats]:
        """Give the places of the categories that take part, and the code (rows, views, outputs) of all others."""
        n, mean, present = (ops.to_host(each) for each in (seen.n[..., 0], seen.mean, counted[..., 0]))
        all_n, all_mean = ops.to_host(total.n[..., 0]), ops.to_host(total.mean)
        by_target = self.order == "target"
        codes = np.full((*n.shape, self.n_outputs(mean.shape[-1])), NAN if self.unknown is None else self.unknown)
        for view in range(n.shape[1]):
            taking = self.take_part(present[:-2, view])
            part, left = np.flatnonzero(taking), np.flatnonzero(~taking)
            weights = n[part, view]
            group, rare = self.grouped(weights, float(all_n[view]))
            for output in range(codes.shape[2]):
                means = mean[part, view, output] if by_target else None
                keys = self.keys(weights, means, rare)
                places = self.places(keys, output)
                if by_target and self.unknown is None and all_n[view] > 0:
                    codes[:, view, output] = np.count_nonzero(keys < all_mean[view, output])
                codes[part, view, output] = places[group]
                if self.places_weightless:
                    codes[left, view, output] = self.behind(len(left), places, rare)
        # In one fold a missing value may be unseen; its code says nothing of the target, and is the same everywhere.
        if present[-1].any() or self.unknown is None:
            codes[-1] = self.missing
        placed = ops.to_device(codes)
        return placed, placed

    def take_part(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Say which categories have a place, given those with visible rows."""
        return present | (self.listed and self.order != "target")

    @property
    def pools(self) -> bool:
        """Whether infrequent categories are asked for."""
        return self.min_frequency is not None or self.max_categories is not None

    @property
    def places_weightless(self) -> bool:
        """Whether categories that take no part stand behind all others, as no value that fit has read is unknown."""
        return self.unknown is None and self.order != "target"

    def behind(self, number: int, places: Integers, rare: NDArray[np.bool_]) -> Integers:
        """Places of so many categories without weight, which change no other's: infrequent ones where there may be."""
        if not self.pools:
            return len(places) + np.arange(number)
        # Infrequent categories are told apart from the others as the last.
        return np.full(number, places[-1] if rare.any() else len(places))

    def grouped(self, weights: Floats, total: float) -> tuple[Integers, NDArray[np.bool_]]:
        """Number the categories that are told apart, the infrequent ones as the last; and say which these are.

        Parameters
        ----------
        weights : float64 array (n_categories,)
        total : float
            Weight of all rows.
        """
        rare = infrequent(weights, total, self.min_frequency, self.max_categories)
        return np.where(rare, np.count_nonzero(~rare), np.cumsum(~rare) - 1), rare

    def keys(self, weights: Floats, means: Floats | None, rare: NDArray[np.bool_]) -> Floats:
        """Give the mean, or the weight, of each category told apart: exact for the infrequent ones, then rounded."""
        kept = weights if means is None else means
        if not rare.any():
            return kept
        n, every = weights[rare][:, None], np.ones((np.count_nonzero(rare), 1), np.bool_)
        weight = Limbs.sum_of(n, where=every)
        if means is None:
            return np.append(kept[~rare], weight.rounded())
        return np.append(kept[~rare], quotient(Limbs.sum_of(n, means[rare][:, None], where=every), weight))

    def places(self, keys: Floats, draw: int) -> Integers:
        """Place of each of the categories that are told apart."""
        number = len(keys)
        if self.order == "value":
            return np.arange(number)
        if self.order == "random":
            key = key_of(key_of(int(self.seed), PURPOSE), draw + 1)
            order = Permutation(number, key_of(key, self.place) if self.place else key)
            return np.asarray(places_of(order, 0, number))
        return places_by_value(-keys if self.order == "frequency" else keys)


def places_by_value(numbers: Floats) -> Integers:
    """Place of each number, on the host, by rising value, equal ones as they stand."""
    places = np.empty(len(numbers), np.int64)
    places[np.argsort(numbers, kind="stable")] = np.arange(len(numbers))
    return places


def type_of_codes(dtype: Any) -> np.dtype[Any]:
    """Type of the output; ValueError if it is none of floats or integers."""
    try:
        found: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        found = np.dtype(object)
    if found.kind not in "iuf":
        raise bad_option("OrdinalEncoder", "dtype", dtype, ("a type of floats", "a type of integers"))
    return found


def not_held(codes: Floats, dtype: np.dtype[Any]) -> Floats:
    """Give the codes, on the host, that a type does not hold exactly; NaN is none."""
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            held = codes.astype(dtype) == codes
    else:
        held = (codes >= float(np.iinfo(dtype).min)) & (codes < float(np.iinfo(dtype).max) + 1.0)
    beyond: Floats = codes[~(held | np.isnan(codes))]
    return beyond
