"""The learned state of votes: the training rows, the weights of subsets of features, and the degree."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cpu_fallback.exact import Floats, Integers
from cpu_fallback.types import Array
from gpu_encode.encoders.codes import CodedRows, Learned
from gpu_encode.methods.proximity.histogram import Histogram, count_in_blocks
from gpu_encode.methods.proximity.measures import merge_rows, to_floats
from gpu_encode.methods.proximity.subsets import MOST_FEATURES, add_subsets, raise_to_degree
from gpu_encode.methods.proximity.tuning import Tuning
from gpu_encode.methods.proximity.voting import Electorate, score
from gpu_encode.words.errors.parameters import check_option

# Numbers that floats can hold are multiples of powers of two up to this one.
MOST_EXPONENT = 1_200


@dataclass(frozen=True, eq=False)
class LearnedVotes(Learned):
    """The state that scores rows.

    Parameters
    ----------
    form : {"ratio", "difference"}
    kind : {"binary", "multiclass", "continuous"}
    labels : list of str
        The last part of the names of outputs.
    masks : int64 array (subsets,)
    weights : float64 array (subsets,)
    degree : float
    path : list of list of float
        See `ascend`.
    codes : int32 array (features, different rows)
    sums : int64 array (different rows, n)
    exponents : list of int
    """

    form: str
    kind: str
    labels: list[str]
    masks: Array
    weights: Array
    degree: float
    path: list[list[float]] = field(repr=False)
    codes: Array = field(repr=False)
    sums: Array = field(repr=False)
    exponents: list[int]

    def names(self, keys: Sequence[str]) -> list[str]:  # noqa: ARG002
        """Name the output columns."""
        return [f"proximity{label}" for label in self.labels]

    def check(self, sizes: Sequence[int]) -> None:
        """Raise ValueError if the fields do not fit keys of these sizes, as in a damaged file."""
        check_option("ProximityEncoder", "form", self.form, ("ratio", "difference"))
        check_option("ProximityEncoder", "kind", self.kind, ("binary", "multiclass", "continuous"))
        arrays = (self.codes, self.sums, self.masks, self.weights)
        types = [array.dtype.str[1:] for array in arrays] == ["i4", "i8", "i8", "f8"]
        shapes = self.codes.shape == (len(sizes), len(self.sums)) and self.sums.shape[1:] == (len(self.exponents),)
        if not types or not shapes or self.masks.shape != (len(self.weights),) or self.weights.ndim != 1:
            raise ValueError("the training rows of votes do not fit the columns that are encoded")
        if len(sizes) > MOST_FEATURES:
            raise ValueError(f"votes compare up to {MOST_FEATURES} features, not {len(sizes)}")
        if len(self.masks) and not 0 <= self.masks.min() <= self.masks.max() < 1 << len(sizes):
            raise ValueError("a subset of features has features that there are not")
        if not math.isfinite(self.degree) or any(abs(exponent) > MOST_EXPONENT for exponent in self.exponents):
            raise ValueError("the degree or the exponents of votes are out of range")
        n_outputs = len(self.exponents) if self.kind == "multiclass" else len(self.exponents) - 1
        if len(self.labels) != n_outputs or (self.kind == "continuous" and n_outputs != 1):
            raise ValueError(f"votes have {len(self.labels)} outputs, of {len(self.exponents)} sums a row")
        if any(bool(((row < -1) | (row >= max(size, 1))).any()) for row, size in zip(self.codes, sizes, strict=True)):
            raise ValueError("the training rows of votes have unknown categories")

    def encode(self, rows: CodedRows) -> Array:
        """Score rows: (rows, outputs), float64, on the device of the rows."""
        ops, (known, sums) = rows.ops, map(rows.ops.to_device, (self.codes, self.sums))
        merged, queries = merge_rows(ops, rows.codes, rows.sizes)
        everything = to_floats(ops, sums.sum(axis=0)[:, None], self.exponents)
        scores = ops.empty((len(self.labels), queries.shape[1]), np.float64)
        for block, histogram in count_in_blocks(ops, queries, known, sums, self.exponents, rows.sizes):
            strengths = self._strengths(histogram, len(queries))
            agreeing = to_floats(ops, histogram.full, self.exponents) * float(strengths[-1])
            votes = histogram.add_up(ops, strengths[:-1]) + agreeing
            scores[:, block] = score(self.form, votes, everything, self.kind)
        return scores[:, merged].T

    def encode_left_out(self, rows: CodedRows) -> Array:
        """Score each training row by all other rows: (rows, outputs)."""
        electorate = Electorate.of(rows)
        cases = electorate.leave_out(electorate.merged, electorate.measures.values)
        others, full, strength = [], [], 0.0
        for histogram in cases.histograms():
            *of_patterns, strength = self._strengths(histogram, len(rows.codes)).tolist()
            others.append(histogram.add_up(rows.ops, np.array(of_patterns)))
            full.append(histogram.full)
        agreeing = cases.leave_out(np.concatenate(full, axis=1)) * strength
        return cases.score(self.form, np.concatenate(others, axis=1), agreeing).T

    def _strengths(self, histogram: Histogram, n_features: int) -> Floats:
        """Give the strength of each pattern, and last the strength of agreement in all features."""
        every = np.append(histogram.patterns, (1 << n_features) - 1)
        agreed = add_subsets(every, self.masks, self.weights, n_features)
        return raise_to_degree(agreed, self.degree, self.form == "ratio")


def learn_votes(rows: CodedRows, masks: Integers, given: Floats | None, tuning: Tuning) -> LearnedVotes:
    """Learn from training rows, with given weights or with weights that are tuned."""
    ops, target = rows.ops, rows.targets[0]
    electorate = Electorate.of(rows)
    if given is None:
        weights, degree, path = tuning.run(electorate, masks)
    else:
        weights, degree, path = given, 1.0 if tuning.degree is None else tuning.degree, []
    several = target.kind == "multiclass" and target.classes is not None
    labels = [f"_{label}" for label in target.classes] if several else [""]  # type: ignore[union-attr]
    codes, sums = ops.to_host(electorate.codes), ops.to_host(electorate.sums)
    return LearnedVotes(
        tuning.form, target.kind, labels, masks, weights, degree, path, codes, sums, electorate.measures.exponents
    )
