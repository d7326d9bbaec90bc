"""Scores of a set of keys: by the sums of an additive model, or by an estimator that is fitted to encodings."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, islice
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.metrics import check_scoring

from cpu_fallback.row_numbers import FoldPattern
from cpu_fallback.types import Array, Codes
from gpu_encode.encoders.codes import CodedRows
from gpu_encode.study.tuning.conjunction_batches import ConjunctionBatches, Effect
from gpu_encode.study.tuning.results import standard_error
from gpu_encode.study.tuning.steps import SharedSums, Steps, chance_of, fused_operation, gain_of, most_gain
from gpu_encode.study.tuning.sums import mean
from gpu_encode.study.tuning.working_response import HeldOut, WorkingResponse

Key = tuple[int, ...]
# Most rounds over the keys of a model; few models need so many.
MOST_SWEEPS = 6
# A key moves rows again only if it raises the log-likelihood of held-out rows by this much per unit of weight.
LEAST_RISE = 1e-5
# A sample rules a key out only if the key would be too weak even if its estimate were off by so many standard errors.
SAMPLING_ERRORS = 2.0
# Most categories of a key, per row.
MOST_CATEGORIES = 0.99
# Up to this number of pairs of categories per row, a table of all pairs is cheaper than joining rows.
MOST_PAIRS = 16
# Keys that are scored together, at least.
FEWEST_TOGETHER = 16
# Probabilities of a fitted estimator are kept at least this far from 0 and 1.
LEAST_CHANCE = 1e-15


@dataclass(frozen=True)
class Gain:
    """The rise of the log-likelihood of held-out rows: in all folds together, and in each.

    Parameters
    ----------
    mean : float
        Per unit of weight.
    by_fold : tuple of float
    surprise : float
        By how many standard errors the spread in the rows is above chance; infinite if it is not known.
    """

    mean: float
    by_fold: tuple[float, ...]
    surprise: float = math.inf

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over folds; 0 for a single fold."""
        error = standard_error([value for value in self.by_fold if not math.isnan(value)])
        return 0.0 if math.isnan(error) else error

    def minus(self, other: "Gain") -> "Gain":
        """Give the difference of the means and of each fold; `surprise` is this one's."""
        folds = zip(self.by_fold, other.by_fold, strict=True)
        return Gain(self.mean - other.mean, tuple(mine - theirs for mine, theirs in folds), self.surprise)


@dataclass(frozen=True, eq=False)
class State:
    """A set of keys, its score, and what its scorer remembers.

    Parameters
    ----------
    keys : tuple of tuple of int
        Positions of the columns of each key.
    score : Gain
        The score itself, for all folds together and for each.
    responses : list of WorkingResponse
    """

    keys: tuple[Key, ...]
    score: Gain
    responses: list[WorkingResponse] = field(default_factory=list)

    def minus(self, other: "State") -> Gain:
        """Give the difference of two scores."""
        return self.score.minus(other.score)


class Scorer(Protocol):
    """What a search needs from a scorer."""

    keys: "Keys"
    sampled_rows: int
    n_outcomes: int

    def start(self, keys: Sequence[Key]) -> State:
        """Score a set of keys from the beginning."""

    def foresee(self, state: State, keys: Iterable[Key]) -> None:
        """Announce the keys that will be measured next, in this order, so that many can be scored together."""

    def most(self, state: State, key: Key) -> float:
        """Give the most that a key is likely to add, from a sample of the rows; infinite without a sample."""

    def surprise(self, state: State, key: Key) -> float:
        """Give by how many standard errors the spread of a key in all rows is above chance; infinite if not known."""

    def gain(self, state: State, key: Key) -> Gain:
        """Measure what a key adds, before it is added."""

    def add(self, state: State, key: Key) -> State:
        """Add a key."""


class Keys:
    """Codes of columns, and of conjunctions, which are joined only when their codes are needed.

    Parameters
    ----------
    rows : CodedRows
        Codes of single columns.
    """

    def __init__(self, rows: CodedRows) -> None:
        self.rows = rows
        # Numbers of categories of the keys known so far, whatever the order of their columns.
        self.sizes = {frozenset((column,)): size for column, size in enumerate(rows.sizes)}
        self._kept: dict[Key, Codes] = {}
        self._latest: tuple[Key, Codes] | None = None
        # For each joined key, the category of every column in each of its categories.
        self._members: dict[Key, list[Array]] = {}
        # Codes below 0 are values without a category.
        self._lacks = [bool(len(codes)) and int(codes.min()) < 0 for codes in rows.codes]

    def codes(self, key: Key) -> tuple[Codes, int]:
        """Give the code of each row, and the number of categories that occur."""
        if len(key) == 1:
            return self.rows.codes[key[0]], self.rows.sizes[key[0]]
        if key in self._kept:
            return self._kept[key], self.sizes[frozenset(key)]
        if self._latest is None or self._latest[0] != key:
            self._latest = key, self._join(key)
        return self._latest[1], self.sizes[frozenset(key)]

    def pair(self, key: Key) -> tuple[tuple[Codes, Codes], tuple[int, int], Sequence[Array]] | None:
        """Give a key as two unjoined keys: codes, sizes, and the categories of the first key's columns; or None."""
        if len(key) == 1 or key in self._kept or (self._latest is not None and self._latest[0] == key):
            return None
        (left, n_left), right, n_right = self.codes(key[:-1]), self.rows.codes[key[-1]], self.rows.sizes[key[-1]]
        if not 0 < n_left * n_right <= MOST_PAIRS * len(left):
            return None
        members = self.members(key[:-1]) if len(key) > 2 else [np.arange(n_left)]
        return (left, right), (n_left, n_right), members

    def keep(self, key: Key) -> None:
        """Keep the codes of a key that was added."""
        if len(key) > 1:
            self._kept[key] = self.codes(key)[0]

    def forget(self) -> None:
        """Drop the codes of the key that was requested last."""
        self._latest = None

    def _join(self, key: Key) -> Codes:
        ops, codes = self.rows.ops, self.codes(key[:-1])[0]
        last = key[-1]
        right, n_right = self.rows.codes[last], self.rows.sizes[last]
        if not any(self._lacks[column] for column in key):
            joined, distinct = ops.factorize(ops.combine(codes, right, n_right))
        else:
            present = (codes >= 0) & (right >= 0)
            keys = ops.combine(np.maximum(codes, 0), np.maximum(right, 0), n_right)
            # One more value, below all others, is added and then removed again.
            joined, distinct = ops.factorize(np.where(present, keys, np.int64(-1)))
            if len(distinct) and int(distinct[0]) < 0:
                joined, distinct = joined - np.int32(1), distinct[1:]
        # For few distinct values, arrays of a GPU may be on the host.
        distinct = ops.to_device(distinct)
        self.sizes[frozenset(key)] = len(distinct)
        left = distinct // n_right
        members = [left] if len(key) == 2 else [member[left] for member in self._members[key[:-1]]]
        self._members = {known: kept for known, kept in self._members.items() if known in self._kept}
        self._members[key] = [*members, distinct % n_right]
        return joined

    def members(self, key: Key) -> list[Array]:
        """Give the category of each column of a conjunction, for each of its categories."""
        return self._members[key]

    def size(self, key: Key) -> int:
        """Give the number of categories of a key that occur."""
        known = self.sizes.get(frozenset(key))
        return self.codes(key)[1] if known is None else known

    def tells_nothing(self, key: Key) -> bool:
        """Whether a key has as many categories as a key of some of its columns, or nearly as many as there are rows.

        A key of the first kind tells no more rows apart than the smaller one does. In one of the second kind, hardly
        any row has other rows to learn from.
        """
        size = self.size(key)
        if size >= MOST_CATEGORIES * len(self.rows.codes[0]):
            return True
        return any(size <= self.sizes[part] for part in parts_of(key) if part in self.sizes)


def parts_of(key: Key) -> Iterator[frozenset[int]]:
    """Give the proper subsets of a key's columns, without the empty one."""
    return (frozenset(part) for length in range(1, len(key)) for part in combinations(key, length))


class SumsScorer:
    """Scores an additive model of the keys from sums alone.

    Parameters
    ----------
    rows : CodedRows
    held_out : HeldOut
    outcomes : list of (float64 array, bool)
        Numbers to explain, and whether they are 0 and 1.
    m : float, optional
        As in `Steps.of`.
    sample : int, optional
        Rows of the sample in which keys are tested before all rows are used.
    seed : int
    """

    def __init__(
        self,
        rows: CodedRows,
        held_out: HeldOut,
        outcomes: Sequence[tuple[Array, bool]],
        m: float | None = None,
        sample: int | None = None,
        seed: int = 0,
    ) -> None:
        self.keys, self.held_out, self.outcomes, self.m = Keys(rows), held_out, outcomes, m
        self.n_outcomes = len(outcomes)
        n_samples = 1 if sample is None else len(held_out.folds) // sample
        self._sampled_state: tuple[State, list[WorkingResponse]] | None = None
        self._summed: tuple[State, Key, list[SharedSums]] | None = None
        self._batches = ConjunctionBatches(rows, held_out.folds, held_out.n_folds)
        self._foreseen: tuple[State | None, dict[Key, Sequence[Effect]]] = None, {}
        self.sampled_rows = 0
        if n_samples > 1:
            numbers = rows.ops.fold_numbers(FoldPattern("random", n_samples, seed), 0, len(held_out.folds))
            self._chosen = np.flatnonzero(numbers == 0)
            self.sample_keys = Keys(rows.take(self._chosen))
            self._sample_rows = sample_of(held_out, self._chosen)
            self.sampled_rows = len(self._chosen)

    def start(self, keys: Sequence[Key]) -> State:
        """Fit the model from the beginning: the mean, then each key in turn until no key moves rows any more."""
        responses = [WorkingResponse.start(self.held_out, values, binary) for values, binary in self.outcomes]
        for key in keys:
            self.keys.keep(key)
        return self._sweep(keys, responses, MOST_SWEEPS)

    def _sweep(self, keys: Sequence[Key], responses: list[WorkingResponse], most: int) -> State:
        for _ in range(most):
            moved = [self._move_all(working, keys) for working in responses]
            if all(new is old for new, old in zip(moved, responses, strict=True)):
                break
            responses = moved
        return State(tuple(keys), self._score(responses), responses)

    def _move_all(self, working: WorkingResponse, keys: Sequence[Key]) -> WorkingResponse:
        for key in keys:
            working = self._move(working, key)
        return working

    def _move(self, working: WorkingResponse, key: Key) -> WorkingResponse:
        """Move rows by a key, if that makes held-out rows more likely."""
        return self._moved(working, key, Steps.of(working, SharedSums.of(working, *self.keys.codes(key)), self.m))

    def _moved(self, working: WorkingResponse, key: Key, steps: Steps) -> WorkingResponse:
        if math.fsum(steps.gains) <= LEAST_RISE * self.held_out.total:
            return working
        codes, size = self.keys.codes(key)
        moved = working.move(codes, steps.table(working, size))
        return moved if math.fsum(moved.likelihood) > math.fsum(working.likelihood) else working

    def _score(self, responses: Sequence[WorkingResponse]) -> Gain:
        return self._average([working.likelihood for working in responses])

    def _average(self, sums: Sequence[Array]) -> Gain:
        """Average sums by fold over outcomes, per unit of weight."""
        weights = self.held_out.weights.tolist()
        by_fold = [math.fsum(of_fold) / len(sums) for of_fold in zip(*sums, strict=True)]
        each = (value / weight if weight else math.nan for value, weight in zip(by_fold, weights, strict=True))
        return Gain(math.fsum(by_fold) / self.held_out.total, tuple(each))

    def most(self, state: State, key: Key) -> float:
        """Give the most that a key is likely to add, from a sample of the rows; infinite without a sample."""
        if not self.sampled_rows:
            return math.inf
        if self._sampled_state is None or self._sampled_state[0] is not state:
            taken = [working.take(self._sample_rows, self._chosen) for working in state.responses]
            self._sampled_state = state, taken
        codes, size = self.sample_keys.codes(key)
        times = len(self.held_out.folds) / self.sampled_rows
        members, responses = self.sample_keys.members(key), self._sampled_state[1]
        return mean([most_gain(working, codes, size, members, times, SAMPLING_ERRORS) for working in responses])

    def foresee(self, state: State, keys: Iterable[Key]) -> None:
        """Score the next keys together: as many as were scored since the model changed, because any may change it."""
        if self._foreseen[0] is not state:
            self._foreseen = state, {}
        effects, coming = self._foreseen[1], list(islice(keys, 1))
        if not coming or coming[0] in effects or not self._batches.has_few_cells(coming[0]):
            return
        coming += islice(keys, max(FEWEST_TOGETHER, len(effects)) - 1)
        new = [key for key in coming if key not in effects and self._batches.has_few_cells(key)]
        for _, alike in groupby(sorted(new, key=len), len):
            together = list(alike)
            of_outcomes = [self._batches.effects(working, together, self.m) for working in state.responses]
            effects.update(zip(together, zip(*of_outcomes, strict=True), strict=False))

    def _effects(self, state: State, key: Key) -> Sequence[Effect] | None:
        """Give the effects of a key on every outcome if `foresee` has scored it, else None."""
        return self._foreseen[1].get(key) if self._foreseen[0] is state else None

    def sums(self, state: State, key: Key) -> list[SharedSums]:
        """Sum rows by category and fold for every outcome; the sums of the last requested key are kept."""
        if self._summed is None or self._summed[0] is not state or self._summed[1] != key:
            self._summed = None
            self._summed = state, key, [self._sum(working, key) for working in state.responses]
        return self._summed[2]

    def _sum(self, working: WorkingResponse, key: Key) -> SharedSums:
        """Sum rows by the categories of a conjunction, which is joined only if necessary."""
        pair = self.keys.pair(key) if fused_operation(working, "conjunction_sums") else None
        if pair is None:
            codes, size = self.keys.codes(key)
            return SharedSums.of(working, codes, size, self.keys.members(key))
        shared = SharedSums.of_pair(working, *pair)
        self.keys.sizes[frozenset(key)] = shared.n_categories
        return shared

    def surprise(self, state: State, key: Key) -> float:
        """Give by how many standard errors the spread of a key is above chance: the largest over outcomes."""
        if (effects := self._effects(state, key)) is not None:
            if len(key) > 2:
                # Joining rows would have learned this size, too.
                self.keys.size(key[:-1])
            self.keys.sizes[frozenset(key)] = effects[0].n_categories
            return max(effect.chance for effect in effects)
        return max(
            chance_of(working, shared) for working, shared in zip(state.responses, self.sums(state, key), strict=True)
        )

    def gain(self, state: State, key: Key) -> Gain:
        """Measure what a key adds, before it is added, by the second-order expansion."""
        if (effects := self._effects(state, key)) is not None:
            found = [(effect.gains, effect.surprise) for effect in effects]
        else:
            together = zip(state.responses, self.sums(state, key), strict=True)
            found = [gain_of(working, shared, self.m) for working, shared in together]
        gain = self._average([gains for gains, _ in found])
        return replace(gain, surprise=max(surprise for _, surprise in found))

    def _steps(self, working: WorkingResponse, key: Key) -> Steps:
        """Give the steps of a conjunction, from what its columns do not explain."""
        codes, size = self.keys.codes(key)
        return Steps.of(working, SharedSums.of(working, codes, size, self.keys.members(key)), self.m)

    def add(self, state: State, key: Key) -> State:
        """Add a key, and let all keys move rows again."""
        steps = [self._steps(working, key) for working in state.responses]
        self.keys.keep(key)
        moved = [self._moved(working, key, taken) for working, taken in zip(state.responses, steps, strict=True)]
        return self._sweep((*state.keys, key), moved, 1)


def sample_of(held_out: HeldOut, chosen: Array) -> HeldOut:
    """Select some of the rows, without changing their weights."""
    weight = None if held_out.weight is None else held_out.weight[chosen]
    folds = held_out.folds[chosen]
    sampled = HeldOut.of(held_out.ops, folds, held_out.visibility, None)
    if weight is None:
        return sampled
    return replace(sampled, weight=weight, weights=replace(sampled, weight=weight).by_fold(np.ones_like(weight)))


class EstimatorScorer:
    """Scores a set of keys by an estimator that is fitted to their encodings, each fold held out in turn.

    Parameters
    ----------
    rows : CodedRows
        On the host, with their one target.
    pairs : list of (array, array)
        For each fold, its rows and the rows that it sees, as boolean arrays.
    folds : int32 array (rows,)
    encoder : TargetEncoder or OneHotEncoder
        Not fitted.
    estimator : estimator of scikit-learn
    scoring : str, callable or None
    """

    sampled_rows = 0
    n_outcomes = 1

    def __init__(
        self,
        rows: CodedRows,
        pairs: Sequence[tuple[Array, Array]],
        folds: Codes,
        encoder: Any,
        estimator: BaseEstimator,
        scoring: Any = None,
    ) -> None:
        self.keys, self.pairs, self.folds = Keys(rows), pairs, folds
        self.encoder, self.estimator, self.weight = encoder, estimator, rows.weight
        (target,) = rows.targets
        self.y = target.values if target.classes is None else np.asarray(target.classes)[target.values]
        if scoring is None and is_classifier(estimator) and hasattr(estimator, "predict_proba"):
            self.scorer = log_likelihood
        else:
            self.scorer = check_scoring(estimator, scoring)
        codes = [np.where(codes < 0, np.nan, codes.astype(np.float64)) for codes in rows.codes]
        self._codes = np.column_stack(codes)
        self._encoded: dict[Key, list[tuple[Array, Array]]] = {}
        self._states: dict[tuple[Key, ...], State] = {}

    def start(self, keys: Sequence[Key]) -> State:
        """Fit and score the estimator in every fold; scores of earlier sets are remembered."""
        together = tuple(keys)
        if together not in self._states:
            encoded = [self._encode(key) for key in together]
            scores = []
            for fold in range(len(self.pairs)):
                parts = zip(*(of_key[fold] for of_key in encoded), strict=True)
                stack = sparse.hstack if sparse.issparse(encoded[0][fold][0]) else np.hstack
                scores.append(self._score_fold(fold, *(stack(each) for each in parts)))
            self._states[together] = State(together, Gain(mean(scores), tuple(scores)))
        return self._states[together]

    def _encode(self, key: Key) -> list[tuple[Array, Array]]:
        """Encode for each fold the rows that it sees, each from the other folds among them, and its own rows."""
        if key not in self._encoded:
            of_folds = []
            for own, seen in self.pairs:
                weight = None if self.weight is None else self.weight[seen]
                encoder = clone(self.encoder).set_params(columns=[tuple(range(len(key)))])
                if hasattr(encoder, "cv"):
                    encoder.set_params(cv=self.folds[seen])
                columns = self._codes[:, list(key)]
                training = encoder.fit_transform(columns[seen], self.y[seen], sample_weight=weight)
                of_folds.append((training, encoder.transform(columns[own])))
            self._encoded[key] = of_folds
        return self._encoded[key]

    def _score_fold(self, fold: int, training: Array, encodings: Array) -> float:
        own, seen = self.pairs[fold]
        weights = {} if self.weight is None else {"sample_weight": self.weight[seen]}
        fitted = clone(self.estimator).fit(training, self.y[seen], **weights)
        weights = {} if self.weight is None else {"sample_weight": self.weight[own]}
        return float(self.scorer(fitted, encodings, self.y[own], **weights))

    def foresee(self, state: State, keys: Iterable[Key]) -> None:
        """Do nothing: an estimator is fitted to one set of keys at a time."""

    def most(self, state: State, key: Key) -> float:  # noqa: ARG002
        """Give infinity: there is no sample, so any key may add anything."""
        return math.inf

    def surprise(self, state: State, key: Key) -> float:  # noqa: ARG002
        """Give infinity, since chance is not estimated."""
        return math.inf

    def gain(self, state: State, key: Key) -> Gain:
        """Measure what a key adds."""
        return self.add(state, key).minus(state)

    def add(self, state: State, key: Key) -> State:
        """Add a key."""
        return self.start((*state.keys, key))


def log_likelihood(estimator: Any, encodings: Array, y: Array, sample_weight: Array | None = None) -> float:
    """Give the mean log-likelihood of rows by a fitted classifier; an unknown class gets the least probability."""
    chances = np.clip(estimator.predict_proba(encodings), LEAST_CHANCE, 1.0 - LEAST_CHANCE)
    codes = np.searchsorted(estimator.classes_, y)
    known = np.minimum(codes, len(estimator.classes_) - 1)
    found = np.where(estimator.classes_[known] == y, chances[np.arange(len(y)), known], LEAST_CHANCE)
    return float(np.average(np.log(found), weights=sample_weight))
