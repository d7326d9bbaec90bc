"""Verdicts, which follow from the evidence, and the sentences that explain them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_encode.study.leaks.scores import LEAVES, Interval
from gpu_encode.study.leaks.structure import Sight

# For each verdict, what it means and what to do.
MEANINGS = {
    "no target": "It does not depend on the target.",
    "own target": "A row's own target is in its training encoding: a leak. Take KFold or Ordered.",
    "predictable": "A small tree predicts shuffled targets from training encodings, but not from encodings of new "
    "rows: a leak. Of this library's schemes, KFold with few folds and Ordered have no such leak.",
    "copies": "Rows are in the table several times, and a copy in another fold brings a row its own target: a leak. "
    "Take GroupKFold with a group for each case, or KFold(by=...) of all columns.",
    "prior": "A row's own target changes its training encoding only as much as it changes a mean over all rows: a "
    "small leak, of 1 / rows. A prior from the visible rows alone has no such leak.",
    "left out": "A row's own target is not in its training encoding, but the encoding falls where that target rises, "
    "since only this row is left out. Strictly this is no leak, but it misleads models that find it. Take KFold or "
    "Ordered.",
    "shared": "A row's own target changes its training encoding through something that all rows share (folds drawn by "
    "label, ranks, borders), as often up as down; no tree predicted the target from it.",
    "not compared": "No tree predicted the target from it. Single targets were not compared, since two fits of the "
    "same rows differ: give a random_state.",
    "no leak": "No leak was found.",
}
LEAKS = ("own target", "predictable", "copies", "prior")


@dataclass(frozen=True)
class ColumnReport:
    """The result for one column of encodings.

    Parameters
    ----------
    name : str
    source : str or None
        The column or joint key of the output, if it is known.
    verdict : str
        A key of `MEANINGS`, such as "no leak".
    sees : str
        Which rows a training row sees, according to the scheme; or "unknown".
    own_moved, flips : int
        Number of trials in which the row's own target changed its encoding; number of all trials.
    training, new : Interval or None
        ROC AUC of a small tree that predicts shuffled targets, on training encodings and on encodings of new rows.
    p_value : float
        P-value of the difference, adjusted for all columns.
    risks : tuple of str
        Dangers in its values.
    """

    name: str
    source: str | None
    verdict: str
    sees: str
    own_moved: int
    flips: int
    training: Interval | None
    new: Interval | None
    p_value: float
    risks: tuple[str, ...]

    @property
    def words(self) -> str:
        """The verdict in sentences."""
        if self.verdict == "left out" and self.training is not None and self.new is not None:
            found = "found it here" if self.training.low > self.new.high else "did not find it here"
            return f"{MEANINGS[self.verdict]} A tree of {LEAVES} leaves {found}."
        return MEANINGS[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Give plain values."""
        scores = {
            name: None if one is None else [one.mean, one.low, one.high]
            for name, one in (("training_auc", self.training), ("new_auc", self.new))
        }
        return {
            "column": self.name,
            "source": self.source,
            "verdict": self.verdict,
            "words": self.words,
            "sees": self.sees,
            "own_moved": self.own_moved,
            "flips": self.flips,
            **scores,
            "p_value": self.p_value,
            "risks": list(self.risks),
        }


def conclude(moves: str | None, sight: Sight | None, significant: bool, copied: bool = False) -> str:
    """Give the verdict on a column that depends on the target.

    Parameters
    ----------
    moves : str or None
        The result of flips, in the words of `Moves.kind`; None if flips could not be compared.
    sight : Sight or None
        The targets on which encodings depend by the scheme, if it is known.
    significant : bool
        Whether a tree predicts more from training encodings than from encodings of new rows.
    copied : bool
        Whether it does so where copies of a row have the same target.
    """
    kinds = {moves, None if sight is None else sight.kind}
    if "own" in kinds:
        return "own target"
    if "alone" in kinds and not kinds & {"prior", "shared"}:
        return "left out"
    if significant or copied:
        return "predictable" if significant else "copies"
    if "shared" in kinds:
        return "shared"
    if "prior" in kinds:
        return "prior"
    return "not compared" if moves is None and sight is None else "no leak"


def advice(columns: Sequence[ColumnReport]) -> str:
    """Say in one line what the results of all columns mean.

    Examples
    --------
    >>> advice([])
    'No column follows from the target.'
    """
    learned = [column for column in columns if column.verdict != "no target"]
    leaking = [column.name for column in columns if column.verdict in LEAKS]
    left_out = [column.name for column in columns if column.verdict == "left out"]
    if leaking:
        return f"Leaks in {len(leaking)} of {len(learned)} columns: {', '.join(leaking)}."
    if left_out:
        return f"No row's own target is used, but {', '.join(left_out)} may mislead learners: leave-one-out."
    if not learned:
        return "No column follows from the target."
    return f"No leak was found in {len(learned)} {'column' if len(learned) == 1 else 'columns'}."
