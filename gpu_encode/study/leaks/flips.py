"""Effects of a change of one row's target: on the bits of the row's own encoding, and on those of other encodings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cpu_fallback.types import Array
from gpu_encode.study.leaks.trials import RowTargets, Trials, same_bits

# With fewer rows of a value, one cannot tell whether only the row itself is left out.
FEWEST_MATES = 8
# A prior changes a row's own encoding at most about as much as it changes other encodings, and as the change of the
# target divided by the number of rows.  A change of more than this multiple of both is too large for a prior.
BEYOND_OTHERS, BEYOND_MEAN = 3.0, 1.5
# If at least this share of the changed rows changes in the other direction, this is not an accident.
OTHER_WAY = 0.1


@dataclass(frozen=True)
class Flip:
    """The effects of the changed target of one row on one column.

    Parameters
    ----------
    own : bool
        Whether the bits of the row's own encoding change.
    alone : bool or None
        Whether, among rows of its value, only this row keeps its encoding; None if few rows have the value.
    beyond : bool
        Whether the row's own encoding changes more than a mean over all rows can explain.
    both_ways : bool
        Whether encodings of other rows change in both directions.
    """

    own: bool
    alone: bool | None
    beyond: bool
    both_ways: bool

    @classmethod
    def of(cls, row: int, before: Array, after: Array, codes: Array | None, step: float) -> "Flip":
        """Compare a column before and after.

        Parameters
        ----------
        row : int
            The row whose target was changed.
        before, after : array (rows,)
        codes : int64 array (rows,), optional
            Categories of the rows, if they are known.
        step : float
            Size of the change of the target; 1 for classes.
        """
        same = same_bits(before, after)
        mates = np.zeros(len(same), bool) if codes is None else codes == codes[row]
        alone = bool(same[mates].sum() == 1 and same[row]) if mates.sum() >= FEWEST_MATES else None
        if same[row]:
            return cls(False, alone, False, False)
        # For text, only whether it changes is known.
        change = np.nan_to_num(after - before) if before.dtype.kind == "f" else (~same).astype(np.float64)
        own, others = abs(change[row]), np.abs(change[~mates])
        beyond = bool(mates.any() and len(others) and own > BEYOND_OTHERS * others.max())
        up, down = int((change > 0).sum()), int((change < 0).sum())
        return cls(
            True,
            alone,
            beyond and bool(own * len(same) > BEYOND_MEAN * step),
            min(up, down) > OTHER_WAY * (up + down),
        )


@dataclass(frozen=True)
class Moves:
    """The effects of all flips together on one column.

    Parameters
    ----------
    flips : list of Flip
    """

    flips: list[Flip]

    @property
    def own(self) -> int:
        """Number of flips that change the row's own encoding."""
        return sum(flip.own for flip in self.flips)

    @property
    def alone(self) -> bool:
        """Whether only the row itself is left out, for all values with enough rows to tell."""
        told = [flip.alone for flip in self.flips if flip.alone is not None]
        return len(told) > 1 and all(told)

    @property
    def kind(self) -> str:
        """Kind of change by a row's own target: "never", "alone", by a "prior", by something "shared", or "own"."""
        moved = [flip for flip in self.flips if flip.own]
        if not moved:
            return "alone" if self.alone else "never"
        if sum(flip.beyond for flip in moved) >= min(2, len(moved)):
            return "own"
        return "shared" if 2 * sum(flip.both_ways for flip in moved) > len(moved) else "prior"


def flip(targets: RowTargets, row: int, random: np.random.Generator) -> tuple[Array, float]:
    """Change the target of one row to another class, or to the farther end of all numbers; also give the change."""
    values = targets.values.copy()
    present = values[targets.present]
    if values.dtype.kind == "f" and len(np.unique(present)) > len(targets.classes):
        low, high = present.min(), present.max()
        values[row] = high if values[row] - low < high - values[row] else low
        return values, abs(float(values[row] - targets.values[row]))
    others = np.unique(present[targets.labels[targets.present] != targets.labels[row]])
    values[row] = others[random.integers(len(others))]
    return values, 1.0


def choose_rows(
    targets: RowTargets, number: int, keys: Sequence[NDArray[np.int64]], random: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rows whose target can change without losing a class, some with rare and some with frequent key values."""
    told = targets.labels if targets.values.dtype.kind in "iuf" else targets.values
    _, classes, sizes = np.unique(told[targets.present], return_inverse=True, return_counts=True)
    rows = targets.present[sizes[classes] > 2]
    if not len(rows):
        return rows
    weights = sum((1 / np.bincount(codes)[codes[rows]] for codes in keys), np.zeros(len(rows)) + 1 / len(rows))
    chosen = random.choice(rows, min(number, len(rows)), replace=False, p=weights / weights.sum())
    return np.sort(chosen)


def flip_rows(
    trials: Trials,
    before: Mapping[str, Array],
    rows: Array,
    codes: Mapping[str, NDArray[np.int64] | None],
    random: np.random.Generator,
) -> tuple[dict[str, Moves], list[NDArray[np.bool_]]]:
    """Change the target of one row at a time.

    Returns
    -------
    moves : dict of str to Moves
        By column; columns whose bits differ between two fits of the same rows are left out.
    moved : list of bool array (rows,)
        For each flip, the rows whose encoding changes in any column.
    """
    again = trials.encode(trials.targets.values)[0] if len(rows) else {}
    found: dict[str, list[Flip]] = {
        name: [] for name in before if name in again and same_bits(before[name], again[name]).all()
    }
    moved = []
    for row in rows.tolist():
        targets, step = flip(trials.targets, row, random)
        after, _ = trials.encode(targets)
        same = np.ones(len(trials.targets.values), bool)
        for name in found.keys() & after.keys():
            found[name].append(Flip.of(row, before[name], after[name], codes.get(name), step))
            same &= same_bits(before[name], after[name])
        moved.append(~same)
    return {name: Moves(flips) for name, flips in found.items()}, moved
