"""Exact sums per category that add up across parts, and the digits that hold them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.cached import cached_property
from cpu_fallback.exact import Integers, Limbs, peak, widen
from cpu_fallback.row_numbers import folds_of_block
from cpu_fallback.types import (
    CARRY_AFTER,
    UNKNOWN,
    Array,
    Folds,
    KeyCounts,
    Layout,
    Rows,
    SumShape,
    Window,
    carry,
    digit_window,
)
from gpu_encode.seam import devices
from gpu_encode.seam.ops import Ops, device_of, host
from gpu_encode.sums.targets import LABELLED, NO_TARGET, WHOLE_LIMIT, Target, backend_for, check_room

if TYPE_CHECKING:
    from gpu_encode.seam.ops import DeferredCopy
    from gpu_encode.sums.distributions import Distribution

# Sums of at most this size are added up on the host, even for a GPU: launching a kernel takes longer.
FEW_BYTES = 1 << 20
# A copy of fewer bytes is made at once.  This is an estimate: for calls on an H200, a fitted cost model gave 0.4
# milliseconds for each megabyte.
FEWEST_DEFERRED = 1 << 18
# If no sum is larger, the sum over all categories and views also fits one int64.
MOST_WHOLE = 1 << 61
# Number of categories whose digits are worked on at a time, so that a large table does not exist several times at once.
CANONICAL_ROWS = 1 << 16
# Magnitudes below this one are so far from all limits that a coarse bound is enough.
FAR_BELOW = 1 << 60


@dataclass(frozen=True)
class SumSpec:
    """The sums for a statistic: the columns that hold the digits of one sum, and which classes are outputs.

    Parameters
    ----------
    layout : Layout
        Columns of the digits of one category, view and class.
    classification : bool
        True: one count for each class, which is the sum of its 0/1 target.  False: count, sum and sum of squares.
    first_output : int
        Classes before this one have no output (1 for binary targets and for ``drop="first"``).
    """

    layout: Layout
    classification: bool
    first_output: int = 0


@dataclass(frozen=True)
class CategorySums:
    """Exact sums of rows by category, view and class.

    Parameters
    ----------
    accumulators : int64 array (n_categories + 2, views, classes, spec.layout.width)
        The digits of the sums; the last two rows are for unknown and missing values.
    added : int
        Number of rows added since the last carry.
    distribution : Distribution, optional
        The number of rows of each value in each category, if a statistic needs more than sums.
    """

    accumulators: Integers
    spec: SumSpec
    added: int = 0
    distribution: "Distribution | None" = None

    @classmethod
    def measure(cls, ops: Ops, rows: Rows, shape: tuple[int, int, int], spec: SumSpec, folds: Folds = None) -> Self:
        """Sum rows by category, fold and class; `shape` has the numbers of all three."""
        layout, n_rows, (n_categories, n_folds, n_classes) = spec.layout, len(rows), shape
        of_sums = SumShape(*shape, layout)
        # These are the bytes of the sums, and of the encodings that are made from them.
        check_room(ops, n_classes, 16 * (n_categories + 2) * n_folds * n_classes * layout.width)

        # Nearly all tables are one block, whose digits are carried only when it is saved or merged.
        if n_rows <= CARRY_AFTER:
            return cls(ops.accumulate(rows, of_sums, folds), spec, n_rows)
        accumulators: Any = None
        for start in range(0, n_rows, CARRY_AFTER):
            stop = min(start + CARRY_AFTER, n_rows)
            block, block_folds = rows.block(start, stop), folds_of_block(folds, start, stop)
            added = ops.accumulate(block, of_sums, block_folds)
            if accumulators is None:
                accumulators = added
            else:
                accumulators += added
            carry(accumulators, layout)
        return cls(accumulators, spec, 1)

    @classmethod
    def of_nothing(cls) -> Self:
        """Give the sums of no rows and no categories, for encoders that sum nothing."""
        return cls(np.zeros((2, 1, 1, 1), np.int64), SumSpec(Layout(), True, 1))

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the accumulators."""
        return self.accumulators.shape

    @property
    def n_categories(self) -> int:
        """The number of categories, without the rows for unknown and missing."""
        return self.shape[0] - 2

    @property
    def n_views(self) -> int:
        """The number of views (or folds) of each category."""
        return int(self.shape[1])

    def part(self, start: int, stop: int) -> "CategorySums":
        """Give rows [start, stop) of the table, without the distribution of values."""
        return replace(self, accumulators=self.accumulators[start:stop], distribution=None)

    def visible(self, ops: Ops, visibility: NDArray[np.int64] | None) -> "CategorySums":
        """Sum the folds f that each view sees, those with visibility[view, f] = 1, by a small exact matrix product.

        Without a matrix, each fold is a view of its own.
        """
        if visibility is None:
            return self
        values = None if self.distribution is None else self.distribution.visible(visibility)
        return replace(self, accumulators=ops.visible(self.accumulators, visibility), distribution=values)

    def sum_by_parent(self, ops: Ops, parent_of: NDArray[np.int32], n_parents: int) -> "CategorySums":
        """Sum by parent category; categories without a parent (-1) are left out; unknown and missing keep rows."""
        order = np.argsort(parent_of, kind="stable")
        ends = np.searchsorted(parent_of[order], np.arange(n_parents + 1))
        # Integers wrap around, so differences of running sums are exact, however large the running sums are.
        running = np.zeros_like(self.accumulators, shape=(len(order) + 1, *self.accumulators.shape[1:]))
        running[1:] = self.accumulators[ops.to_device(order)]
        running = np.cumsum(running, axis=0)[ops.to_device(ends)]
        accumulators = np.concatenate([running[1:] - running[:-1], self.accumulators[-2:]])
        return replace(self, accumulators=accumulators, distribution=None)

    def on_host(self, ops: Ops) -> "CategorySums":
        """Give the same sums in the host's memory, where models are kept."""
        return replace(self, accumulators=ops.to_host(self.accumulators))

    def kept(self, ops: Ops) -> "CategorySums":
        """Give the same sums for a model, on the host; if there are many, a GPU copies them when they are needed."""
        digits = self.accumulators
        many = not isinstance(digits, np.ndarray) and digits.nbytes >= FEWEST_DEFERRED
        if many and device_of(ops) == "cuda":
            return DeferredSums.of(self)
        return self if isinstance(digits, np.ndarray) else self.on_host(ops)

    def few_on_host(self, ops: Ops) -> "tuple[CategorySums, Ops]":
        """Give the same sums and the backend that adds them up; if they are few, they move from a GPU to the host."""
        if device_of(ops) == "cpu" or self.accumulators.nbytes > FEW_BYTES:
            return self, ops
        return self.on_host(ops), host(0)

    def to_device(self, ops: Ops) -> "CategorySums":
        """Give the same sums on a backend's device."""
        return replace(self, accumulators=ops.to_device(self.accumulators))

    def totals(self, ops: Ops) -> "CategorySums":
        """Sum over all rows, as if all had one category."""
        accumulators = np.zeros_like(self.accumulators, shape=(3, *self.accumulators.shape[1:]))
        accumulators[0] = ops.totals(self.accumulators)
        return replace(self, accumulators=accumulators, distribution=None)

    def totals_on_host(self, ops: Ops) -> "tuple[CategorySums, Ops]":
        """Give the sums over all rows on the host, and the host's backend: a GPU is slower for so few numbers."""
        if device_of(ops) == "cpu":
            return self.totals(ops), ops
        few, backend = self.few_on_host(ops)
        return few.totals(backend).on_host(backend), host(0)

    def widen_classes(self, position: NDArray[np.int64], n_classes: int) -> "CategorySums":
        """Give the same counts among more classes: class i becomes position[i]."""
        accumulators = np.zeros((*self.accumulators.shape[:2], n_classes, self.accumulators.shape[3]), np.int64)
        accumulators[:, :, position] = self.accumulators[:, :, : len(position)]
        return replace(self, accumulators=accumulators)

    def __add__(self, other: "CategorySums") -> "CategorySums":
        """Add the sums of both; category codes, views and classes must be the same."""
        same = np.arange(self.n_categories, dtype=np.int32)
        return self.plus(other, same, same, self.n_categories)

    def plus(
        self,
        other: "CategorySums",
        mine: NDArray[np.int32],
        theirs: NDArray[np.int32],
        n_categories: int,
        in_place: bool = False,
    ) -> "CategorySums":
        """Add the sums of both under new codes: category i becomes mine[i], and category i of the other theirs[i].

        With `in_place`, the result overwrites these sums, if it fits in their memory.
        """
        layout = join_layouts(self.spec.layout, other.spec.layout, self.sums_that_fit(other))
        spec = replace(self.spec, layout=layout)
        same = n_categories == self.n_categories and bool((mine == np.arange(n_categories)).all())
        if in_place and same and layout == self.spec.layout and self.accumulators.flags.writeable:
            accumulators = self.accumulators
        else:
            shape = (n_categories + 2, *self.accumulators.shape[1:3], layout.width)
            accumulators = np.zeros(shape, np.int64)
            for tile, rows in self.tiles_at(mine, layout):
                accumulators[rows] = tile
        for tile, rows in other.tiles_at(theirs, layout):
            accumulators[rows] += tile
        values = self.distribution
        if values is not None and other.distribution is not None:
            values = values.plus(other.distribution, mine, theirs)
        total = CategorySums(accumulators, spec, self.added + other.added, values)
        return total.to_canonical() if total.added >= CARRY_AFTER else total

    def with_rows(self, ops: Ops, rows: Rows, spec: SumSpec, folds: Folds = None) -> "CategorySums":
        """Add rows of known categories, in place if they cannot outgrow the memory; rows of others are left out."""
        layout, digits, (_, n_views, n_classes, _) = spec.layout, self.accumulators, self.shape
        # Sums of whole numbers could outgrow int64; numbers of rows cannot.
        grows = any(window.whole and (power or rows.weight is not None) for window, power, _ in layout.measures())
        if grows or layout != self.spec.layout or len(rows) > CARRY_AFTER or not digits.flags.carray:
            same = np.arange(self.n_categories, dtype=np.int32)
            sums = CategorySums.measure(ops, rows, (self.n_categories, n_views, n_classes), spec, folds)
            sums.accumulators[UNKNOWN] = 0
            return self.plus(sums, same, same, self.n_categories, in_place=True)
        ops.accumulate(rows, SumShape(self.n_categories, n_views, n_classes, layout), folds, digits)
        digits[UNKNOWN] = 0
        total = replace(self, added=self.added + len(rows))
        return total.to_canonical() if total.added >= CARRY_AFTER else total

    def of_no_rows(self, n_categories: int) -> "CategorySums":
        """Give sums of this form for categories that no row has; `n_categories` is their number."""
        values = self.distribution
        if values is not None:
            values = replace(values, category=values.category[:0], value=values.value[:0], counts=values.counts[:0])
        accumulators = np.zeros((n_categories + 2, *self.accumulators.shape[1:]), np.int64)
        return CategorySums(accumulators, self.spec, 0, values)

    def sums_that_fit(self, other: "CategorySums") -> Iterator[bool]:
        """Tell for each sum whether both sides are whole numbers whose totals all fit int64."""
        pairs = zip(self.spec.layout.measures(), other.spec.layout.measures(), strict=True)
        for (a, _, mine), (b, _, theirs) in pairs:
            sums = self.accumulators[..., mine], other.accumulators[..., theirs]
            yield a.whole and b.whole and sum(map(magnitude, sums)) < 1 << 62

    def tiles_at(self, codes: NDArray[np.int32], layout: Layout) -> Iterator[tuple[Integers, Array | slice]]:
        """Give the accumulators in a wider layout, a tile at a time, and for each row its new row number."""
        for start in range(0, len(self.accumulators), CANONICAL_ROWS):
            stop = start + CANONICAL_ROWS
            rows = np.append(codes, (-2, -1))[start:stop] if stop > len(codes) else codes[start:stop]
            first = int(rows[0])
            # A slice takes a third of the time.
            in_a_row = first >= 0 and np.array_equal(rows, np.arange(first, first + len(rows)))
            yield self.part(start, stop).in_layout(layout), slice(first, first + len(rows)) if in_a_row else rows

    def in_layout(self, layout: Layout) -> Integers:
        """Give the accumulators in a wider layout; if it is their own layout, no copy is made."""
        if layout == self.spec.layout:
            return self.accumulators
        parts = [
            self.accumulators[..., columns]
            if old.whole and new.whole
            else widen(digits_of(self.accumulators[..., columns], old), new.low, new.width)
            for (old, _, columns), (new, _, _) in zip(self.spec.layout.measures(), layout.measures(), strict=True)
        ]
        return np.concatenate(parts, axis=-1)

    def to_canonical(self) -> "CategorySums":
        """Give the canonical form: equal sums have equal digits, in whatever order they were added up."""
        parts: list[Any] = []
        windows = []
        for window, _, columns in self.spec.layout.measures():
            accumulators = self.accumulators[..., columns]
            if window.whole and magnitude(accumulators) < MOST_WHOLE:
                parts.append(accumulators)
                windows.append(window)
                continue
            digits = CanonicalDigits.of(accumulators, window)
            whole = digits.as_integers()
            parts.append(digits if whole is None else whole)
            windows.append(digits.window if whole is None else Window())
        layout = Layout(*windows)
        canonical = np.empty((*self.accumulators.shape[:-1], layout.width), np.int64)
        # The loop begins at the end, since the operating system takes memory back from the end.
        for part, (_, _, columns) in reversed(list(zip(parts, layout.measures(), strict=True))):
            if isinstance(part, CanonicalDigits):
                part.write(canonical[..., columns])
            else:
                canonical[..., columns] = part
        return CategorySums(canonical, replace(self.spec, layout=layout), 0, self.distribution)


class DeferredSums(CategorySums):
    """Sums that are copied to the host only when they are needed there."""

    _copy: "DeferredCopy"
    _everything: CategorySums | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Give plain sums: a copy of deferred sums, such as `replace` makes, is not deferred."""
        return CategorySums(*args, **kwargs)

    @classmethod
    def of(cls, sums: CategorySums) -> Self:
        """Make deferred sums of sums on a device, which stay there."""
        copy = devices.cuda().defer_copy(sums.accumulators)
        return cls.later(copy, sums.spec, sums.added, sums.distribution)

    @classmethod
    def later(
        cls,
        copy: "DeferredCopy",
        spec: SumSpec,
        added: int,
        distribution: "Distribution | None" = None,
        everything: CategorySums | None = None,
    ) -> Self:
        """Give sums whose accumulators are copied to the host later; `everything` are those of all rows, if known."""
        made, keep = object.__new__(cls), object.__setattr__
        # Hundreds of keys have such sums: a dict of each would be more work for the collector of garbage.
        keep(made, "_copy", copy)
        keep(made, "spec", spec)
        keep(made, "added", added)
        keep(made, "distribution", distribution)
        keep(made, "_everything", everything)
        return made

    @property
    def n_views(self) -> int:
        """The number of views of each category, which copies nothing."""
        return self._copy.n_folds if isinstance(self._copy, NarrowCounts) else int(self.shape[1])

    def totals(self, ops: Ops) -> CategorySums:
        """Sum over all rows; if these sums are known, nothing is copied."""
        return super().totals(ops) if self._everything is None else self._everything.totals(host(0))

    def kept(self, ops: Ops) -> CategorySums:  # noqa: ARG002 - they are deferred already
        """Give these sums, since they are deferred already."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the accumulators, which copies nothing."""
        return self._copy.shape

    @cached_property
    def accumulators(self) -> Integers:
        """The digits on the host."""
        return self._copy.on_host

    def to_device(self, ops: Ops) -> CategorySums:
        """Give the same sums on a backend's device; no copy is made if they are still there."""
        there = None if device_of(ops) == "cpu" else self._copy.on_device()
        return (
            super().to_device(ops) if there is None else CategorySums(there, self.spec, self.added, self.distribution)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return CategorySums, (self.accumulators, self.spec, self.added, self.distribution)


class NarrowCounts:
    """Sums of a key, whose counts in int32 become int64 when these are needed.

    Parameters
    ----------
    found : KeyCounts
    n_folds : int, default=1
        Folds by which rows are counted; then there are n_folds * classes counts of each category.
    """

    def __init__(self, found: KeyCounts, n_folds: int = 1) -> None:
        self._found: KeyCounts | None = found
        self.n_folds = n_folds

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Extents of the sums."""
        if (found := self._found) is None:
            return self.on_host.shape
        n_lines, n_counts, width = found.counts.shape
        return n_lines, self.n_folds, n_counts // self.n_folds, width

    def on_device(self) -> None:
        """Give None: these sums are not on a GPU."""

    @cached_property
    def on_host(self) -> Integers:
        """Give the sums, and drop the narrow counts."""
        if (found := self._found) is None:
            # Another thread has made the sums since this one looked for them.
            return vars(self)["on_host"]
        wide = found.counts.astype(np.int64, copy=False).reshape(self.shape)
        vars(self)["on_host"], self._found = wide, None
        return wide


@dataclass(frozen=True)
class CanonicalDigits:
    """Exact numbers in canonical form, in tiles of categories; the memory of a tile is freed once the tile is written.

    Parameters
    ----------
    tiles : list of Limbs
        The tiles, each in a canonical form of its own.
    window : Window
        The digit positions of all tiles together.
    """

    tiles: list[Limbs]
    window: Window

    @classmethod
    def of(cls, accumulators: Integers, window: Window) -> Self:
        """Bring the numbers in the columns of one window into canonical form."""
        starts = range(0, len(accumulators), CANONICAL_ROWS)
        tiles = [digits_of(accumulators[at : at + CANONICAL_ROWS], window).canonical() for at in starts]
        spans = [(tile.low, tile.low + tile.digits.shape[-1]) for tile in tiles if tile.digits.any()] or [(0, 1)]
        low = min(low for low, _ in spans)
        return cls(tiles, Window(low, max(top for _, top in spans) - low, False))

    def as_integers(self) -> Integers | None:
        """Give one int64 column, if `as_integers` gives one for all numbers."""
        if self.window.low < 0 or self.window.low + self.window.width > 2:
            return None
        shape = (sum(len(tile.digits) for tile in self.tiles), *self.tiles[0].digits.shape[1:-1], self.window.width)
        digits = np.empty(shape, np.int64)
        CanonicalDigits(self.tiles.copy(), self.window).write(digits)
        return as_integers(Limbs(digits, self.window.low))

    def write(self, out: Integers) -> None:
        """Write all tiles, in their common window, from the last to the first."""
        stop = len(out)
        while self.tiles:
            tile = self.tiles.pop()
            start = stop - len(tile.digits)
            spread(tile, self.window.low, out[start:stop])
            stop = start


def spread(number: Limbs, low: int, out: Integers) -> None:
    """Write numbers in canonical form into a wider window of digits; the sign fills the digits above them."""
    first, width = number.low - low, number.digits.shape[-1]
    if not number.digits.any():
        out[...] = 0
        return
    out[..., :first] = 0
    out[..., first : first + width] = number.digits
    for column in range(first + width, out.shape[-1]):
        out[..., column] = out[..., column - 1] >> 32
        out[..., column - 1] &= 0xFFFFFFFF


def outgrow_digits(layout: Layout, n_rows: int) -> bool:
    """Tell whether the digits of `n_rows` rows need carries in between; sums that are one integer never do."""
    return n_rows > CARRY_AFTER and not layout.is_whole


def join_layouts(one: Layout, other: Layout, whole: Iterable[bool]) -> Layout:
    """Give the smallest layout that holds the sums of two layouts; `whole` says which may stay whole numbers."""
    pairs = zip(one.measures(), other.measures(), whole, strict=False)
    return Layout(
        *(
            Window() if a.whole and b.whole and may_stay else window_of_both(a, b)
            for (a, _, _), (b, _, _), may_stay in pairs
        )
    )


def window_of_both(a: Window, b: Window) -> Window:
    """Give the smallest window of digits that holds the numbers of two windows."""
    low = min(a.low, b.low)
    # A whole int64 takes two digits; a third digit has room for the carry.
    top = max(a.low + (3 if a.whole else a.width), b.low + (3 if b.whole else b.width))
    return Window(low, top - low, False)


def magnitude(accumulators: Integers) -> int:
    """Sum the magnitudes of all numbers; far below all limits, give an upper bound that costs less."""
    largest = max(int(accumulators.max(initial=0)), -int(accumulators.min(initial=0))) * accumulators.size
    if largest < FAR_BELOW:
        return largest
    sizes = np.abs(accumulators)
    return (int((sizes >> 32).sum()) << 32) + int((sizes & 0xFFFFFFFF).sum())


def digits_of(accumulators: Integers, window: Window) -> Limbs:
    """Give the columns of one window as digits; a whole number, which is one column, becomes two digits."""
    if not window.whole:
        return Limbs(accumulators, window.low)
    return Limbs(np.concatenate([accumulators & 0xFFFFFFFF, accumulators >> 32], axis=-1))


def as_integers(number: Limbs) -> Integers | None:
    """Give one int64 column, if all numbers are integers and any sum of them fits it, with room to spare."""
    top = number.low + number.digits.shape[-1]
    if number.low < 0 or top > 2 or (top == 2 and peak(number.digits[..., -1]) >= 1 << 29):
        return None
    whole = np.zeros_like(number.digits[..., :1])
    for i in range(number.digits.shape[-1]):
        whole = whole + (number.digits[..., i : i + 1] << (32 * (number.low + i)))
    return whole if magnitude(whole) < MOST_WHOLE else None


def choose_spec(ops: Ops, target: Target, weight: Array | None, squares: bool, drop: str | None) -> SumSpec:
    """Choose the columns that hold the exact sums of this target."""
    n_rows = len(target.values)
    if target.kind in (NO_TARGET, *LABELLED) or target.is_classification:
        first = 1 if target.kind in (NO_TARGET, "binary") or drop == "first" else 0
        if target.is_classification and first >= target.n_classes:
            raise ValueError('drop="first" leaves no column: y holds one class only. Choose drop=None.')
        return SumSpec(Layout(*windows(ops, None, weight, 0, n_rows)), True, first)
    ops = backend_for(ops, target.values)
    return SumSpec(Layout(*windows(ops, target.values, weight, 2 if squares else 1, n_rows)), False)


def windows(ops: Ops, target: Array | None, weight: Array | None, highest: int, n_rows: int) -> list[Window]:
    """Find the digit positions that sums of weight * target**power need, for powers up to `highest`.

    One more position is added for carries; one int64 is enough if it holds the sum.
    """
    found, powers = [Window()] * (highest + 1), []
    for power in range(highest + 1):
        bound = whole_bound(target, weight, power, n_rows)
        if bound is None or bound >= WHOLE_LIMIT:
            powers.append(power)
    if powers:
        # All limits are read at once, since the caller has to wait for each answer of a device.
        for power, extent in zip(powers, ops.extents(target, weight, tuple(powers)), strict=True):
            found[power] = digit_window(extent)
    return found


def whole_bound(target: Array | None, weight: Array | None, power: int, n_rows: int) -> int | None:
    """Give an upper bound for the magnitude of sums of weight * target**power over some rows; None for fractions."""
    factors = [] if weight is None else [weight]
    if power and target is not None:
        factors += [target] * power
    for factor in factors:
        if factor.dtype.kind != "i":
            return None
    bound = max(n_rows, 1)
    for factor in factors:
        bound *= max(abs(int(factor.max())), abs(int(factor.min())))
    return bound


@dataclass(frozen=True)
class DigitSpan:
    """Columns that hold the sums of any subset of a target's rows; the sum of all rows may need fewer.

    Parameters
    ----------
    bounds : tuple of int
        For each sum, a number that it cannot exceed if it is one whole number.
    """

    layout: Layout
    bounds: tuple[int, ...]

    @classmethod
    def of(cls, rows: Rows, layout: Layout) -> Self:
        """Find the span of some rows, whose sums are kept in `layout`."""
        measures = layout.measures()
        bounds = tuple(
            whole_bound(rows.target, rows.weight, power, len(rows)) or 0 if window.whole else 0
            for window, power, _ in measures
        )
        return cls(join_layouts(layout, layout, [bound < MOST_WHOLE for bound in bounds]), bounds)

    def __add__(self, other: "DigitSpan") -> "DigitSpan":
        bounds = tuple(mine + theirs for mine, theirs in zip(self.bounds, other.bounds, strict=True))
        return DigitSpan(join_layouts(self.layout, other.layout, [bound < MOST_WHOLE for bound in bounds]), bounds)
