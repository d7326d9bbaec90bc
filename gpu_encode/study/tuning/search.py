"""Greedy choice of conjunctions: forward, in a seeded order or the best first, then once backward."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from gpu_encode.study.tuning.scorers import Gain, Key, Scorer, State, parts_of

# A key is not measured if another, measured key adds at least this multiple of the most that the sample allows for it.
SLACK = 2.0


@dataclass(frozen=True)
class Move:
    """One step of a search: a key, whether it was added, and the score of the set afterwards."""

    action: str
    key: Key | None
    score: float
    gain: Gain | None


@dataclass
class Search:
    """A set of keys to which a search adds keys, and from which it removes some.

    Parameters
    ----------
    scorer : Scorer
    tol : float
        The least that a key must add.
    one_standard_error : bool
        Whether it must also add more than a standard error of its gain.
    most_keys : int, optional
    least_surprise : float
        By how many standard errors the spread of a key must be above chance.
    most_tries : int, optional
        `best` begins no round that would look at more keys in all rounds together.
    left_out : int
        Number of keys that no search is given, since there are more than `most_tries`.
    """

    scorer: Scorer
    tol: float
    one_standard_error: bool
    most_keys: int | None
    least_surprise: float = -math.inf
    most_tries: int | None = None
    left_out: int = 0
    path: list[Move] = field(default_factory=list)
    counted_out: set[Key] = field(default_factory=set)
    by_chance: set[Key] = field(default_factory=set)
    scored: set[Key] = field(default_factory=set)
    sampled: set[Key] = field(default_factory=set)
    ended_early: bool = False
    _bounds: tuple[State | None, dict[Key, float]] = field(default_factory=lambda: (None, {}), init=False)

    def is_enough(self, gain: Gain) -> bool:
        """Whether a gain is large enough for a key."""
        least = max(self.tol, gain.standard_error) if self.one_standard_error else self.tol
        return gain.mean > least and gain.surprise > self.least_surprise

    def is_full(self, state: State) -> bool:
        """Whether no further key may be added."""
        return self.most_keys is not None and len(state.keys) >= self.most_keys

    def most(self, state: State, key: Key) -> float:
        """Give the most that a key may add, from a sample."""
        if key in self.counted_out:
            return -math.inf
        if self.scorer.sampled_rows:
            self.sampled.add(key)
        return self._bound(state, key)

    def _bound(self, state: State, key: Key) -> float:
        """Give the most that a key may add, from a sample; it is found once for each state."""
        if self._bounds[0] is not state:
            self._bounds = state, {}
        found = self._bounds[1]
        if key not in found:
            found[key] = self.scorer.most(state, key)
        return found[key]

    def measure(self, state: State, key: Key) -> Gain | None:
        """Measure what a key adds; None if its number of categories, or chance, shows that it adds nothing."""
        if key in self.counted_out:
            return None
        # The sums that are needed here also give the number of categories.
        surprise = self.scorer.surprise(state, key)
        if self.scorer.keys.tells_nothing(key):
            self.counted_out.add(key)
            return None
        if surprise <= self.least_surprise:
            self.by_chance.add(key)
            return None
        self.scored.add(key)
        return self.scorer.gain(state, key)

    def take(self, state: State, key: Key, gain: Gain) -> State:
        """Add a key, if its gain is large enough both before and after it has moved the rows."""
        if self.is_enough(gain):
            larger = self.scorer.add(state, key)
            gain = larger.minus(state)
            if self.is_enough(gain):
                self.path.append(Move("added", key, larger.score.mean, gain))
                return larger
        self.path.append(Move("left out", key, state.score.mean, gain))
        return state

    def first(self, state: State, candidates: Sequence[Key]) -> State:
        """Add every key, in the given order, that adds enough to those before it."""
        since = 0
        for number, key in enumerate(candidates):
            if self.is_full(state):
                break
            if self.most(state, key) <= self.tol:
                continue
            coming: Iterable[Key] = islice(candidates, number, None)
            if self.scorer.sampled_rows:
                # Most keys are ruled out by the sample.  A change of the model makes this work void, so it looks ahead
                # over as many keys as it has tried since the last change.
                near = islice(candidates, number, 2 * number - since + 1)
                coming = (other for other in near if self._bound(state, other) > self.tol)
            self.scorer.foresee(state, coming)
            gain, before = self.measure(state, key), state
            if gain is not None:
                state = self.take(state, key, gain)
            since = since if state is before else number
        return state

    def once(self, state: State, candidates: Sequence[Key]) -> State:
        """Score every key by itself beside those of `state`, and add the best; equal keys in the given order.

        A key must also add enough more than each measured key that is made of some of its columns.
        """
        measured: dict[frozenset[int], Gain] = {}
        keys, ranked = list(state.keys), []
        for number, key in enumerate(candidates):
            self.scorer.foresee(state, islice(candidates, number, None))
            gain = self.measure(state, key)
            if gain is not None:
                measured[frozenset(key)] = gain
                ranked.append(key)
        for key in sorted(ranked, key=lambda key: -measured[frozenset(key)].mean):
            gain = measured[frozenset(key)]
            smaller = [measured[part] for part in parts_of(key) if part in measured]
            is_enough = self.is_enough(gain) and all(self.is_enough(gain.minus(other)) for other in smaller)
            is_kept = is_enough and (self.most_keys is None or len(keys) < self.most_keys)
            keys += [key] if is_kept else []
            self.path.append(Move("added" if is_kept else "left out", key, state.score.mean + gain.mean, gain))
        # The score of all keys together is unknown.
        return replace(state, keys=tuple(keys), score=Gain(math.nan, ())) if len(keys) > len(state.keys) else state

    def best(self, state: State, candidates: Sequence[Key]) -> State:
        """Add the key that adds most, as long as one adds enough; equal keys in the given order."""
        left, tries = list(candidates), 0
        while not self.is_full(state):
            tries += len(left)
            if self.most_tries is not None and tries > self.most_tries:
                self.ended_early = True
                break
            ranked = self.rank(state, left)
            if not ranked:
                break
            before = state
            for gain, key in ranked:
                # A key that added less than it promised is not tried again.
                left.remove(key)
                state = self.take(state, key, gain)
                if state is not before:
                    break
        return state

    def rank(self, state: State, candidates: Sequence[Key]) -> list[tuple[Gain, Key]]:
        """Measure the keys that may be the best one, and give those that add enough, the best first."""
        bounds = [(self.most(state, key), key) for key in candidates]
        measured: list[tuple[Gain, Key]] = []
        highest = self.tol
        bounds.sort(key=lambda pair: -pair[0])
        for number, (bound, key) in enumerate(bounds):
            # The sample shows that this key, and all after it, add far less than a key that was measured.
            if bound <= self.tol or SLACK * bound <= highest:
                break
            self.scorer.foresee(state, (key for _, key in islice(bounds, number, None)))
            gain = self.measure(state, key)
            if gain is not None and self.is_enough(gain):
                measured.append((gain, key))
                highest = max(highest, gain.mean)
        return sorted(measured, key=lambda pair: -pair[0].mean)

    def backward(self, state: State, base: Sequence[Key]) -> State:
        """Test every added key once more, the oldest first, and remove those for which the others make up."""
        for key in [key for key in state.keys if key not in base]:
            smaller = self.scorer.start([other for other in state.keys if other != key])
            gain = state.minus(smaller)
            if self.is_enough(gain):
                self.path.append(Move("confirmed", key, state.score.mean, gain))
            else:
                state = smaller
                self.path.append(Move("taken out", key, state.score.mean, gain))
        return state
