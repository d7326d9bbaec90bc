"""The result of `choose_interactions`: conjunctions, and the steps of the search."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_encode.encoders.one_hot.encoder import OneHotEncoder
from gpu_encode.encoders.target import TargetEncoder
from gpu_encode.study.text_tables import lay_out

LINES_SHOWN = 20


@dataclass(frozen=True)
class Step:
    """One step of a search.

    Parameters
    ----------
    action : {"start", "added", "left out", "confirmed", "taken out"}
        The last two happen in the backward pass only.
    key : tuple or None
        Columns of the conjunction; None at the start.
    score : float
        Score of all keys after the step; with forward="once", of the encoder's own keys and this one.
    gain : float
        How much the key adds to the score of the others; NaN at the start.
    standard_error : float
        Standard error of the gain, over folds.
    """

    action: str
    key: tuple[Any, ...] | None
    score: float
    gain: float = math.nan
    standard_error: float = math.nan

    def as_dict(self) -> dict[str, Any]:
        """Give a row of a table: text and numbers."""
        key = None if self.key is None else " x ".join(map(str, self.key))
        numbers = {"score": self.score, "gain": self.gain, "standard_error": self.standard_error}
        return {"action": self.action, "key": key, **numbers}


@dataclass(frozen=True)
class ChosenInteractions:
    """Result of `choose_interactions`.

    Parameters
    ----------
    encoder : TargetEncoder or OneHotEncoder
        A clone, not fitted, with `columns` as its columns.
    columns : list
        A value for the `columns` parameter: the encoder's columns, then the chosen conjunctions, in the order of their
        choice.
    path : tuple of Step
        The start, every key that was added or left out after it was scored, and the backward pass.  With
        forward="once" the keys that add most come first.
    score : float
        Score of `columns`; NaN if forward="once" found conjunctions, since it scores none beside another.
    tried : int
        Number of conjunctions that were looked at: the sum of the next four numbers.
    ruled_out_by_counts : int
        Conjunctions with as many categories as a key of some of their columns, or with nearly as many as there are
        rows.
    ruled_out_by_sample : int
        Conjunctions that a sample of the rows ruled out each time they were looked at.
    ruled_out_by_chance : int
        Conjunctions that all rows, each time they were looked at, showed to be no better than chance; no fold was held
        out for them.
    scored : int
        Conjunctions that were scored on all rows.
    sampled : int
        Conjunctions that were looked at in a sample.
    sampled_rows : int
        Rows of the sample; 0 if there was none.
    left_out : int
        Number of conjunctions beside `tried` that were not looked at, since there are more than `max_tries`.
    """

    encoder: TargetEncoder | OneHotEncoder
    columns: list[Any]
    path: tuple[Step, ...]
    score: float
    tried: int
    ruled_out_by_counts: int
    ruled_out_by_sample: int
    ruled_out_by_chance: int
    scored: int
    sampled: int
    sampled_rows: int
    left_out: int = 0

    @property
    def interactions(self) -> list[tuple[Any, ...]]:
        """The chosen conjunctions."""
        taken_out = {step.key for step in self.path if step.action == "taken out"}
        added = (step.key for step in self.path if step.action == "added")
        return [key for key in added if key is not None and key not in taken_out]

    def as_dicts(self) -> list[dict[str, Any]]:
        """Give the path as a list of rows, for `pandas.DataFrame` or `polars.DataFrame`."""
        return [step.as_dict() for step in self.path]

    def report(self) -> str:
        """Give the whole path and the numbers of conjunctions, as text."""
        return "\n".join([self._count(), *table_of(self.path)])

    def __repr__(self) -> str:
        shown = self.path[:LINES_SHOWN]
        more = len(self.path) - len(shown)
        tail = [f"... and {more} steps more"] if more else []
        return "\n".join(["ChosenInteractions", self._count(), *table_of(shown), *tail])

    def _count(self) -> str:
        sample = f", {self.sampled} looked at in a sample of {self.sampled_rows} rows" if self.sampled_rows else ""
        left_out = f"; {self.left_out} left out" if self.left_out else ""
        return (
            f"{len(self.interactions)} of {self.tried} conjunctions chosen: {self.ruled_out_by_counts} ruled out by "
            f"counts, {self.ruled_out_by_sample} by a sample, {self.ruled_out_by_chance} by chance, "
            f"{self.scored} scored by all rows{sample}{left_out}"
        )


def table_of(path: Sequence[Step]) -> list[str]:
    """Lay out steps as lines of text."""
    rows = [("action", "key", "score", "gain", "standard error")]
    for step in path:
        row = step.as_dict()
        gain, error = ("" if math.isnan(row[name]) else f"{row[name]:.3g}" for name in ("gain", "standard_error"))
        rows.append((step.action, row["key"] or "", f"{step.score:.6g}", gain, error))
    return lay_out(rows)
